"""Lower bounds on the time of a message from the latency of memory.

An index that exceeds the caches cannot answer faster than it can fetch the cache lines it needs. A
chase follows pointers in a random cycle through as many bytes as the index has, so that each read
waits for the previous read. A gather reads at random addresses that are known in advance, so that
the processor fetches many lines at the same time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from bench.compiling import compiled
from bench.papers.spatiotextual.methods import timed
from bench.papers.spatiotextual.token_sets import Ints

_LINE = 8  # numbers of 8 bytes in a cache line
_READS = 1_000_000
_ROUNDS = 5
# The steps of a message: read the head of each token's list; read the first line of each list; read
# the other tokens and the row of each answer.
STEPS = 3


@dataclass(frozen=True, slots=True)
class Memory:
    """Nanoseconds for each read in an array of `nbytes` bytes, best of several rounds."""

    nbytes: int
    chase_ns: float
    gather_ns: float

    def plain(self) -> dict[str, float]:
        """Return the numbers for JSON."""
        return asdict(self)

    def min_us(self, tokens: float, answers: float) -> float:
        """Return microseconds for each message if all reads overlap, even across messages."""
        return reads(tokens, answers) * self.gather_ns / 1e3

    def in_steps_us(self, tokens: float, answers: float) -> float:
        """Return microseconds if the reads of a step overlap, but steps and messages do not."""
        return self.min_us(tokens, answers) + STEPS * self.chase_ns / 1e3

    def waiting_us(self, tokens: float, answers: float) -> float:
        """Return microseconds if each read waits for the previous read."""
        return reads(tokens, answers) * self.chase_ns / 1e3


def reads(tokens: float, answers: float) -> float:
    """Return the least number of cache lines that a message has to read; see `STEPS`."""
    return 2 * tokens + 2 * answers


def measure(nbytes: int, seed: int = 0) -> Memory:
    """Time reads in an array of `nbytes` bytes."""
    lines = max(16, nbytes // (8 * _LINE))
    rng = np.random.default_rng([seed, 15])
    order = rng.permutation(lines)
    array = np.zeros(lines * _LINE, np.int64)
    array[order * _LINE] = np.roll(order, -1) * _LINE
    place = _chase(array, 0, 10)
    _gather(array, order[:10])
    chases, gathers = [], []
    for _ in range(_ROUNDS):  # at addresses that no earlier round has loaded into the caches
        place, seconds = timed(partial(_chase, array, place, _READS))
        chases.append(seconds)
        places = rng.integers(0, lines, _READS) * _LINE
        gathers.append(timed(partial(_gather, array, places))[1])
    return Memory(nbytes, min(chases) / _READS * 1e9, min(gathers) / _READS * 1e9)


@compiled
def _chase(array: Ints, place: int, steps: int) -> int:
    for _ in range(steps):
        place = array[place]
    return place


@compiled
def _gather(array: Ints, places: Ints) -> int:
    total = 0
    for place in places:
        total += array[place]
    return total
