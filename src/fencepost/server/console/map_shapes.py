"""`shapes_of`: the geometries of a subscription, simplified for drawing."""

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

AWAY = 0x80  # bit in the kind of a shape that an event must be away from
_MAX_SHAPES = 32
_MAX_VERTICES = 64
_RESOLUTION = 400  # steps across a shape; smaller details are dropped
_SUMMARY_CHARS = 160
_MAX_DEPTH = 8
_DISJOINT = (ast.SpatialFunction.S_DISJOINT, ast.SpatialFunction.EH_DISJOINT)
_NUMBERS = r"[-+.\deE,\s]"
_COORDINATES = re.compile(
    r"\b(BBOX|(?:MULTI)?(?:POINT|LINESTRING|POLYGON))\s*Z?\s*"
    rf"\((?:{_NUMBERS}|\((?:{_NUMBERS}|\((?:{_NUMBERS})*\))*\))*\)",
    re.IGNORECASE,
)


class ShapeKind(IntEnum):
    """The layout of a shape's coordinates."""

    BOX = 0  # west, south, east, north
    POLYGON = 1  # x, y, ...; NaN, NaN between rings
    LINE = 2  # x, y, ...; NaN, NaN between parts
    POINT = 3  # x, y
    CIRCLE = 4  # x, y, radius in the unit of distances


class Shape(NamedTuple):
    """A shape: its `ShapeKind`, perhaps with `AWAY`, and coordinates as float64."""

    kind: int
    coordinates: bytes


_BoxedShape: TypeAlias = tuple[Shape, tuple[float, float, float, float]]


def shapes_of(fields: Mapping[str, Any], space: Space) -> tuple[Shape, ...]:
    """Return the shapes of a definition; beyond a limit, one box around all of them."""
    shapes: list[Shape] = []
    bounds: list[tuple[float, float, float, float]] = []
    for condition in _conditions(fields, space):
        for shape, box in ast.fold_condition(condition, _shapes_of, _chain, _chain):
            bounds.append(box)
            if len(shapes) < _MAX_SHAPES:
                shapes.append(shape)
    if len(bounds) > _MAX_SHAPES:
        low, high = np.min(bounds, axis=0), np.max(bounds, axis=0)
        return (_shape(ShapeKind.BOX, False, [low[0], low[1], high[2], high[3]]),)
    return tuple(shapes)


def summary_of(fields: Mapping[str, Any], space: Space) -> str:
    """Return a definition as one line of text, without coordinates."""
    expression = fields.get("expression")
    if expression is None:
        members = fields.get("composite", {}).get("members", {})
        return f"{len(members)} events: {', '.join(map(str, members))}"[:_SUMMARY_CHARS]
    text = expression if isinstance(expression, str) else condition_text(parse(expression, space))
    return _COORDINATES.sub(r"\1(…)", " ".join(text.split()))[:_SUMMARY_CHARS]


def _conditions(fields: Mapping[str, Any], space: Space) -> Iterator[ast.Condition]:
    if "expression" in fields:
        yield parse(fields["expression"], space)
    else:
        yield from _members(fields.get("composite"), space, _MAX_DEPTH)


def _members(composite: object, space: Space, depth: int) -> Iterator[ast.Condition]:
    """Yield the conditions of a composite and of nested composites."""
    members = composite.get("members") if isinstance(composite, Mapping) else None
    if not isinstance(members, Mapping) or depth == 0:
        return
    for member in members.values():
        if isinstance(member, Mapping) and "members" in member:
            yield from _members(member, space, depth - 1)
            continue
        try:
            yield parse(member, space)
        except FencepostError:  # a member that is no expression has no shapes
            continue


def _chain(parts: list[Iterable[_BoxedShape]]) -> Iterable[_BoxedShape]:
    return chain.from_iterable(parts)


def _shapes_of(condition: ast.Condition, away: bool) -> Iterator[_BoxedShape]:
    """Yield each shape, with its box, of a condition without AND, OR and NOT."""
    match condition:
        case ast.SpatialCondition(function, left, right):
            is_away = away != (function in _DISJOINT)
            for side in (left, right):
                if isinstance(side, ast.Geometry):
                    yield from _geometry_shapes(side.value, is_away)
        case ast.NearCondition(function, left, right, distance):
            is_away = away != DISTANCE_BOUNDS[function].negated
            for side in (left, right):
                if isinstance(side, ast.Geometry):
                    yield from _near_shapes(side.value, distance, is_away, function)


def _near_shapes(
    geometry: BaseGeometry, distance: float, away: bool, function: ast.NearFunction
) -> Iterator[_BoxedShape]:
    if function is ast.NearFunction.S_SAMEPLACE:
        geometry = geometry.centroid
    if geometry.geom_type != "Point" or not np.isfinite(distance):
        yield from _geometry_shapes(geometry, away)
        return
    yield _shape(ShapeKind.CIRCLE, away, [geometry.x, geometry.y, distance]), geometry.bounds


def _geometry_shapes(geometry: BaseGeometry, away: bool) -> Iterator[_BoxedShape]:
    is_collection = geometry.geom_type.startswith(("Multi", "Geometry"))
    for part in shapely.get_parts(geometry) if is_collection else (geometry,):
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
                    yield _shape(ShapeKind.POLYGON, away, _rings(_simplify(part))), bounds
            case _:
                yield from _geometry_shapes(part, away)


def _simplify(part: BaseGeometry) -> BaseGeometry:
    west, south, east, north = part.bounds
    tolerance = max(east - west, north - south) / _RESOLUTION
    while shapely.get_num_coordinates(part) > _MAX_VERTICES:
        simplified = shapely.simplify(part, tolerance)
        tolerance *= 2
        if simplified.is_empty or simplified.geom_type != part.geom_type:
            return shapely.box(west, south, east, north)
        part = simplified
    return part


def _vertices(line: BaseGeometry) -> np.ndarray[Any, Any]:
    line = _simplify(line) if shapely.get_num_coordinates(line) > _MAX_VERTICES else line
    if line.geom_type == "Polygon":
        line = line.exterior
    coordinates: np.ndarray[Any, Any] = shapely.get_coordinates(line).ravel()
    return coordinates


def _rings(polygon: BaseGeometry) -> np.ndarray[Any, Any]:
    gap = np.full(2, np.nan)
    parts = [shapely.get_coordinates(polygon.exterior).ravel()]
    for hole in polygon.interiors:
        parts += [gap, shapely.get_coordinates(hole).ravel()]
    return np.concatenate(parts)


def _shape(kind: ShapeKind, away: bool, coordinates: Any) -> Shape:
    return Shape(kind | AWAY * away, np.asarray(coordinates, np.float64).tobytes())
