"""`methods`: Fencepost's `Matcher` through its public methods; ids are row numbers as texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from bench.peers.contest import (
    BULK,
    SINGLE,
    Method,
    Pairs,
    one_at_a_time,
    pairs_of,
    pairs_of_lists,
    timed,
)
from fencepost import Matcher

BATCH = "Fencepost, batch of WKB"
BATCH_XY = "Fencepost, batch of GeoArrow"
MATCH = "Fencepost, Shapely points"
MATCH_GEOJSON = "Fencepost, GeoJSON points"
IN_BULK = (BATCH, BATCH_XY)
ONE_BY_ONE = (MATCH, MATCH_GEOJSON)
GEOMETRY = "geometry"


def methods(
    subscribe: Callable[[Matcher], None],
    points: NDArray[np.float64],
    values: Mapping[str, Sequence[Any]],
) -> list[Method]:
    """Return the methods that match points with other attributes, through one matcher."""
    matcher, build_s = timed(lambda: build_matcher(subscribe))
    objects = shapely.points(points)
    columns = {name: pa.array(column) for name, column in values.items()}
    wkb = pa.table({GEOMETRY: pa.array(shapely.to_wkb(objects), pa.binary()), **columns})
    xy = pa.table({GEOMETRY: geoarrow_points(points), **columns})
    geojson = [{"type": "Point", "coordinates": xy} for xy in points.tolist()]
    return [
        Method(BATCH, BULK, build_s, _batch(matcher, wkb), pairs_of_table),
        Method(BATCH_XY, BULK, build_s, _batch(matcher, xy), pairs_of_table),
        Method(
            MATCH, SINGLE, build_s, one_at_a_time(matcher.match, events(objects, values)), _pairs
        ),
        Method(
            MATCH_GEOJSON,
            SINGLE,
            build_s,
            one_at_a_time(matcher.match, events(geojson, values)),
            _pairs,
        ),
    ]


def build_matcher(subscribe: Callable[[Matcher], None]) -> Matcher:
    """Return a compacted matcher with the subscriptions that `subscribe` adds."""
    matcher = Matcher(space="planar")
    subscribe(matcher)
    matcher.compact()
    return matcher


def ids(count: int) -> pa.Array:
    """Return the numbers from 0 on as texts."""
    return pc.cast(pa.array(np.arange(count)), pa.string())


class _PointType(pa.ExtensionType):  # type: ignore[misc]
    """The extension type of GeoArrow's points, with separated x and y."""

    def __init__(self) -> None:
        fields = [pa.field(name, pa.float64()) for name in "xy"]
        super().__init__(pa.struct(fields), "geoarrow.point")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _PointType:
        return cls()


def geoarrow_points(points: NDArray[np.float64]) -> pa.Array:
    """Return points as a GeoArrow array."""
    point_type = _PointType()
    x, y = np.ascontiguousarray(points.T)
    columns = pa.StructArray.from_arrays(
        [pa.array(x), pa.array(y)], fields=list(point_type.storage_type)
    )
    return pa.ExtensionArray.from_storage(point_type, columns)


def events(geometries: Sequence[Any], values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return events as mappings."""
    names = (GEOMETRY, *values)
    return [
        dict(zip(names, row, strict=True)) for row in zip(geometries, *values.values(), strict=True)
    ]


def _batch(matcher: Matcher, table: pa.Table) -> Callable[[int], Callable[[], pa.Table]]:
    def prepare(count: int) -> Callable[[], pa.Table]:
        part = table.slice(0, count)
        return lambda: matcher.match_batch(part)

    return prepare


def pairs_of_table(matches: pa.Table) -> Pairs:
    """Return the pairs of a result of `match_batch`."""
    rows = pc.cast(pc.cast(matches["subscription"], pa.string()), pa.int64())
    return pairs_of(matches["event"].to_numpy(), rows.to_numpy())


def _pairs(ids_by_event: list[list[str]]) -> Pairs:
    return pairs_of_lists([list(map(int, ids)) for ids in ids_by_event])
