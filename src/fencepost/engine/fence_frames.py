"""`read_fence_frame` reads the ids, geometries and expiry times of a table's rows, for fences."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.engine.fence_subscriptions import FenceRows
from fencepost.engine.subscriptions import parse_expiry, validate_id
from fencepost.errors import ModelError
from fencepost.events.nearest_names import nearest_name
from fencepost.events.table import EventTable, is_pandas
from fencepost.events.value_types import is_missing
from fencepost.geometry.readers.raw_shapes import MISSING_REASON, short_repr
from fencepost.geometry.space import Space

BadRows = list[tuple[int, str]]
Known: TypeAlias = Collection[Any] | None
"""The names of all columns; None for a table of mappings, which may differ in names."""
_GEOMETRY = "geometry"
_NO_GEOMETRY = "it has no geometry, so it is no fence; give it one"


@dataclass(frozen=True, slots=True)
class FenceColumns:
    """Where a table has what its fences need.

    Attributes
    ----------
    id : str, optional
        The column of ids. Left out: the column `id`, or else the index of a pandas table, or the
        number of the row in any other.
    geometry : str, optional
        The column of geometries. Left out: that of a GeoDataFrame, or else `geometry`.
    x, y : str, optional
        The columns of the coordinates of points, instead of a column of geometries.
    subscriber : str, optional
        The column of subscribers. Left out, each equals the id.
    expires : object
        When all fences expire, or the column that says it for each.
    """

    id: str | None = None
    geometry: str | None = None
    x: str | None = None
    y: str | None = None
    subscriber: str | None = None
    expires: object = None


def read_fence_frame(
    frame: Any,
    columns: FenceColumns,
    space: Space,
    now: int,
    bad: BadRows,
    align: Callable[[EventTable, str], EventTable],
) -> FenceRows:
    """Read the rows of a table as fences.

    Parameters
    ----------
    frame : table, FeatureCollection or sequence of Features or mappings
    columns : FenceColumns
    space : Space
    now : int
        The time from which a timedelta counts, in nanoseconds since 1970.
    bad : list of (int, str)
        Receives the row and the reason of each row that cannot be a fence.
    align : callable
        Returns the table with a column of geometries in the CRS of the matcher.
    """
    events = EventTable.read(frame, space)
    known = list(frame.columns) if is_pandas(frame) else events.column_names
    geometry_name = _geometry_name(frame, known, columns)
    id_name = columns.id
    if id_name is None and (known is None or "id" in known):
        id_name = "id"
    has_expiry_column = isinstance(columns.expires, str) and columns.expires in (known or ())
    expiry_name = columns.expires if has_expiry_column else None
    names = [str(name) for name in (id_name, columns.subscriber, expiry_name) if name is not None]
    _require_columns(known, names)
    events = events.without_invalid_text(names)
    if columns.x is not None and columns.y is not None:
        events = events.with_points(columns.x, columns.y, geometry_name)
    reasons: dict[int, str] = {}

    ids = _read_ids(events, id_name, frame, reasons)
    subscribers = None
    if columns.subscriber is not None:
        subscribers = _read_texts(events, columns.subscriber, "subscriber", reasons, ids)
    expires = _read_expiry(events, columns.expires, expiry_name, now, reasons)
    events = align(events, geometry_name)
    shapes, shape_rows, problems = events.geometries(geometry_name)
    for row in np.flatnonzero(shape_rows < 0).tolist():
        problem = problems.get(row)
        is_missing_geometry = problem is None or problem.reason == MISSING_REASON
        why = _NO_GEOMETRY if is_missing_geometry else f"the geometry is not usable: {problem}"
        reasons.setdefault(row, why)
    bad += events.bad
    bad += [(int(events.source_rows[row]), why) for row, why in sorted(reasons.items())]
    rows = FenceRows(events.source_rows, ids, subscribers, expires, shapes, shape_rows)
    return rows.take(np.delete(np.arange(len(rows)), sorted(reasons)))


def drop_repeated_ids(fences: FenceRows, bad: BadRows) -> FenceRows:
    """Return the fences without those whose id an earlier one has; these join `bad`."""
    codes = fences.ids.dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    repeated = np.delete(np.arange(len(fences)), first)
    bad += [
        (int(fences.rows[row]), f"the id {fences.ids[row].as_py()!r:.60} is in the table twice")
        for row in repeated.tolist()
    ]
    return fences.take(np.sort(first)) if len(repeated) else fences


# ----------------------------------------------------------------------------------------- columns


def _geometry_name(frame: Any, known: Known, columns: FenceColumns) -> str:
    if (columns.x is None) != (columns.y is None):
        raise ModelError("x and y must be given together: the columns of the points' coordinates")
    if columns.x is not None:
        if columns.geometry is not None:
            raise ModelError("give either the column of geometries, or x and y")
        return _GEOMETRY
    if columns.geometry is not None:
        _require_columns(known, [columns.geometry])
        return columns.geometry
    own = getattr(frame, "active_geometry_name", None) if is_pandas(frame) else None
    name = _GEOMETRY if own is None else str(own)
    if known is not None and name not in known:
        raise ModelError(
            f"the table has no column {name!r:.60}; name its column of geometries with geometry=, "
            f"or those of its coordinates with x= and y=; it has: {_listed(known)}"
        )
    return name


def _require_columns(known: Known, names: list[str]) -> None:
    for name in names:
        if known is not None and name not in known:
            near = nearest_name(name, [*map(str, known)])
            hint = f"did you mean {near!r}?" if near else f"it has: {_listed(known)}"
            raise ModelError(f"the table has no column {short_repr(name)}; {hint}")


def _listed(known: Collection[Any]) -> str:
    return f"{', '.join(map(str, known)):.200}"


# ------------------------------------------------------------------------------------------ values


def _read_ids(
    events: EventTable, name: str | None, frame: Any, reasons: dict[int, str]
) -> pa.Array:
    numbers = pa.array(events.source_rows).cast(pa.string())
    if name is not None:
        is_table = is_pandas(frame) or events.column_names is not None
        return _read_texts(events, name, "id", reasons, None if is_table else numbers)
    if is_pandas(frame):
        index = frame.index.take(events.source_rows).to_list()
        return _validated(index, validate_id, reasons)
    return numbers


def _read_texts(
    events: EventTable,
    name: str,
    what: str,
    reasons: dict[int, str],
    default: pa.Array | None,
) -> pa.Array:
    """Return a column of ids or subscribers as text.

    default : the texts of rows without a value; without it, such rows cannot be used.
    """
    column = events.column(name)
    if column is not None and pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    if column is not None and (
        pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ):
        texts = column.cast(pa.string())
    else:
        values = [None if is_missing(value) else value for value in events.values(name)]
        texts = _validated(values, lambda v: None if v is None else validate_id(v, what), reasons)
    for row in np.flatnonzero(_mask(pc.equal(texts, ""))).tolist():
        reasons.setdefault(row, f"its {name} is empty; give it a value")
    if default is not None:
        return pc.coalesce(texts, default)
    for row in np.flatnonzero(_mask(texts.is_null())).tolist():
        reasons.setdefault(row, f"its {name} is missing; give it a value")
    return texts


def _mask(flags: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = pc.fill_null(flags, False).to_numpy(zero_copy_only=False)
    return mask


def _validated(
    values: list[Any], read: Callable[[Any], str | None], reasons: dict[int, str]
) -> pa.Array:
    texts: list[str | None] = []
    for row, value in enumerate(values):
        try:
            texts.append(read(value))
        except ModelError as error:
            texts.append(None)
            reasons.setdefault(row, str(error))
    return pa.array(texts, pa.string())


def _read_expiry(
    events: EventTable, value: object, column: object, now: int, reasons: dict[int, str]
) -> NDArray[np.int64]:
    if column is None:
        return np.full(len(events), parse_expiry(value, now), np.int64)
    expires = np.zeros(len(events), np.int64)
    for row, item in enumerate(events.values(str(column))):
        try:
            expires[row] = parse_expiry(None if is_missing(item) else item, now)
        except ModelError as error:
            reasons.setdefault(row, str(error))
    return expires
