"""Fencepost: a `Matcher` through its public methods, whose ids are the rows as texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from bench.peers.contest import BULK, SINGLE, Method, Pairs, over, pairs_of, pairs_of_lists, timed
from fencepost import Matcher

BATCH = "Fencepost, batch of WKB"
BATCH_XY = "Fencepost, batch of GeoArrow"
MATCH = "Fencepost, Shapely points"
MATCH_GEOJSON = "Fencepost, GeoJSON points"
IN_BULK = (BATCH, BATCH_XY)
ONE_BY_ONE = (MATCH, MATCH_GEOJSON)
PLACE = "geometry"


def methods(
    subscribe: Callable[[Matcher], None],
    points: NDArray[np.float64],
    values: Mapping[str, Sequence[Any]],
) -> list[Method]:
    """A matcher, subscribed, and all ways to ask it about points with other attributes."""
    matcher, build_s = timed(lambda: subscribed(subscribe))
    objects = shapely.points(points)
    rest = {name: pa.array(column) for name, column in values.items()}
    wkb = pa.table({PLACE: pa.array(shapely.to_wkb(objects), pa.binary()), **rest})
    xy = pa.table({PLACE: geoarrow_points(points), **rest})
    geojson = [{"type": "Point", "coordinates": xy} for xy in points.tolist()]
    return [
        Method(BATCH, BULK, build_s, _batch(matcher, wkb), pairs_of_table),
        Method(BATCH_XY, BULK, build_s, _batch(matcher, xy), pairs_of_table),
        Method(MATCH, SINGLE, build_s, over(matcher.match, events(objects, values)), _pairs),
        Method(
            MATCH_GEOJSON, SINGLE, build_s, over(matcher.match, events(geojson, values)), _pairs
        ),
    ]


def subscribed(subscribe: Callable[[Matcher], None]) -> Matcher:
    """A matcher that is ready to match."""
    matcher = Matcher()
    subscribe(matcher)
    matcher.compact()
    return matcher


def ids(count: int) -> pa.Array:
    """The numbers from 0 on as texts."""
    return pc.cast(pa.array(np.arange(count)), pa.string())


class _PointType(pa.ExtensionType):  # type: ignore[misc]
    """GeoArrow's points, x and y apart; a column in a table must say that it holds them."""

    def __init__(self) -> None:
        fields = [pa.field(name, pa.float64()) for name in "xy"]
        super().__init__(pa.struct(fields), "geoarrow.point")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _PointType:
        return cls()


def geoarrow_points(points: NDArray[np.float64]) -> pa.Array:
    """Points as GeoArrow has them."""
    kind = _PointType()
    x, y = np.ascontiguousarray(points.T)
    columns = pa.StructArray.from_arrays([pa.array(x), pa.array(y)], fields=list(kind.storage_type))
    return pa.ExtensionArray.from_storage(kind, columns)


def events(places: Sequence[Any], values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Events as mappings."""
    names = (PLACE, *values)
    return [
        dict(zip(names, row, strict=True)) for row in zip(places, *values.values(), strict=True)
    ]


def _batch(matcher: Matcher, table: pa.Table) -> Callable[[int], Callable[[], pa.Table]]:
    def ready(count: int) -> Callable[[], pa.Table]:
        part = table.slice(0, count)
        return lambda: matcher.match_batch(part)

    return ready


def pairs_of_table(found: pa.Table) -> Pairs:
    """Pairs of an answer of `match_batch`."""
    rows = pc.cast(pc.cast(found["subscription"], pa.string()), pa.int64())
    return pairs_of(found["event"].to_numpy(), rows.to_numpy())


def _pairs(found: list[list[str]]) -> Pairs:
    return pairs_of_lists([list(map(int, own)) for own in found])
