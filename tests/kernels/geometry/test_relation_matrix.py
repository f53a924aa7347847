"""The relation kernels against the exact reference, and what must hold between their answers.

`COUNTS` says how many pairs of each family are compared; no pair may differ.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from shapely import LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon
from shapely.geometry.base import BaseGeometry

from fencepost import engine, reference
from fencepost.geometry import RELATIONS, Relation, Shapes, matrix_text
from tests.geometry_families import CENSUS, FAMILIES, Pair, census_pairs, is_valid, pairs

ROOT = Path(__file__).resolve().parents[3]
CHUNK = 2000
COUNTS = {
    "lattice": 18_000,
    "nested": 8_000,
    "lines": 14_000,
    "contacts": 14_000,
    "near_collinear": 10_000,
    "needles": 8_000,
    "magnitudes": 4_000,
    "tilings": 14_000,
    "warped": 8_000,
    "rescaled": 8_000,
    "holes": 12_000,
    "rewritten": 8_000,
    "strips": 300,
    "long_strips": 30,
    "collections": 16_000,
}
CHUNKS = [
    (family, seed, min(CHUNK, count - seed * CHUNK))
    for family, count in COUNTS.items()
    for seed in range(math.ceil(count / CHUNK))
]
QUICK = 1  # of each family so many chunks are not slow
WHOLE_NUMBERS = ["lattice", "nested", "lines", "contacts", "tilings", "holes", "rewritten"]


def shapes_of(sample: list[Pair]) -> tuple[Shapes, Shapes]:
    """The firsts and the seconds of pairs, laid out."""
    return Shapes.read_all([a for a, _ in sample]), Shapes.read_all([b for _, b in sample])


def matrices(first: Shapes, second: Shapes) -> list[str]:
    return [matrix_text(code) for code in engine.matrices(first, second).tolist()]


def relations(first: Shapes, second: Shapes) -> list[Relation]:
    return [RELATIONS[code] for code in engine.relations(first, second).tolist()]


def answers(sample: list[Pair]) -> list[tuple[str, Relation]]:
    first, second = shapes_of(sample)
    return list(zip(matrices(first, second), relations(first, second), strict=True))


def meaning(matrix: str) -> Relation:
    """The relation that a matrix means, from the definition in the README."""
    ii, ib, ie, bi, bb, be, ei, eb, _ = (entry != "F" for entry in matrix)
    if not ii:
        return Relation.MEETS if ib or bi or bb else Relation.DISJOINT
    match not (ie or be), not (ei or eb):
        case True, True:
            return Relation.EQUALS
        case True, False:
            return Relation.COVERED_BY if ib or bb else Relation.INSIDE
        case False, True:
            return Relation.COVERS if bi or bb else Relation.CONTAINS
    return Relation.OVERLAPS


def transposed(matrix: str) -> str:
    return "".join(matrix[3 * column + row] for row in range(3) for column in range(3))


def shown(a: BaseGeometry, b: BaseGeometry) -> str:
    """The pair so that it can be read back exactly."""
    return f"{shapely.to_wkt(a, -1)} | {shapely.to_wkt(b, -1)} ({a.wkb_hex} {b.wkb_hex})"


def differences(sample: list[Pair]) -> list[str]:
    """The pairs for which a kernel says anything else than the reference, either way round."""
    first, second = shapes_of(sample)
    found, back = matrices(first, second), matrices(second, first)
    named, named_back = relations(first, second), relations(second, first)
    wrong = []
    for k, (a, b) in enumerate(sample):
        right = reference.matrix(a, b)
        expected = (right, transposed(right), meaning(right), meaning(right).converse)
        seen = (found[k], back[k], named[k], named_back[k])
        if seen != expected:
            wrong.append(f"{shown(a, b)}: {seen} and not {expected}")
    return wrong


# ------------------------------------------------------------------------------- with the reference


@pytest.mark.parametrize(
    ("family", "seed", "size"),
    [
        pytest.param(*chunk, marks=pytest.mark.slow) if chunk[1] >= QUICK else chunk
        for chunk in CHUNKS
    ],
)
def test_agree_with_the_reference(family: str, seed: int, size: int) -> None:
    sample = pairs(family, seed, size)
    assert len(sample) == size
    assert differences(sample) == []


def test_a_hundred_thousand_pairs_are_compared() -> None:
    assert {*COUNTS} == {*FAMILIES}
    assert len({*CHUNKS}) == len(CHUNKS)
    assert sum(size for _, _, size in CHUNKS) == sum(COUNTS.values()) >= 100_000


def test_every_relation_occurs_between_areas() -> None:
    """Counted on first chunks, which are among the pairs compared above."""
    occurred = dict.fromkeys(Relation, 0)
    for family in ("nested", "contacts", "holes", "tilings", "near_collinear", "warped"):
        sample = [
            (a, b)
            for a, b in pairs(family, 0, CHUNK)
            if shapely.get_dimensions(a) == shapely.get_dimensions(b) == 2
        ]
        for _, relation in answers(sample):
            occurred[relation] += 1
    assert min(occurred.values()) >= 20, occurred


def test_the_meaning_of_a_matrix_is_that_of_the_reference() -> None:
    for a, b in pairs("lattice", 0, 500) + pairs("holes", 0, 200):
        assert meaning(reference.matrix(a, b)) is reference.relation(a, b)


@pytest.mark.skipif(not CENSUS.exists(), reason=f"no real data: {CENSUS} is not there")
def test_agree_with_the_reference_on_census_tracts() -> None:
    sample = census_pairs(60)
    print(f"{len(sample)} pairs of neighbours from {CENSUS.name}")  # noqa: T201
    assert len(sample) == 60
    assert differences(sample) == []
    assert {relation for _, relation in answers(sample)} >= {Relation.MEETS}


def test_agree_with_the_reference_on_hundreds_of_parts() -> None:
    """More chains than a leaf has edges, and half of them untouched."""
    rng = random.Random(5)
    cells = [(x, y) for x in range(0, 32, 2) for y in range(0, 32, 2)]
    parts = [Polygon([(x, y), (x + 2, y), (x, y + 2)]) for x, y in cells]
    one = MultiPolygon([part for part in parts if rng.random() < 0.6])
    other = MultiPolygon([part for part in parts[::-1] if rng.random() < 0.1])
    plugs = MultiPolygon([Polygon([(x + 2, y + 2), (x + 2, y), (x, y + 2)]) for x, y in cells[:40]])
    assert is_valid(one)
    sample = [(one, other), (other, one), (one, plugs), (one, one), (plugs, one.boundary)]
    assert differences(sample) == []


# ------------------------------------------------------------------------------------------ by name

SQUARE = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
DONUT = "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,3 1,3 3,1 3,1 1))"
SLIT = "POLYGON((0 0,0 10,10 10,10 0,0 0),(5 5,10 5,5 6,5 5))"
FAN = "POLYGON((0 0,6 0,6 6,0 6,0 0),(3 3,1 1,2 1,3 3),(3 3,4 1,5 1,3 3),(3 3,2 5,4 5,3 3))"
FAN_PLUGS = "MULTIPOLYGON(((3 3,1 1,2 1,3 3)),((3 3,4 1,5 1,3 3)),((3 3,2 5,4 5,3 3)))"
NAMED = {
    "shared edge": (SQUARE, "POLYGON((4 1,6 1,6 3,4 3,4 1))", "FF2F11212"),
    "touching vertex": (SQUARE, "POLYGON((4 4,6 4,6 6,4 4))", "FF2F01212"),
    "vertex on an edge": (SQUARE, "POLYGON((4 2,6 1,6 3,4 2))", "FF2F01212"),
    "hole touching its shell": (SLIT, "POLYGON((0 0,0 10,10 10,10 0,0 0))", "2FF11F2F2"),
    "hole filled": (DONUT, "POLYGON((3 3,1 3,1 1,3 1,3 3))", "FF2F112F2"),
    "fan of holes filled": (FAN, FAN_PLUGS, "FF2F112F2"),
    "line through the meeting of holes": (FAN, "LINESTRING(1 3,5 3)", "1020F1FF2"),
    "line through the meeting of plugs": (FAN_PLUGS, "LINESTRING(1 3,5 3)", "FF20F1102"),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_pairs(name: str) -> None:
    a, b, expected = NAMED[name]
    sample = [(shapely.from_wkt(a), shapely.from_wkt(b))]
    assert answers(sample) == [(expected, meaning(expected))]
    assert differences(sample) == []


def star(vertices: int, shift: int = 0, scale: float = 1.0) -> list[tuple[float, float]]:
    """A ring with every other vertex pulled in, starting at vertex `shift`."""
    angle = (np.arange(vertices) + shift) * (2 * np.pi / vertices)
    radius = scale * np.where((np.arange(vertices) + shift) % 2, 1000.0, 900.0)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def test_rings_of_ten_thousand_vertices() -> None:
    vertices = 10_000
    outer = star(vertices)
    turned = outer[777:] + outer[:777]
    inner = star(vertices, scale=0.5)
    dented = outer.copy()
    dented[4000] = (dented[4000][0] * 0.99, dented[4000][1] * 0.99)
    ring = Polygon(outer, [inner])
    cases = [
        (Polygon(outer), Polygon(turned[::-1]), "2FFF1FFF2"),
        (Polygon(outer), Polygon(inner), "212FF1FF2"),
        (Polygon(outer), Polygon(dented), "212F11FF2"),
        (ring, Polygon(inner), "FF2F112F2"),
        (ring, Polygon(turned), "2FF11F2F2"),
        (LineString(turned[:5000]), ring, "F1FF0F212"),
    ]
    found = answers([(a, b) for a, b, _ in cases])
    assert [matrix for matrix, _ in found] == [expected for _, _, expected in cases]
    assert [relation for _, relation in found] == [meaning(expected) for *_, expected in cases]


# ---------------------------------------------------------------------------------- exact movements

Movement = tuple[bool, int, int, int, int]  # swap the axes; scale x, y by 2**; shift x, y


def moved(geometry: BaseGeometry, movement: Movement) -> BaseGeometry:
    """Exact for small whole numbers: signs, powers of two, and shifts by whole numbers."""
    swap, x_scale, y_scale, x_shift, y_shift = movement

    def move(xy: NDArray[np.float64]) -> NDArray[np.float64]:
        x = (xy[:, 0] + x_shift) * math.copysign(2.0 ** abs(x_scale), x_scale)
        y = (xy[:, 1] + y_shift) * math.copysign(2.0 ** -abs(y_scale), y_scale)
        return np.column_stack([y, x] if swap else [x, y])

    return shapely.transform(geometry, move)


MOVEMENTS: list[Movement] = [
    (False, 0, 0, 2**40, -(2**40)),
    (False, 0, 0, 1, 2**30 + 1),
    (False, 300, 1000, 0, 0),
    (False, 1000, -600, 0, 0),
    (True, 0, 0, 0, 0),
    (False, -1, 0, 0, 0),
    (True, -900, -900, 2**33, 7),
]


@pytest.mark.parametrize("family", WHOLE_NUMBERS)
def test_unchanged_under_exact_movements(family: str) -> None:
    sample = pairs(family, 1000, 1000)
    expected = answers(sample)
    for movement in MOVEMENTS:
        assert answers([(moved(a, movement), moved(b, movement)) for a, b in sample]) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_unchanged_under_reflections_of_any_family(family: str) -> None:
    sample = pairs(family, 1001, 400 if "strips" not in family else 40)
    expected = answers(sample)
    turns = ((False, -1, 1), (False, 1, -1), (False, -1, -1), (True, 1, 1))

    for swap, x_sign, y_sign in turns:

        def turn(
            xy: NDArray[np.float64], swap: bool = swap, signs: tuple[int, int] = (x_sign, y_sign)
        ) -> NDArray[np.float64]:
            return (xy[:, ::-1] if swap else xy) * signs

        turned = [(shapely.transform(a, turn), shapely.transform(b, turn)) for a, b in sample]
        assert answers(turned) == expected


# ------------------------------------------------------------------------------- under Hypothesis

small = st.integers(0, 4).map(float)
hairs = st.sampled_from([0.1, 0.2, 0.30000000000000004, 0.3, 0.4, 0.1 + 2**-56, 1 / 3, 2 / 3])
extremes = st.sampled_from([0.0, 5e-324, -5e-324, 1e-300, 1.0, -1.0, 1e300, 1.7e308, -1.7e308])


@st.composite
def geometries(draw: st.DrawFn, numbers: st.SearchStrategy[float]) -> BaseGeometry:
    """Any geometry, degenerate where it may be.

    A ring that is no valid polygon serves as a line, and a line that has no length as a point,
    so that nothing is thrown away and counterexamples shrink.
    """
    path_of = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6)
    paths = draw(st.lists(path_of, min_size=1, max_size=3))
    prefers_areas, prefers_lines = draw(st.tuples(st.booleans(), st.booleans()))
    rings = [path for path in paths if len(path) > 2]
    if rings and prefers_areas:
        candidates = [Polygon(rings[0], rings[1:]), MultiPolygon([Polygon(r) for r in rings])]
        for polygon in (*candidates, Polygon(rings[0])):
            if is_valid(polygon):
                return polygon
    lines = [path for path in paths if len({*path}) > 1]
    if lines and prefers_lines:
        return MultiLineString(lines) if len(lines) > 1 else LineString(lines[0])
    points = [xy for path in paths for xy in path]
    return MultiPoint(points) if len(points) > 1 else Point(points[0])


any_pair = st.one_of(
    *(st.tuples(geometries(numbers), geometries(numbers)) for numbers in (small, hairs, extremes))
)


@given(any_pair)
@example((shapely.from_wkt(SLIT), shapely.from_wkt("LINESTRING(10 0,10 10)")))
@example((shapely.from_wkt("LINESTRING(2 0,0 2,1 0,1 1)"), shapely.from_wkt("LINESTRING(0 2,2 0)")))
def test_agree_with_the_reference_on_anything(pair: Pair) -> None:
    assert differences([pair]) == []


@given(
    st.tuples(geometries(small), geometries(small)),
    st.tuples(
        st.booleans(),
        *(st.integers(-900, 900), st.integers(-900, 900)),
        *(st.integers(-(2**40), 2**40), st.integers(-(2**40), 2**40)),
    ),
)
def test_unchanged_under_any_exact_movement(pair: Pair, movement: Movement) -> None:
    a, b = pair
    assert answers([(moved(a, movement), moved(b, movement))]) == answers([pair])


@given(st.one_of(geometries(small), geometries(hairs), geometries(extremes)))
def test_a_geometry_equals_itself(geometry: BaseGeometry) -> None:
    assert answers([(geometry, geometry)])[0][1] is Relation.EQUALS


# ---------------------------------------------------------------------------------- forms of a call


def test_single_calls_give_what_batches_give() -> None:
    sample = [pair for family in WHOLE_NUMBERS for pair in pairs(family, 1002, 40)]
    assert [answers([pair])[0] for pair in sample] == answers(sample)


@pytest.mark.parametrize("ones", ["areas", "lines", "points"])
def test_one_to_many_gives_what_single_calls_give(ones: str) -> None:
    """The many are mixed, all of the kind of the one, or all of other kinds."""
    dimension = ("points", "lines", "areas").index(ones)
    sample = [b for family in WHOLE_NUMBERS for _, b in pairs(family, 1003, 20)]
    one = next(g for g in sample[::-1] if shapely.get_dimensions(g) == dimension)
    same = [g for g in sample if shapely.get_dimensions(g) == dimension]
    other = [g for g in sample if shapely.get_dimensions(g) != dimension]
    for many in (sample, same, other, [one], other[:1], []):
        first, second = Shapes.read_all([one]), Shapes.read_all(many)
        expected = answers([(one, g) for g in many])
        assert list(zip(matrices(first, second), relations(first, second), strict=True)) == expected


# --------------------------------------------------------------------------------- without the JIT

UNCOMPILED = """
import numba
import numpy as np
from tests.geometry_families import pairs
from tests.kernels.geometry.test_relation_matrix import differences

assert numba.config.DISABLE_JIT
compared = 0
for family in ("lattice", "lines", "contacts", "holes", "tilings", "near_collinear", "needles"):
    sample = pairs(family, 1007, 120)
    assert differences(sample) == [], family
    compared += len(sample)
# Sums of the largest doubles overflow in the first stage of `orient`, as they should.
with np.errstate(over="ignore", invalid="ignore"):
    for family in ("magnitudes", "rescaled", "warped"):
        sample = pairs(family, 1007, 60)
        assert differences(sample) == [], family
        compared += len(sample)
print(compared)
"""


def test_uncompiled_kernels_agree_with_the_reference() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1020\n"
