"""Every spatial function through the matcher, on geometries that are hard to relate."""

from __future__ import annotations

import random
from itertools import product
from math import hypot, inf, nextafter

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import settings

from fencepost.cql2 import ast
from fencepost.engine import Matcher
from fencepost.reference import are_near, are_related
from tests.geometry_families import FAMILIES, is_valid

HARD_FAMILIES = [name for name in FAMILIES if name not in ("strips", "long_strips")]


@pytest.mark.parametrize("family", HARD_FAMILIES)
def test_relations_and_distances_agree_with_the_reference(family: str) -> None:
    rng = random.Random(f"places of {family}")
    for _ in range(settings().max_examples // 50):
        scene = [g for g in FAMILIES[family](rng) if g is not None and is_valid(g)][:4]
        matchers = [
            Matcher(index=index, space="planar") for index in ("auto", "sff", "cr-tree", "rt+")
        ]
        expected: dict[str, list[bool]] = {}
        for number, geometry in enumerate(scene):
            for function in ast.SpatialFunction:
                id = f"{function.name} {number}"
                for matcher in matchers:
                    matcher.subscribe_columns([id], regions={"g": ([geometry], function.name)})
                expected[id] = [
                    are_related(function, event_geometry, geometry) for event_geometry in scene
                ]
            distance = _distance(rng, geometry, rng.choice(scene))
            farthest = _farthest(rng, geometry, rng.choice(scene))
            for matcher in matchers:
                matcher.subscribe_columns([f"near {number}"], within={"g": ([geometry], distance)})
                matcher.subscribe(
                    f"closer {number}", _near(ast.NearFunction.S_CLOSER, geometry, distance)
                )
                matcher.subscribe(
                    f"all {number}", _near(ast.NearFunction.S_ALLWITHIN, geometry, farthest)
                )
            expected[f"near {number}"] = [
                are_near(ast.NearFunction.S_DWITHIN, event_geometry, geometry, distance)
                for event_geometry in scene
            ]
            expected[f"closer {number}"] = [
                are_near(ast.NearFunction.S_CLOSER, event_geometry, geometry, distance)
                for event_geometry in scene
            ]
            expected[f"all {number}"] = [
                are_near(ast.NearFunction.S_ALLWITHIN, event_geometry, geometry, farthest)
                for event_geometry in scene
            ]
        table = pa.table({"g": [event_geometry.wkb for event_geometry in scene]})
        for matcher in matchers:
            matches = matcher.match_batch(table, sort=True)
            pairs = zip(
                matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True
            )
            assert sorted(pairs) == sorted(
                (row, id)
                for id, rows in expected.items()
                for row, holds in enumerate(rows)
                if holds
            ), matcher.index


def _near(function: ast.NearFunction, geometry: shapely.Geometry, distance: float) -> ast.Condition:
    literal = ast.Geometry(shapely.from_wkb(geometry.wkb))  # turns a linear ring into a line
    return ast.NearCondition(function, ast.Property("g"), literal, float(distance))


def _distance(rng: random.Random, a: shapely.Geometry, b: shapely.Geometry) -> float:
    """Return a bound at or near the distance of two geometries."""
    with np.errstate(all="ignore"):
        distance = float(shapely.distance(a, b))
    if not 0 < distance < 1e150:
        return rng.choice((0.0, 1.0))
    return rng.choice((distance, distance, 0.0, distance / 2, distance * 1.5))


def _farthest(rng: random.Random, a: shapely.Geometry, b: shapely.Geometry) -> float:
    """Return a bound at or near the greatest distance of vertices of two geometries."""
    pairs = product(shapely.get_coordinates(a).tolist(), shapely.get_coordinates(b).tolist())
    distance = max(hypot(p[0] - q[0], p[1] - q[1]) for p, q in pairs)
    if not 0 < distance < 1e150:
        return rng.choice((0.0, 1.0))
    return rng.choice(
        (distance, nextafter(distance, 0.0), nextafter(distance, inf), distance * 1.5)
    )
