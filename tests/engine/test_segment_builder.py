"""The access paths of the filters of a segment, and how few segments there are."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from fencepost.cql2 import parse
from fencepost.engine import ColumnRegistry, FilterTable, Matcher, build
from fencepost.engine.segment_builder import NEVER_EXPIRES, flat_arrays
from fencepost.filters import to_filters

BOX = "BBOX(0, 0, 1, 1)"
LINE = "LINESTRING (0 0, 1 1)"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        *((f"S_INTERSECTS(g, {BOX})", "region"), (f"NOT S_DISJOINT(g, {BOX})", "region")),
        *((f"S_DISJOINT(g, {BOX})", "region"), (f"NOT S_INTERSECTS(g, {BOX})", "region")),
        *((f"EH_MEET(g, {BOX})", "region"), (f"NOT EH_MEET(g, {BOX})", "region")),
        *((f"EH_DISJOINT(g, {BOX})", "region"), (f"NOT EH_DISJOINT(g, {BOX})", "region")),
        *((f"S_DISJOINT(g, {LINE})", "scan"), (f"NOT S_DISJOINT(g, {LINE})", "box")),
        *((f"S_DWITHIN(g, {BOX}, 1)", "box"), (f"NOT S_DWITHIN(g, {BOX}, 1)", "scan")),
        *((f"S_BEYOND(g, {BOX}, 1)", "scan"), (f"NOT S_BEYOND(g, {BOX}, 1)", "box")),
        *((f"S_SAMEPLACE(g, {BOX}, 1)", "box"), (f"NOT S_SAMEPLACE(g, {BOX}, 1)", "scan")),
        *(("s = 'a'", "equality"), ("s <> 'a'", "scan"), ("s IN ('a', 'b')", "equality")),
        *(("A_CONTAINS(w, ('a', 'b'))", "words"), ("NOT A_CONTAINS(w, ('a'))", "scan")),
        (f"A_CONTAINS(w, ('a')) AND S_INTERSECTS(g, {BOX})", "words"),
        (f"A_CONTAINS(w, ('A', 'b')) AND EH_MEET(g, {BOX}) AND n > 1", "words"),
        *(("A_OVERLAPS(w, ('a', 'b'))", "words"), ("A_CONTAINEDBY(w, ('a'))", "scan")),
        *(("A_EQUALS(w, (1, 2)) AND s = 'a'", "words"), ("A_CONTAINS(w, ())", "words")),
        *(("CASEI(s) = 'a'", "equality"), ("s > 'a'", "interval"), ("s LIKE 'a'", "interval")),
        *(("n = 1 AND s = 'a'", "equality"), ("n = 1", "interval"), ("TRUE", "scan")),
        ("s IN ({})".format(", ".join(f"'{k}'" for k in range(65))), "equality"),
        ("s IN ({})".format(", ".join(f"'{k}'" for k in range(1025))), "scan"),
        *(("s LIKE '%a'", "interval"), ("s LIKE '%a%'", "scan"), ("s NOT LIKE 'a%'", "scan")),
        *(("b = TRUE", "equality"), ("b", "equality"), ("g IS NULL", "equality")),
        *(("n BETWEEN 1 AND 2", "interval"), ("n NOT IN (1, 2)", "scan")),
    ],
)
def test_the_path_of_a_filter(text: str, path: str) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("s", text)
    assert filters_by_path(matcher) == {"scan": 1}  # in the memtable
    matcher.compact()
    assert filters_by_path(matcher) == {path: 1}


def filters_by_path(matcher: Matcher) -> dict[str, int]:
    """Return the number of filters of each path that has any."""
    return {path: n for path, n in matcher.stats()["filters_by_path"].items() if n}


def test_the_more_selective_path_is_taken() -> None:
    matcher = Matcher(space="planar")
    for k in range(40):
        wide = "BBOX(-90, -90, 90, 90)"
        matcher.subscribe(f"wide{k}", f"S_INTERSECTS(g, {wide}) AND s = 's{k}' AND n > {k - 9}")
        matcher.subscribe(f"apart{k}", f"S_DISJOINT(g, {BOX}) AND s = 's{k}' AND b")
        small = f"BBOX({k}, 0, {k + 1}, 1)"
        matcher.subscribe(f"small{k}", f"S_INTERSECTS(g, {small}) AND s = 'all' AND n > -99")
        matcher.subscribe(f"few{k}", f"n BETWEEN {k} AND {k + 0.5} AND s = 'all' AND b")
    matcher.compact()
    assert filters_by_path(matcher) == {"region": 40, "signature": 80, "interval": 40}
    event = {"g": "POINT (3.5 0.5)", "s": "all", "n": 3.2, "b": True}
    assert matcher.match(event) == ["few3", "small3"]
    assert matcher.match({**event, "s": "s2"}) == ["apart2", "wide2"]
    assert matcher.stats()["candidates_per_event"] < 5


def test_segments_stay_few() -> None:
    matcher = Matcher(space="planar")
    for k in range(300):
        matcher.subscribe(f"s{k}", f"n = {k}")
        assert matcher.match({"n": k}) == [f"s{k}"]  # an event between all additions
    assert matcher.stats()["segments"] < 10
    for k in range(299):
        assert matcher.unsubscribe(f"s{k}")
    matcher.subscribe("last", "n = 5")
    assert matcher.match({"n": 5}) == ["last"]
    assert matcher.match({"n": 299}) == ["s299"]


def test_build_does_not_change_its_table() -> None:
    """Every pass returns new arrays, so two segments built from one table are equal."""
    table = FilterTable(ColumnRegistry())
    texts = [
        f"A_CONTAINS(w, ('a', 'b')) AND S_INTERSECTS(g, {BOX}) AND s IN ('x', 'y') AND n > 1",
        f"s = 'x' AND t = 'y' AND S_DWITHIN(g, {LINE}, 1)",
        f"S_WITHIN(g, {BOX}) AND n BETWEEN 1 AND 3",
        *("s LIKE 'a%'", "s > 'b'", "b", "n <> 3", f"NOT EH_MEET(g, {BOX})"),
    ]
    for number in range(40):
        table.add(number, to_filters(parse(texts[number % len(texts)])))
    arrays, expires = table.arrays(), np.full(40, NEVER_EXPIRES, np.int64)
    before = copy.deepcopy([arrays.checks, arrays.set_items, arrays.text, *arrays.shapes.arrays])
    first, second = build(arrays, expires), build(arrays, expires)
    after = [arrays.checks, arrays.set_items, arrays.text, *arrays.shapes.arrays]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
    for (name, left), (_, right) in zip(flat_arrays(first), flat_arrays(second), strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)
