"""An event is routed to every part of an index in which it matches a subscription."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.engine import FilterTable, Matcher, Segment, Subscription, build
from fencepost.engine.requirements import PLACE, requirements_of_segment, requirements_of_table
from fencepost.engine.segment_builder import NEVER_EXPIRES
from fencepost.engine.subscriptions import compile_subscription
from fencepost.geometry import Space
from fencepost.spark.indexes.partition_cuts import KEY_COLUMNS, KIND, partition_keys
from fencepost.spark.matches.part_routing import routing_filters, segment_routing_keys
from tests.engine.strategies import EVENTS, EXPRESSIONS, Event, examples
from tests.engine.wgs84_scenes import LOCATIONS, random_geometries, wkt

STOP_WORDS = ("a", "the", "hail")


def router(matcher: Matcher) -> Matcher:
    """Return a router to the segments of a matcher, by number."""
    columns = matcher.view().columns
    made = Matcher(columns.space, stop_words=columns.tokenizer.stop_words)
    made.add(
        [
            Subscription(
                str(k),
                None,
                str(k),
                int(NEVER_EXPIRES),
                routing_filters(segment_routing_keys(requirements_of_segment(s)), columns),
            )
            for k, s in enumerate(matcher.view().snapshot())
        ],
        replace=False,
    )
    return made


def lost_matches(matcher: Matcher, events: Sequence[Event]) -> list[tuple[Event, str]]:
    """Return matches of events that are not routed to the subscription's segment."""
    matcher.compact()
    routes = router(matcher)
    segment_of = {
        id: str(k) for k, segment in enumerate(matcher.view().snapshot())
        for id in segment.column("id").to_pylist()
    }  # fmt: skip
    return [
        (event, id)
        for event in events
        for id in matcher.match(event)
        if segment_of[id] not in routes.match(event)
    ]


def matcher_of(expressions: Sequence[Any], **options: Any) -> Matcher:
    matcher = Matcher(**{"space": "planar", **options})
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression)
    return matcher


@examples(150)
@given(
    st.lists(EXPRESSIONS, min_size=1, max_size=3),
    st.lists(EVENTS, min_size=1, max_size=5),
    st.sampled_from([(), STOP_WORDS]),
)
@example(["S_SAMEPLACE(g, POINT(5 5), 1)"], [{"g": "MULTIPOINT((0 0), (10 10))"}], ())
@example(["A_OVERLAPS(l, ('The', 'x'))"], [{"l": "X the"}, {"l": ["The"]}], STOP_WORDS)
@example(["A_CONTAINS(l, ('hail storm', 'X'))"], [{"l": "a Storm x hail"}], ())
@example(["A_CONTAINS(l, ())", "A_EQUALS(l, ())"], [{"l": []}, {"l": ""}], ())
@example(["A_CONTAINS(l, (1, 'a'))"], [{"l": [1.0, "a"]}], ())
@example(["CASEI(s) = CASEI('STRASSE')"], [{"s": "Straße"}], ())
def test_no_match_is_lost(expressions: list[Any], events: list[Event], stop: Any) -> None:
    assert lost_matches(matcher_of(expressions, stop_words=stop), events) == []


@examples(100)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), st.sampled_from([(), STOP_WORDS]))
@example(["S_INTERSECTS(g, BBOX(1, 2, 3, 5)) AND A_CONTAINS(l, ('a'))"], ())
def test_table_and_segment_have_the_same_partition_keys(expressions: list[Any], stop: Any) -> None:
    matcher = matcher_of(expressions, stop_words=stop)
    table = FilterTable(matcher.view().columns.copy())
    for number, expression in enumerate(expressions):
        table.add(number, compile_subscription(Space.PLANAR, f"s{number}", expression).compiled)
    arrays = table.arrays()
    expires = np.full(len(expressions), NEVER_EXPIRES, np.int64)
    segment = Segment(build(arrays, expires), pa.table({"id": list(map(str, expressions))}))
    one, other = (
        partition_keys(requirements_of_table(arrays, len(expressions))),
        partition_keys(requirements_of_segment(segment)),
    )
    assert one[KIND].equals(other[KIND])
    # The filters of a subscription have no order, so any of them may determine the place.
    owners = [*arrays.filter_subscription, *arrays.postings.owner]
    for number in (k for k in range(len(expressions)) if owners.count(k) == 1):
        if one[KIND][number].as_py() == PLACE:
            assert [one[name][number] for name in KEY_COLUMNS] == [
                other[name][number] for name in KEY_COLUMNS
            ]


def test_nul_characters() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(["s"], equals={"s": ["\0"]})
    matcher.subscribe_columns(["k"], keywords={"l": [["\0x"]]})
    events: list[Event] = [{"s": "\0"}, {"l": ["\0x"]}]
    assert [matcher.match(event) for event in events] == [["s"], ["k"]]
    assert lost_matches(matcher, events) == []


@pytest.mark.parametrize("far", [1e-320, 1e300, 1.7e308])
def test_coordinates_at_the_limits_of_doubles(far: float) -> None:
    """Boxes without an extent, and boxes whose extent overflows."""
    x = repr(far)
    expressions = [
        f"S_INTERSECTS(g, POINT({x} -{x}))",
        f"S_INTERSECTS(g, LINESTRING({x} 0, {x} {x}))",
        f"S_DWITHIN(g, POINT(0 0), {x})",
        f"S_INTERSECTS(g, BBOX(-{x}, -{x}, {x}, {x}))",
    ]
    events: list[Event] = [{"g": f"POINT({x} {y})"} for y in ("0", x, f"-{x}")]
    for own in (*([one] for one in expressions), expressions):
        matcher = matcher_of(own)
        assert any(matcher.match(event) for event in events)
        assert lost_matches(matcher, events) == []


@pytest.mark.parametrize("place", LOCATIONS)
def test_regions_on_the_ellipsoid(place: str) -> None:
    rng = random.Random(place)
    for _ in range(2):
        geometries = random_geometries(rng, place, 12)
        expressions = [
            f"{function}(g, {wkt(one)}, {10 ** rng.uniform(0, 7.4)})"
            for one in geometries[:6]
            for function in ("S_DWITHIN", "S_SAMEPLACE")
        ]
        expressions += [f"S_INTERSECTS(g, {wkt(one)})" for one in geometries[:6]]
        events: list[Event] = [{"g": one} for one in geometries]
        for expression in expressions:
            assert lost_matches(matcher_of([expression], space="wgs84"), events) == []


def test_more_boxes_than_a_segment_keeps() -> None:
    rng = random.Random(8)
    points = [shapely.Point(rng.gauss(0, 9), rng.gauss(0, 9)) for _ in range(700)]
    matcher = matcher_of([f"S_INTERSECTS(g, POINT({p.x!r} {p.y!r}))" for p in points])
    events: list[Event] = [{"g": p} for p in points]
    assert all(matcher.match(event) for event in events)
    assert lost_matches(matcher, events) == []
