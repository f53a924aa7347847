"""All methods on one scenario: timed by turns, their answers compared with brute force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.papers.events import methods, silence
from bench.papers.events.methods import KERNEL, OPTIMISED, SILENT, STANDARD, Built, Pairs
from bench.papers.events.scenarios import Scenario
from bench.timing import Timing, alternate


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rounds, seconds for a method, events one by one and by brute force."""

    rounds: int
    budget_s: float
    one_by_one: int
    verify: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario costs, and what it answers."""

    subscriptions: int
    events: int
    origin: str
    times: dict[str, Timing]
    nbytes: dict[str, int]
    build_s: dict[str, float]
    matching: float  # the share of events that match something
    answers: float  # an event
    sent: float  # the share of events that safe regions let through
    wrong: dict[str, int]  # pairs of an event and a subscription, by method

    def share(self, name: str) -> float:
        """A method's time in percent of the standard version's with all events laid out."""
        return 100 * self.times[name].min_ms / self.times[STANDARD].min_ms

    def memory_share(self, name: str) -> float:
        """A method's bytes in percent of the standard version's."""
        return 100 * self.nbytes[name] / self.nbytes[STANDARD]

    def plain(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "subscriptions": self.subscriptions,
            "events": self.events,
            "origin": self.origin,
            "times": {name: timing.plain() for name, timing in self.times.items()},
            "percent_of_standard_time": {name: self.share(name) for name in self.times},
            "bytes": self.nbytes,
            "percent_of_standard_bytes": {name: self.memory_share(name) for name in self.nbytes},
            "build_s": self.build_s,
            "matching": self.matching,
            "answers": self.answers,
            "sent": self.sent,
            "wrong_pairs": self.wrong,
        }


def measure(scenario: Scenario, effort: Effort) -> Outcome:
    """Time each method and check its answers."""
    built = methods.build(scenario, min(effort.one_by_one, len(scenario)))
    sent = _with_safe_regions(built, scenario)
    found = {name: way.pairs(way.run()) for name, way in built.ways.items()}
    checked = min(effort.verify, len(scenario))
    judge = found[KERNEL]  # of the events that brute force does not look at
    right = np.concatenate((_right(scenario, checked), judge[judge[:, 0] >= checked]))
    wrong = {
        name: _differing(own, right[right[:, 0] < built.ways[name].items])
        for name, own in found.items()
    }
    times = alternate(
        {name: way.run for name, way in built.ways.items()},
        items={name: way.items for name, way in built.ways.items()},
        rounds=effort.rounds,
        budget_s=effort.budget_s,
    )
    return Outcome(
        len(scenario.subscriptions),
        len(scenario),
        scenario.origin,
        times,
        built.nbytes,
        built.build_s,
        len(np.unique(judge[:, 0])) / len(scenario),
        len(judge) / len(scenario),
        sent,
        wrong,
    )


def _with_safe_regions(built: Built, scenario: Scenario) -> float:
    """Add the optimised version on the events that objects with safe regions send."""
    sent = silence.sent(built.matcher, scenario, methods.mappings(scenario, len(scenario)))
    built.ways[SILENT] = methods.version(built.tables[OPTIMISED], scenario, np.flatnonzero(sent))
    return float(sent.mean())


def _right(scenario: Scenario, count: int) -> Pairs:
    """What matches the first events, by brute force."""
    own = [scenario.answer(row) for row in range(count)]
    events = np.repeat(np.arange(count), [len(rows) for rows in own])
    return np.column_stack((events, np.concatenate([np.empty(0, np.int64), *own])))


def _differing(found: Pairs, right: Pairs) -> int:
    """How many pairs are in one of the two only."""
    return len(set(map(tuple, found.tolist())) ^ set(map(tuple, right.tolist())))
