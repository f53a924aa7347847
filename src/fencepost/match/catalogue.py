"""Which subscriptions there are, by id: their names, subscribers, expressions and expiry."""

from __future__ import annotations

import datetime as dt
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.segment import NEVER, NEVER_GONE, Segment
from fencepost.kernels.handles import followed_by, listed
from fencepost.language import ast
from fencepost.language.parser import parse
from fencepost.language.render import render_json
from fencepost.match.strings import Strings
from fencepost.model.space import Space
from fencepost.model.times import instant_of, parse_instant
from fencepost.plan.checks import Filter
from fencepost.plan.forms import Filled
from fencepost.plan.normal import filters

SCHEMA = pa.schema([("id", pa.string()), ("subscriber", pa.string()), ("expression", pa.string())])


Names: TypeAlias = tuple[Callable[[int], str], ...]
Expression: TypeAlias = str | ast.Condition | None


def as_text(expression: Expression) -> str | None:
    """An expression as it was given or, of a condition that was made otherwise, in CQL2 JSON."""
    if expression is None or isinstance(expression, str):
        return expression
    return json.dumps(render_json(expression))


class Subscription(NamedTuple):
    """A subscription as it was given, and what it asks."""

    id: str
    expression: Expression
    subscriber: str
    expires: int
    asked: tuple[Filter, ...] | Filled

    def filters(self, space: Space) -> tuple[Filter, ...]:
        """The filters of which one must hold, of a matcher of some space."""
        if isinstance(self.asked, Filled):
            assert isinstance(self.expression, str)
            return tuple(filters(parse(self.expression, space), space))
        return self.asked


class RowStrings(Protocol):
    """Strings by row, and rows by string."""

    def __getitem__(self, row: int) -> str: ...

    @property
    def get(self) -> Callable[[int], str]:
        """From a row to its string, as fast as can be."""

    def row_of(self, value: str) -> int:
        """The row of a string, or -1."""


class Shelf(ABC):
    """Subscriptions row by row: as a segment, and by name.

    Attributes
    ----------
    serial : int
    """

    __slots__ = ("serial",)

    def __init__(self, serial: int = 0) -> None:
        self.serial = serial

    @property
    @abstractmethod
    def segment(self) -> Segment:
        """The subscriptions as a segment."""

    @property
    @abstractmethod
    def handle(self) -> Any:
        """What kernels match with: the arrays of the segment, or those with room behind."""

    @property
    @abstractmethod
    def table(self) -> pa.Table:
        """The names; a subscriber may be left out where all are the ids, and expressions too."""

    @property
    @abstractmethod
    def ids(self) -> RowStrings:
        """The ids, row by row."""

    @property
    @abstractmethod
    def subscribers(self) -> RowStrings:
        """The subscribers, row by row."""

    @abstractmethod
    def given(self, row: int) -> Expression:
        """The expression of a row, or its condition; None where it was given as columns."""

    @property
    @abstractmethod
    def gone(self) -> NDArray[np.uint32]:
        """From which version on each row is removed."""

    @property
    @abstractmethod
    def expires(self) -> NDArray[np.int64]:
        """When each row ends."""

    @abstractmethod
    def remove(self, row: int, version: int) -> None:
        """Let a subscription match no longer, from a version on."""

    @abstractmethod
    def renew(self) -> None:
        """Begin with version 0 again: what is there is there, what is gone is gone."""

    @abstractmethod
    def __len__(self) -> int: ...

    def column(self, name: str) -> pa.ChunkedArray:
        """The "id" or the "subscriber" of each row."""
        table = self.table
        return table.column(name if name in table.column_names else "id")

    def expression(self, row: int) -> str | None:
        """The expression of a row, if it was given as one."""
        return as_text(self.given(row))

    def living(self, now: int, version: int) -> NDArray[np.int64]:
        """The rows that are neither expired nor removed by a version."""
        return np.flatnonzero((self.gone > version) & (self.expires > now))

    def living_ids(self, now: int, version: int) -> list[str]:
        """The ids of those rows."""
        ids: list[str] = self.column("id").take(pa.array(self.living(now, version))).to_pylist()
        return ids


