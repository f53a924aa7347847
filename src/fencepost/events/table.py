"""`EventTable`: the events of a table or of one publication, each value of which is read once.

Matching, tracking, composites, safe regions, Spark and the server read events through this class:
columns as Arrow arrays or Python values, geometries as `Shapes`, rows as `EventValues`. What one
consumer has parsed, the next one finds parsed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import FencepostError, GeometryProblem, ModelError
from fencepost.events.arrow_text import find_invalid_utf8, python_values
from fencepost.events.event_attributes import Row, attributes
from fencepost.events.event_values import EventValues
from fencepost.events.times import parse_instants
from fencepost.events.tokenizer import EVERY_WORD, Tokenizer
from fencepost.events.value_types import is_missing, nanoseconds_of
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.arrow_columns import extension_name
from fencepost.geometry.readers.geoarrow_columns import with_geoarrow_types
from fencepost.geometry.space import Space

BadRows = list[tuple[int, str]]
"""Row and reason of each event that cannot be used."""

_NO_TABLE = (
    "give an Arrow table, a DataFrame, a FeatureCollection or a list of events, each a mapping or "
    "a GeoJSON Feature"
)


class Geometries(NamedTuple):
    """A column of geometries.

    Attributes
    ----------
    shapes : Shapes
        Those of this table, and maybe of others.
    rows : int64 array
        The row of `shapes` that each event has; -1 where it has none that can be used.
    problems : dict of int to GeometryProblem
        By event, why a geometry that is there cannot be used.
    """

    shapes: Shapes
    rows: NDArray[np.int64]
    problems: dict[int, GeometryProblem]

    def slice(self, start: int, count: int) -> Geometries:
        """The geometries of some events that follow each other."""
        stop = start + count
        kept = {row - start: why for row, why in self.problems.items() if start <= row < stop}
        return Geometries(self.shapes, self.rows[start:stop], kept)


class EventTable:
    """Events in order; any number of threads may read them.

    Attributes
    ----------
    numbers : int64 array
        The row of the source in which each event stands.
    bad : list of (int, str)
        Row of the source and reason of what is no event.
    space : Space
        What the coordinates of geometries mean.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, object]] | pa.Table,
        numbers: NDArray[np.int64] | None = None,
        bad: BadRows | None = None,
        space: Space = Space.PLANAR,
    ) -> None:
        self._arrow = rows if isinstance(rows, pa.Table) else None
        self._rows = None if isinstance(rows, pa.Table) else rows
        self._size = rows.num_rows if isinstance(rows, pa.Table) else len(rows)
        self.numbers = np.arange(self._size) if numbers is None else numbers
        self.bad: BadRows = bad or []
        self.space = space
        self._lock = threading.RLock()
        self._columns: dict[str, pa.Array | None] = {}
        self._values: dict[tuple[str, bool], Sequence[object]] = {}
        self._instants: dict[str, Sequence[int | None]] = {}
        self._geometries: dict[str, Geometries] = {}

    @classmethod
    def read(cls, source: object, space: Space = Space.PLANAR) -> EventTable:
        """The events of an Arrow table, a DataFrame, a FeatureCollection or a list.

        Raises
        ------
        ModelError
            Where the source as a whole is no table of events. A row that is no event is `bad`.
        """
        if isinstance(source, EventTable):
            if source.space is not space:
                raise ModelError(
                    f"the events were read for the space {source.space.value!r}, and are asked "
                    f"about in {space.value!r}; read them anew"
                )
            return source
        arrow = _as_arrow(source)
        if arrow is not None:
            if len(set(arrow.column_names)) < arrow.num_columns:
                raise ModelError("two columns of the table have one name; rename one of them")
            return cls(arrow, space=space)
        if isinstance(source, dict) and source.get("type") == "FeatureCollection":
            source = source.get("features")
        if _is_frame(source):
            source = [Row(row) for row in source.to_dict("records")]  # type: ignore[attr-defined]
        if not isinstance(source, list | tuple):
            raise ModelError(f"a {type(source).__name__} is no table of events; {_NO_TABLE}")
        good: list[Mapping[str, object]] = []
        numbers: list[int] = []
        bad: BadRows = []
        for number, event in enumerate(source):
            try:
                good.append(attributes(event))
            except FencepostError as error:
                bad.append((number, str(error)))
            else:
                numbers.append(number)
        return cls(good, np.array(numbers, np.int64), bad, space)

    @classmethod
    def concatenate(cls, tables: Sequence[EventTable]) -> EventTable:
        """The events of several tables in one space, numbered anew, with the geometries that were
        read already.
        """
        rows = [row for table in tables for row in table.rows()]
        joined = cls(rows, space=tables[0].space if tables else Space.PLANAR)
        known = set.intersection(*(set(table._geometries) for table in tables)) if tables else ()
        for name in known:
            joined._geometries[name] = _joined([table._geometries[name] for table in tables])
        return joined

    def __len__(self) -> int:
        return self._size

    def slice(self, start: int, count: int) -> EventTable:
        """Some events that follow each other; geometries that were read already are shared."""
        if start == 0 and count == self._size:
            return self
        rows: Any
        if self._rows is not None:
            rows = self._rows[start : start + count]
        else:  # A table without columns is as long as it is told: never ask beyond its end.
            assert self._arrow is not None
            rows = self._arrow.slice(start, min(count, self._size - start))
        part = EventTable(rows, self.numbers[start : start + count], space=self.space)
        with self._lock:
            known = [*self._geometries.items()]
        part._geometries = {name: g.slice(start, len(part)) for name, g in known}
        return part

    def without(self, bad: Mapping[int, str]) -> EventTable:
        """All events but some; these and their reasons join `bad`, by their source's rows."""
        if not bad:
            return self
        part = self.take(np.delete(np.arange(self._size), sorted(bad)))
        reasons = [(int(self.numbers[row]), reason) for row, reason in bad.items()]
        part.bad = sorted([*self.bad, *reasons])
        return part

    def take(self, kept: NDArray[np.int64]) -> EventTable:
        """Some events, by ascending rows of this table; nothing is `bad`."""
        runs = np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1)
        rest: Any
        if self._arrow is None:
            rest = [self._rows[row] for row in kept.tolist()]  # type: ignore[index]
        else:  # slices, because Arrow does not take rows of all types
            rest = pa.concat_tables(
                [self._arrow.slice(run[0], len(run)) for run in runs if len(run)]
                or [self._arrow.slice(0, 0)]
            )
        part = EventTable(rest, self.numbers[kept], space=self.space)
        place = {row: k for k, row in enumerate(kept.tolist())}
        for name, (shapes, rows, problems) in self._geometries.items():
            own = {place[row]: why for row, why in problems.items() if row in place}
            part._geometries[name] = Geometries(shapes, rows[kept], own)
        return part

    def without_invalid_text(self, names: Collection[str]) -> EventTable:
        """The events whose text in these columns is UTF-8; others join `bad`.

        Arrow does not look at the bytes of a string unless it is asked to.
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
        """The same events with more attributes, and nothing `bad`; geometries are shared."""
        added = zip(*values.values(), strict=True)
        rows = [
            Row({**row, **dict(zip(values, more, strict=True))})
            for row, more in zip(self.rows(), added, strict=True)
        ]
        table = EventTable(rows, self.numbers, space=self.space)
        table._geometries = {k: g for k, g in self._geometries.items() if k not in values}
        return table

    def with_geometries(self, columns: Mapping[str, Geometries]) -> EventTable:
        """The same events with these geometries, in columns that there are or new ones."""
        rows = self._arrow if self._rows is None else self._rows
        assert rows is not None
        table = EventTable(rows, self.numbers, space=self.space)
        table._geometries = {**self._geometries, **columns}
        return table

    # Columns

    @property
    def column_names(self) -> Collection[str] | None:
        """The names of all columns; None where each event has attributes of its own."""
        if self._arrow is None:
            return None
        return [*dict.fromkeys((*self._arrow.column_names, *self._geometries))]

    def column(self, name: str) -> pa.Array | None:
        """A column in one Arrow array, without dictionaries; None where there is no such array."""
        if self._arrow is None or name not in self._arrow.column_names:
            return None
        with self._lock:
            if name not in self._columns:
                with self.naming_columns([name]):
                    self._columns[name] = _plain_array(self._arrow.column(name))
            return self._columns[name]

    def values(self, name: str, *, geometric: bool = False) -> Sequence[object]:
        """A column as Python values; what is missing may be None, NaN or another such mark.

        Parameters
        ----------
        geometric : bool
            Whether coordinates are GeoJSON geometries, even in a column that does not name itself
            as one of geometries.
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
        with self.naming_columns([name]):
            chosen = self._arrow.select([name])
            if geometric or _says_it_is_geometric(chosen.schema.field(0)):
                chosen = with_geoarrow_types(chosen, (name,))
            return python_values(chosen.column(0))

    def instants(self, name: str) -> Sequence[int | None]:
        """A column as instants in nanoseconds since 1970; None where a value is none."""
        with self._lock:
            if name not in self._instants:
                self._instants[name] = self._read_instants(name)
            return self._instants[name]

    def _read_instants(self, name: str) -> Sequence[int | None]:
        column = self.column(name)
        if column is not None and pa.types.is_timestamp(column.type):
            try:
                found: list[int | None] = (
                    column.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()
                )
            except pa.ArrowInvalid:  # beyond the years that 64 bits of nanoseconds reach
                pass
            else:
                return found
        values = self.values(name)
        if {*map(type, values)} == {str}:
            return parse_instants(cast(Sequence[str], values))
        return [nanoseconds_of(value) for value in values]

    @contextmanager
    def naming_columns(self, names: Sequence[str]) -> Iterator[None]:
        """Turn what Arrow or Python cannot convert into an error that names the columns."""
        try:
            yield
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            assert self._arrow is not None
            schema = self._arrow.schema
            kinds = ", ".join(f"{name!r:.60} ({schema.field(name).type})" for name in names)
            raise ModelError(
                f"the values of the column {kinds} cannot be read: {error}; convert the column, "
                "or leave it out"
            ) from error

    def geometries(self, name: str) -> Geometries:
        """A column as geometries."""
        with self._lock:
            if name not in self._geometries:
                self._geometries[name] = self._read_geometries(name)
            return self._geometries[name]

    def _read_geometries(self, name: str) -> Geometries:
        if self._arrow is not None and name in self._arrow.column_names:
            named = with_geoarrow_types(self._arrow.select([name]), (name,))
            array = _plain_array(named.column(0))
            if _is_geometric(array.type):
                every = np.arange(self._size)
                return self._usable(Shapes.read(array), every)
        values = self.values(name, geometric=True)
        # A number is no geometry, and no problem: an attribute may be one or the other.
        given = [
            row
            for row, value in enumerate(values)
            if not isinstance(value, int | float) and not is_missing(value)
        ]
        return self._usable(Shapes.read([values[row] for row in given]), np.array(given, np.int64))

    def _usable(self, shapes: Shapes, events: NDArray[np.int64]) -> Geometries:
        """The geometries of some events, one each."""
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
        """The attributes of each event; of a table only the named columns, all if left out.

        geometric : those whose coordinates are geometries: see `values`.
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
        """The attributes of one event."""
        if self._rows is not None:
            return self._rows[number]
        (row,) = self.slice(number, 1).rows()
        return row

    def events(
        self,
        names: Collection[str] | None = None,
        geometric: Collection[str] = (),
        tokenizer: Tokenizer = EVERY_WORD,
    ) -> Iterator[EventValues]:
        """The events one by one; their geometries are those of this table."""
        return (
            EventValues(row, tokenizer, self.space, _OfRow(self, number))
            for number, row in enumerate(self.rows(names, geometric))
        )


@dataclass(frozen=True, slots=True)
class _OfRow:
    """The geometries of one event, by attribute."""

    table: EventTable
    number: int

    def __call__(self, name: str) -> Shapes | None:
        geometries = self.table.geometries(name)
        row = int(geometries.rows[self.number])
        return None if row < 0 else geometries.shapes.row(row)


def _says_it_is_geometric(field: pa.Field) -> bool:
    name = extension_name(field)
    if isinstance(field.type, pa.BaseExtensionType):
        name = field.type.extension_name
    return name is not None and name.startswith("geoarrow.")


def _is_geometric(kind: pa.DataType) -> bool:
    """Whether an Arrow array of a type is read as geometries without Python objects."""
    return (
        isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    )


def _plain_array(column: pa.ChunkedArray) -> pa.Array:
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(array.type):
        if pa.types.is_string_view(array.type.value_type):  # which Arrow cannot decode
            wide = array.dictionary.cast(pa.large_string())
            array = pa.DictionaryArray.from_arrays(array.indices, wide)
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array


def _joined(given: Sequence[Geometries]) -> Geometries:
    if len(given) == 1:
        return given[0]
    base, first = 0, 0
    rows: list[NDArray[np.int64]] = []
    problems: dict[int, GeometryProblem] = {}
    for shapes, own, why in given:
        rows.append(np.where(own >= 0, own + base, -1))
        problems |= {first + row: problem for row, problem in why.items()}
        base += len(shapes)
        first += len(own)
    parts = [(one.shapes.arrays, np.arange(len(one.shapes))) for one in given]
    return Geometries(Shapes.gather(parts), np.concatenate(rows), problems)


def _as_arrow(source: object) -> pa.Table | None:
    """A table of events as Arrow, or None where it is a sequence of events."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if not _is_frame(source):
        return None
    frame: Any = source
    if len(set(frame.columns)) < len(frame.columns):
        raise ModelError("two columns of the table have one name; rename one of them")
    if hasattr(frame, "to_wkb") and hasattr(frame, "geometry"):  # a GeoDataFrame
        frame = frame.to_wkb()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, OverflowError):
        return None  # columns of mixed types: row by row


def _is_frame(source: object) -> bool:
    return type(source).__name__ in ("DataFrame", "GeoDataFrame") and hasattr(source, "to_dict")
