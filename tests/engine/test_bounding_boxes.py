"""Bounding boxes of checks: events that satisfy a check, by the reference, meet its box."""

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


def boxes_of(text: str, space: Space = Space.PLANAR) -> BoundingBoxes:
    """Return the boxes of the only check of an expression."""
    table = FilterTable(ColumnRegistry(space=space), use_postings=False)
    table.add(0, to_filters(parse(text, space), space))
    arrays = table.arrays()
    assert len(arrays.checks) == 1
    return bounding_boxes_of(arrays.checks, arrays.shapes.arrays)


def meets(
    boxes: BoundingBoxes, bounds: tuple[float, ...], geometry: shapely.Geometry | None
) -> bool:
    """Return whether the bounds of an event meet a box, and, if they must, also its geometry."""
    both = np.concatenate((boxes.boxes, boxes.beyond))
    x0, y0, x1, y1 = bounds
    met = both[(both[:, 0] <= x1) & (both[:, 2] >= x0) & (both[:, 1] <= y1) & (both[:, 3] >= y0)]
    if not boxes.must_meet_box()[0] or not np.isfinite(met).all():
        return len(met) > 0
    return any(shapely.box(*box).intersects(geometry) for box in met)


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
def test_events_that_satisfy_a_check_meet_its_box(
    negation: str, function_and_distance: tuple[str, str], literal: str, event: shapely.Geometry
) -> None:
    function, distance = function_and_distance
    text = f"{negation}{function}(g, {literal}{distance})"
    boxes = boxes_of(text)
    if evaluate(parse(text), {"g": event}) is True and boxes.kinds[0]:
        assert meets(boxes, event.bounds, event)


@pytest.mark.parametrize("function", NEAR)
@pytest.mark.parametrize("negated", [False, True])
def test_only_checks_for_nearness_have_a_box(function: str, negated: bool) -> None:
    text = f"{'NOT ' if negated else ''}{function}(g, POINT(1 1), 2)"
    far = evaluate(parse(text), {"g": shapely.Point(900, 900)})
    assert bool(boxes_of(text).kinds[0]) is (far is False)


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
def test_boxes_on_the_ellipsoid_continue_beyond_the_antimeridian(
    text: str, event: tuple[float, float]
) -> None:
    point = shapely.Point(event)
    assert evaluate(parse(text, Space.WGS84), {"g": point}, space=Space.WGS84) is True
    assert meets(boxes_of(text, Space.WGS84), point.bounds, point)