class FiledShelf(Shelf):
    """A segment, and the names of its subscriptions in a table.

    Where no subscription has a subscriber other than its id, or none an expression, the table need
    not have that column.
    """

    __slots__ = ("_ids", "_segment", "_subscribers", "_table")

    def __init__(self, segment: Segment, table: pa.Table) -> None:
        super().__init__()
        self._segment = segment
        self._table = table
        self._ids: Strings | None = None
        self._subscribers: Strings | None = None

    def __len__(self) -> int:
        return len(self._segment)

    @property
    def segment(self) -> Segment:
        """The segment."""
        return self._segment

    @property
    def handle(self) -> Any:
        """The arrays of the segment."""
        return self._segment.handle

    @property
    def table(self) -> pa.Table:
        """The names."""
        return self._table

    @property
    def ids(self) -> Strings:
        """The ids, row by row."""
        if self._ids is None:
            self._ids = Strings(self.column("id"))
        return self._ids

    @property
    def subscribers(self) -> Strings:
        """The subscribers, row by row."""
        if self._subscribers is None:
            own = "subscriber" in self._table.column_names
            self._subscribers = Strings(self.column("subscriber")) if own else self.ids
        return self._subscribers

    def given(self, row: int) -> str | None:
        """The expression of a row, if it was given as one."""
        if "expression" not in self._table.column_names:
            return None
        given: str | None = self._table.column("expression")[row].as_py()
        return given

    @property
    def gone(self) -> NDArray[np.uint32]:
        """From which version on each row is removed."""
        return self._segment.arrays.gone

    @property
    def expires(self) -> NDArray[np.int64]:
        """When each row ends."""
        return self._segment.arrays.expires

    def remove(self, row: int, version: int) -> None:
        """Let a subscription match no longer, from a version on."""
        self._segment.remove(row, version)

    def renew(self) -> None:
        """Begin with version 0 again."""
        self.gone[self.gone != NEVER_GONE] = 0


class Snapshot(tuple[Shelf, ...]):
    """Shelves as they were at a version; what was removed later is still there for whoever has it.

    Attributes
    ----------
    version : int
    """

    version: int
    _names: dict[str, Names]
    _handles: Any

    def __new__(
        cls, shelves: Iterable[Shelf], version: int, before: Snapshot | None = None
    ) -> Snapshot:
        """Shelves at a version; what kernels match with is that of `before` where it is alike."""
        made = super().__new__(cls, shelves)
        made.version = version
        if before is not None and before._same_handles(made):
            made._handles = before._handles
            made._names = before._names
        else:
            made._handles = None
            made._names = {}
        return made

    def at(self, version: int) -> Snapshot:
        """The same shelves at a later version, of which something was removed."""
        made: Snapshot = tuple.__new__(Snapshot, self)
        made.version = version
        made._names = self._names
        made._handles = self._handles
        return made

    def _same_handles(self, others: Snapshot) -> bool:
        """Whether all shelves are the same, or the last ones are the same but for their length."""
        if len(self) != len(others) or self[:-1] != others[:-1]:
            return False
        return not self or self[-1] is others[-1] or self[-1].handle is others[-1].handle

    @property
    def ids(self) -> Names:
        """From the rows of each shelf to their ids."""
        names = self._names.get("id")
        if names is None:
            names = self._names["id"] = tuple(shelf.ids.get for shelf in self)
        return names

    @property
    def subscribers(self) -> Names:
        """From the rows of each shelf to their subscribers."""
        names = self._names.get("subscriber")
        if names is None:
            names = self._names["subscriber"] = tuple(shelf.subscribers.get for shelf in self)
        return names

    @property
    def handles(self) -> Any:
        """The shelves as kernels take them; there must be one at least."""
        if self._handles is None:
            first, *others = (shelf.handle for shelf in self)
            handles = listed(first)
            for other in others:
                handles = followed_by(handles, other)
            self._handles = handles
        return self._handles

    def column(self, name: str) -> pa.ChunkedArray:
        """The "id" or the "subscriber" of each row, counted through all shelves."""
        chunks = [chunk for shelf in self for chunk in shelf.column(name).chunks]
        return pa.chunked_array(chunks, pa.string())


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column of strings in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """Names of several shelves as one table; a column that some lack is filled."""
    given = list(tables)
    asked = {name for table in given for name in table.column_names}
    schema = pa.schema([field for field in SCHEMA if field.name in asked])
    full = []
    for table in given:
        columns = {name: table.column(name) for name in table.column_names}
        columns.setdefault("subscriber", columns["id"])
        columns.setdefault("expression", pa.nulls(len(table), pa.string()))
        full.append(pa.table([columns[name] for name in schema.names], schema=schema))
    return pa.concat_tables(full).combine_chunks()


def names_table(subscriptions: list[Subscription]) -> pa.Table:
    """The names of subscriptions, row by row."""
    return pa.table(
        [
            [s.id for s in subscriptions],
            [s.subscriber for s in subscriptions],
            [as_text(s.expression) for s in subscriptions],
        ],
        schema=SCHEMA,
    )


def checked_id(value: object, what: str = "id") -> str:
    """An id or subscriber: a string that is not empty and can be written as UTF-8."""
    if not isinstance(value, str) or not value:
        raise ModelError(
            f"the {what} of a subscription must be a string that is not empty; saw {value!r:.60}"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"the {what} {value!r:.60} holds a lone surrogate and cannot be stored as UTF-8; "
            "leave that character out"
        ) from error
    return value


def expiry(value: object) -> int:
    """When a subscription ends, in nanoseconds since 1970."""
    if value is None:
        return int(NEVER)
    instant: int | None
    if isinstance(value, str):
        parsed = parse_instant(value)
        instant = None if parsed is None else parsed[0]
    elif isinstance(value, (dt.date, np.datetime64)):
        instant = instant_of(value)
    else:
        instant = None
    if instant is None:
        raise ModelError(f"expires must be a datetime or an ISO 8601 string; saw {value!r:.60}")
    return max(min(instant, int(NEVER)), 0)
