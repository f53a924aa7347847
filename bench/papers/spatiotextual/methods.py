"""`Method`: a method of the contest, built and ready to be timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.papers.spatiotextual.token_sets import TokenBoxes

# The matching rows, ascending for each message, and where the rows of each message end.
Matches: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.int64]]
Built = TypeVar("Built")
WARM_UP = 64  # subscriptions of a first build, which compiles and is not timed


def _identity(answer: Any) -> Matches:
    matches: Matches = answer
    return matches


@dataclass(frozen=True, slots=True)
class Method:
    """A method that has been built.

    ready : from messages to the call that is timed; preparing it is not timed.
    matches_of : from the result of the call to rows.
    """

    name: str
    build_s: float
    nbytes: int
    ready: Callable[[TokenBoxes], Callable[[], Any]]
    matches_of: Callable[[Any], Matches] = _identity


def timed(build: Callable[[], Built]) -> tuple[Built, float]:
    """Call `build`. Return its result, and the seconds that it took."""
    began = time.perf_counter()
    return build(), time.perf_counter() - began
