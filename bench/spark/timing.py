"""What jobs took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of one way to match.

    Attributes
    ----------
    build_s : float
        From subscriptions in Parquet to what events are matched with.
    match_s : list of float
        From events in Parquet to matches in Parquet: the first job, then those that find the
        processes started and their memory filled.
    matches : Path
        The folder of the last ones.
    stages : dict
        Parts of the last one, where they are known.
    """

    name: str
    build_s: float
    match_s: list[float]
    matches: Path
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def first_s(self) -> float:
        """The first job."""
        return self.match_s[0]

    @property
    def best_s(self) -> float:
        """The best of those after it."""
        return min(self.match_s[1:])

    def plain(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "build_s": self.build_s,
            "match_first_s": self.first_s,
            "match_best_s": self.best_s,
            "match_mean_s": float(np.mean(self.match_s[1:])),
            "match_std_s": float(np.std(self.match_s[1:])),
            "rounds": len(self.match_s) - 1,
            "stages_s": self.stages,
        }


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
