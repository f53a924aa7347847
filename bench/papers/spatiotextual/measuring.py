"""Methods on the same messages: timed by turns, their answers compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers.spatiotextual import brute_force
from bench.papers.spatiotextual.methods import Found, Method, timed
from bench.papers.spatiotextual.token_sets import TokenBoxes
from bench.papers.spatiotextual.workloads import Workload
from bench.timing import Timing, alternate

_PROBE = 8
_MOST_ANSWERS = 5_000_000  # of all messages that are timed: what memory is spent on them


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rounds, seconds for a method, messages that are checked one by one."""

    rounds: int
    budget_s: float
    verify: int


@dataclass(frozen=True, slots=True)
class Check:
    """Wrong ids by method: against brute force, and against another method on what it ran."""

    messages: int
    ids: int
    wrong: dict[str, int]
    compared: dict[str, int]  # messages
    differing: dict[str, int]

    @property
    def bad(self) -> int:
        """All that is wrong or differs."""
        return sum(self.wrong.values()) + sum(self.differing.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one set of messages costs, and what it answers."""

    times: dict[str, Timing]
    messages: dict[str, int]  # that each method ran
    tokens: float  # a message
    answers: float  # a message
    check: Check

    def plain(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "times": {name: timing.plain() for name, timing in self.times.items()},
            "messages": self.messages,
            "tokens": self.tokens,
            "answers": self.answers,
            "check": {
                "messages": self.check.messages,
                "ids": self.check.ids,
                "wrong_ids": self.check.wrong,
                "compared_messages": self.check.compared,
                "differing_ids": self.check.differing,
            },
        }


def measure(
    workload: Workload, methods: Sequence[Method], messages: TokenBoxes, effort: Effort
) -> Outcome:
    """Time each method and compare the answers.

    A slow method runs the first messages only, as many as its budget allows, so that a fast one
    can have enough of them for its index not to stay in the caches.
    """
    sample = messages.first(effort.verify)
    right = brute_force.answers(workload.subscriptions, sample, workload.topics.vocabulary)
    wrong = {method.name: differences(_run(method, sample), right) for method in methods}
    mean = max(1.0, float(np.mean([len(rows) for rows in right])))
    messages = messages.first(min(len(messages), max(_PROBE, int(_MOST_ANSWERS / mean))))
    counts = {method.name: _affordable(method, messages, effort) for method in methods}
    ways = {method.name: method.ready(messages.first(counts[method.name])) for method in methods}
    answered = {method.name: method.found(ways[method.name]()) for method in methods}
    judge = max(counts, key=lambda name: counts[name])
    times = alternate(ways, items=counts, rounds=effort.rounds, budget_s=effort.budget_s)
    stops = answered[judge][1]
    return Outcome(
        times,
        counts,
        messages.mean_tokens,
        float(stops[-1] / len(stops)),
        Check(
            len(sample),
            sum(map(len, right)),
            wrong,
            counts,
            {name: _differing(found, answered[judge]) for name, found in answered.items()},
        ),
    )


def check(
    workload: Workload, methods: Sequence[Method], messages: TokenBoxes
) -> tuple[int, dict[str, int]]:
    """How many ids all answers have by brute force, and how many of each method's are wrong."""
    right = brute_force.answers(workload.subscriptions, messages, workload.topics.vocabulary)
    wrong = {method.name: differences(_run(method, messages), right) for method in methods}
    return sum(map(len, right)), wrong


def _run(method: Method, messages: TokenBoxes) -> Found:
    return method.found(method.ready(messages)())


def _affordable(method: Method, messages: TokenBoxes, effort: Effort) -> int:
    """How many messages a method can run in each round."""
    few = messages.first(min(_PROBE, len(messages)))
    way = method.ready(few)
    seconds = min(timed(way)[1] for _ in range(2))
    each = effort.budget_s / (effort.rounds + 2)
    return int(np.clip(each / (seconds / len(few)), len(few), len(messages)))


def differences(found: Found, right: Sequence[NDArray[np.int64]]) -> int:
    """How many ids are missing, too many, or out of order in all answers."""
    rows, stops = found
    parts = np.split(rows.astype(np.int64), stops[:-1])
    return sum(
        len(np.setxor1d(part, answer)) + (not np.array_equal(part, np.unique(part)))
        for part, answer in zip(parts, right, strict=True)
    )


def _differing(found: Found, other: Found) -> int:
    """In how many ids two answers differ, in the messages that the first has."""
    count = len(found[1])
    size = other[1][count - 1] if count else 0
    own, others = _pairs(*found), _pairs(other[0][:size], other[1][:count])
    return 0 if np.array_equal(own, others) else len(np.setxor1d(own, others))


def _pairs(rows: NDArray[np.uint32], stops: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Message and row as one number each."""
    message = np.repeat(np.arange(len(stops), dtype=np.uint64), np.diff(stops, prepend=0))
    return message << np.uint64(32) | rows.astype(np.uint64)
