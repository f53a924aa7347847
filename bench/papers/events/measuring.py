"""`measure`: times all methods on a scenario by turns, and compares their answers."""

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
    """How much is measured.

    rounds, budget_s : rounds and seconds for each method.
    one_by_one : events that are matched one by one.
    verify : events that are checked by brute force.
    """

    rounds: int
    budget_s: float
    one_by_one: int
    verify: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Times, sizes and answers of all methods on one scenario."""

    subscriptions: int
    events: int
    origin: str
    times: dict[str, Timing]
    nbytes: dict[str, int]
    build_s: dict[str, float]
    matching: float  # the share of events that match a subscription
    answers: float  # matches for each event, on average
    sent: float  # the share of events that objects with safe regions send
    wrong: dict[str, int]  # wrong pairs of an event and a subscription, by method

    def share(self, name: str) -> float:
        """Return a method's time in percent of the standard version's, with encoded events."""
        return 100 * self.times[name].min_ms / self.times[STANDARD].min_ms

    def memory_share(self, name: str) -> float:
        """Return a method's bytes in percent of the standard version's."""
        return 100 * self.nbytes[name] / self.nbytes[STANDARD]

    def plain(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
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
    pairs = {name: way.pairs(way.run()) for name, way in built.ways.items()}
    checked = min(effort.verify, len(scenario))
    reference = pairs[KERNEL]  # for the events that brute force does not evaluate
    expected = np.concatenate(
        (_brute_force(scenario, checked), reference[reference[:, 0] >= checked])
    )
    wrong = {
        name: _count_differing(method_pairs, expected[expected[:, 0] < built.ways[name].items])
        for name, method_pairs in pairs.items()
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
        len(np.unique(reference[:, 0])) / len(scenario),
        len(reference) / len(scenario),
        sent,
        wrong,
    )


def _with_safe_regions(built: Built, scenario: Scenario) -> float:
    """Add the optimised version on the events that objects with safe regions send.

    Returns the share of these events.
    """
    sent = silence.sent(built.matcher, scenario, methods.mappings(scenario, len(scenario)))
    built.ways[SILENT] = methods.version(built.tables[OPTIMISED], scenario, np.flatnonzero(sent))
    return float(sent.mean())


def _brute_force(scenario: Scenario, count: int) -> Pairs:
    """Return the pairs of the first `count` events, by brute force."""
    answers = [scenario.answer(row) for row in range(count)]
    events = np.repeat(np.arange(count), [len(rows) for rows in answers])
    return np.column_stack((events, np.concatenate([np.empty(0, np.int64), *answers])))


def _count_differing(pairs: Pairs, expected: Pairs) -> int:
    """Return the number of pairs that only one of the two has."""
    return len(set(map(tuple, pairs.tolist())) ^ set(map(tuple, expected.tolist())))
