"""Subscriptions that came last, in arrays that grow: older states stay as they were."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from fencepost.cql2 import parse
from fencepost.engine import Matcher, match_pairs
from fencepost.engine import memtable as memtable_module
from fencepost.reference import evaluate

MANY = 300  # more than the first arrays have room for


def expression(rng: random.Random, number: int) -> str:
    x, y = rng.uniform(0, 10), rng.uniform(0, 10)
    parts = [
        f"S_INTERSECTS(g, BBOX({x}, {y}, {x + 3}, {y + 3}))",
        f"S_DWITHIN(g, LINESTRING({x} {y}, {y} {x}, 5 5), 1)",
        f"S_INTERSECTS(g, POLYGON(({x} {y}, {x + 4} {y}, {x + 4} {y + 4}, {x} {y}),"
        f" ({x + 2} {y + 1}, {x + 3} {y + 1}, {x + 3} {y + 2}, {x + 2} {y + 1})))",
        f"S_INTERSECTS(h, BBOX({y}, {x}, {y + 3}, {x + 3}))",
        f"s IN ('a', 'unknown {number}', 'b{number % 3}')",
        f"s LIKE 'b%' OR s > 'x{number}'",
        f"A_CONTAINS(l, ('word{number % 5}'))",
        f"n BETWEEN {number % 7} AND {number % 7 + 3}",
    ]
    return " AND ".join(f"({part})" for part in rng.sample(parts, rng.randint(1, 3)))


def event(rng: random.Random) -> dict[str, Any]:
    places = {
        name: f"POINT ({rng.uniform(0, 12)} {rng.uniform(0, 12)})"
        for name in "gh"
        if rng.random() < 0.8
    }
    return {
        **places,
        "s": rng.choice(["a", "b0", "b1", "x9", "unknown 7"]),
        "l": [f"word{k}" for k in range(5) if rng.random() < 0.5],
        "n": rng.randint(0, 10),
    }


def test_every_state_on_the_way_stays_as_it_was() -> None:
    rng = random.Random(5)
    matcher = Matcher()
    events = [event(rng) for _ in range(6)]
    truths: dict[str, list[bool]] = {}
    states = []
    for number in range(MANY):
        text = expression(rng, number)
        if truths and rng.random() < 0.2:
            id = rng.choice(list(truths))
            assert matcher.unsubscribe(id)
            del truths[id]
        id = rng.choice(list(truths)) if truths and rng.random() < 0.2 else f"s{number}"
        matcher.subscribe(id, text, replace=True)
        truths[id] = [evaluate(parse(text), one) is True for one in events]
        if number % 20 == 0:
            states.append((matcher.view().snapshot(), dict(truths)))
        for k, one in enumerate(events[:2]):
            assert matcher.match(one) == sorted(id for id, own in truths.items() if own[k])
    assert len(matcher.view().snapshot()) == 1
    for snapshot, known in states:
        found = match_pairs(matcher, snapshot, events)
        both = zip(found.events.tolist(), found.rows.tolist(), strict=True)
        ids = [(k, snapshot[0].id_of(row)) for k, row in both]
        expected = [(k, id) for id, own in known.items() for k in range(6) if own[k]]
        assert sorted(ids) == sorted(expected)


def test_matching_while_the_arrays_grow() -> None:
    matcher = Matcher()
    matcher.subscribe("s0", "S_DWITHIN(g, POINT(0 0), 5) AND s = 'a'")
    done, wrong = threading.Event(), []

    def look() -> None:
        least = 0
        while not done.is_set():
            found = matcher.match({"g": "POINT (1 1)", "s": "a"})
            if sorted(found) != sorted(f"s{k}" for k in range(len(found))) or len(found) < least:
                wrong.append(found)
            least = len(found)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, MANY):
        matcher.subscribe(
            f"s{number}",
            f"S_DWITHIN(g, LINESTRING(0 0, {number} 0, {number} 9), 5) AND s IN ('a', '{number}')",
        )
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(matcher.match({"g": "POINT (1 1)", "s": "a"})) == MANY


def test_of_several_of_which_one_cannot_be_added_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Matcher()
    matcher.subscribe("first", "n > 0")
    add = memtable_module.Memtable.add_compiled

    def fails(self: Any, filters: Any, expires: int, version: int) -> None:
        if len(self) == 2:
            raise MemoryError
        add(self, filters, expires, version)

    rows = [{"id": id, "expression": "n > 0 OR n < -5"} for id in ("a", "b", "c")]
    with monkeypatch.context() as patched:
        patched.setattr(memtable_module.Memtable, "add_compiled", fails)
        with pytest.raises(MemoryError):
            matcher.subscribe_many(rows)
    assert matcher.match({"n": 1}) == ["first"]
    matcher.subscribe("later", "n > 5")
    assert matcher.match({"n": 1}) == ["first"]
    assert matcher.match({"n": 6}) == ["first", "later"]
    assert matcher.match({"n": -9}) == []
    matcher.subscribe_many(rows)
    assert matcher.match({"n": 1}) == ["a", "b", "c", "first"]


def test_what_is_removed_after_an_addition_failed_that_made_the_arrays_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = Matcher()
    for k in range(60):
        matcher.subscribe(f"s{k}", "n > 0")
    add = memtable_module.Memtable.add_compiled
    grown = []

    def fails(self: Any, filters: Any, expires: int, version: int) -> None:
        if len(self) == 75:
            grown.append(self.room)
            raise MemoryError
        add(self, filters, expires, version)

    with monkeypatch.context() as patched:
        patched.setattr(memtable_module.Memtable, "add_compiled", fails)
        with pytest.raises(MemoryError):
            matcher.subscribe_many([{"id": f"t{k}", "expression": "n > 0"} for k in range(30)])
    assert grown > [memtable_module.INITIAL_CAPACITY]
    assert matcher.unsubscribe("s0")
    assert matcher.match({"n": 1}) == sorted(f"s{k}" for k in range(1, 60))
    matcher.subscribe_many([{"id": f"t{k}", "expression": "n > 0"} for k in range(30)])
    assert len(matcher.match({"n": 1})) == 89
