"""Parts have about equal weight, whatever the skew."""

from __future__ import annotations

import numpy as np
import pytest

from fencepost.spark.indexes.partition_cuts import build_cut_tree


def points_of(kind: str, rng: np.random.Generator, count: int) -> np.ndarray:
    place = rng.random((count, 2)) * (360, 180)
    if kind == "hot city":
        hot = rng.random(count) < 0.9
        place[hot] = rng.normal((139.7, 35.7), 0.01, (hot.sum(), 2))
    elif kind == "one place":
        place[:] = (1, 1)
    elif kind == "few places":
        place = place[rng.integers(0, 3, count)]
    elif kind == "line":
        place[:, 1] = 0
    return np.column_stack((place, rng.random(count)))


@pytest.mark.parametrize("parts", [1, 2, 5, 16])
@pytest.mark.parametrize("kind", ["uniform", "hot city", "one place", "few places", "line"])
def test_parts_have_about_equal_weight(kind: str, parts: int) -> None:
    rng = np.random.default_rng(3)
    points = points_of(kind, rng, 20_000)
    weights = rng.random(20_000) + 0.1
    cuts = build_cut_tree(points[:5_000], weights[:5_000], parts)
    assert cuts.parts == parts
    own = np.bincount(cuts.part_of(points), weights, minlength=parts) / weights.sum()
    assert len(own) == parts
    assert own.max() < 2.2 / parts
    assert own.min() > 0.25 / parts


def test_parts_of_a_uniform_map_are_compact() -> None:
    points = points_of("uniform", np.random.default_rng(3), 20_000)
    part = build_cut_tree(points, np.ones(len(points)), 16).part_of(points)
    areas = [np.ptp(points[part == p, :2], axis=0).prod() for p in range(16)]
    assert sum(areas) < 1.01 * 360 * 180


def test_few_or_identical_points() -> None:
    none = np.empty((0, 3))
    assert build_cut_tree(none, np.empty(0), 4).part_of(np.ones((3, 3))).tolist() == [0, 0, 0]
    one = np.ones((1, 3))
    assert build_cut_tree(one, np.ones(1), 4).parts == 1
    same = np.ones((5, 3))  # even the random number
    assert build_cut_tree(same, np.ones(5), 4).parts == 1
