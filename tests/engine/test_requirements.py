"""Requirements of subscriptions, against events that match by the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.cql2 import ast
from fencepost.engine import Matcher
from fencepost.engine.requirements import NOTHING, PLACE, STRING, WORD, Requirements, column_of
from tests.engine.strategies import examples

WORDS = st.sampled_from(["a", "b", "hail storm", "Storm", "é"])
NUMBERS = st.integers(0, 6)


def listed(words: list[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


LISTS = st.lists(WORDS, min_size=1, max_size=3).map(listed)
CONDITIONS = st.one_of(
    st.builds("S_INTERSECTS(g, BBOX({0}, {1}, {0}.5, {1}.5))".format, NUMBERS, NUMBERS),
    st.builds("EH_INSIDE(g, BBOX({0}, {1}, 7, 7))".format, NUMBERS, NUMBERS),
    st.builds("S_DWITHIN(g, POINT({} {}), {})".format, NUMBERS, NUMBERS, NUMBERS),
    st.builds("S_DISJOINT(g, BBOX({}, {}, 7, 7))".format, NUMBERS, NUMBERS),
    st.builds("s IN ({})".format, LISTS),
    st.builds("A_CONTAINS(l, ({}))".format, LISTS),
    st.builds("A_OVERLAPS(l, ({}))".format, LISTS),
    st.builds("n > {}".format, NUMBERS),
)
TERMS = st.one_of(CONDITIONS, CONDITIONS.map("NOT {}".format))
EXPRESSIONS = st.lists(
    st.lists(TERMS, min_size=1, max_size=3).map(" AND ".join), min_size=1, max_size=2
).map(" OR ".join)
EVENTS = st.fixed_dictionaries(
    {
        "g": st.tuples(NUMBERS, NUMBERS),
        "s": WORDS,
        "l": st.one_of(st.lists(WORDS, max_size=3), st.lists(WORDS, max_size=3).map(" ".join)),
        "n": NUMBERS,
    }
)


def holds(required: Requirements, row: int, matcher: Matcher, event: dict[str, Any]) -> bool:
    """Return whether an event satisfies the requirement of a row, in plain Python."""
    kind = int(required.kind[row])
    if kind == NOTHING:
        return True
    source = column_of(matcher.view().columns, kind, int(required.column[row])).source
    assert isinstance(source, ast.Property)
    value = event[source.name]
    if kind == PLACE:
        x0, y0, x1, y1 = required.boxes[row]
        return bool(x0 <= value[0] <= x1 and y0 <= value[1] <= y1)
    _, keys = required.keys(np.array([row]))
    required_texts = {required.text_of(kind, key) for key in keys.tolist()}
    if kind == STRING:
        return value in required_texts
    words = value if isinstance(value, list) else value.casefold().split()
    return not required_texts.isdisjoint(words)


def with_wkt(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "g": "POINT({} {})".format(*event["g"])}


@examples(200)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), st.lists(EVENTS, min_size=1, max_size=6))
@example(["A_CONTAINS(l, ('hail storm', 'b'))"], [{"g": (0, 0), "s": "a", "l": "b storm hail"}])
def test_matching_events_satisfy_the_requirements(
    expressions: list[str], events: list[dict[str, Any]]
) -> None:
    matcher, reference = Matcher(space="planar"), Matcher(index="reference", space="planar")
    for number, expression in enumerate(expressions):
        matcher.subscribe(str(number), expression)
        reference.subscribe(str(number), expression)
        if number == 1:
            matcher.compact()  # two subscriptions in a segment, the rest in the memtable
    for segment, _, required in matcher.view().requirements():
        assert required.subscriptions == len(segment)
        for event in events:
            matching_ids = set(reference.match(with_wkt(event)))
            for subscription in range(len(segment)):
                if segment.id_of(subscription) not in matching_ids:
                    continue
                filters = np.flatnonzero(required.subscription == subscription)
                assert any(
                    all(
                        holds(required, row, matcher, event)
                        for row in np.flatnonzero(required.filter == number).tolist()
                    )
                    for number in filters.tolist()
                )


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_of_a_filter(compacted: bool) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe(
        "a", "S_INTERSECTS(g, BBOX(1, 2, 3, 5)) AND s = 'x' AND n > 3 AND NOT s = 'y'"
    )
    if compacted:
        matcher.compact()
    ((segment, rows, required),) = matcher.view().requirements()
    assert (len(segment), rows.tolist(), required.filter.tolist()) == (1, [0], [0] * 4)
    assert sorted(required.kind.tolist()) == [PLACE, STRING, NOTHING, NOTHING]
    (row,) = np.flatnonzero(required.kind == PLACE)
    assert required.boxes[row].tolist() == [1, 2, 3, 5]
    positions, keys = required.keys(np.flatnonzero(required.kind == STRING))
    assert positions.tolist() == [0]
    assert [required.text_of(STRING, key) for key in keys.tolist()] == ["x"]


def test_postings_require_a_box_and_their_rarest_word() -> None:
    matcher = Matcher(space="planar")
    boxes = np.array([[0, 0, 1, 1], [2, 2, 3, 3]])
    words = [["often", "seldom"], ["often"]]
    matcher.subscribe_columns(
        ["a", "b"], regions={"g": (boxes, "S_INTERSECTS")}, keywords={"l": words}
    )
    ((segment, _, required),) = matcher.view().requirements()
    ids = [segment.id_of(row) for row in required.subscription[required.filter].tolist()]
    requirements = {}
    for row, (id, kind) in enumerate(zip(ids, required.kind.tolist(), strict=True)):
        if kind == PLACE:
            requirements[id, kind] = required.boxes[row].tolist()
        else:
            _, (key,) = required.keys(np.array([row]))
            requirements[id, kind] = required.text_of(kind, int(key))
    assert requirements == {
        ("a", PLACE): [0, 0, 1, 1],
        ("a", WORD): "seldom",
        ("b", PLACE): [2, 2, 3, 3],
        ("b", WORD): "often",
    }


def test_a_box_beyond_the_antimeridian_is_split() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("there", "S_DWITHIN(g, POINT(179.9 1), 100000)")
    matcher.subscribe("here", "S_DWITHIN(g, POINT(9 1), 100000)")
    matcher.compact()
    ((segment, _, required),) = matcher.view().requirements()
    split = required.subscription[required.filter[required.is_split]]
    assert [segment.id_of(row) for row in split.tolist()] == ["there"]
