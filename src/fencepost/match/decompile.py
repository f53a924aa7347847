"""The condition of a subscription, put together from its checks: for those added as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon
from shapely.geometry.base import BaseGeometry

from fencepost.index.columns import Columns, Storage
from fencepost.index.posts import entry_of
from fencepost.index.table import near_of_check
from fencepost.kernels import checking
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.shapes import LINES, POINTS, ShapeArrays
from fencepost.language import ast
from fencepost.language.ast import Compare
from fencepost.match.segments import SegmentReader
from fencepost.plan.conditions import number_of_pair
from fencepost.plan.relate import FUNCTIONS

_ARRAY = tuple(ast.Array)


def condition_of(segment: SegmentReader, row: int, columns: Columns) -> ast.Condition:
    """A conjunction of what `subscribe_columns` can say."""
    arrays = segment.arrays
    entries, _ = segment.entries_of(np.array([row]))
    if len(entries):
        return _all_of(_posted(arrays, entries, columns))
    number = int(np.searchsorted(arrays.filter_subscription, np.uint32(row)))
    low, high = int(arrays.filter_check[number]), int(arrays.filter_check[number + 1])
    return _all_of([_part(segment, check, columns) for check in arrays.checks[low:high]])


def _all_of(parts: list[ast.Condition]) -> ast.Condition:
    if not parts:
        return ast.Boolean(True)
    return parts[0] if len(parts) == 1 else ast.And(tuple(parts))


def _posted(
    arrays: SegmentArrays, entries: NDArray[np.int64], columns: Columns
) -> list[ast.Condition]:
    """What an entry of the posts asks for: of two, that for lists has the words as given."""
    for entry in entries.tolist():
        group, word = entry_of(arrays.posts, entry)
        if group["list_column"] < 0 or group["accepts"] >> checking.ITEMS & 1:
            break
    parts: list[ast.Condition] = []
    if group["geometry_column"] >= 0:
        own = _property(columns, Storage.GEOMETRY, int(group["geometry_column"]))
        place = ast.Geometry(shapely.box(*arrays.posts.exact[entry]))
        parts.append(ast.SpatialCondition(ast.Spatial.S_INTERSECTS, own, place))
    if group["list_column"] >= 0:
        own = _property(columns, Storage.LIST, int(group["list_column"]))
        low, high = arrays.posts.rest_start[entry], arrays.posts.rest_start[entry + 1]
        rest = arrays.posts.rest[low:high].tolist()
        keys = sorted(_bytes(arrays, k) for k in ([word, *rest] if word is not None else []))
        words = tuple(ast.String(key[1:].decode()) for key in keys)
        parts.append(ast.ArrayCondition(ast.Array.A_CONTAINS, own, ast.Items(words)))
    return parts


def _part(segment: SegmentReader, check: Any, columns: Columns) -> ast.Condition:
    arrays, item = segment.arrays, int(check["item"])
    kind, column = int(check["kind"]), int(check["column"])
    if kind == checking.RELATE:
        own = _property(columns, Storage.GEOMETRY, column)
        geometry = ast.Geometry(geometry_of(arrays.shapes, item))
        return ast.SpatialCondition(FUNCTIONS[check["function"]], own, geometry)
    if kind == checking.NEAR:
        own = _property(columns, Storage.GEOMETRY, column)
        geometry = ast.Geometry(geometry_of(arrays.shapes, item))
        function, _ = near_of_check(check)
        return ast.NearCondition(function, own, geometry, float(check["low"]))
    if kind == checking.MEMBER:
        own = _property(columns, Storage.STRING, column)
        return ast.Comparison(Compare.EQ, own, ast.String(_strings(segment, item)[0].decode()))
    if kind == checking.RANGE:
        own = _property(columns, Storage.NUMBER, column)
        number = number_of_pair((float(check["low"]), float(check["low_rest"])))
        return ast.Comparison(Compare.EQ, own, number)
    if kind == checking.BOOLEAN:
        own = _property(columns, Storage.TRUTH, column)
        value = bool(check["flags"] & checking.ALLOWS_TRUE)
        return ast.Comparison(Compare.EQ, own, ast.Boolean(value))
    own = _property(columns, Storage.LIST, column)
    words = tuple(ast.String(word[1:].decode()) for word in sorted(_strings(segment, item)))
    return ast.ArrayCondition(_ARRAY[check["function"]], own, ast.Items(words))


def _property(columns: Columns, storage: Storage, number: int) -> ast.Property:
    source = columns.of(storage)[number].source
    assert isinstance(source, ast.Property)
    return source


def _strings(segment: SegmentReader, number: int) -> list[bytes]:
    arrays = segment.arrays
    items = arrays.set_items[arrays.set_start[number] : arrays.set_start[number + 1]]
    return [_bytes(arrays, k) for k in items.tolist()]


def _bytes(arrays: SegmentArrays, number: int) -> bytes:
    start = arrays.vocabulary.start
    return bytes(arrays.vocabulary.bytes[start[number] : start[number + 1]])


def geometry_of(g: ShapeArrays, row: int) -> BaseGeometry:
    """A shape as a Shapely geometry."""
    first, stop = int(g.shapes["chain"][row]), int(g.shapes["chain"][row + 1])
    chains = []
    for c in range(first, stop):
        low, high = int(g.chains["start"][c]), int(g.chains["start"][c + 1])
        chains.append(np.column_stack((g.x[low:high], g.y[low:high])))
    dimension = int(g.shapes["dimension"][row])
    if dimension == POINTS:
        return Point(chains[0][0]) if len(chains[0]) == 1 else MultiPoint(chains[0])
    if dimension == LINES:
        return LineString(chains[0]) if len(chains) == 1 else MultiLineString(chains)
    parts: dict[int, list[Any]] = {}
    for c, chain in zip(range(first, stop), chains, strict=True):
        parts.setdefault(int(g.chains["part"][c]), []).append(chain)
    polygons = [Polygon(rings[0], rings[1:]) for rings in parts.values()]
    result = polygons[0] if len(polygons) == 1 else MultiPolygon(polygons)
    with np.errstate(all="ignore"):  # GEOS multiplies coordinates, however far they are
        return shapely.normalize(result)
