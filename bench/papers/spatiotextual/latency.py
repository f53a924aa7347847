"""What memory allows: reads that wait for one another, and reads that do not.

An index that does not fit into the caches cannot answer faster than it can fetch the lines it
needs. A chase follows pointers in a random cycle through as many bytes as the index has, so that
each read waits for the one before; a gather reads at random places that are known beforehand, so
that the processor fetches many lines at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numba
import numpy as np

from bench.papers.spatiotextual.token_sets import Ints

_LINE = 8  # numbers of 8 bytes in a line of the cache
_READS = 1_000_000
_ROUNDS = 5
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Memory:
    """Nanoseconds a read, in an array of so many bytes: best of some rounds."""

    nbytes: int
    chase_ns: float
    gather_ns: float

    def plain(self) -> dict[str, float]:
        """The numbers, for JSON."""
        return asdict(self)

    def least_us(self, tokens: float, answers: float) -> float:
        """Microseconds that a message of so many tokens and answers needs at least.

        For each token the head of its list and the first line of the list; for each answer its
        other tokens and its row; all of them asked for at once.
        """
        return reads(tokens, answers) * self.gather_ns / 1e3

    def waiting_us(self, tokens: float, answers: float) -> float:
        """The same where each read waits for the one before."""
        return reads(tokens, answers) * self.chase_ns / 1e3


def reads(tokens: float, answers: float) -> float:
    """Lines that a message has to read at least."""
    return 2 * tokens + 2 * answers


def _compiled(function: Function) -> Function:
    return numba.njit(cache=True)(function)  # type: ignore[no-any-return]


def measure(nbytes: int, seed: int = 0) -> Memory:
    """Time reads in an array of this size."""
    lines = max(16, nbytes // (8 * _LINE))
    rng = np.random.default_rng([seed, 15])
    order = rng.permutation(lines)
    array = np.zeros(lines * _LINE, np.int64)
    array[order * _LINE] = np.roll(order, -1) * _LINE
    places = rng.integers(0, lines, _READS) * _LINE
    _chase(array, 10)
    _gather(array, places[:10])
    best = [np.inf, np.inf]
    for _ in range(_ROUNDS):
        for number, way in enumerate(
            (lambda: _chase(array, _READS), lambda: _gather(array, places))
        ):
            began = time.perf_counter()
            way()
            best[number] = min(best[number], (time.perf_counter() - began) / _READS * 1e9)
    return Memory(nbytes, *best)


@_compiled
def _chase(array: Ints, steps: int) -> int:
    place = 0
    for _ in range(steps):
        place = array[place]
    return place


@_compiled
def _gather(array: Ints, places: Ints) -> int:
    total = 0
    for place in places:
        total += array[place]
    return total
