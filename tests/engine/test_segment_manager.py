"""The segment manager: flushes, changes in all segments, and rows that are rejected."""

from __future__ import annotations

import random

import pytest

from fencepost.engine import Matcher
from fencepost.engine.postings import keyword_postings
from fencepost.errors import ModelError
from fencepost.testing import keep_segments_small

BOX = "S_INTERSECTS(place, BBOX({0}, {0}, {1}, {1})) AND kind = 'k{2}'"
RING = "S_INTERSECTS(place, POLYGON(({0} 0, {1} 0, {1} {1}, {0} 0))) AND size > {2}"
BOW_TIE = "S_INTERSECTS(place, POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))) AND size > 3"


def test_subscriptions_added_between_events_share_a_small_segment() -> None:
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_memtable_rows=3)
    for k in range(100):
        matcher.subscribe(f"s{k}", BOX.format(k, k + 2, k % 2))
        assert len(matcher.match({"place": f"POINT({k}.5 {k}.5)", "kind": f"k{k % 2}"})) == 1
        assert len(matcher.view().snapshot()) <= 2
    for k in range(0, 100, 2):
        assert matcher.unsubscribe(f"s{k}")
    assert matcher.match({"place": "POINT(50.5 50.5)", "kind": "k1"}) == ["s49"]
    matcher.compact()
    assert matcher.match({"place": "POINT(50.5 50.5)", "kind": "k1"}) == ["s49"]
    assert len(matcher) == 50


@pytest.mark.parametrize("max_small_rows", [0, 8, 100])
def test_changes_are_found_in_every_segment(max_small_rows: int) -> None:
    rng = random.Random(3)
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_memtable_rows=2, max_small_rows=max_small_rows)
    bounds: dict[str, int] = {}
    for k in range(150):
        id = f"s{rng.randrange(30)}"
        if id in bounds and rng.random() < 0.4:
            assert matcher.unsubscribe(id)
            del bounds[id]
            continue
        matcher.subscribe(id, f"n > {k} AND kind = 'a'", replace=True)
        bounds[id] = k
        number = rng.randrange(k + 2)
        expected = sorted(id for id, bound in bounds.items() if number > bound)
        assert matcher.match({"n": number, "kind": "a"}) == expected
    matcher.compact()
    assert matcher.match({"n": 1000, "kind": "a"}) == sorted(bounds)


def test_keywords_with_a_box_become_postings() -> None:
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_memtable_rows=10)
    for k in range(40):
        text = f"A_CONTAINS(words, ('w{k}')) AND S_INTERSECTS(place, BBOX({k}, {k}, 99, 99))"
        matcher.subscribe(f"s{k}", text if k % 2 else f"({text})")
    matcher.compact()
    (segment,) = matcher.view().snapshot()
    assert keyword_postings.direct_entry_count(segment.arrays.postings) == 40
    assert len(segment.arrays.checks) == 0
    assert matcher.match({"words": ["w1", "w7"], "place": "POINT(5 5)"}) == ["s1"]


def test_a_table_rejects_the_rows_that_subscribe_rejects() -> None:
    texts = [RING.format(k, k + 4, k) for k in range(200)]
    texts[7], texts[150], texts[199] = BOW_TIE, "size >", texts[199].replace("size", '"size"')
    reasons = []
    for number in (7, 150):
        with pytest.raises(Exception, match="column") as raised:
            Matcher(space="planar").subscribe("one", texts[number])
        reasons.append((number, str(raised.value)))
    rows = [{"id": f"s{k}", "expression": text} for k, text in enumerate(texts)]
    dead_letters: list[tuple[int, str]] = []
    matcher = Matcher(space="planar")
    assert matcher.subscribe_many(rows, dead_letters) == 198
    assert dead_letters == reasons
    one_by_one = Matcher(space="planar")
    for k, text in enumerate(texts):
        if k not in (7, 150):
            one_by_one.subscribe(f"s{k}", text)
    for x in range(0, 210, 5):
        event = {"place": f"POINT({x} 1)", "size": x}
        assert matcher.match(event) == one_by_one.match(event)
    with pytest.raises(ModelError, match="2 rows cannot be used"):
        Matcher(space="planar").subscribe_many(rows)


def test_a_table_rejects_ids_that_are_in_use() -> None:
    now = [0]
    matcher = Matcher(clock=lambda: now[0], space="planar")
    matcher.subscribe_many([{"id": f"s{k}", "expression": f"n = {k}"} for k in range(100)])
    matcher.subscribe("late", "n = 1", expires="1970-01-01T00:00:01Z")
    matcher.subscribe("s200", "n = 2")
    matcher.unsubscribe("s99")
    now[0] = 2 * 10**9
    rows = [{"id": f"s{k}", "expression": "n = 7"} for k in (99, *range(200, 280), 5)]
    rows.append({"id": "late", "expression": "n = 7"})
    dead_letters: list[tuple[int, str]] = []
    assert matcher.subscribe_many(rows, dead_letters) == 81
    assert [row for row, _ in dead_letters] == [1, 81]
    assert len(matcher.match({"n": 7})) == 82  # s7 had matched before
    assert matcher.subscribe_many(rows, replace=True) == 83
    assert len(matcher.match({"n": 7})) == 84
