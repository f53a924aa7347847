"""`measure`: times methods on the same events by turns, and compares their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.timing import Timing, alternate

# Pairs of event and row, ascending, each as one number: the event is the upper half.
Pairs: TypeAlias = NDArray[np.uint64]
Built = TypeVar("Built")
BULK, SINGLE = "in bulk", "one at a time"
_PROBE_EVENTS = {BULK: 1_000, SINGLE: 50}  # to estimate the time of an event


@dataclass(frozen=True, slots=True)
class Method:
    """A way to match, with its index built.

    Attributes
    ----------
    name : str
    mode : str
        `BULK`: it gets all events at once; `SINGLE`: one at a time.
    build_s : float
    prepare : callable
        Takes a number n, and returns a function that matches the first n events; it is timed.
    pairs : callable
        Converts the result of that function to `Pairs`.
    """

    name: str
    mode: str
    build_s: float
    prepare: Callable[[int], Callable[[], Any]]
    pairs: Callable[[Any], Pairs]


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of rounds, and the seconds for each method."""

    rounds: int
    budget_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The times and answers of all methods in one setting.

    Attributes
    ----------
    judge : str
        The method whose answers the others are compared with.
    modes, build_s, times : dict
        By method.
    events, ids : dict
        By method, the number of events that it matched, and of ids in its answers.
    differing : dict
        By method, the number of ids that are missing or wrong.
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
        """The mean number of ids that match an event."""
        return self.ids[self.judge] / self.events[self.judge]

    def best_us(self, *names: str) -> float | None:
        """Return the microseconds an event of the fastest of these methods, or None."""
        times_us = [self.times[name].min_ms * 1e3 for name in names if name in self.times]
        return min(times_us, default=None)

    def plain(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
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

    A slow method runs only as many events as its budget allows. The judge matches all events.
    """
    (judge_method,) = (method for method in methods if method.name == judge)
    expected = judge_method.pairs(judge_method.prepare(count)())
    counts = {method.name: _affordable_events(method, count, effort) for method in methods}
    runs = {method.name: method.prepare(counts[method.name]) for method in methods}
    answers = {method.name: method.pairs(runs[method.name]()) for method in methods}
    return Outcome(
        judge,
        {method.name: method.mode for method in methods},
        {method.name: method.build_s for method in methods},
        alternate(runs, items=counts, rounds=effort.rounds, budget_s=effort.budget_s),
        counts,
        {name: len(pairs) for name, pairs in answers.items()},
        {
            name: len(
                np.setxor1d(pairs, pairs_of_first(expected, counts[name]), assume_unique=True)
            )
            for name, pairs in answers.items()
        },
    )


def _affordable_events(method: Method, count: int, effort: Effort) -> int:
    """Return the number of events that a method can match in each round."""
    probe_count = min(_PROBE_EVENTS[method.mode], count)
    probe = method.prepare(probe_count)
    seconds = min(timed(probe)[1] for _ in range(2))
    round_s = effort.budget_s / (effort.rounds + 2)
    return int(np.clip(round_s / (seconds / probe_count), probe_count, count))


def wrong_ids(outcomes: Iterable[Outcome]) -> int:
    """Return the number of ids in which methods differ from the judges."""
    return sum(sum(outcome.differing.values()) for outcome in outcomes)


def timed(build: Callable[[], Built]) -> tuple[Built, float]:
    """Return the result of `build`, and the seconds that it took."""
    began = time.perf_counter()
    return build(), time.perf_counter() - began


# ------------------------------------------------------------------------------------------- pairs


def pairs_of(events: NDArray[Any], rows: NDArray[Any]) -> Pairs:
    """Return the pairs of two columns."""
    return np.sort(events.astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64))


def pairs_of_lists(answers: Sequence[Sequence[Any] | NDArray[Any]]) -> Pairs:
    """Return the pairs of a list for each event: of row numbers, also as texts."""
    events = np.repeat(np.arange(len(answers)), [len(rows) for rows in answers])
    rows = np.concatenate([np.empty(0, np.int64), *(np.asarray(a, np.int64) for a in answers)])
    return pairs_of(events, rows)


def pairs_of_first(pairs: Pairs, count: int) -> Pairs:
    """Return the pairs of the first `count` events."""
    return pairs[: np.searchsorted(pairs, np.uint64(count) << np.uint64(32))]


def one_at_a_time(
    match: Callable[..., Any], events: Sequence[Any]
) -> Callable[[int], Callable[[], Any]]:
    """Return a `Method.prepare` that calls `match` with one event at a time."""

    def prepare(count: int) -> Callable[[], Any]:
        chosen = events[:count]
        return lambda: [match(event) for event in chosen]

    return prepare


def one_point_at_a_time(
    match: Callable[[float, float], Any], points: NDArray[np.float64]
) -> Callable[[int], Callable[[], Any]]:
    """Return a `Method.prepare` that calls `match` with the coordinates of one point at a time."""
    coordinates = [tuple(point) for point in points.tolist()]

    def prepare(count: int) -> Callable[[], Any]:
        chosen = coordinates[:count]
        return lambda: [match(x, y) for x, y in chosen]

    return prepare


def outcomes_as_json(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Return outcomes by setting, for JSON."""
    return {label: outcome.plain() for label, outcome in outcomes.items()}
