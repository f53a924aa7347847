"""`run`: measures a figure by its name."""

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

    scale : the number of subscriptions; the figure's own if None.
    source : "real" or "synthetic" positions of buses; real if the data exist and this is None.
    """
    module = FIGURES[figure]
    sizes = module.QUICK if quick else module.FULL
    if scale is not None and hasattr(sizes, "scale"):
        sizes = replace(sizes, scale=scale)
    report: Report = module.run(sizes, seed=seed, source=source, progress=progress)
    return report
