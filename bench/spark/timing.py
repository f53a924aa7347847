"""Provides `Run`, the seconds that the jobs of one method took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Run:
    """The seconds of one method.

    Attributes
    ----------
    name : str
        The method.
    build_s : float
        From subscriptions in Parquet to the index or tree.
    match_s : list of float
        From events in Parquet to matches in Parquet: the first job, then the warm jobs, whose
        processes run and have the index in memory.
    matches : Path
        The folder that the last job wrote.
    stages : dict
        The seconds of each stage of the last job, if they are known.
    """

    name: str
    build_s: float
    match_s: list[float]
    matches: Path
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def first_s(self) -> float:
        """The seconds of the first job."""
        return self.match_s[0]

    @property
    def best_s(self) -> float:
        """The seconds of the fastest warm job."""
        return min(self.match_s[1:])

    def plain(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
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
    """Return the seconds that a call of `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
