"""`EventTable`: the events of a table or of a publication, with each value read once.

Matching, tracking, composites, safe regions, Spark and the server read events through this class:
columns as Arrow arrays or Python values, geometries as `Shapes`, rows as `EventValues`. Parsed
values are cached, so consumers of the same table share them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import FencepostError, GeometryProblem, ModelError
from fencepost.events.arrow_text import find_invalid_utf8, python_values
from fencepost.events.event_attributes import Row, attributes, row_attributes
from fencepost.events.event_values import EventValues
from fencepost.events.feature_tables import attribute_columns
from fencepost.events.nearest_names import nearest_name
from fencepost.events.times import parse_instants
from fencepost.events.tokenizer import DEFAULT_TOKENIZER, Tokenizer
from fencepost.events.value_types import is_missing, nanoseconds_of
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.arrow_columns import extension_name
from fencepost.geometry.readers.geoarrow_columns import with_geoarrow_types
from fencepost.geometry.readers.geojson_columns import geojson_values, is_geojson
from fencepost.geometry.space import Space

BadRows = list[tuple[int, str]]
"""Row and reason of each row that is no event."""

_NO_TABLE = (
    "give an Arrow table, a DataFrame, a FeatureCollection or a list of events, each a mapping or "
    "a GeoJSON Feature"
)


class Geometries(NamedTuple):
    """A column of geometries.

    Attributes
    ----------
    shapes : Shapes
        The geometries; there may be more than the events have.
    rows : int64 array
        The row of `shapes` of each event; -1 if the event has no usable geometry.
    problems : dict of int to GeometryProblem
        By event, why its geometry cannot be used.
    """

    shapes: Shapes
    rows: NDArray[np.int64]
    problems: dict[int, GeometryProblem]

    def slice(self, start: int, count: int) -> Geometries:
        """Return the geometries of `count` consecutive events."""
        stop = start + count
        kept = {row - start: why for row, why in self.problems.items() if start <= row < stop}
        return Geometries(self.shapes, self.rows[start:stop], kept)


class EventTable:
    """Events in order; any number of threads may read them.

    Attributes
    ----------
    source_rows : int64 array
        The row of each event in the source.
    bad : list of (int, str)
        Source row and reason of each row that is no event.
    space : Space
        The coordinate space of geometries.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, object]] | pa.Table,
        source_rows: NDArray[np.int64] | None = None,
        bad: BadRows | None = None,
        space: Space = Space.PLANAR,
    ) -> None:
        self._arrow = rows if isinstance(rows, pa.Table) else None
        self._rows = None if isinstance(rows, pa.Table) else rows
        self._size = rows.num_rows if isinstance(rows, pa.Table) else len(rows)
        self.source_rows = np.arange(self._size) if source_rows is None else source_rows
        self.bad: BadRows = bad or []
        self.space = space
        self._lock = threading.RLock()
        self._columns: dict[str, pa.Array | None] = {}
        self._values: dict[tuple[str, bool], Sequence[object]] = {}
        self._instants: dict[str, Sequence[int | None]] = {}
        self._geometries: dict[str, Geometries] = {}

    @classmethod
    def read(cls, source: object, space: Space = Space.PLANAR) -> EventTable:
        """Read the events of an Arrow table, a DataFrame, a FeatureCollection or a list.

        Raises
        ------
        ModelError
            If the source as a whole is no table of events. A row that is no event joins `bad`.
        """
        if isinstance(source, EventTable):
            if source.space is not space:
                raise ModelError(
                    f"the events were read for the space {source.space.value!r}, and are needed "
                    f"in {space.value!r}; read them again in that space"
                )
            return source
        arrow = _as_arrow(source)
        if arrow is not None:
            if len(set(arrow.column_names)) < arrow.num_columns:
                raise ModelError("two columns of the table have the same name; rename one of them")
            columns = attribute_columns(arrow)
            if columns is not None:
                return cls(columns, space=space)
            plain = cls(arrow, space=space).without_invalid_text(arrow.column_names)
            rows = plain.rows(geometric=("geometry",))
            return cls._of_rows(rows, plain.source_rows, plain.bad, row_attributes, space)
        if isinstance(source, dict) and source.get("type") == "FeatureCollection":
            source = source.get("features")
        read: Callable[[Any], Mapping[str, object]] = attributes
        if _is_frame(source):
            source, read = source.to_dict("records"), row_attributes  # type: ignore[attr-defined]
        if not isinstance(source, list | tuple):
            raise ModelError(f"a {type(source).__name__} is no table of events; {_NO_TABLE}")
        return cls._of_rows(source, np.arange(len(source)), [], read, space)

    @classmethod
    def _of_rows(
        cls,
        rows: Sequence[Any],
        numbers: NDArray[np.int64],
        bad: BadRows,
        read: Callable[[Any], Mapping[str, object]],
        space: Space,
    ) -> EventTable:
        """Read rows one by one; those that are no events join `bad`, with their numbers."""
        good: list[Mapping[str, object]] = []
        source_rows: list[int] = []
        unread: BadRows = []
        for number, event in zip(numbers.tolist(), rows, strict=True):
            try:
                good.append(read(event))
            except FencepostError as error:
                unread.append((number, str(error)))
            else:
                source_rows.append(number)
        return cls(good, np.array(source_rows, np.int64), sorted([*bad, *unread]), space)

    @classmethod
    def concatenate(cls, tables: Sequence[EventTable]) -> EventTable:
        """Concatenate tables of the same space.

        Source rows are numbered from 0 again. Geometries that all tables have read are kept.
        """
        rows = [row for table in tables for row in table.rows()]
        joined = cls(rows, space=tables[0].space if tables else Space.PLANAR)
        common = set.intersection(*(set(table._geometries) for table in tables)) if tables else ()
        for name in common:
            joined._geometries[name] = _concatenate_geometries(
                [table._geometries[name] for table in tables]
            )
        return joined

    def __len__(self) -> int:
        return self._size

    def slice(self, start: int, count: int) -> EventTable:
        """Return at most `count` consecutive events; cached geometries are shared."""
        if start == 0 and count == self._size:
            return self
        rows: Any
        if self._rows is not None:
            rows = self._rows[start : start + count]
        else:  # clipped, because Arrow slices a table without columns beyond its end
            assert self._arrow is not None
            rows = self._arrow.slice(start, min(count, self._size - start))
        part = EventTable(rows, self.source_rows[start : start + count], space=self.space)
        with self._lock:
            cached = [*self._geometries.items()]
        part._geometries = {name: g.slice(start, len(part)) for name, g in cached}
        return part

    def without(self, bad: Mapping[int, str]) -> EventTable:
        """Return the table without some events; their source rows and reasons join `bad`."""
        if not bad:
            return self
        part = self.take(np.delete(np.arange(self._size), sorted(bad)))
        reasons = [(int(self.source_rows[row]), reason) for row, reason in bad.items()]
        part.bad = sorted([*self.bad, *reasons])
        return part

    def take(self, kept: NDArray[np.int64]) -> EventTable:
        """Return the events of some ascending rows of this table; `bad` is empty."""
        runs = np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1)
        chosen: Any
        if self._arrow is None:
            chosen = [self._rows[row] for row in kept.tolist()]  # type: ignore[index]
        else:  # slices, because Arrow's `take` does not support all types
            chosen = pa.concat_tables(
                [self._arrow.slice(run[0], len(run)) for run in runs if len(run)]
                or [self._arrow.slice(0, 0)]
            )
        part = EventTable(chosen, self.source_rows[kept], space=self.space)
        new_rows = {row: k for k, row in enumerate(kept.tolist())}
        for name, (shapes, rows, problems) in self._geometries.items():
            kept_problems = {
                new_rows[row]: problem for row, problem in problems.items() if row in new_rows
            }
            part._geometries[name] = Geometries(shapes, rows[kept], kept_problems)
        return part

    def without_invalid_text(self, names: Collection[str]) -> EventTable:
        """Return the events whose text in some columns is UTF-8; other rows join `bad`.

        Arrow validates the bytes of strings only on request.
        """
        if self._arrow is None:
            return self
        reasons: dict[int, str] = {}
        for name in self._arrow.column_names:
            if name in names:
                for row, reason in find_invalid_utf8(
                    self._arrow.column(name), f"the column {name!r:.60}"
                ):
                    reasons.setdefault(row, reason)
        return self.without(reasons)

    def with_values(self, values: Mapping[str, Sequence[object]]) -> EventTable:
        """Return the events with more attributes; `bad` is empty, geometries are shared."""
        value_rows = zip(*values.values(), strict=True)
        rows = [
            Row({**row, **dict(zip(values, new_values, strict=True))})
            for row, new_values in zip(self.rows(), value_rows, strict=True)
        ]
        table = EventTable(rows, self.source_rows, space=self.space)
        table._geometries = {k: g for k, g in self._geometries.items() if k not in values}
        return table

    def with_geometries(self, columns: Mapping[str, Geometries]) -> EventTable:
        """Return the events with these geometries, in new columns or in place of existing ones."""
        rows = self._arrow if self._rows is None else self._rows
        assert rows is not None
        table = EventTable(rows, self.source_rows, space=self.space)
        table._geometries = {**self._geometries, **columns}
        return table

    def with_points(self, x: str, y: str, name: str = "geometry") -> EventTable:
        """Return the events with points made of two columns of numbers.

        An event without one of the numbers has no point.
        """
        xs, ys = (self._floats(column) + 0.0 for column in (x, y))  # turns -0.0 into 0.0
        present = np.flatnonzero(np.isfinite(xs) & np.isfinite(ys))
        points = Shapes.of_points(xs[present], ys[present])
        return self.with_geometries({name: self._usable(points, present)})

    def _floats(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers; NaN for missing values."""
        names = self.column_names
        if names is not None and name not in names:
            near = nearest_name(name, [*names])
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(names)}"
            raise ModelError(f"the table has no column {name!r:.60}; {hint}")
        values = self.values(name)
        try:
            return np.array([np.nan if is_missing(v) else v for v in values], np.float64)
        except (TypeError, ValueError):
            wrong = next(v for v in values if not isinstance(v, int | float) and not is_missing(v))
            raise ModelError(
                f"the column {name!r:.60} must have numbers; saw {wrong!r:.60}"
            ) from None

    # Columns

    @property
    def column_names(self) -> Collection[str] | None:
        """The names of all columns; None for a table of mappings, which may differ in names."""
        if self._arrow is None:
            return None
        return [*dict.fromkeys((*self._arrow.column_names, *self._geometries))]

    def column(self, name: str) -> pa.Array | None:
        """Return a column as one Arrow array, decoded from dictionaries; None if there is none."""
        if self._arrow is None or name not in self._arrow.column_names:
            return None
        with self._lock:
            if name not in self._columns:
                with self.name_columns_in_errors([name]):
                    self._columns[name] = _plain_array(self._arrow.column(name))
            return self._columns[name]

    def values(self, name: str, *, geometric: bool = False) -> Sequence[object]:
        """Return a column as Python values; missing values may be None, NaN and the like.

        Parameters
        ----------
        geometric : bool
            Return coordinates as GeoJSON geometries, even if the column does not name an encoding.
        """
        with self._lock:
            if (name, geometric) not in self._values:
                self._values[name, geometric] = self._python_values(name, geometric)
            return self._values[name, geometric]

    def _python_values(self, name: str, geometric: bool) -> Sequence[object]:
        if self._rows is not None:
            return [row.get(name) for row in self._rows]
        assert self._arrow is not None
        if name not in self._arrow.column_names:
            return [None] * self._size
        with self.name_columns_in_errors([name]):
            chosen = self._arrow.select([name])
            if geometric or _names_geometry_encoding(chosen.schema.field(0)):
                chosen = with_geoarrow_types(chosen, (name,))
            column = chosen.column(0)
            if is_geojson(column.type):
                return [value for chunk in column.chunks for value in geojson_values(chunk)]
            return python_values(column)

    def instants(self, name: str) -> Sequence[int | None]:
        """Return a column as nanoseconds since 1970; None for each value that is no instant."""
        with self._lock:
            if name not in self._instants:
                self._instants[name] = self._read_instants(name)
            return self._instants[name]

    def _read_instants(self, name: str) -> Sequence[int | None]:
        column = self.column(name)
        if column is not None and pa.types.is_timestamp(column.type):
            try:
                instants: list[int | None] = (
                    column.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()
                )
            except pa.ArrowInvalid:  # a year outside 64 bits of nanoseconds
                pass
            else:
                return instants
        values = self.values(name)
        if {*map(type, values)} == {str}:
            return parse_instants(cast(Sequence[str], values))
        return [nanoseconds_of(value) for value in values]

    @contextmanager
    def name_columns_in_errors(self, names: Sequence[str]) -> Iterator[None]:
        """Raise conversion errors of Arrow and Python as ModelErrors that name the columns."""
        try:
            yield
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            assert self._arrow is not None
            schema = self._arrow.schema
            columns = ", ".join(f"{name!r:.60} ({schema.field(name).type})" for name in names)
            raise ModelError(
                f"the values of the column {columns} cannot be read: {error}; convert the column, "
                "or leave it out"
            ) from error

    def geometries(self, name: str) -> Geometries:
        """Return a column as geometries."""
        with self._lock:
            if name not in self._geometries:
                self._geometries[name] = self._read_geometries(name)
            return self._geometries[name]

    def _read_geometries(self, name: str) -> Geometries:
        if self._arrow is not None and name in self._arrow.column_names:
            named = with_geoarrow_types(self._arrow.select([name]), (name,))
            array = _plain_array(named.column(0))
            if _is_geometric(array.type):
                return self._usable(Shapes.read(array), np.arange(self._size))
        values = self.values(name, geometric=True)
        # A number is no problem: an attribute may hold numbers in some events.
        rows = [
            row
            for row, value in enumerate(values)
            if not isinstance(value, int | float) and not is_missing(value)
        ]
        return self._usable(Shapes.read([values[row] for row in rows]), np.array(rows, np.int64))

    def _usable(self, shapes: Shapes, events: NDArray[np.int64]) -> Geometries:
        """Return the usable geometries among `shapes`, whose row k belongs to event events[k]."""
        usable = shapes.arrays.shapes["dimension"][:-1] >= 0
        outside = shapes.problems_outside(self.space)
        usable[[problem.row for problem in outside]] = False
        rows = np.full(self._size, -1, np.int64)
        rows[events] = np.where(usable, np.arange(len(shapes)), -1)
        problems = {int(events[p.row]): p for p in (*shapes.problems, *outside)}
        return Geometries(shapes, rows, problems)

    # Rows

    def rows(
        self, names: Collection[str] | None = None, geometric: Collection[str] = ()
    ) -> Sequence[Mapping[str, object]]:
        """Return the attributes of each event.

        Parameters
        ----------
        names : collection of str, optional
            The columns of an Arrow table to return; all if left out.
        geometric : collection of str
            The columns whose coordinates are geometries: see `values`.
        """
        if self._rows is not None:
            return self._rows
        assert self._arrow is not None
        chosen = [name for name in self._arrow.column_names if names is None or name in names]
        if not chosen:
            return [Row() for _ in range(self._size)]
        columns = (self.values(name, geometric=name in geometric) for name in chosen)
        return [Row(zip(chosen, row, strict=True)) for row in zip(*columns, strict=True)]

    def row(self, number: int) -> Mapping[str, object]:
        """Return the attributes of one event."""
        if self._rows is not None:
            return self._rows[number]
        (row,) = self.slice(number, 1).rows()
        return row

    def events(
        self,
        names: Collection[str] | None = None,
        geometric: Collection[str] = (),
        tokenizer: Tokenizer = DEFAULT_TOKENIZER,
    ) -> Iterator[EventValues]:
        """Yield the events one by one; their geometries are read from this table."""
        return (
            EventValues(row, tokenizer, self.space, _RowShapes(self, number))
            for number, row in enumerate(self.rows(names, geometric))
        )


@dataclass(frozen=True, slots=True)
class _RowShapes:
    """Returns the geometries of one event by attribute, as `EventValues` needs them."""

    table: EventTable
    number: int

    def __call__(self, name: str) -> Shapes | None:
        geometries = self.table.geometries(name)
        row = int(geometries.rows[self.number])
        return None if row < 0 else geometries.shapes.row(row)


def _names_geometry_encoding(field: pa.Field) -> bool:
    name = extension_name(field)
    if isinstance(field.type, pa.BaseExtensionType):
        name = field.type.extension_name
    return name is not None and name.startswith("geoarrow.")


def _is_geometric(kind: pa.DataType) -> bool:
    """Return whether Arrow arrays of a type are read as columns of geometries."""
    return (
        isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or is_geojson(kind)
    )


def _plain_array(column: pa.ChunkedArray) -> pa.Array:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(array.type):
        if pa.types.is_string_view(array.type.value_type):  # Arrow cannot decode these
            wide = array.dictionary.cast(pa.large_string())
            array = pa.DictionaryArray.from_arrays(array.indices, wide)
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array


def _concatenate_geometries(columns: Sequence[Geometries]) -> Geometries:
    if len(columns) == 1:
        return columns[0]
    first_shape, first_event = 0, 0
    rows: list[NDArray[np.int64]] = []
    problems: dict[int, GeometryProblem] = {}
    for column in columns:
        rows.append(np.where(column.rows >= 0, column.rows + first_shape, -1))
        problems |= {first_event + row: problem for row, problem in column.problems.items()}
        first_shape += len(column.shapes)
        first_event += len(column.rows)
    parts = [(column.shapes.arrays, np.arange(len(column.shapes))) for column in columns]
    return Geometries(Shapes.gather(parts), np.concatenate(rows), problems)


def _as_arrow(source: object) -> pa.Table | None:
    """Return a table of events as Arrow; None if the source is no table, or of mixed types."""
    if not is_pandas(source):
        source = arrow_table(source)
        if isinstance(source, pa.Table):
            return source
    if not _is_frame(source):
        return None
    frame: Any = source
    if len(set(frame.columns)) < len(frame.columns):
        raise ModelError("two columns of the table have the same name; rename one of them")
    if hasattr(frame, "to_wkb") and hasattr(frame, "geometry"):  # a GeoDataFrame
        frame = frame.to_wkb()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, OverflowError):
        return None  # columns of mixed types, to be read row by row


def arrow_table(source: Any) -> Any:
    """Return a source as an Arrow table if Arrow's interface exports one, else the source itself.

    A stream can be read once. Raise ModelError if it has values instead of rows of columns.
    """
    if isinstance(source, pa.Table):
        return source
    if not hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__arrow_c_array__"):
        return source
    try:  # polars, DuckDB and others
        return pa.table(source)
    except (pa.ArrowInvalid, ValueError):  # it exports values of one type, not rows
        raise ModelError(f"a {type(source).__name__} is no table of events; {_NO_TABLE}") from None


def is_pandas(source: object) -> bool:
    """Return whether a table is of pandas or GeoPandas, without importing them."""
    return any(base.__module__.partition(".")[0] == "pandas" for base in type(source).__mro__)


def _is_frame(source: object) -> bool:
    return type(source).__name__ in ("DataFrame", "GeoDataFrame") and hasattr(source, "to_dict")
