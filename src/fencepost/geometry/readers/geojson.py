"""Read GeoJSON mappings and objects with `__geo_interface__` into flat arrays, one row at a time.

Shapely is not used: a Feature that arrives as an event must take microseconds, rings may be open (a
later step closes them), and messages name the position of an error. A chain is read by list
comprehensions, with one check of the set of types; only a chain that fails it is read position by
position. Nothing recurses: each type has a fixed depth, and collections are taken apart first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isfinite, isnan
from numbers import Real

import numpy as np

from fencepost.errors import GeometryProblem
from fencepost.geometry.readers.collections import (
    MAX_COLLECTION_DEPTH,
    TOO_DEEP_REASON,
    insert_collections,
)
from fencepost.geometry.readers.raw_shapes import (
    AREAS,
    EMPTY_REASON,
    LINES,
    MISSING_REASON,
    POINTS,
    UNREADABLE,
    RawShapes,
    RejectedGeometryError,
    chain_name,
    empty_part_reason,
    not_finite_reason,
    short_repr,
)

_Chain = tuple[int, list[float], list[float]]  # part, x, y

_DIMENSION = {
    "Point": POINTS,
    "MultiPoint": POINTS,
    "LineString": LINES,
    "LinearRing": LINES,  # not in GeoJSON, but in Shapely's __geo_interface__
    "MultiLineString": LINES,
    "Polygon": AREAS,
    "MultiPolygon": AREAS,
}
_LISTS = {list, tuple}
_NUMBERS = {int, float}  # excludes bool
_FORMS = (
    "give a Shapely geometry, WKT, WKB as bytes, a GeoJSON geometry or Feature, or an object "
    "with __geo_interface__"
)


def read_mappings(values: Iterable[object]) -> RawShapes:
    """Read GeoJSON geometries, Features and objects with ``__geo_interface__``.

    A row of any other value has a problem.
    """
    xs: list[float] = []
    ys: list[float] = []
    chain_start, chain_part, shape_chain = [0], [], [0]
    dimensions: list[int] = []
    problems: list[GeometryProblem] = []
    collections: dict[int, list[object]] = {}
    for number, value in enumerate(values):
        row = number - len(collections)
        try:
            dimension, chains = read_mapping(value)
        except _CollectionFound as found:
            collections[number] = found.members
            continue
        except RejectedGeometryError as error:
            problems.append(GeometryProblem(row, str(error)))
            dimension, chains = UNREADABLE, []
        except Exception as error:
            # A mapping that is no dict, or a property `__geo_interface__`, runs foreign code, which
            # may raise anything. That must fail its row only.
            reason = f"it cannot be read: {short_repr(error)}; saw {short_repr(value)}; {_FORMS}"
            problems.append(GeometryProblem(row, reason))
            dimension, chains = UNREADABLE, []
        for part, chain_x, chain_y in chains:
            xs += chain_x
            ys += chain_y
            chain_start.append(len(xs))
            chain_part.append(part)
        shape_chain.append(len(chain_part))
        dimensions.append(dimension)
    plain = RawShapes(
        np.array(xs, np.float64),
        np.array(ys, np.float64),
        np.array(chain_start, np.int64),
        np.array(chain_part, np.int64),
        np.array(shape_chain, np.int64),
        np.array(dimensions, np.int8),
        tuple(problems),
    )
    if not collections:
        return plain
    members = [member for own in collections.values() for member in own]
    counts = [len(own) for own in collections.values()]
    return insert_collections(
        plain,
        np.array([*collections], np.int64),
        read_mappings(members),
        np.repeat(np.arange(len(counts)), counts),
    )


class _CollectionFound(Exception):
    """A value is a GeometryCollection; `members` are its members, and those of nested ones."""

    def __init__(self, members: list[object]) -> None:
        self.members = members


def _members(collection: Mapping[object, object]) -> list[object]:
    level: list[object] = [collection]
    for _ in range(MAX_COLLECTION_DEPTH):
        opened: list[object] = []
        for value in level:
            opened.extend(_opened(value) if _is_collection(value) else [value])
        level = opened
        if not any(map(_is_collection, level)):
            break
    else:
        raise RejectedGeometryError(TOO_DEEP_REASON)
    for number, member in enumerate(level):
        if isinstance(member, Mapping) and member.get("type") in ("Feature", "FeatureCollection"):
            raise RejectedGeometryError(
                f"member {number} of the collection is a {member['type']}; "
                "give the geometries alone"
            )
    return level


def _is_collection(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "GeometryCollection"


def _opened(collection: object) -> Sequence[object]:
    assert isinstance(collection, Mapping)
    geometries = collection.get("geometries")
    if geometries is None:
        raise RejectedGeometryError(
            f'the GeometryCollection has no "geometries"; saw {short_repr(collection)}; '
            "add them, or leave it out"
        )
    return _as_list(geometries, '"geometries" is a list of geometries')


def read_mapping(value: object) -> tuple[int, list[_Chain]]:
    """Return dimension and chains of a geometry. Raise RejectedGeometryError if it is unusable."""
    geometry = _mapping(value)
    kind = geometry.get("type")
    if kind == "Feature":
        if geometry.get("geometry") is None:
            raise RejectedGeometryError(
                f"the Feature has no geometry; saw {short_repr(value)}; give it one"
            )
        geometry = _mapping(geometry["geometry"])
        kind = geometry.get("type")
    if not isinstance(kind, str) or kind not in _DIMENSION:
        if kind == "GeometryCollection":
            raise _CollectionFound(_members(geometry))
        raise RejectedGeometryError(_unknown_type(kind, geometry))
    coordinates = geometry.get("coordinates")
    if coordinates is None:
        raise RejectedGeometryError(
            f'the {kind} has no "coordinates"; saw {short_repr(geometry)}; '
            "add them, or leave it out"
        )
    return _DIMENSION[kind], _READERS[kind](coordinates)


def _mapping(value: object) -> Mapping[object, object]:
    if type(value) is dict or isinstance(value, Mapping):  # the first test is faster
        return value
    if value is None or (isinstance(value, float) and isnan(value)) or _is_pandas_null(value):
        raise RejectedGeometryError(MISSING_REASON)
    interface = getattr(value, "__geo_interface__", None)
    if isinstance(interface, Mapping):
        return interface
    if interface is not None:
        raise RejectedGeometryError(
            f"__geo_interface__ of a {type(value).__name__} is no mapping; "
            f"saw {short_repr(interface)}; {_FORMS}"
        )
    raise RejectedGeometryError(
        f"a value of type {type(value).__name__} is no geometry; saw {short_repr(value)}; {_FORMS}"
    )


def _is_pandas_null(value: object) -> bool:
    return type(value).__name__ in {"NAType", "NaTType"}


def _unknown_type(kind: object, geometry: Mapping[object, object]) -> str:
    if kind == "FeatureCollection":
        return 'a FeatureCollection holds many geometries; give its "features" one by one'
    if kind is None:
        return f'the mapping has no "type"; saw {short_repr(geometry)}; {_FORMS}'
    names = ", ".join((*_DIMENSION, "GeometryCollection"))
    return f"there is no GeoJSON geometry type {short_repr(kind)}; give one of {names}"


# ------------------------------------------------------------------------- coordinates, by type


def _read_point(coordinates: object) -> list[_Chain]:
    if type(coordinates) is list and len(coordinates) >= 2:  # by far the most frequent case
        x, y = coordinates[:2]
        if type(x) is type(y) is float and isfinite(x) and isfinite(y):
            return [(0, [x + 0.0], [y + 0.0])]
    if isinstance(coordinates, list | tuple) and not coordinates:
        raise RejectedGeometryError(EMPTY_REASON)
    return [_chain((coordinates,), POINTS)]


def _read_points(coordinates: object) -> list[_Chain]:
    return [_chain(_listed(coordinates, "a MultiPoint is a list of positions"), POINTS)]


def _read_line(coordinates: object) -> list[_Chain]:
    return [_chain(_listed(coordinates, "a line is a list of positions"), LINES)]


def _read_lines(coordinates: object) -> list[_Chain]:
    lines = _listed(coordinates, "a MultiLineString is a list of lines")
    return [
        _chain(_listed(line, "a line is a list of positions", LINES, part), LINES, part)
        for part, line in enumerate(lines)
    ]


def _read_polygon(coordinates: object) -> list[_Chain]:
    return _rings(_listed(coordinates, "a Polygon is a list of rings"), 0)


def _read_polygons(coordinates: object) -> list[_Chain]:
    chains: list[_Chain] = []
    polygons = _listed(coordinates, "a MultiPolygon is a list of polygons")
    for part, polygon in enumerate(polygons):
        chains += _rings(_listed(polygon, "a polygon is a list of rings", AREAS, part), part)
    return chains


def _rings(rings: Sequence[object], part: int) -> list[_Chain]:
    return [
        _chain(_listed(ring, "a ring is a list of positions", AREAS, part, n), AREAS, part, n)
        for n, ring in enumerate(rings)
    ]


_READERS = {
    "Point": _read_point,
    "MultiPoint": _read_points,
    "LineString": _read_line,
    "LinearRing": _read_line,
    "MultiLineString": _read_lines,
    "Polygon": _read_polygon,
    "MultiPolygon": _read_polygons,
}


def _listed(
    value: object, rule: str, dimension: int = POINTS, part: int = 0, ring: int = 0
) -> Sequence[object]:
    """Return the value as a non-empty list. The numbers say for messages which chain it is."""
    if type(value) not in _LISTS:
        value = _as_list(value, rule)
    assert isinstance(value, list | tuple)
    if not value:
        where = chain_name(dimension, part, ring)
        raise RejectedGeometryError(empty_part_reason(where) if where else EMPTY_REASON)
    return value


def _as_list(value: object, rule: str) -> Sequence[object]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return list(value)
    raise RejectedGeometryError(
        f"the coordinates are nested wrongly: {rule}; saw {short_repr(value)}; give a list"
    )


# ----------------------------------------------------------------------------------- one chain


def _chain(positions: Sequence[object], dimension: int, part: int = 0, ring: int = 0) -> _Chain:
    if {*map(type, positions)} <= _LISTS:
        try:
            xs = [position[0] for position in positions]  # type: ignore[index]
            ys = [position[1] for position in positions]  # type: ignore[index]
            if {*map(type, xs), *map(type, ys)} <= _NUMBERS:
                xs = [float(value) + 0.0 for value in xs]  # -0.0 + 0.0 is 0.0
                ys = [float(value) + 0.0 for value in ys]
                if isfinite(sum(xs) + sum(ys)):
                    return part, xs, ys
        except (IndexError, OverflowError):
            pass
    return _careful_chain(positions, part, chain_name(dimension, part, ring))


def _careful_chain(positions: Sequence[object], part: int, where: str) -> _Chain:
    """Read a chain by position: accepts more types of numbers, and names the bad position."""
    xs, ys = [], []
    for number, position in enumerate(positions):
        place = f"point {number} of {where}" if where else f"point {number}"
        pair = _as_list(position, f"{place} must be a position [x, y]")
        if len(pair) < 2:
            raise RejectedGeometryError(
                f"{place} has {len(pair)} coordinates, not 2; saw {short_repr(position)}; "
                "give [x, y]"
            )
        x, y = _number(pair[0], f"x of {place}"), _number(pair[1], f"y of {place}")
        if not (isfinite(x) and isfinite(y)):
            raise RejectedGeometryError(not_finite_reason(x, y, number, where))
        xs.append(x)
        ys.append(y)
    return part, xs, ys


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise RejectedGeometryError(
            f"{name} is no number but a {type(value).__name__}; saw {short_repr(value)}; "
            "give finite numbers, two for each position"
        )
    try:
        return float(value) + 0.0
    except OverflowError:
        raise RejectedGeometryError(
            f"{name} is too large for a coordinate; saw {short_repr(value)}; "
            "give a number between -1.7e308 and 1.7e308"
        ) from None
