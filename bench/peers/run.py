"""`run`: measures a figure by name."""

from __future__ import annotations

from typing import Any

from bench.peers.figures import churn, fences, growth, mixed, tables, taxi
from bench.progress import Progress
from bench.report import Report

FIGURES: dict[str, Any] = {
    "fences": fences,
    "taxi": taxi,
    "mixed": mixed,
    "growth": growth,
    "churn": churn,
    "tables": tables,
}


def run(figure: str, *, quick: bool, seed: int, progress: Progress) -> Report:
    """Measure a figure and return its report."""
    chosen = FIGURES[figure]
    report: Report = chosen.run(
        chosen.QUICK if quick else chosen.FULL, seed=seed, progress=progress
    )
    return report
