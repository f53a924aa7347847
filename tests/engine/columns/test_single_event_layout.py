"""Single events give the same arrays as tables of events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.cql2 import parse
from fencepost.engine import ColumnRegistry, FilterTable, encode_events
from fencepost.engine.columns.single_event_layout import SingleEventLayout
from fencepost.events import EventTable
from fencepost.filters import to_filters
from fencepost.geometry import Shapes
from fencepost.kernels import EventArrays
from fencepost.kernels.geometry.shape_layout import lay_out_unchecked
from fencepost.kernels.match.single_event import split_joined_items
from tests.engine.strategies import EVENTS, TEXT_EXPRESSIONS, examples

RING = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]
TOUCHING_HOLE = [[0, 1], [1, 1], [1, 2], [0, 1]]
GEOMETRIES = [
    {"type": "Point", "coordinates": [1.5, -0.0]},
    {"type": "Point", "coordinates": [1, 2]},
    {"type": "Point", "coordinates": [1.5, 2.5, 9.0]},
    {"type": "Point", "coordinates": [float("nan"), 2.5]},
    {"type": "Point", "coordinates": ["1", "2"]},
    {"type": "Point", "coordinates": []},
    {"type": "MultiPoint", "coordinates": [[3, 1], [0, 0], [3, 0]]},
    {"type": "LineString", "coordinates": [[0, 0], [1, 1], [1, 1], [5, 0]]},
    {"type": "LineString", "coordinates": [[0, 0], [0, 0]]},
    {"type": "MultiLineString", "coordinates": [[[0, 0], [1, 1]], [[1, 1], [2, 0]]]},
    {"type": "Polygon", "coordinates": [RING]},
    {"type": "Polygon", "coordinates": [RING, HOLE[::-1]]},
    {"type": "Polygon", "coordinates": [RING, TOUCHING_HOLE]},
    {"type": "Polygon", "coordinates": [[[0, 0], [4, 4], [4, 0], [0, 4]]]},
    {"type": "MultiPolygon", "coordinates": [[RING, HOLE], [[[9, 9], [9, 8], [8, 8]]]]},
    {"type": "GeometryCollection", "geometries": []},
    shapely.GeometryCollection([shapely.Point(1, 2), shapely.box(0, 0, 1, 1)]),
    "GEOMETRYCOLLECTION (POINT (1 2), POINT (3 4))",
    {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1.0, 2.0]}},
    {},
    7,
    "POINT (-0 3)",
    "POINT EMPTY",
    "POLYGON ((0 0, 4 0, 4 4, 0 0), (3 1, 3 2, 2 1, 3 1))",
    "no geometry",
    shapely.Point(1, 2).wkb,
    b"\x01",
    bytearray(shapely.box(0, 0, 1, 1).wkb),
    shapely.box(0, 0, 1, 1),
    shapely.Point(5, 5).buffer(2).difference(shapely.Point(5, 5).buffer(1)),
    shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)]),
    shapely.LinearRing(RING),
    shapely.Point(),
    shapely.Point(float("inf"), 0),
]


def columns_of(texts: list[str]) -> ColumnRegistry:
    columns = ColumnRegistry()
    table = FilterTable(columns)
    for number, text in enumerate(texts):
        table.add(number, to_filters(parse(text)))
    return columns


def assert_equal_arrays(columns: ColumnRegistry, event: dict[str, Any]) -> None:
    row = encode_events(columns, EventTable([event]))
    # An event that the layout cannot write is matched as a table.
    one = write_event(SingleEventLayout(columns), event) or row
    for name in ("number", "number_rest", "truth", "missing", "list_kind"):
        np.testing.assert_array_equal(getattr(one, name), getattr(row, name), name)
    assert strings_of(one) == strings_of(row)
    assert lists_of(one) == lists_of(row)
    np.testing.assert_array_equal(one.geometry >= 0, row.geometry >= 0)
    for a, b in zip(one.geometry.ravel().tolist(), row.geometry.ravel().tolist(), strict=True):
        if a >= 0:
            first, second = (Shapes(g.shapes).row(k).arrays for g, k in ((one, a), (row, b)))
            for single, table in zip(first, second, strict=True):
                np.testing.assert_array_equal(single, table)


def write_event(layout: SingleEventLayout, event: dict[str, Any]) -> EventArrays | None:
    """Return the arrays that the kernels for one event match; None for a table instead."""
    geometry = layout.write(event)
    if geometry is None:
        return None
    if len(geometry) == 2:
        if not np.isfinite(geometry).all():
            return None
        shapes, usable = Shapes.read_one(shapely.Point(*geometry)).arrays, True
    else:
        lay_out: Any = lay_out_unchecked
        shapes, usable = lay_out(*geometry, *layout.limits)
    if layout.joined_items[0] < layout.joined_items[1]:
        split_joined_items(layout.joined_items, layout.events.text, layout.events.item_start)
    return layout.events._replace(shapes=shapes) if usable else None


def strings_of(block: EventArrays) -> list[bytes | None]:
    ends = zip(block.string_start.ravel().tolist(), block.string_stop.ravel().tolist(), strict=True)
    return [None if start < 0 else bytes(block.text[start:stop]) for start, stop in ends]


def lists_of(block: EventArrays) -> list[set[bytes]]:
    return [
        {
            bytes(block.text[block.item_start[k] : block.item_start[k + 1]])
            for k in range(start, stop)
        }
        for start, stop in zip(
            block.list_start.ravel().tolist(), block.list_stop.ravel().tolist(), strict=True
        )
    ]


@given(st.lists(TEXT_EXPRESSIONS, min_size=1, max_size=5), EVENTS)
@example(["n > 1 AND s = 'a' AND A_OVERLAPS(t, ('x')) AND b"], {})
@examples(150)
def test_a_single_event_equals_a_table(texts: list[str], event: dict[str, Any]) -> None:
    assert_equal_arrays(columns_of(texts), event)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda geometry: repr(geometry)[:50])
def test_every_form_of_geometry(geometry: object) -> None:
    columns = columns_of(["S_INTERSECTS(a, BBOX(0, 0, 1, 1)) AND S_INTERSECTS(b, POINT(0 0))"])
    for event in (
        {"a": geometry},
        {"b": geometry},
        {"a": geometry, "b": "LINESTRING (0 0, 1 -0)"},
    ):
        assert_equal_arrays(columns, event)
        assert_equal_arrays(columns, {**event, "b": geometry})


def test_an_event_overwrites_the_one_before() -> None:
    columns = columns_of(
        ["n > 1 AND s = 'a' AND b AND m IS NULL AND S_DWITHIN(g, POINT(0 0), 1) AND i > 1"]
    )
    layout = SingleEventLayout(columns)
    long = "x" * 5000
    events: list[dict[str, Any]] = [
        {"n": 3, "s": "one", "b": True, "g": "POINT (1 1)", "i": 2**70},
        {},
        {"n": 4.5, "s": long, "b": False, "m": 1, "g": shapely.Point(2, 2), "i": 7},
        {"s": "a"},
        {"n": "4", "s": 4, "b": 0, "m": None, "g": {"type": "Point", "coordinates": [0.5, -0.0]}},
    ]
    for event in events * 2:
        one = write_event(layout, event)
        assert one is not None
        row = encode_events(columns, EventTable([event]))
        for name in ("number", "number_rest", "truth", "missing"):
            np.testing.assert_array_equal(getattr(one, name), getattr(row, name), name)
        assert strings_of(one) == strings_of(row)
        assert (one.geometry[0, 0] >= 0) == ("g" in event)


def test_lists_one_after_another() -> None:
    columns = columns_of(["A_OVERLAPS(l, ('x', 1)) AND s = 'a' AND S_INTERSECTS(g, POINT(0 0))"])
    layout = SingleEventLayout(columns)
    lists: list[Any] = [
        ["one", "two", "one", "three"],
        ["nothing\0between", "b"],
        [],
        ["", "s", "ss", "", "\0"],
        [f"word {k}" for k in range(300)],
        "words of a text",
        None,
        ["ü", "a"],
        ["a", 1, True],
        [f"w{k}" for k in range(17)],
    ]
    for items in lists * 2:
        for place in ({"type": "Point", "coordinates": [1, 2]}, "LINESTRING (0 0, 1 1)"):
            event = {"l": items, "s": "a string", "g": place}
            one = write_event(layout, event)
            assert one is not None
            row = encode_events(columns, EventTable([event]))
            assert one.list_kind.tolist() == row.list_kind.tolist()
            assert lists_of(one) == lists_of(row)
            assert strings_of(one) == strings_of(row)
