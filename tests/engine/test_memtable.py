"""The memtable: its arrays grow, and older snapshots stay unchanged."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from fencepost.cql2 import parse
from fencepost.engine import Matcher, match_pairs
from fencepost.engine import memtable as memtable_module
from fencepost.reference import evaluate

MANY = 300  # more than the initial capacity


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


def test_older_snapshots_stay_unchanged() -> None:
    rng = random.Random(5)
    matcher = Matcher(space="planar")
    events = [event(rng) for _ in range(6)]
    expected: dict[str, list[bool]] = {}
    snapshots = []
    for number in range(MANY):
        text = expression(rng, number)
        if expected and rng.random() < 0.2:
            id = rng.choice(list(expected))
            assert matcher.unsubscribe(id)
            del expected[id]
        id = rng.choice(list(expected)) if expected and rng.random() < 0.2 else f"s{number}"
        matcher.subscribe(id, text, replace=True)
        expected[id] = [evaluate(parse(text), event) is True for event in events]
        if number % 20 == 0:
            snapshots.append((matcher.view().snapshot(), dict(expected)))
        for k in range(2):
            ids = sorted(id for id, matches in expected.items() if matches[k])
            assert matcher.match(events[k]) == ids
    assert len(matcher.view().snapshot()) == 1
    for snapshot, matches_then in snapshots:
        pairs = match_pairs(matcher, snapshot, events)
        rows = zip(pairs.events.tolist(), pairs.rows.tolist(), strict=True)
        named = [(k, snapshot[0].id_of(row)) for k, row in rows]
        pairs_then = [
            (k, id) for id, matches in matches_then.items() for k in range(6) if matches[k]
        ]
        assert sorted(named) == sorted(pairs_then)


def test_matching_while_the_arrays_grow() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("s0", "S_DWITHIN(g, POINT(0 0), 5) AND s = 'a'")
    done, wrong = threading.Event(), []

    def match_repeatedly() -> None:
        min_count = 0
        while not done.is_set():
            ids = matcher.match({"g": "POINT (1 1)", "s": "a"})
            if sorted(ids) != sorted(f"s{k}" for k in range(len(ids))) or len(ids) < min_count:
                wrong.append(ids)
            min_count = len(ids)

    threads = [threading.Thread(target=match_repeatedly) for _ in range(2)]
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


def test_an_addition_that_fails_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("first", "n > 0")
    add = memtable_module.Memtable.add_compiled

    def fail_or_add(self: Any, filters: Any, expires: int, version: int) -> None:
        if len(self) == 2:
            raise MemoryError
        add(self, filters, expires, version)

    rows = [{"id": id, "expression": "n > 0 OR n < -5"} for id in ("a", "b", "c")]
    with monkeypatch.context() as patched:
        patched.setattr(memtable_module.Memtable, "add_compiled", fail_or_add)
        with pytest.raises(MemoryError):
            matcher.subscribe_many(rows)
    assert matcher.match({"n": 1}) == ["first"]
    matcher.subscribe("later", "n > 5")
    assert matcher.match({"n": 1}) == ["first"]
    assert matcher.match({"n": 6}) == ["first", "later"]
    assert matcher.match({"n": -9}) == []
    matcher.subscribe_many(rows)
    assert matcher.match({"n": 1}) == ["a", "b", "c", "first"]


def test_rows_are_deleted_after_a_failed_addition_that_enlarged_the_arrays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = Matcher(space="planar")
    for k in range(60):
        matcher.subscribe(f"s{k}", "n > 0")
    add = memtable_module.Memtable.add_compiled
    capacities = []

    def fail_or_add(self: Any, filters: Any, expires: int, version: int) -> None:
        if len(self) == 75:
            capacities.append(self.capacity)
            raise MemoryError
        add(self, filters, expires, version)

    with monkeypatch.context() as patched:
        patched.setattr(memtable_module.Memtable, "add_compiled", fail_or_add)
        with pytest.raises(MemoryError):
            matcher.subscribe_many([{"id": f"t{k}", "expression": "n > 0"} for k in range(30)])
    assert capacities > [memtable_module.INITIAL_CAPACITY]
    assert matcher.unsubscribe("s0")
    assert matcher.match({"n": 1}) == sorted(f"s{k}" for k in range(1, 60))
    matcher.subscribe_many([{"id": f"t{k}", "expression": "n > 0"} for k in range(30)])
    assert len(matcher.match({"n": 1})) == 89
