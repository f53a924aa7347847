"""Lists the figures by name, and runs one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.progress import Progress
from bench.report import Report
from bench.spark.figures import million, partitioned, peer, skew

FIGURES: dict[str, Any] = {
    "million": million,
    "skew": skew,
    "partitioned": partitioned,
    "peer": peer,
}


def run(figure: str, *, scale: int, seed: int, progress: Progress) -> Report:
    """Measure one figure with `scale` events, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        report: Report = FIGURES[figure].run(Path(folder), scale, seed=seed, progress=progress)
    return report
