"""`relate_by_samples`: thin gaps, invalid input and examples."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import fencepost as fp
from fencepost.geometry import Shapes
from fencepost.papers.regions import adapter, relate_by_samples, relations_sampled
from tests.engine.test_relate import EXPECTED, OTHERS, SQUARE, names

# An L-shape around the square, a hundredth off: nearer than half the distance of ten samples.
NEAR = "POLYGON ((4.01 0, 8 0, 8 5, 2 5, 2 4.01, 4.01 4.01, 4.01 0))"


def test_sampling_takes_a_thin_gap_for_contact_unless_it_is_dense() -> None:
    assert fp.relate(SQUARE, NEAR) is fp.Relation.DISJOINT
    assert relate_by_samples(SQUARE, NEAR, density=10) is fp.Relation.MEETS
    assert relate_by_samples(NEAR, SQUARE, density=10) is fp.Relation.MEETS
    assert relate_by_samples(SQUARE, NEAR, density=100) is fp.Relation.DISJOINT


def test_sampling_many_gives_what_single_calls_give() -> None:
    assert [relate_by_samples(SQUARE, other, 5.0).value for other in OTHERS] == EXPECTED
    assert [relate_by_samples(other, SQUARE, 5.0).converse.value for other in OTHERS] == EXPECTED
    square, others = Shapes.read_one(SQUARE), Shapes.read_all(OTHERS)
    assert names(relations_sampled(square, others, 5.0)) == EXPECTED
    assert names(relations_sampled(Shapes.read_all([SQUARE] * 8), others, 5.0)) == EXPECTED
    assert names(relations_sampled(square, Shapes.read_all([]), 5.0)) == []


@pytest.mark.parametrize(
    ("density", "words"),
    [
        (None, "above 0, .* saw None"),
        (0, "above 0, .* saw 0"),
        (-2.5, r"above 0, .* saw -2\.5"),
        (float("nan"), "above 0, .* saw nan"),
        (float("inf"), "above 0, .* saw inf"),
        (10**400, "above 0"),
        ("dense", "above 0, .* saw 'dense'"),
        (True, "above 0, .* saw True"),
    ],
)
def test_invalid_densities_are_refused(density: Any, words: str) -> None:
    with pytest.raises(fp.ModelError, match=words):
        relate_by_samples(SQUARE, SQUARE, density)


@pytest.mark.parametrize(
    "other",
    [
        "POINT (1 1)",
        "LINESTRING (0 0, 1 1)",
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    ],
)
def test_sampling_takes_simple_polygons_only(other: str) -> None:
    with pytest.raises(fp.ModelError, match=r"row 0 of the second .* use the exact relation"):
        relate_by_samples(SQUARE, other, density=5.0)
    pairs = Shapes.read_all([SQUARE, other]), Shapes.read_all([SQUARE, SQUARE])
    with pytest.raises(fp.ModelError, match="row 1 of the first"):
        relations_sampled(*pairs, 5.0)


def test_the_docstring_examples() -> None:
    assert doctest.testmod(adapter).failed == 0
    assert doctest.testmod(adapter).attempted > 0
