"""S_ALLWITHIN, also written `@(Circle)`: the farthest points decide, with every index."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import fencepost as fp
from fencepost.cql2 import parse, render_json, render_text
from fencepost.cql2.ast import Condition, NearFunction
from fencepost.engine import Matcher
from fencepost.filters import evaluate_near, measure_distance
from fencepost.geometry import Shapes, Space
from fencepost.papers.events import parse_ops4st, render_ops4st
from fencepost.reference import are_near
from tests.kernels.ellipsoid import edges_of, metres

GEOMETRIES = [
    "POINT (3 4)",
    "POINT (1 7.450580596923828e-09)",
    "POINT (4 4)",
    "MULTIPOINT (0 0, 3 4)",
    "MULTIPOINT (0 0, 9 9)",
    "LINESTRING (-3 -4, 3 4)",
    "LINESTRING (-9 0, 9 0)",
    "LINESTRING (0 1, 3 4, 5 0, 0 5.000000000000001)",
    "POLYGON ((3 4, 4 4, 4 5, 3 5, 3 4))",
    "POLYGON ((0 0, 3 0, 3 4, 0 4, 0 0))",
    "POLYGON ((-9 -9, 9 -9, 9 9, -9 9, -9 -9))",
    "POLYGON ((-9 -9, 9 -9, 9 9, -9 9, -9 -9), (-8 -8, 8 -8, 8 8, -8 8, -8 -8))",
    "MULTIPOLYGON (((0 0, 1 0, 0 1, 0 0)), ((3 3, 3 4, 2 3, 3 3)))",
]
RADII = [1.0, nextafter(1.0, inf), 5.0, nextafter(5.0, 0.0), nextafter(5.0, inf), 13.0]


def read(text: str) -> Condition:
    condition = parse_ops4st(text)
    assert not isinstance(condition, fp.Composite)
    return condition


def in_circle(wkt: str, x: float, y: float, radius: float) -> bool:
    """Return whether all corners are in a circle, in exact arithmetic; a disc is convex."""
    corners = shapely.get_coordinates(shapely.from_wkt(wkt)).tolist()
    square = Fraction(radius) ** 2
    return all((Fraction(u) - Fraction(x)) ** 2 + (Fraction(v) - Fraction(y)) ** 2 <= square
               for u, v in corners)  # fmt: skip


INDEXES = ["auto", "reference", "sff", "cr-tree", "rt", "rt++", "ops4st", "ops4st-standard"]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("rest", ["", ";STRING:kind=“taxi”"])
def test_an_event_is_in_a_circle_if_its_whole_geometry_is(
    index: Any, rest: str, tmp_path: Path
) -> None:
    m = Matcher(index=index, space="planar")
    rest = rest.lstrip(";")
    for radius in RADII:
        circle = read(f"@(Circle(0,0,{radius!r}))({rest})")
        m.subscribe(f"in {radius!r}", circle)
        m.subscribe(f"out {radius!r}", f"NOT ({render_text(circle)})" if not rest else "FALSE")
    events = [{"geometry": wkt, "kind": "taxi"} for wkt in GEOMETRIES]
    expected = [
        sorted(
            [f"in {radius!r}" for radius in RADII if in_circle(wkt, 0, 0, radius)]
            + [
                f"out {radius!r}"
                for radius in RADII
                if not rest and not in_circle(wkt, 0, 0, radius)
            ]
        )
        for wkt in GEOMETRIES
    ]
    assert [m.match(event) for event in events] == expected
    assert m.match({"kind": "taxi"}) == []
    m.save(tmp_path / "saved")
    opened = Matcher.open(tmp_path / "saved")
    assert [opened.match(event) for event in events] == expected
    matches = opened.match_batch(events, sort=True)
    columns = (matches[name].to_pylist() for name in matches.column_names)
    assert sorted(zip(*columns, strict=True)) == [
        (row, id) for row, ids in enumerate(expected) for id in ids
    ]


def test_many_circles_with_a_string_and_extended_events() -> None:
    rng = random.Random("circles")
    m = Matcher(space="planar")
    circles = {f"{k:03}": (rng.uniform(0, 60), rng.uniform(0, 60), 9.0) for k in range(300)}
    for id, (x, y, radius) in circles.items():
        m.subscribe(id, read(f"@(Circle({x!r},{y!r},{radius}))(STRING:kind=“taxi”)"))
    m.compact()
    total = 0
    for _ in range(60):
        x, y = rng.uniform(0, 60), rng.uniform(0, 60)
        corners = [(x + rng.uniform(-3, 3), y + rng.uniform(-3, 3)) for _ in range(3)]
        kind = rng.choice([shapely.MultiPoint, shapely.LineString, shapely.Polygon, None])
        wkt = (shapely.Point(x, y) if kind is None else kind(corners)).wkt
        ids = m.match({"geometry": wkt, "kind": "taxi"})
        assert ids == [id for id, circle in circles.items() if in_circle(wkt, *circle)]
        assert m.match({"geometry": wkt, "kind": "bus"}) == []
        total += len(ids)
    assert total > 100


def test_all_three_notations() -> None:
    text = "S_ALLWITHIN(geometry, POINT(1 2), 3.5) AND kind = 'taxi'"
    tree = parse(text)
    assert parse(render_text(tree)) == tree
    assert parse(render_json(tree)) == tree
    assert parse_ops4st("@(Circle(1,2,3.5))(STRING:kind=“taxi”)") == tree
    text = render_ops4st(tree)
    assert text.startswith("@(Circle(1.0,2.0,3.5))")
    assert parse_ops4st(text) == tree
    m = Matcher(space="planar")
    m.subscribe("tree", tree)
    assert parse(m.expression("tree")) == tree
    m.move("tree", "geometry", "POINT(9 9)")
    assert m.match({"geometry": "LINESTRING(8 8, 10 10)", "kind": "taxi"}) == ["tree"]
    for text in ("S_ALLWITHIN(geometry, POINT(1 2), 0)", "S_ALLWITHIN(g, LINESTRING(0 0, 1 1), 3)"):
        with pytest.raises(fp.LanguageError):  # not a circle
            render_ops4st(parse(text))


def test_an_explanation_has_the_distance_of_the_farthest_point() -> None:
    m = Matcher(space="planar")
    m.subscribe("circle", "S_ALLWITHIN(geometry, POINT(0 0), 4)")
    explanation = m.explain({"geometry": "LINESTRING(0 1, 3 4)"}, "circle")
    assert "the distance is 5; off by 1" in str(explanation)


# ------------------------------------------------------------------------------- on the ellipsoid


def farthest(a: shapely.Geometry, b: shapely.Geometry) -> float:
    """Return the greatest distance of two geometries, by ever finer samples of their edges."""
    best = 0.0
    for edge, other in product(edges_of(a), edges_of(b)):
        low, high = np.zeros(2), np.ones(2)
        for _ in range(5):
            s, t = (np.linspace(low[k], high[k], 25) for k in range(2))
            s, t = (grid.ravel() for grid in np.meshgrid(s, t))
            p = edge[None, :2] + s[:, None] * (edge[2:] - edge[:2])
            q = other[None, :2] + t[:, None] * (other[2:] - other[:2])
            distances = metres(p[:, 0], p[:, 1], q[:, 0], q[:, 1])
            k = int(distances.argmax())
            best = max(best, float(distances[k]))
            width = (high - low) / 12
            middle = np.array([s[k], t[k]])
            low, high = np.maximum(middle - width, 0), np.minimum(middle + width, 1)
    return best


def random_geometry(rng: random.Random, kind: str) -> shapely.Geometry:
    lon, lat = rng.uniform(-150, 150), rng.choice([0.0, 50.0, 80.0, -85.0])
    size = rng.choice([1e-3, 1.0, 10.0, 30.0])
    corners = [
        (lon + rng.uniform(-1, 1) * size, min(90.0, max(-90.0, lat + rng.uniform(-1, 1) * size)))
        for _ in range(3)
    ]
    if kind == "point":
        return shapely.Point(corners[0])
    return shapely.LineString(corners) if kind == "line" else shapely.Polygon(corners)


@pytest.mark.parametrize("kinds", ["point point", "line point", "area point", "line area"])
def test_the_greatest_distance_equals_that_of_samples(kinds: str) -> None:
    rng = random.Random(kinds)
    for _ in range(6):
        a, b = (random_geometry(rng, kind) for kind in kinds.split())
        if not (a.is_valid and b.is_valid):
            continue
        left, right = Shapes.read_one(a), Shapes.read_one(b)
        pairs = (left, right), (right, left)
        value = max(
            measure_distance(Space.WGS84, NearFunction.S_ALLWITHIN, *pair) for pair in pairs
        )
        assert value == pytest.approx(farthest(a, b), abs=2e-3)
        for bound in (value - 1e-4, value, value + 1e-4):
            expected = value <= bound
            for pair in pairs:
                assert (
                    evaluate_near(Space.WGS84, NearFunction.S_ALLWITHIN, *pair, bound) == expected
                )
        for bound in (value - 1.0, value + 1.0):
            assert are_near(NearFunction.S_ALLWITHIN, a, b, bound, Space.WGS84) == (value <= bound)


def test_an_edge_along_a_parallel_may_be_farthest_in_its_middle() -> None:
    m = Matcher(space="wgs84")
    m.subscribe("ends", "S_ALLWITHIN(geometry, POINT(180 70), 4900000)")
    m.subscribe("middle", "S_ALLWITHIN(geometry, POINT(180 70), 5600000)")
    ends, line = "MULTIPOINT(-60 60, 60 60)", "LINESTRING(-60 60, 60 60)"
    assert m.match({"geometry": ends}) == ["ends", "middle"]
    assert m.match({"geometry": line}) == ["middle"]


def test_an_area_that_contains_the_antipode() -> None:
    m = Matcher(space="wgs84")
    m.subscribe("edges", "S_ALLWITHIN(geometry, POINT(180 0), 12000000)")
    m.subscribe("earth", "S_ALLWITHIN(geometry, POINT(180 0), 20003932)")
    ring = "-170 -80, 170 -80, 170 80, -170 80, -170 -80"
    assert m.match({"geometry": f"LINESTRING({ring})"}) == ["earth", "edges"]
    assert m.match({"geometry": f"POLYGON(({ring}))"}) == ["earth"]
    assert not are_near(
        *(NearFunction.S_ALLWITHIN, shapely.from_wkt(f"POLYGON(({ring}))"), shapely.Point(180, 0)),
        *(12000000.0, Space.WGS84),
    )
