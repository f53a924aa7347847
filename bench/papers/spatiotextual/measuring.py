"""`measure`: times methods on the same messages by turns, and compares their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers.spatiotextual import brute_force
from bench.papers.spatiotextual.methods import Matches, Method, timed
from bench.papers.spatiotextual.token_sets import TokenBoxes
from bench.papers.spatiotextual.workloads import Workload
from bench.timing import Timing, alternate

_PROBE = 8
_MAX_ANSWERS = 5_000_000  # of all timed messages together; bounds the memory for answers


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rounds, seconds for each method, messages checked by brute force."""

    rounds: int
    budget_s: float
    verify: int


@dataclass(frozen=True, slots=True)
class Check:
    """Wrong ids by method, by brute force, and ids that differ from the reference method's."""

    messages: int
    ids: int
    wrong: dict[str, int]
    compared: dict[str, int]  # messages that were compared with the reference method
    differing: dict[str, int]

    @property
    def bad(self) -> int:
        """Number of all wrong and differing ids."""
        return sum(self.wrong.values()) + sum(self.differing.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    """Times and answers of all methods on one set of messages."""

    times: dict[str, Timing]
    messages: dict[str, int]  # messages that each method ran
    tokens: float  # for each message, on average
    answers: float  # for each message, on average
    check: Check

    def plain(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
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

    A slow method runs only as many of the first messages as its budget allows. A fast method needs
    many messages, so that its index does not stay in the caches.
    """
    sample = messages.first(effort.verify)
    expected = brute_force.answers(workload.subscriptions, sample, workload.topics.vocabulary)
    wrong = {method.name: differences(_run(method, sample), expected) for method in methods}
    mean = max(1.0, float(np.mean([len(rows) for rows in expected])))
    messages = messages.first(min(len(messages), max(_PROBE, int(_MAX_ANSWERS / mean))))
    counts = {method.name: _affordable(method, messages, effort) for method in methods}
    ways = {method.name: method.ready(messages.first(counts[method.name])) for method in methods}
    answered = {method.name: method.matches_of(ways[method.name]()) for method in methods}
    reference = max(counts, key=lambda name: counts[name])
    times = alternate(ways, items=counts, rounds=effort.rounds, budget_s=effort.budget_s)
    stops = answered[reference][1]
    return Outcome(
        times,
        counts,
        messages.mean_tokens,
        float(stops[-1] / len(stops)),
        Check(
            len(sample),
            sum(map(len, expected)),
            wrong,
            counts,
            {
                name: _count_differing(method_matches, answered[reference])
                for name, method_matches in answered.items()
            },
        ),
    )


def check(
    workload: Workload, methods: Sequence[Method], messages: TokenBoxes
) -> tuple[int, dict[str, int]]:
    """Return the number of ids by brute force, and the number of wrong ids of each method."""
    expected = brute_force.answers(workload.subscriptions, messages, workload.topics.vocabulary)
    wrong = {method.name: differences(_run(method, messages), expected) for method in methods}
    return sum(map(len, expected)), wrong


def _run(method: Method, messages: TokenBoxes) -> Matches:
    return method.matches_of(method.ready(messages)())


def _affordable(method: Method, messages: TokenBoxes, effort: Effort) -> int:
    """Return how many messages a method can run in each round."""
    few = messages.first(min(_PROBE, len(messages)))
    way = method.ready(few)
    seconds = min(timed(way)[1] for _ in range(2))
    each = effort.budget_s / (effort.rounds + 2)
    return int(np.clip(each / (seconds / len(few)), len(few), len(messages)))


def differences(matches: Matches, expected: Sequence[NDArray[np.int64]]) -> int:
    """Return how many ids are missing, too many, or out of order in all answers."""
    rows, stops = matches
    parts = np.split(rows.astype(np.int64), stops[:-1])
    return sum(
        len(np.setxor1d(part, answer)) + (not np.array_equal(part, np.unique(part)))
        for part, answer in zip(parts, expected, strict=True)
    )


def _count_differing(matches: Matches, reference: Matches) -> int:
    """Return how many ids differ from a reference that has at least as many messages."""
    count = len(matches[1])
    size = reference[1][count - 1] if count else 0
    pairs, reference_pairs = _pairs(*matches), _pairs(reference[0][:size], reference[1][:count])
    return 0 if np.array_equal(pairs, reference_pairs) else len(np.setxor1d(pairs, reference_pairs))


def _pairs(rows: NDArray[np.uint32], stops: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return each pair of a message and a row as one number."""
    message = np.repeat(np.arange(len(stops), dtype=np.uint64), np.diff(stops, prepend=0))
    return message << np.uint64(32) | rows.astype(np.uint64)
