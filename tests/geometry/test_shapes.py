"""Geometries that are refused, with the reasons, and the layout of accepted geometries."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st
from shapely import LineString, MultiPolygon, Point, Polygon
from shapely.geometry import mapping
from shapely.geometry.base import BaseGeometry

from bench import data
from fencepost.engine import matrices, relations
from fencepost.errors import GeometryError
from fencepost.geometry import Relation, Shapes, matrix_text
from fencepost.kernels.geometry.shape_arrays import (
    AREAS,
    BOUNDARY,
    EDGES_PER_LEAF,
    FANOUT,
    LINES,
    MIXED,
    POINTS,
    TOUCH,
    ShapeArrays,
)
from fencepost.reference import defect, matrix
from tests.geometry_families import FAMILIES, XY, pairs, suspect
from tests.seeds import seeds

INVALID = data.folder() / "invalid_real_polygons.parquet"

FEW = "too few distinct points (a line needs 2, a ring 3)"
SPIKE = "a ring doubles back on itself"
ITSELF = "a ring touches or crosses itself"
CROSS = "two rings cross"
SHARED = "two rings share a piece of an edge"
OUTSIDE = "a hole lies outside its shell"
HOLES = "a hole lies inside another hole"
PARTS = "a part lies inside another part"
CUT = "touching rings cut the interior in two"

FRAME = "(0 0,6 0,6 6,0 6,0 0)"
SLIT = "POLYGON((0 0,0 10,10 10,10 0,0 0),(5 5,10 5,5 6,5 5))"


def read(*values: object) -> Shapes:
    return Shapes.read(list(values))


def chains(g: ShapeArrays, row: int) -> list[list[XY]]:
    """Return the chains of a shape as lists of points."""
    first, stop = g.shapes["chain"][row : row + 2].tolist()
    starts = g.chains["start"][first : stop + 1].tolist()
    xy = list(zip(g.x.tolist(), g.y.tolist(), strict=True))
    return [xy[start:end] for start, end in pairwise(starts)]


def doubled_area(ring: Sequence[XY]) -> Fraction:
    exact = [(Fraction(x), Fraction(y)) for x, y in ring]
    return sum((ax * by - ay * bx for (ax, ay), (bx, by) in pairwise(exact)), Fraction(0))


# ------------------------------------------------------------------------------- refused geometries

REFUSED = [
    # The reason, and all places that may be reported.
    ("LINESTRING(1 2,1 2)", FEW, [(1, 2)]),
    ("MULTILINESTRING((0 0,1 1),(3 2,3 2,3 2))", FEW, [(3, 2)]),
    ("POLYGON((3 1,3 1,3 1,3 1))", FEW, [(3, 1)]),
    ("POLYGON((0 0,1 1,0 0,0 0))", FEW, [(0, 0), (1, 1)]),
    (f"POLYGON({FRAME},(1 1,2 2,1 1,1 1))", FEW, [(1, 1), (2, 2)]),
    ("POLYGON((0 0,1 0,3 0,0 0))", SPIKE, [(0, 0), (1, 0), (3, 0)]),
    ("POLYGON((0 0,0 3,0 1,0 0))", SPIKE, [(0, 0), (0, 3), (0, 1)]),
    ("POLYGON((0 0,6 0,4 0,4 4,0 0))", SPIKE, [(6, 0), (4, 0)]),
    ("POLYGON((4 4,0 0,6 0,4 0,4 4))", SPIKE, [(6, 0), (4, 0)]),
    ("POLYGON((6 0,4 0,4 4,0 0,6 0))", SPIKE, [(6, 0), (4, 0)]),
    ("POLYGON((0 0,2 2,2 0,0 2,0 0))", ITSELF, [(1, 1)]),
    ("POLYGON((0 0,3 1,3 0,0 2,0 0))", ITSELF, [(2, 2 / 3)]),
    ("POLYGON((0 0,4 0,4 4,2 0,0 4,0 0))", ITSELF, [(2, 0)]),
    ("POLYGON((0 0,2 0,2 1,3 1,2 0,4 0,4 4,0 0))", ITSELF, [(2, 0)]),
    ("POLYGON((0 0,4 0,4 4,2 2,2 1,3 1,3 2,2 2,0 4,0 0))", ITSELF, [(2, 2)]),
    (f"POLYGON({FRAME},(1 1,8 1,1 2,1 1))", CROSS, [(6, 1), (6, 9 / 7)]),
    (f"POLYGON({FRAME},(4 4,6 6,8 6,4 4))", CROSS, [(6, 6), (6, 5)]),
    (f"POLYGON({FRAME},(3 3,6 3,9 2,3 3))", CROSS, [(6, 3), (6, 2.5)]),
    (f"MULTIPOLYGON(({FRAME}),((5 1,8 1,8 2,5 1)))", CROSS, [(6, 1), (6, 4 / 3)]),
    (f"POLYGON({FRAME},(0 1,2 1,0 3,0 1))", SHARED, [(0, 1), (0, 3)]),
    (f"POLYGON({FRAME},(2 1,0 3,0 1,2 1))", SHARED, [(0, 1), (0, 3)]),
    (f"POLYGON({FRAME},(1 1,3 1,3 3,1 1),(3 2,5 2,3 4,3 2))", SHARED, [(3, 2), (3, 3)]),
    (f"MULTIPOLYGON(({FRAME}),((6 1,8 1,8 2,6 2,6 1)))", SHARED, [(6, 1), (6, 2)]),
    ("MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((2 0,4 0,4 2,2 2,2 0)))", SHARED, [(2, 0), (2, 2)]),
    (f"POLYGON({FRAME},{FRAME})", SHARED, [(0, 0), (6, 0), (6, 6), (0, 6)]),
    (f"MULTIPOLYGON(({FRAME}),({FRAME}))", SHARED, [(0, 0), (6, 0), (6, 6), (0, 6)]),
    (f"POLYGON({FRAME},(7 7,8 7,8 8,7 7))", OUTSIDE, [(7, 7), (8, 7), (8, 8)]),
    (f"POLYGON({FRAME},(6 6,8 7,7 8,6 6))", OUTSIDE, [(6, 6), (8, 7), (7, 8)]),
    (f"POLYGON({FRAME},(6 3,8 2,8 4,6 3))", OUTSIDE, [(6, 3), (8, 2), (8, 4)]),
    (f"POLYGON({FRAME},(-1 -1,9 -1,9 9,-1 -1))", CROSS, [(0, 0), (6, 6), (0, -1)]),
    (f"POLYGON({FRAME},(-1 -1,9 -1,9 9,-1 9,-1 -1))", OUTSIDE,
     [(-1, -1), (9, -1), (9, 9), (-1, 9)]),
    (f"POLYGON({FRAME},(1 1,5 1,5 5,1 1),(3 2,4 2,4 3,3 2))", HOLES, [(3, 2), (4, 2), (4, 3)]),
    (f"POLYGON({FRAME},(3 2,4 2,4 3,3 2),(1 1,5 1,5 5,1 1))", HOLES, [(3, 2), (4, 2), (4, 3)]),
    (f"POLYGON({FRAME},(1 1,5 1,5 5,1 5,1 1),(1 3,3 1,5 3,3 5,1 3))", HOLES,
     [(1, 3), (3, 1), (5, 3), (3, 5)]),
    (f"MULTIPOLYGON(({FRAME}),((1 1,2 1,2 2,1 1)))", PARTS, [(1, 1), (2, 1), (2, 2)]),
    (f"MULTIPOLYGON(((1 1,2 1,2 2,1 1)),({FRAME}))", PARTS, [(1, 1), (2, 1), (2, 2)]),
    (f"MULTIPOLYGON(({FRAME}),((0 0,2 1,2 2,0 0)))", PARTS, [(0, 0), (2, 1), (2, 2)]),
    (f"MULTIPOLYGON(({FRAME}),((0 3,3 0,6 3,3 6,0 3)))", PARTS, [(0, 3), (3, 0), (6, 3), (3, 6)]),
    (f"MULTIPOLYGON(({FRAME},(1 1,2 1,2 2,1 1)),((3 3,4 3,4 4,3 3)))", PARTS,
     [(3, 3), (4, 3), (4, 4)]),
    (f"POLYGON({FRAME},(0 3,3 1,6 3,3 2,0 3))", CUT, [(0, 3), (6, 3)]),
    (f"POLYGON({FRAME},(0 0,3 1,6 6,3 2,0 0))", CUT, [(0, 0), (6, 6)]),
    (f"POLYGON({FRAME},(0 3,3 2,3 3,0 3),(3 3,4 2,6 3,3 3))", CUT, [(0, 3), (3, 3), (6, 3)]),
    (f"POLYGON({FRAME},(1 1,2 1,3 3,1 1),(3 3,4 1,5 1,3 3),(2 1,3 .5,4 1,2 1))", CUT,
     [(2, 1), (3, 3), (4, 1)]),
    (f"MULTIPOLYGON(((9 9,8 8,9 8,9 9)),({FRAME},(0 3,3 1,6 3,3 2,0 3)))", CUT, [(0, 3), (6, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "places"), REFUSED)
def test_refused_with_the_right_reason_and_place(text: str, reason: str, places: list[XY]) -> None:
    (problem,) = read("POINT(0 0)", text, "POINT(1 1)").problems
    assert (problem.row, problem.reason) == (1, reason)
    assert problem.place is not None
    assert min(math.dist(problem.place, place) for place in places) < 1e-12, problem.place


@pytest.mark.parametrize(("text", "reason", "places"), REFUSED)
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-540, 2.0**500, 2.0**1019])
def test_the_same_at_the_ends_of_the_range(
    scale: float, text: str, reason: str, places: list[XY]
) -> None:
    geometry = shapely.transform(shapely.from_wkt(text), lambda xy: xy * scale)
    (problem,) = read(geometry).problems
    assert problem.reason == reason
    assert problem.place is not None
    x, y = problem.place
    assert min(math.dist((x / scale, y / scale), place) for place in places) < 1e-9, problem.place


def test_a_spike_between_equal_vertices_may_have_either_reason() -> None:
    (problem,) = read("POLYGON((0 0,4 0,6 0,4 0,4 4,0 0))").problems
    assert problem.reason in (SPIKE, ITSELF)
    assert problem.place in ((6, 0), (4, 0))


ACCEPTED = [
    f"POLYGON({FRAME})",
    SLIT,
    "POLYGON((0 0,0 0,4 0,4 4,4 4,0 0,0 0))",
    "POLYGON((0 0,2 0,4 0,4 4,2 2,0 0))",
    f"POLYGON({FRAME},(0 3,3 1,3 2,0 3))",
    f"POLYGON({FRAME},(0 3,3 2,3 3,0 3),(3 3,4 2,5 3,3 3))",
    f"POLYGON({FRAME},(3 3,1 1,2 1,3 3),(3 3,4 1,5 1,3 3),(3 3,2 5,4 5,3 3))",
    f"MULTIPOLYGON(({FRAME}),((6 1,8 0,8 2,6 1)))",
    f"MULTIPOLYGON(({FRAME},(1 1,5 1,5 5,1 5,1 1)),((1 3,3 1,5 3,3 5,1 3)))",
    f"MULTIPOLYGON(({FRAME},(1 1,5 1,5 5,1 5,1 1)),((2 2,3 2,3 3,2 2)))",
    "MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((2 2,4 2,4 4,2 4,2 2)))",
    "LINESTRING(0 0,2 2,2 0,0 2)",
    "LINESTRING(0 0,1 0,0 0)",
    "MULTIPOINT(0 0,0 0)",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    assert read(text).problems == ()
    assert defect(shapely.from_wkt(text)) is None


# ------------------------------------------------------------------- verdicts against the reference


def rings_of(geometry: BaseGeometry) -> list[tuple[int, Polygon]]:
    """Return each ring as a polygon, with the number of its part."""
    return [
        (number, Polygon(ring))
        for number, part in enumerate(leaves(geometry))
        for ring in (part.exterior, *part.interiors)
    ]


def leaves(geometry: BaseGeometry) -> list[BaseGeometry]:
    """Return the points, lines and polygons of a geometry, without empty members of collections."""
    if geometry.geom_type.startswith("Multi"):
        return [*geometry.geoms]
    if geometry.geom_type != "GeometryCollection":
        return [geometry]
    return [part for member in geometry.geoms if not member.is_empty for part in leaves(member)]


def true_reasons(geometry: BaseGeometry) -> set[str]:
    """Return every reason that may be reported, from checks of each ring and each pair of rings."""
    rings = rings_of(geometry)
    by_verdict = {
        "too few distinct points": {FEW, SPIKE},
        "ring touches or crosses itself": {ITSELF, SPIKE},
    }
    verdicts = [defect(ring) for _, ring in rings]
    found = {reason for verdict in verdicts if verdict for reason in by_verdict[verdict]}
    for ((_, one), bad), ((_, other), bad_too) in combinations(
        zip(rings, verdicts, strict=True), 2
    ):
        if bad or bad_too:
            # A degenerate ring has no area, so the rings are compared as lines.
            common = _common_dimension(one.exterior, other.exterior)
            found |= {"F": set(), "0": {CROSS}, "1": {CROSS, SHARED}}[common]
            continue
        entries = matrix(one, other)
        if entries[4] == "1":
            found.add(SHARED)
        if entries[3] == entries[5] == "1":
            found.add(CROSS)
    if found:
        return found
    for part in shapely.get_parts(geometry):
        found |= {
            {
                "hole outside its shell": OUTSIDE,
                "hole inside another hole": HOLES,
                "interior not connected": CUT,
            }[verdict]
            for verdict in [defect(part)]
            if verdict
        }
    whole = defect(geometry)
    if whole == "one part inside another" or (whole and len(shapely.get_parts(geometry)) > 1):
        found.add(PARTS)
    return found


def _common_dimension(one: BaseGeometry, other: BaseGeometry) -> str:
    degenerate = len({*one.coords}) < 2 or len({*other.coords}) < 2
    return "F" if degenerate else matrix(one, other)[0]


def rays_at(geometry: BaseGeometry, place: XY) -> list[float]:
    """Return the directions of the edges that leave a place on the rings of a geometry."""
    edges = [edge for _, ring in rings_of(geometry) for edge in pairwise(ring.exterior.coords)]
    return [
        math.atan2(end[1] - place[1], end[0] - place[0])
        for a, b in edges
        if a != b and LineString([a, b]).distance(Point(place)) < 1e-9
        for end in (a, b)
        if math.dist(end, place) > 1e-9
    ]


def is_a_contact(geometry: BaseGeometry, place: XY) -> bool:
    """Return whether the rings pass through a place more than once, or double back there."""
    rays = rays_at(geometry, place)
    return len(rays) > 2 or (len(rays) == 2 and abs(rays[0] - rays[1]) < 1e-9)


class Judged(NamedTuple):
    verdicts: Counter[str | None]  # the reference's
    wrong_verdicts: list[str]
    wrong_reasons: list[str]
    wrong_places: list[str]


def judged(geometries: Sequence[BaseGeometry]) -> Judged:
    """Compare the verdicts of `Shapes` on geometries with the reference."""
    shapes = Shapes.read(list(geometries))
    problems = {problem.row: problem for problem in shapes.problems}
    found = Judged(Counter(), [], [], [])
    for row, geometry in enumerate(geometries):
        verdict = defect(geometry)
        problem = problems.get(row)
        text = f"{geometry}: {verdict}, not {problem}"
        found.verdicts[verdict] += 1
        usable = shapes.arrays.shapes["dimension"][row] == AREAS
        if (problem is None) != (verdict is None) or usable != (verdict is None):
            found.wrong_verdicts.append(text)
        if problem is None or verdict is None:
            continue
        if problem.reason not in true_reasons(geometry):
            found.wrong_reasons.append(text)
        assert problem.place is not None
        if problem.reason in (SPIKE, ITSELF, CROSS, SHARED, CUT):
            right = is_a_contact(geometry, problem.place)
        else:
            right = list(problem.place) in shapely.get_coordinates(geometry).tolist()
        if not right:
            found.wrong_places.append(text)
    return found


@cache
def judged_suspects(seed: int) -> Judged:
    rng = random.Random(seed)
    return judged([suspect(rng) for _ in range(2000)])


@pytest.mark.parametrize("seed", seeds(6, quick=2))
def test_verdicts_are_those_of_the_reference(seed: int) -> None:
    found = judged_suspects(seed)
    assert found.wrong_verdicts == []
    assert found.verdicts[None] > 400
    assert len(found.verdicts) == 9
    assert min(found.verdicts.values()) >= 5, found.verdicts


@pytest.mark.parametrize("seed", seeds(6, quick=2))
def test_reasons_are_true(seed: int) -> None:
    assert judged_suspects(seed).wrong_reasons == []


@pytest.mark.parametrize("seed", seeds(6, quick=2))
def test_places_are_those_of_the_defects(seed: int) -> None:
    assert judged_suspects(seed).wrong_places == []


numbers = st.one_of(st.integers(0, 3).map(float), st.sampled_from([0.5, 1.5, 5e-324, 0.1, 0.2]))
ring_of_points = st.lists(st.tuples(numbers, numbers), min_size=3, max_size=7)


@given(st.lists(st.lists(ring_of_points, min_size=1, max_size=3), min_size=1, max_size=3))
@example([[[(0.0, 0.0), (3.0, 0.0), (0.0, 3.0)], [(0.0, 0.0), (1.0, 1.0), (1.5, 1.5)]]])
def test_verdicts_on_random_rings(parts: list[list[list[XY]]]) -> None:
    geometry = MultiPolygon([Polygon(shell, holes) for shell, *holes in parts])
    assert bool(read(geometry).problems) == (defect(geometry) is not None)


@pytest.mark.parametrize("family", FAMILIES)
def test_valid_families_are_accepted(family: str) -> None:
    geometries = [a for a, _ in pairs(family, 2000, 20 if "strips" in family else 400)]
    assert Shapes.read(geometries).problems == ()


def test_near_contacts_are_distinguished() -> None:
    """A vertex of a hole lies on the shell, or one rounding step inside or outside."""

    def holed(x: float) -> Polygon:
        return Polygon([(0, 0), (0.3, 0.1), (0.1, 0.3)], [[(0.05, 0.05), (x, 0.1), (0.1, 0.09)]])

    on = 0.3  # the shell's own vertex is there
    xs = (math.nextafter(on, 0), on, math.nextafter(on, 1))
    assert [bool(read(holed(x)).problems) for x in xs] == [False, False, True]
    assert judged([holed(x) for x in xs]).wrong_verdicts == []


def test_every_bad_row_is_reported_and_good_rows_are_not_affected() -> None:
    good = [a for a, _ in pairs("holes", 2001, 60)]
    mixed: list[object] = []
    for k, geometry in enumerate(good):
        mixed += [geometry, REFUSED[k % len(REFUSED)][0]]
    shapes = Shapes.read(mixed)
    assert [problem.row for problem in shapes.problems] == list(range(1, len(mixed), 2))
    alone = Shapes.read_all(good)
    for k in range(len(good)):
        assert chains(shapes.arrays, 2 * k) == chains(alone.arrays, k)
    with pytest.raises(GeometryError, match=r"^row 1: .*; row 3: .*; and 50 more$"):
        Shapes.read_all(mixed)


def test_a_bad_row_has_no_relation_to_anything() -> None:
    """The box of a bad row is empty, and its relation is disjoint, for each reason."""
    shapes = read(*(text for text, _, _ in REFUSED), None, "POINT EMPTY")
    bad = shapes.arrays.shapes[:-1]
    assert (bad["dimension"] == -1).all()
    assert (bad["x0"] > bad["x1"]).all()
    for other in ("POINT(1 1)", "LINESTRING(0 0,6 6)", f"POLYGON({FRAME})"):
        assert {*relations(read(other), shapes).tolist()} == {Relation.DISJOINT.code}
    assert {*relations(shapes, shapes).tolist()} == {Relation.DISJOINT.code}


@pytest.mark.skipif(not INVALID.exists(), reason=f"no real data: {INVALID} is not there")
def test_real_invalid_polygons_are_refused() -> None:
    column = pq.read_table(INVALID)["geometry"].to_pylist()
    print(f"{len(column)} polygons from {INVALID.name}")  # noqa: T201
    shapes = Shapes.read(column)
    assert [problem.row for problem in shapes.problems] == list(range(len(column)))
    for problem, geometry in zip(shapes.problems, shapely.from_wkb(column), strict=True):
        assert problem.reason in (ITSELF, SPIKE, CROSS, SHARED)
        assert problem.place is not None
        assert is_a_contact(geometry, problem.place), problem


# ------------------------------------------------------------------------------------------- layout


@pytest.mark.parametrize("family", FAMILIES)
def test_layout_keeps_its_invariants(family: str) -> None:
    geometries = [a for a, _ in pairs(family, 2002, 12 if "strips" in family else 200)]
    shapes = Shapes.read_all(geometries)
    g = shapes.arrays
    for row, geometry in enumerate(geometries):
        paths = chains(g, row)
        kinds = {int(shapely.get_dimensions(part)) for part in leaves(geometry)}
        dimension = MIXED if len(kinds) > 1 else kinds.pop()
        assert g.shapes["dimension"][row] == dimension
        # The layout has all coordinates, and no others.
        points = {(x, y) for x, y in shapely.get_coordinates(geometry).tolist()}
        assert {xy for path in paths for xy in path} == points
        assert all(p != q for path in paths for p, q in pairwise(path))
        if dimension == POINTS:
            assert paths == [sorted(points)]
        if dimension == AREAS:
            shells = Counter(number for number, _ in rings_of(geometry))
            assert len(paths) == shells.total()
            first = int(g.shapes["chain"][row])
            parts = g.chains["part"][first : first + len(paths)].tolist()
            assert Counter(parts) == shells
            for k, ring in enumerate(paths):
                is_shell = k == 0 or parts[k] != parts[k - 1]
                assert ring[0] == ring[-1]
                assert len({*ring}) == len(ring) - 1 >= 3
                assert (doubled_area(ring) > 0) == is_shell


def test_boxes_and_trees_cover_their_edges() -> None:
    geometries = [
        *(a for family in ("holes", "lines", "strips") for a, _ in pairs(family, 2003, 30)),
        Polygon([(math.cos(k / 200), math.sin(k / 200)) for k in range(1256)]),
    ]
    g = Shapes.read_all(geometries).arrays
    for row in range(len(geometries)):
        first, stop = g.shapes["chain"][row : row + 2]
        points = slice(g.chains["start"][first], g.chains["start"][stop])
        box = g.shapes[row]
        assert (box["x0"], box["x1"]) == (g.x[points].min(), g.x[points].max())
        assert (box["y0"], box["y1"]) == (g.y[points].min(), g.y[points].max())
        nodes = g.nodes[g.shapes["node"][row] : g.shapes["node"][row + 1]]
        if box["dimension"] == POINTS:
            assert len(nodes) == 0
            continue
        covered: list[int] = []
        for node in nodes:
            below = slice(node["first"], node["first"] + node["edges"] + 1)
            assert node["x0"] == g.x[below].min()
            assert node["x1"] == g.x[below].max()
            assert node["y0"] == g.y[below].min()
            assert node["y1"] == g.y[below].max()
            assert node["children"] <= FANOUT
            if node["children"] == 0:
                assert 0 < node["edges"] <= EDGES_PER_LEAF
                covered += range(node["first"], node["first"] + node["edges"])
        starts = g.chains["start"][first : stop + 1].tolist()
        edges = [k for start, end in pairwise(starts) for k in range(start, end - 1)]
        assert covered == edges
        assert nodes[-1]["first"] == edges[0]
        assert nodes[-1]["edges"] == edges[-1] + 1 - edges[0]


def test_an_unclosed_ring_of_geojson_is_closed() -> None:
    closed = mapping(shapely.from_wkt(f"POLYGON({FRAME},(1 1,1 2,2 2,1 1))"))
    rings = [list(ring) for ring in closed["coordinates"]]
    unclosed = {"type": "Polygon", "coordinates": [ring[:-1] for ring in rings]}
    twice = {"type": "Polygon", "coordinates": [[*ring, ring[0], ring[0]] for ring in rings]}
    expected = chains(read(closed).arrays, 0)
    assert chains(read(unclosed).arrays, 0) == expected
    assert chains(read(twice).arrays, 0) == expected
    assert expected[0][0] == expected[0][-1]


@pytest.mark.parametrize("ring", [[], [[0, 0]], [[0, 0], [1, 1]], [[0, 0], [1, 1], [0, 0]]])
def test_a_short_ring_of_geojson_is_refused(ring: list[list[float]]) -> None:
    (problem,) = read({"type": "Polygon", "coordinates": [ring]}).problems
    assert problem.reason


def test_rings_are_oriented_and_repeated_points_dropped() -> None:
    clockwise = "POLYGON((0 0,0 0,0 4,0 4,4 4,4 0,0 0,0 0),(1 1,2 1,2 1,2 2,1 1))"
    shell, hole = chains(read(clockwise).arrays, 0)
    assert doubled_area(shell) == 32
    assert doubled_area(hole) == -1
    assert len(shell) == 5
    assert len(hole) == 4


def test_points_are_sorted_and_distinct() -> None:
    shapes = read("MULTIPOINT(3 1,2 5,3 1,2 -5)", "POINT(9 9)", "MULTIPOINT(1 1,0 0,1 1)")
    assert [chains(shapes.arrays, row) for row in range(3)] == [
        [[(2, -5), (2, 5), (3, 1)]],
        [[(9, 9)]],
        [[(0, 0), (1, 1)]],
    ]


def test_a_vertex_is_inserted_where_a_hole_touches_its_shell() -> None:
    """GEOS 3.14 is wrong about this pair: it checks for contacts at vertices only."""
    shapes = read(SLIT)
    shell, hole = chains(shapes.arrays, 0)
    assert (10, 5) in shell
    assert len(shell) == 6
    assert len(hole) == 4
    marked = np.flatnonzero(shapes.arrays.mark & TOUCH)
    assert {(shapes.arrays.x[k], shapes.arrays.y[k]) for k in marked} == {(10, 5)}
    touches = shapes.arrays.touches
    assert touches["vertex"].tolist() == sorted(marked.tolist())
    assert touches["next"].tolist() == sorted(marked.tolist(), reverse=True)
    square = read("POLYGON((0 0,0 10,10 10,10 0,0 0))")
    assert relations(shapes, square)[0] == Relation.COVERED_BY.code
    assert matrix_text(int(matrices(shapes, square)[0])) == "2FF11F2F2"


def test_vertices_that_meet_form_cycles() -> None:
    geometries = [a for family in ("holes", "tilings") for a, _ in pairs(family, 2004, 150)]
    g = Shapes.read_all([a for a in geometries if shapely.get_dimensions(a) == 2]).arrays
    place = dict(enumerate(zip(g.x.tolist(), g.y.tolist(), strict=True)))
    following = dict(zip(g.touches["vertex"].tolist(), g.touches["next"].tolist(), strict=True))
    assert len(following) > 200
    assert sorted(following) == list(following)
    assert sorted(following) == np.flatnonzero(g.mark & TOUCH).tolist()
    for row in range(len(g.shapes) - 1):
        first, stop = g.shapes["chain"][row : row + 2]
        starts = g.chains["start"][first : stop + 1].tolist()
        vertices = [k for start, end in pairwise(starts) for k in range(start, end - 1)]
        meeting: dict[XY, set[int]] = {}
        for k in vertices:
            meeting.setdefault(place[k], set()).add(k)
        low, high = g.shapes["touch"][row : row + 2]
        shared = {xy: ks for xy, ks in meeting.items() if len(ks) > 1}
        assert {*g.touches["vertex"][low:high].tolist()} == {
            k for ks in shared.values() for k in ks
        }
        for ks in shared.values():
            walked, at = set(), min(ks)
            while at not in walked:
                walked.add(at)
                at = following[at]
            assert walked == ks


def test_ends_of_lines_follow_the_mod_2_rule() -> None:
    lines = [
        "LINESTRING(0 0,1 0)",
        "LINESTRING(0 0,1 0,1 1,0 0)",
        "MULTILINESTRING((0 0,1 0),(1 0,2 0))",
        "MULTILINESTRING((0 0,1 0),(1 0,2 0),(1 0,1 1))",
        "LINESTRING(0 0,2 0,1 0)",
        "MULTILINESTRING((0 0,2 0),(1 1,1 0))",
    ]
    expected = [
        {(0, 0), (1, 0)},
        set(),
        {(0, 0), (2, 0)},
        {(0, 0), (2, 0), (1, 0), (1, 1)},
        {(0, 0), (1, 0)},
        {(0, 0), (2, 0), (1, 1), (1, 0)},
    ]
    shapes = read(*lines)
    g = shapes.arrays
    for row, ends in enumerate(expected):
        assert g.shapes["dimension"][row] == LINES
        first, stop = g.shapes["chain"][row : row + 2]
        points = range(g.chains["start"][first], g.chains["start"][stop])
        at = [(float(g.x[k]), float(g.y[k])) for k in points]
        marked = [bool(g.mark[k] & BOUNDARY) for k in points]
        # Every vertex at such a place is marked, and where an edge passes it there is a vertex.
        assert marked == [xy in ends for xy in at]
        assert ends <= {*at}
    # An end within an edge is a vertex of that edge's chain as well.
    assert chains(g, 4) == [[(0, 0), (1, 0), (2, 0), (1, 0)]]
    assert chains(g, 5) == [[(0, 0), (1, 0), (2, 0)], [(1, 1), (1, 0)]]


def test_many_contacts_at_once() -> None:
    """More contacts than the initial capacity, within edges and at vertices."""
    count = 300
    teeth = [Polygon([(k, 0), (k + 0.75, -1), (k + 0.25, -1)]) for k in range(1, count)]
    bar = Polygon([(0, 0), (count, 0), (count, 1), (0, 1)])
    comb = MultiPolygon([bar, *teeth])
    shapes = read(comb)
    assert shapes.problems == ()
    assert len(chains(shapes.arrays, 0)[0]) == 5 + count - 1
    assert len(shapes.arrays.touches) == 2 * (count - 1)
    assert matrix_text(int(matrices(shapes, read(bar))[0])) == "2F2F11FF2"
    holed = Polygon(bar.exterior, [[(k, 0), (k + 0.25, 0.5), (k, 0.5)] for k in range(1, count)])
    assert read(holed).problems == ()
    assert matrix_text(int(matrices(read(holed), read(bar))[0])) == "2FF11F2F2"


def test_a_ring_of_200_000_vertices() -> None:
    """A quadratic check would not finish."""
    count = 200_000
    angle = np.arange(count) * (2 * np.pi / count)
    radius = np.where(np.arange(count) % 2, 1.0, 0.9999)
    xy = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    assert read(Polygon(xy)).problems == ()
    xy[100_000] *= -1.5  # out through the other side
    (problem,) = read(Polygon(xy)).problems
    assert problem.reason == ITSELF
