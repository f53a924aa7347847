"""Which access path the filters of a segment are put under."""

from __future__ import annotations

import pytest

from fencepost.match.matcher import Matcher

BOX = "BBOX(0, 0, 1, 1)"
LINE = "LINESTRING (0 0, 1 1)"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        *((f"S_INTERSECTS(g, {BOX})", "region"), (f"NOT S_DISJOINT(g, {BOX})", "region")),
        *((f"S_DISJOINT(g, {BOX})", "region"), (f"NOT S_INTERSECTS(g, {BOX})", "region")),
        *((f"EH_MEET(g, {BOX})", "region"), (f"NOT EH_MEET(g, {BOX})", "region")),
        *((f"EH_DISJOINT(g, {BOX})", "region"), (f"NOT EH_DISJOINT(g, {BOX})", "region")),
        *((f"S_DISJOINT(g, {LINE})", "scan"), (f"NOT S_DISJOINT(g, {LINE})", "region")),
        (f"S_DISJOINT(g, {BOX}) AND s = 'a'", "equality"),
        *((f"S_DWITHIN(g, {BOX}, 1)", "region"), (f"NOT S_DWITHIN(g, {BOX}, 1)", "scan")),
        *((f"S_BEYOND(g, {BOX}, 1)", "scan"), (f"NOT S_BEYOND(g, {BOX}, 1)", "region")),
        *((f"S_SAMEPLACE(g, {BOX}, 1)", "region"), (f"NOT S_SAMEPLACE(g, {BOX}, 1)", "scan")),
        *(("s = 'a'", "equality"), ("s <> 'a'", "scan"), ("s IN ('a', 'b')", "equality")),
        *(("A_CONTAINS(w, ('a', 'b'))", "words"), ("NOT A_CONTAINS(w, ('a'))", "scan")),
        (f"A_CONTAINS(w, ('a')) AND S_INTERSECTS(g, {BOX})", "words"),
        (f"A_CONTAINS(w, ('A', 'b')) AND EH_MEET(g, {BOX}) AND n > 1", "words"),
        *(("A_OVERLAPS(w, ('a', 'b'))", "words"), ("A_CONTAINEDBY(w, ('a'))", "scan")),
        *(("A_EQUALS(w, (1, 2)) AND s = 'a'", "words"), ("A_CONTAINS(w, ())", "words")),
        *(("CASEI(s) = 'a'", "equality"), ("s > 'a'", "scan"), ("s LIKE 'a'", "scan")),
        *(("n = 1 AND s = 'a'", "equality"), ("n = 1", "scan"), ("TRUE", "scan")),
        ("s IN ({})".format(", ".join(f"'{k}'" for k in range(65))), "scan"),
    ],
)
def test_the_path_of_a_filter(text: str, path: str) -> None:
    matcher = Matcher()
    matcher.subscribe("s", text)
    counts = matcher.stats()["filters_by_path"]
    assert counts == {"words": 0, "region": 0, "equality": 0, "scan": 0, path: 1}


def test_a_wide_region_gives_way_to_a_string() -> None:
    matcher = Matcher()
    matcher.subscribe("wide", "S_INTERSECTS(g, BBOX(-90, -90, 90, 90)) AND s = 'a'")
    for k in range(3):
        matcher.subscribe(f"s{k}", f"S_INTERSECTS(g, BBOX({k}, 0, {k + 1}, 1)) AND s = 'a'")
    assert matcher.stats()["filters_by_path"] == {"words": 0, "region": 3, "equality": 1, "scan": 0}
    assert matcher.match({"g": "POINT (0.5 0.5)", "s": "a"}) == ["s0", "wide"]
    assert matcher.match({"g": "POINT (0.5 0.5)", "s": "b"}) == []


def test_few_segments_whatever_the_order() -> None:
    matcher = Matcher()
    for k in range(300):
        matcher.subscribe(f"s{k}", f"n = {k}")
        assert matcher.match({"n": k}) == [f"s{k}"]  # closes a segment each time
    assert matcher.stats()["segments"] < 10
    for k in range(299):
        assert matcher.unsubscribe(f"s{k}")
    matcher.subscribe("last", "n = 5")
    assert matcher.match({"n": 5}) == ["last"]
    assert matcher.match({"n": 299}) == ["s299"]
