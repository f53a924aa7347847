"""The figures by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.papers.events.figures import buses, members, shop, taxi
from bench.progress import Progress
from bench.report import Report

FIGURES: dict[str, Any] = {
    "taxi": taxi,
    "shop": shop,
    "buses": buses,
    "members": members,
}


def run(
    figure: str,
    *,
    quick: bool,
    seed: int,
    scale: int | None = None,
    source: str | None = None,
    progress: Progress,
) -> Report:
    """Measure one figure.

    Without a scale it has its own number of subscriptions; without a source, real positions of
    buses are used where they are there.
    """
    chosen = FIGURES[figure]
    sizes = chosen.QUICK if quick else chosen.FULL
    if scale is not None and hasattr(sizes, "scale"):
        sizes = replace(sizes, scale=scale)
    report: Report = chosen.run(sizes, seed=seed, source=source, progress=progress)
    return report
