"""Methods on the same events: timed by turns in one run, their answers compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.timing import Timing, alternate

# Event and row as one number each, ascending: the event in the upper half.
Pairs: TypeAlias = NDArray[np.uint64]
Built = TypeVar("Built")
BULK, SINGLE = "in bulk", "one at a time"
_PROBE = {BULK: 1_000, SINGLE: 50}  # events by which the cost of one is guessed


@dataclass(frozen=True, slots=True)
class Method:
    """A way to match, built.

    mode : whether it gets all events at once, or each by itself.
    ready : from a number of events to what is timed: matching the first so many.
    pairs : from what was timed to pairs.
    """

    name: str
    mode: str
    build_s: float
    ready: Callable[[int], Callable[[], Any]]
    pairs: Callable[[Any], Pairs]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rounds, and seconds for each method."""

    rounds: int
    budget_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the events of one setting cost, and whether all methods agree.

    judge : the method whose answers the others are compared with.
    """

    judge: str
    modes: dict[str, str]
    build_s: dict[str, float]
    times: dict[str, Timing]
    events: dict[str, int]
    ids: dict[str, int]
    differing: dict[str, int]

    @property
    def answers(self) -> float:
        """Of an event, on average."""
        return self.ids[self.judge] / self.events[self.judge]

    def best_us(self, *names: str) -> float | None:
        """Microseconds an event by the fastest of these methods; None if none took part."""
        own = [self.times[name].min_ms * 1e3 for name in names if name in self.times]
        return min(own, default=None)

    def plain(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "judge": self.judge,
            "answers": self.answers,
            "methods": {
                name: {
                    "mode": self.modes[name],
                    "build_s": self.build_s[name],
                    "events": self.events[name],
                    "ids": self.ids[name],
                    "differing_ids": self.differing[name],
                    **timing.plain(),
                }
                for name, timing in self.times.items()
            },
        }


def measure(methods: Sequence[Method], count: int, effort: Effort, judge: str) -> Outcome:
    """Time each method on the first `count` events and compare the answers.

    A slow method runs fewer of them, as many as its budget allows. The judge answers them all.
    """
    (judging,) = (method for method in methods if method.name == judge)
    right = judging.pairs(judging.ready(count)())
    counts = {method.name: _affordable(method, count, effort) for method in methods}
    ways = {method.name: method.ready(counts[method.name]) for method in methods}
    answered = {method.name: method.pairs(ways[method.name]()) for method in methods}
    return Outcome(
        judge,
        {method.name: method.mode for method in methods},
        {method.name: method.build_s for method in methods},
        alternate(ways, items=counts, rounds=effort.rounds, budget_s=effort.budget_s),
        counts,
        {name: len(pairs) for name, pairs in answered.items()},
        {
            name: len(np.setxor1d(pairs, first(right, counts[name]), assume_unique=True))
            for name, pairs in answered.items()
        },
    )


def _affordable(method: Method, count: int, effort: Effort) -> int:
    """How many events a method can run in each round."""
    few = min(_PROBE[method.mode], count)
    way = method.ready(few)
    seconds = min(timed(way)[1] for _ in range(2))
    each = effort.budget_s / (effort.rounds + 2)
    return int(np.clip(each / (seconds / few), few, count))


def wrong_ids(outcomes: Iterable[Outcome]) -> int:
    """In how many ids methods differ from the judges."""
    return sum(sum(outcome.differing.values()) for outcome in outcomes)


def timed(build: Callable[[], Built]) -> tuple[Built, float]:
    """What is built, and in how many seconds."""
    began = time.perf_counter()
    return build(), time.perf_counter() - began


# ------------------------------------------------------------------------------------------- pairs


def pairs_of(events: NDArray[Any], rows: NDArray[Any]) -> Pairs:
    """Pairs of two columns."""
    return np.sort(events.astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64))


def pairs_of_lists(answers: Sequence[Sequence[Any] | NDArray[Any]]) -> Pairs:
    """Pairs of the rows that each event has, or of their numbers as texts."""
    events = np.repeat(np.arange(len(answers)), [len(own) for own in answers])
    rows = np.concatenate([np.empty(0, np.int64), *(np.asarray(a, np.int64) for a in answers)])
    return pairs_of(events, rows)


def first(pairs: Pairs, count: int) -> Pairs:
    """The pairs of the first events."""
    return pairs[: np.searchsorted(pairs, np.uint64(count) << np.uint64(32))]


def over(match: Callable[..., Any], events: Sequence[Any]) -> Callable[[int], Callable[[], Any]]:
    """A method that takes one event at a time, as `Method.ready` wants it."""

    def ready(count: int) -> Callable[[], Any]:
        own = events[:count]
        return lambda: [match(event) for event in own]

    return ready


def over_points(
    match: Callable[[float, float], Any], points: NDArray[np.float64]
) -> Callable[[int], Callable[[], Any]]:
    """The same for points, given as two numbers."""
    listed = [tuple(point) for point in points.tolist()]

    def ready(count: int) -> Callable[[], Any]:
        own = listed[:count]
        return lambda: [match(x, y) for x, y in own]

    return ready


def plain_outcomes(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Outcomes by setting, for JSON."""
    return {label: own.plain() for label, own in outcomes.items()}
