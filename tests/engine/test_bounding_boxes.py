"""Bounding boxes of checks: whatever satisfies a check meets its box, by the reference."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2 import ast, parse
from fencepost.engine import ColumnRegistry, FilterTable
from fencepost.engine.bounding_boxes import BoundingBoxes, bounding_boxes_of
from fencepost.filters import to_filters
from fencepost.geometry import Space
from fencepost.reference import evaluate
from tests.engine.strategies import DISTANCES, GEOMETRIES, LITERALS, examples

NEAR = [function.name for function in ast.NearFunction]
SPATIAL = [function.name for function in ast.SpatialFunction]


def places(text: str, space: Space = Space.PLANAR) -> BoundingBoxes:
    """Of the only check of an expression."""
    table = FilterTable(ColumnRegistry(space=space), use_postings=False)
    table.add(0, to_filters(parse(text, space), space))
    arrays = table.arrays()
    assert len(arrays.checks) == 1
    return bounding_boxes_of(arrays.checks, arrays.shapes.arrays)


def meets(found: BoundingBoxes, bounds: tuple[float, ...], itself: shapely.Geometry | None) -> bool:
    """Whether an event of these bounds, and if it must the event itself, meets a box."""
    boxes = np.concatenate((found.boxes, found.beyond))
    x0, y0, x1, y1 = bounds
    here = boxes[
        (boxes[:, 0] <= x1) & (boxes[:, 2] >= x0) & (boxes[:, 1] <= y1) & (boxes[:, 3] >= y0)
    ]
    if not found.must_meet_box()[0] or not np.isfinite(here).all():
        return len(here) > 0
    return any(shapely.box(*box).intersects(itself) for box in here)


@given(
    st.sampled_from(["", "NOT "]),
    st.one_of(
        st.tuples(st.sampled_from(SPATIAL), st.just("")),
        st.tuples(st.sampled_from(NEAR), DISTANCES.map(", {}".format)),
    ),
    st.sampled_from(LITERALS),
    GEOMETRIES,
)
@examples(300)
def test_what_satisfies_a_check_meets_its_box(
    negation: str, asked: tuple[str, str], literal: str, event: shapely.Geometry
) -> None:
    function, distance = asked
    text = f"{negation}{function}(g, {literal}{distance})"
    found = places(text)
    if evaluate(parse(text), {"g": event}) is True and found.kinds[0]:
        assert meets(found, event.bounds, event)


@pytest.mark.parametrize("function", NEAR)
@pytest.mark.parametrize("negated", [False, True])
def test_only_what_asks_to_be_near_has_a_box(function: str, negated: bool) -> None:
    text = f"{'NOT ' if negated else ''}{function}(g, POINT(1 1), 2)"
    far = evaluate(parse(text), {"g": shapely.Point(900, 900)})
    assert bool(places(text).kinds[0]) is (far is False)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("S_DWITHIN(g, POINT(179.9 0), 50000)", (-179.9, 0.0)),
        ("S_ALLWITHIN(g, POINT(179.9 0), 50000)", (-179.9, 0.0)),
        ("NOT S_BEYOND(g, POINT(-179.9 10), 50000)", (179.9, 10.0)),
        ("S_SAMEPLACE(g, LINESTRING(179.8 0, 179.9 0), 60000)", (-179.9, 0.0)),
        ("S_CLOSER(g, POINT(10 89.9), 50000)", (-170.0, 89.9)),
    ],
)
def test_boxes_on_the_ellipsoid_go_on_beyond_the_antimeridian(
    text: str, event: tuple[float, float]
) -> None:
    point = shapely.Point(event)
    assert evaluate(parse(text, Space.WGS84), {"g": point}, space=Space.WGS84) is True
    assert meets(places(text, Space.WGS84), point.bounds, point)
