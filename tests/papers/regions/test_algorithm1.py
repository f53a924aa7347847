"""Algorithm 1 against its printed form, which visits each sample, and against exact relations."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from fencepost import relate
from fencepost.engine import relations
from fencepost.errors import ModelError
from fencepost.geometry import RELATIONS, Relation, Shapes
from fencepost.papers.regions import relations_sampled
from fencepost.testing import chain_sharing_pairs, mixed_pairs

SQUARE = shapely.box(0, 0, 8, 8)
CLEAR = {
    Relation.DISJOINT: shapely.box(10, 0, 18, 8),
    Relation.MEETS: shapely.box(8, 0, 16, 8),
    Relation.OVERLAPS: shapely.box(4, 4, 12, 12),
    Relation.EQUALS: shapely.box(0, 0, 8, 8),
    Relation.INSIDE: shapely.box(-4, -4, 12, 12),
    Relation.CONTAINS: shapely.box(2, 2, 6, 6),
    Relation.COVERS: shapely.box(0, 2, 6, 6),
    Relation.COVERED_BY: shapely.box(0, -4, 12, 12),
}


def _shapes(geometries: object) -> Shapes:
    return Shapes.read_all(geometries)


def _pairs(seed: int) -> tuple[Shapes, Shapes]:
    rng = np.random.default_rng(seed)
    first, second = zip(
        mixed_pairs(rng, 200, 12), mixed_pairs(rng, 60, 40), chain_sharing_pairs(rng, 40, 16),
        strict=True,
    )  # fmt: skip
    return _shapes(np.concatenate(first)), _shapes(np.concatenate(second))


def _converse(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.array([relation.converse.code for relation in RELATIONS], np.uint8)[codes]


@pytest.mark.parametrize("density", [2.0, 50.0])
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.value)
def test_tells_clear_cases_apart(relation: Relation, density: float) -> None:
    first, second = _shapes([SQUARE]), _shapes([CLEAR[relation]])
    assert relations_sampled(first, second, density)[0] == relation.code
    assert relations_sampled(second, first, density)[0] == relation.converse.code


@pytest.mark.parametrize("density", [0.0, 0.5, 3.0, 20.0, 200.0])
def test_skips_samples_without_changing_the_answer(density: float) -> None:
    first, second = _pairs(1)
    quick = relations_sampled(first, second, density)
    printed = relations_sampled(first, second, density, as_printed=True)
    assert np.array_equal(quick, printed)


MIDWAY = {
    "triangle": (
        "POLYGON ((2.25 0.75, 2.5 0.75, 1.75 1.5, 2.25 0.75))",
        "POLYGON ((1 0, 3 2, 3 3, 1 3, 1 0))",
    ),
    "corner": (
        "POLYGON ((36 12, 48 36, 36 48, 0 48, 36 12))",
        "POLYGON ((0 24, 0 12, 12 24, 24 36, 12 36, 0 24))",
    ),
    "sliver": (
        "POLYGON ((12 24, 24 24, 36 48, 12 24))",
        "POLYGON ((0 0, 12 0, 36 36, 24 48, 12 36, 0 0))",
    ),
    "level": ("POLYGON ((0 3, 2 3, 3 3, 2 4, 0 3))", "POLYGON ((0 3, 3 2, 1 3, 4 4, 0 3))"),
}


@pytest.mark.parametrize("density", [0.0, 1 / 24, 1.0, 10.0, 10 / 3])
@pytest.mark.parametrize("name", MIDWAY)
def test_a_boundary_that_passes_midway_between_samples_is_seen(name: str, density: float) -> None:
    first, second = (_shapes([side]) for side in MIDWAY[name])
    quick = relations_sampled(first, second, density)
    assert quick == relations_sampled(first, second, density, as_printed=True)
    assert quick != Relation.DISJOINT.code


def test_swaps_the_shorter_boundary_to_the_front_and_translates_back() -> None:
    first, second = _pairs(2)
    assert np.array_equal(
        relations_sampled(first, second, 10.0), _converse(relations_sampled(second, first, 10.0))
    )


def test_errs_less_often_with_more_samples() -> None:
    first, second = (_shapes(side) for side in mixed_pairs(np.random.default_rng(3), 3000, 20))
    exact = relations(first, second)
    wrong = [
        float((relations_sampled(first, second, density) != exact).mean())
        for density in (0.0, 10.0, 100.0, 1000.0)
    ]
    assert 0.002 < wrong[0] < 0.05
    assert wrong[1] < wrong[0]
    assert wrong[2] < 0.002
    assert wrong[3] <= wrong[2]


def test_erratum_4_mistakes_a_thin_gap_for_contact() -> None:
    # An L-shape around the square, a hundredth off; their boxes meet, so the samples decide.
    near = shapely.Polygon([(8.01, 0), (16, 0), (16, 10), (4, 10), (4, 9), (8.01, 9)])
    assert relate(SQUARE, near) is Relation.DISJOINT
    square = _shapes([SQUARE])
    assert relations_sampled(square, _shapes([near]), 10.0)[0] == Relation.MEETS.code
    assert relations_sampled(square, _shapes([near]), 100.0)[0] == Relation.DISJOINT.code


def test_erratum_5_a_hole_is_refused_as_the_outer_ring_alone_would_mislead() -> None:
    plug = shapely.box(3, 3, 5, 5)
    ring = SQUARE - plug
    assert relate(ring, plug) is Relation.MEETS
    outer = _shapes([shapely.Polygon(ring.exterior)])
    assert relations_sampled(outer, _shapes([plug]), 10.0)[0] == Relation.CONTAINS.code
    with pytest.raises(ModelError, match="one ring"):
        relations_sampled(_shapes([ring]), _shapes([plug]), 10.0)


@pytest.mark.parametrize(
    "geometry",
    [
        shapely.Point(0, 0),
        shapely.LineString([(0, 0), (1, 1)]),
        shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)]),
    ],
    ids=["point", "line", "several-parts"],
)
def test_refuses_all_but_simple_polygons(geometry: object) -> None:
    with pytest.raises(ModelError, match="row 0"):
        relations_sampled(_shapes([SQUARE]), _shapes([geometry]), 10.0)


@pytest.mark.parametrize("density", [-1.0, float("nan"), float("inf")])
def test_refuses_an_invalid_density(density: float) -> None:
    with pytest.raises(ModelError, match="density"):
        relations_sampled(_shapes([SQUARE]), _shapes([SQUARE]), density)


def test_refuses_lists_of_different_length() -> None:
    with pytest.raises(ModelError, match="cannot pair"):
        relations_sampled(_shapes([SQUARE, SQUARE]), _shapes([SQUARE] * 3), 1.0)


def test_boxes_apart_are_disjoint_whatever_the_halo() -> None:
    beside = _shapes([shapely.box(8.01, 0, 16, 8)])
    assert relations_sampled(_shapes([SQUARE]), beside, 1.0)[0] == Relation.DISJOINT.code
