"""Which subscriptions there are, by id: their names, subscribers, expressions and expiry."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.segment import NEVER, Segment
from fencepost.match.strings import Strings
from fencepost.model.times import instant_of, parse_instant
from fencepost.plan.checks import Filter

SCHEMA = pa.schema([("id", pa.string()), ("subscriber", pa.string()), ("expression", pa.string())])


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as it was given, and its filters."""

    id: str
    expression: str | None
    subscriber: str
    expires: int
    filters: tuple[Filter, ...]


@dataclass(slots=True)
class Shelf:
    """A segment and the names of its subscriptions, row by row.

    Where no subscription has a subscriber other than its id, or none an expression, the table of
    names need not have that column.
    """

    segment: Segment
    names: pa.Table
    serial: int = 0
    _ids: Strings | None = None
    _subscribers: Strings | None = None

    def without(self, rows: list[int]) -> Shelf:
        """The same shelf with some rows removed; this one stays as it is."""
        alive = self.alive.copy()
        alive[rows] = 0
        segment = Segment(self.segment.arrays._replace(alive=alive))
        return Shelf(segment, self.names, self.serial, self._ids, self._subscribers)

    def column(self, name: str) -> pa.ChunkedArray:
        """The "id" or the "subscriber" of each row."""
        return self.names.column(name if name in self.names.column_names else "id")

    def expression(self, row: int) -> str | None:
        """The expression of a row, if it was given as one."""
        if "expression" not in self.names.column_names:
            return None
        given: str | None = self.names.column("expression")[row].as_py()
        return given

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
            own = "subscriber" in self.names.column_names
            self._subscribers = Strings(self.column("subscriber")) if own else self.ids
        return self._subscribers

    @property
    def alive(self) -> NDArray[np.uint8]:
        """1 for each row that is not removed."""
        return self.segment.arrays.alive

    def living(self, now: int) -> NDArray[np.int64]:
        """The rows that are neither removed nor expired."""
        return np.flatnonzero((self.alive > 0) & (self.segment.arrays.expires > now))

    def living_ids(self, now: int) -> list[str]:
        """The ids of those rows."""
        ids: list[str] = self.column("id").take(pa.array(self.living(now))).to_pylist()
        return ids


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
            [s.expression for s in subscriptions],
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
