"""What every method of the contest has in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.papers.spatiotextual.token_sets import TokenBoxes

# The rows that match, ascending within each message; and where each message's end.
Found: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.int64]]
Built = TypeVar("Built")
WARM_UP = 64  # subscriptions of a build that is not timed, so that compiling is not


def _as_it_is(answer: Any) -> Found:
    found: Found = answer
    return found


@dataclass(frozen=True, slots=True)
class Method:
    """A way to match, built.

    ready : from messages to what is timed; what it prepares is not.
    found : from what was timed to rows.
    """

    name: str
    build_s: float
    nbytes: int
    ready: Callable[[TokenBoxes], Callable[[], Any]]
    found: Callable[[Any], Found] = _as_it_is


def timed(build: Callable[[], Built]) -> tuple[Built, float]:
    """What is built, and in how many seconds."""
    began = time.perf_counter()
    return build(), time.perf_counter() - began
