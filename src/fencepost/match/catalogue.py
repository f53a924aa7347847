"""Which subscriptions there are, by id: their names, subscribers, expressions and expiry."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.segment import NEVER, Segment
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
    """A segment and the names of its subscriptions, row by row."""

    segment: Segment
    names: pa.Table
    serial: int = 0
    _ids: list[str] | None = None
    _subscribers: list[str] | None = None

    def without(self, rows: list[int]) -> Shelf:
        """The same shelf with some rows removed; this one stays as it is."""
        alive = self.alive.copy()
        alive[rows] = 0
        segment = Segment(self.segment.arrays._replace(alive=alive))
        return Shelf(segment, self.names, self.serial, self._ids, self._subscribers)

    @property
    def ids(self) -> list[str]:
        """The ids, row by row."""
        if self._ids is None:
            self._ids = self.names.column("id").to_pylist()
        return self._ids

    @property
    def subscribers(self) -> list[str]:
        """The subscribers, row by row."""
        if self._subscribers is None:
            self._subscribers = self.names.column("subscriber").to_pylist()
        return self._subscribers

    @property
    def alive(self) -> NDArray[np.uint8]:
        """1 for each row that is not removed."""
        return self.segment.arrays.alive

    def living(self, now: int) -> NDArray[np.int64]:
        """The rows that are neither removed nor expired."""
        return np.flatnonzero((self.alive > 0) & (self.segment.arrays.expires > now))

    def living_ids(self, now: int) -> Iterator[str]:
        """The ids of those rows."""
        ids = self.ids
        return (ids[row] for row in self.living(now))


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
