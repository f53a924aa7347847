"""The subscriptions that came last, of a matcher: they are matched at once, and filed later."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from fencepost.index.columns import Columns
from fencepost.index.delta import Delta
from fencepost.match.catalogue import Expression, Shelf, Subscription, names_table


@dataclass(frozen=True, slots=True)
class _Strings:
    """One string of each of some subscriptions."""

    subscriptions: list[Subscription]
    rows: dict[str, int]
    name: str

    def __getitem__(self, row: int) -> str:
        found: str = getattr(self.subscriptions[row], self.name)
        return found

    def row_of(self, value: str) -> int:
        return self.rows.get(value, -1)


@dataclass(frozen=True, slots=True)
class _Names:
    """What the first `count` of some subscriptions are called."""

    count: int
    subscriptions: list[Subscription]
    ids: _Strings
    subscribers: _Strings

    @property
    def table(self) -> pa.Table:
        return names_table(self.subscriptions[: self.count])

    def given(self, row: int) -> Expression:
        return self.subscriptions[row].expression


class Recent:
    """Subscriptions being added, one by one.

    Attributes
    ----------
    serial : int
        Of the shelf that they are on.
    delta : Delta
    """

    def __init__(self, columns: Columns, serial: int) -> None:
        self.serial = serial
        self.delta = Delta(columns)
        self._subscriptions: list[Subscription] = []
        self._rows: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.delta)

    def add(self, subscription: Subscription) -> None:
        """Add one; its id is not in use, or was a row that is gone by now."""
        row = len(self.delta)
        self.delta.add(subscription.filters, subscription.expires)
        self._subscriptions.append(subscription)
        self._rows[subscription.id] = row

    def shelf(self) -> Shelf:
        """What there is so far."""
        ids, subscribers = (
            _Strings(self._subscriptions, self._rows, name) for name in ("id", "subscriber")
        )
        names = _Names(len(self), self._subscriptions, ids, subscribers)
        return Shelf(self.delta.segment(), names, self.serial, self._subscriptions)
