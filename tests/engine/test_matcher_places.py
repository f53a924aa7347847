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

HARD = [name for name in FAMILIES if name not in ("strips", "long_strips")]


@pytest.mark.parametrize("family", HARD)
def test_relations_and_distances_are_those_of_the_reference(family: str) -> None:
    rng = random.Random(f"places of {family}")
    for _ in range(settings().max_examples // 50):
        scene = [g for g in FAMILIES[family](rng) if g is not None and is_valid(g)][:4]
        matchers = [Matcher(index=index) for index in ("auto", "sff", "cr-tree", "rt+")]
        wanted: dict[str, list[bool]] = {}
        for number, given in enumerate(scene):
            for function in ast.SpatialFunction:
                id = f"{function.name} {number}"
                for matcher in matchers:
                    matcher.subscribe_columns([id], regions={"g": ([given], function.name)})
                wanted[id] = [are_related(function, one, given) for one in scene]
            distance = _distance(rng, given, rng.choice(scene))
            farthest = _farthest(rng, given, rng.choice(scene))
            for matcher in matchers:
                matcher.subscribe_columns([f"near {number}"], within={"g": ([given], distance)})
                matcher.subscribe(
                    f"closer {number}", _near(ast.NearFunction.S_CLOSER, given, distance)
                )
                matcher.subscribe(
                    f"all {number}", _near(ast.NearFunction.S_ALLWITHIN, given, farthest)
                )
            wanted[f"near {number}"] = [
                are_near(ast.NearFunction.S_DWITHIN, one, given, distance) for one in scene
            ]
            wanted[f"closer {number}"] = [
                are_near(ast.NearFunction.S_CLOSER, one, given, distance) for one in scene
            ]
            wanted[f"all {number}"] = [
                are_near(ast.NearFunction.S_ALLWITHIN, one, given, farthest) for one in scene
            ]
        table = pa.table({"g": [one.wkb for one in scene]})
        for matcher in matchers:
            found = matcher.match_batch(table, sort=True)
            pairs = zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)
            assert sorted(pairs) == sorted(
                (row, id) for id, rows in wanted.items() for row, holds in enumerate(rows) if holds
            ), matcher.index


def _near(function: ast.NearFunction, given: shapely.Geometry, distance: float) -> ast.Condition:
    place = ast.Geometry(shapely.from_wkb(given.wkb))  # a linear ring as the line that it is
    return ast.NearCondition(function, ast.Property("g"), place, float(distance))


def _distance(rng: random.Random, a: shapely.Geometry, b: shapely.Geometry) -> float:
    """About the distance of two geometries, or any."""
    with np.errstate(all="ignore"):
        apart = float(shapely.distance(a, b))
    if not 0 < apart < 1e150:
        return rng.choice((0.0, 1.0))
    return rng.choice((apart, apart, 0.0, apart / 2, apart * 1.5))


def _farthest(rng: random.Random, a: shapely.Geometry, b: shapely.Geometry) -> float:
    """About the distance of the farthest vertices of two geometries."""
    pairs = product(shapely.get_coordinates(a).tolist(), shapely.get_coordinates(b).tolist())
    apart = max(hypot(p[0] - q[0], p[1] - q[1]) for p, q in pairs)
    if not 0 < apart < 1e150:
        return rng.choice((0.0, 1.0))
    return rng.choice((apart, nextafter(apart, 0.0), nextafter(apart, inf), apart * 1.5))
