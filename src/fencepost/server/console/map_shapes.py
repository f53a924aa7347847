"""The places that a subscription names, as simple shapes to be drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import ast
from fencepost.cql2.parser import parse
from fencepost.engine.explain.explanation import condition_text
from fencepost.errors import FencepostError
from fencepost.filters.checks import DISTANCE_BOUNDS
from fencepost.geometry.space import Space

AWAY = 0x80  # set in the kind of a shape that an event must stay away from
_MOST_SHAPES = 32
_MOST_VERTICES = 64
_FINEST = 400  # of the size of a shape: what is smaller is not drawn
_SUMMARY_CHARS = 160
_DEEPEST = 8
_AWAY_FROM = (ast.SpatialFunction.S_DISJOINT, ast.SpatialFunction.EH_DISJOINT)
_ONE = r"[-+.\deE,\s]"
_COORDINATES = re.compile(
    r"\b(BBOX|(?:MULTI)?(?:POINT|LINESTRING|POLYGON))\s*Z?\s*"
    rf"\((?:{_ONE}|\((?:{_ONE}|\((?:{_ONE})*\))*\))*\)",
    re.IGNORECASE,
)


class ShapeKind(IntEnum):
    """What the coordinates of a shape are."""

    BOX = 0  # west, south, east, north
    POLYGON = 1  # x, y, ...; NaN, NaN between rings
    LINE = 2  # x, y, ...; NaN, NaN between parts
    POINT = 3  # x, y
    CIRCLE = 4  # x, y, radius in the unit of distances


class Shape(NamedTuple):
    """A shape: its `Kind`, perhaps with `AWAY`, and its coordinates, doubles in native order."""

    kind: int
    coordinates: bytes


_BoxedShape: TypeAlias = tuple[Shape, tuple[float, float, float, float]]


def shapes_of(fields: Mapping[str, Any], space: Space) -> tuple[Shape, ...]:
    """The shapes of a definition; none where it names no place."""
    found: list[Shape] = []
    bounds: list[tuple[float, float, float, float]] = []
    for condition in _conditions(fields, space):
        for shape, box in ast.fold_condition(condition, _shapes_of, _joined, _joined):
            bounds.append(box)
            if len(found) < _MOST_SHAPES:
                found.append(shape)
    if len(bounds) > _MOST_SHAPES:
        low, high = np.min(bounds, axis=0), np.max(bounds, axis=0)
        return (_shape(ShapeKind.BOX, False, [low[0], low[1], high[2], high[3]]),)
    return tuple(found)


def summary_of(fields: Mapping[str, Any], space: Space) -> str:
    """What is asked in one line, without the coordinates."""
    given = fields.get("expression")
    if given is None:
        members = fields.get("composite", {}).get("members", {})
        return f"{len(members)} events: {', '.join(map(str, members))}"[:_SUMMARY_CHARS]
    text = given if isinstance(given, str) else condition_text(parse(given, space))
    return _COORDINATES.sub(r"\1(…)", " ".join(text.split()))[:_SUMMARY_CHARS]


def _conditions(fields: Mapping[str, Any], space: Space) -> Iterator[ast.Condition]:
    if "expression" in fields:
        yield parse(fields["expression"], space)
    else:
        yield from _members(fields.get("composite"), space, _DEEPEST)


def _members(composite: object, space: Space, depth: int) -> Iterator[ast.Condition]:
    """The expressions of a composite and of those within it."""
    members = composite.get("members") if isinstance(composite, Mapping) else None
    if not isinstance(members, Mapping) or depth == 0:
        return
    for one in members.values():
        if isinstance(one, Mapping) and "members" in one:
            yield from _members(one, space, depth - 1)
            continue
        try:
            yield parse(one, space)
        except FencepostError:  # another notation, of which no place is known
            continue


def _joined(parts: list[Iterable[_BoxedShape]]) -> Iterable[_BoxedShape]:
    return chain.from_iterable(parts)


def _shapes_of(condition: ast.Condition, away: bool) -> Iterator[_BoxedShape]:
    """Every shape of a condition without AND, OR and NOT, and its box."""
    match condition:
        case ast.SpatialCondition(function, left, right):
            flipped = away != (function in _AWAY_FROM)
            for side in (left, right):
                if isinstance(side, ast.Geometry):
                    yield from _geometry(side.value, flipped)
        case ast.NearCondition(function, left, right, distance):
            flipped = away != DISTANCE_BOUNDS[function].negated
            for side in (left, right):
                if isinstance(side, ast.Geometry):
                    yield from _around(side.value, distance, flipped, function)


def _around(
    geometry: BaseGeometry, distance: float, away: bool, function: ast.NearFunction
) -> Iterator[_BoxedShape]:
    if function is ast.NearFunction.S_SAMEPLACE:
        geometry = geometry.centroid
    if geometry.geom_type != "Point" or not np.isfinite(distance):
        yield from _geometry(geometry, away)
        return
    yield _shape(ShapeKind.CIRCLE, away, [geometry.x, geometry.y, distance]), geometry.bounds


def _geometry(geometry: BaseGeometry, away: bool) -> Iterator[_BoxedShape]:
    several = geometry.geom_type.startswith(("Multi", "Geometry"))
    for part in shapely.get_parts(geometry) if several else (geometry,):
        bounds = part.bounds
        match part.geom_type:
            case "Point":
                yield _shape(ShapeKind.POINT, away, [part.x, part.y]), bounds
            case "LineString":
                yield _shape(ShapeKind.LINE, away, _vertices(part)), bounds
            case "Polygon":
                if part.area == (bounds[2] - bounds[0]) * (bounds[3] - bounds[1]):
                    yield _shape(ShapeKind.BOX, away, bounds), bounds
                else:
                    yield _shape(ShapeKind.POLYGON, away, _rings(_simpler(part))), bounds
            case _:
                yield from _geometry(part, away)


def _simpler(part: BaseGeometry) -> BaseGeometry:
    west, south, east, north = part.bounds
    tolerance = max(east - west, north - south) / _FINEST
    while shapely.get_num_coordinates(part) > _MOST_VERTICES:
        simpler = shapely.simplify(part, tolerance)
        tolerance *= 2
        if simpler.is_empty or simpler.geom_type != part.geom_type:
            return shapely.box(west, south, east, north)
        part = simpler
    return part


def _vertices(line: BaseGeometry) -> np.ndarray[Any, Any]:
    line = _simpler(line) if shapely.get_num_coordinates(line) > _MOST_VERTICES else line
    if line.geom_type == "Polygon":
        line = line.exterior
    found: np.ndarray[Any, Any] = shapely.get_coordinates(line).ravel()
    return found


def _rings(polygon: BaseGeometry) -> np.ndarray[Any, Any]:
    gap = np.full(2, np.nan)
    found = [shapely.get_coordinates(polygon.exterior).ravel()]
    for hole in polygon.interiors:
        found += [gap, shapely.get_coordinates(hole).ravel()]
    return np.concatenate(found)


def _shape(kind: ShapeKind, away: bool, coordinates: Any) -> Shape:
    return Shape(kind | AWAY * away, np.asarray(coordinates, np.float64).tobytes())
