"""Relations and distances of collections of several kinds: the cases of `docs/meaning.md`.

Random collections are compared with the reference in `test_relation_matrix` (the family
"collections") and here for distances.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import shapely

from fencepost.cql2.ast import NearFunction, SpatialFunction
from fencepost.engine import matrices
from fencepost.filters import evaluate_near, measure_distance
from fencepost.filters.spatial_relations import evaluate_spatial
from fencepost.geometry import Shapes, Space, matrix_text
from fencepost.reference import are_near, are_related, matrix
from tests.geometry_families import pairs
from tests.seeds import seeds

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"


def collection(*members: str) -> str:
    return f"GEOMETRYCOLLECTION ({', '.join(members)})"


def matrix_of(a: str, b: str) -> str:
    """Return the matrix of two geometries, by the kernels and by the reference."""
    (code,) = matrices(Shapes.read_one(a), Shapes.read_one(b)).tolist()
    text = matrix_text(code)
    assert text == matrix(shapely.from_wkt(a), shapely.from_wkt(b))
    return text


@pytest.mark.parametrize(
    ("members", "same"),
    [
        (["POINT (1 1)", SQUARE], SQUARE),  # a point in an area
        (["POINT (0 2)", SQUARE], SQUARE),  # on its boundary
        (["LINESTRING (1 1, 3 1)", SQUARE], SQUARE),  # a line in an area
        (["LINESTRING (0 0, 4 0, 4 4)", SQUARE], SQUARE),  # along its boundary
        (["POINT (0 0)", "LINESTRING (0 0, 4 0)"], "LINESTRING (0 0, 4 0)"),  # on a line's end
        (["POINT (2 0)", "LINESTRING (0 0, 4 0)"], "LINESTRING (0 0, 4 0)"),
        (
            ["LINESTRING (0 0, 4 0, 4 4)", "LINESTRING (4 4, 0 4, 0 0)"],  # two lines close a ring
            "LINESTRING (0 0, 4 0, 4 4, 0 4, 0 0)",
        ),
        (["POINT (1 1)", collection("POINT (1 1)", "POINT EMPTY"), "POLYGON EMPTY"], "POINT (1 1)"),
        (
            [SQUARE, "POLYGON ((4 4, 5 4, 5 5, 4 4))", "POINT (9 9)", "POINT (5 4)"],
            collection(f"MULTIPOLYGON ({SQUARE[8:]}, ((4 4, 5 4, 5 5, 4 4)))", "POINT (9 9)"),
        ),
    ],
)
def test_members_that_add_nothing(members: list[str], same: str) -> None:
    a = collection(*members)
    for other in (same, SQUARE, "POINT (0 0)", "LINESTRING (-1 2, 2 2)"):
        assert matrix_of(a, other) == matrix_of(same, other)
        assert matrix_of(other, a) == matrix_of(other, same)
    assert evaluate_spatial(SpatialFunction.EH_EQUALS, Shapes.read_one(a), Shapes.read_one(same))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # A line that leaves an area: its end outside is boundary, its end inside is not.
        (collection("LINESTRING (2 2, 9 2)", SQUARE), "POINT (9 2)", "FF20F1FF2"),
        (collection("LINESTRING (2 2, 9 2)", SQUARE), "POINT (2 2)", "0F2FF1FF2"),
        (collection("LINESTRING (2 2, 9 2)", SQUARE), "POINT (4 2)", "FF20F1FF2"),
        (collection("LINESTRING (2 2, 9 2)", SQUARE), "POINT (5 2)", "0F2FF1FF2"),
        # A line crosses another where a third enters an area.
        (
            collection("LINESTRING (-2 2, 6 2)", SQUARE),
            "LINESTRING (-1 3, 1 1)",
            "1020F1102",
        ),
        # Equal only as unions.
        (
            collection("LINESTRING (-2 2, 6 2)", SQUARE),
            collection("LINESTRING (-2 2, 0 2)", "LINESTRING (6 2, 1 2)", SQUARE),
            "2FFF1FFF2",
        ),
    ],
)
def test_documented_matrices(a: str, b: str, expected: str) -> None:
    assert matrix_of(a, b) == expected


@pytest.mark.parametrize("seed", seeds(3, 1))
def test_functions_agree_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    for a, b in pairs("collections", 7000 + seed, 60):
        first, second = Shapes.read_one(a), Shapes.read_one(b)
        for function in SpatialFunction:
            assert evaluate_spatial(function, first, second) is are_related(function, a, b)
        apart = shapely.transform(b, lambda xy: xy + rng.choice((0.0, 3.0, 11.0)))
        moved = Shapes.read([apart])
        if moved.problems:  # rounding made it invalid
            continue
        second = moved.row(0)
        for near in NearFunction:
            exact = measure_distance(Space.PLANAR, near, first, second)
            for distance in (0.0, 1.0, 2.0, 5.0**0.5, exact):
                assert evaluate_near(Space.PLANAR, near, first, second, distance) is are_near(
                    near, a, apart, distance
                ), (near, distance)


@pytest.mark.parametrize("seed", seeds(2, 1))
def test_distances_on_the_ellipsoid_agree_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for a, b in pairs("collections", 7100 + seed, 60):
        east = rng.choice((0.0, 5.0, 150.0))
        a, b = (shapely.transform(g, lambda xy: xy / 4.0) for g in (a, b))
        b = shapely.transform(b, lambda xy: xy + np.array((east, 0.0)))  # noqa: B023
        shapes = Shapes.read([a, b])
        if shapes.problems or max(map(abs, (*a.bounds, *b.bounds))) > 170.0:
            continue
        first, second = shapes.row(0), shapes.row(1)
        for near in NearFunction:
            metres = measure_distance(Space.WGS84, near, first, second)
            for distance in (metres - 1.0, metres + 1.0) if metres > 1.0 else (1.0,):
                assert evaluate_near(Space.WGS84, near, first, second, distance) is are_near(
                    near, a, b, distance, Space.WGS84
                ), (near, distance)
                compared += 1
    assert compared > 50


def test_the_centroid_is_that_of_the_largest_dimension() -> None:
    a = Shapes.read_one(collection("POINT (50 50)", "LINESTRING (0 0, 99 0)", SQUARE))
    centre = Shapes.read_one("POINT (2 2)")
    assert evaluate_near(Space.PLANAR, NearFunction.S_SAMEPLACE, a, centre, 1e-9)
    assert measure_distance(Space.PLANAR, NearFunction.S_SAMEPLACE, a, centre) == 0.0
