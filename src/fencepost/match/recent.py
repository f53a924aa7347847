"""The subscriptions that came last, of a matcher: they are matched at once, and filed later."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.index.columns import Columns
from fencepost.index.delta import FIRST_ROOM, Delta
from fencepost.index.segment import Segment
from fencepost.match.catalogue import Expression, Shelf, Subscription, names_table


class _Strings:
    """One string of each of some subscriptions."""

    def __init__(self, subscriptions: list[Subscription], rows: dict[str, int], name: str) -> None:
        self._subscriptions = subscriptions
        self._rows = rows
        self._name = name

    def __getitem__(self, row: int) -> str:
        found: str = getattr(self._subscriptions[row], self._name)
        return found

    @property
    def get(self) -> Callable[[int], str]:
        """From a row to its string."""
        return self.__getitem__

    def row_of(self, value: str) -> int:
        return self._rows.get(value, -1)


class Recent:
    """Subscriptions being added, one by one.

    Attributes
    ----------
    serial : int
        Of the shelf that they are on.
    delta : Delta
    subscriptions : list of Subscription
    ids, subscribers : strings by row
    """

    def __init__(self, columns: Columns, serial: int, room: int = FIRST_ROOM) -> None:
        self.serial = serial
        self.delta = Delta(columns, room)
        self.subscriptions: list[Subscription] = []
        self._rows: dict[str, int] = {}
        self.ids = _Strings(self.subscriptions, self._rows, "id")
        self.subscribers = _Strings(self.subscriptions, self._rows, "subscriber")

    def __len__(self) -> int:
        return len(self.subscriptions)

    def add(self, subscriptions: Collection[Subscription], version: int) -> None:
        """Add some, from a version on; their ids are not in use, or of rows that are gone then."""
        self.delta.add([(one.asked, one.expires) for one in subscriptions], version)
        for one in subscriptions:
            self._rows[one.id] = len(self.subscriptions)
            self.subscriptions.append(one)


class RecentShelf(Shelf):
    """The first so many of those that came last; their segment is made when somebody asks."""

    __slots__ = ("_count", "_handle", "_recent", "_segment")

    def __init__(self, recent: Recent) -> None:
        super().__init__(recent.serial)
        self._recent = recent
        self._count = len(recent)
        self._handle = recent.delta.handle
        self._segment: Segment | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def segment(self) -> Segment:
        """The subscriptions as a segment."""
        if self._segment is None:
            self._segment = self._recent.delta.segment(self._count)
        return self._segment

    @property
    def handle(self) -> Any:
        """The arrays of the delta, with the room behind."""
        return self._handle

    @property
    def table(self) -> pa.Table:
        """The names."""
        return names_table(self._recent.subscriptions[: self._count])

    @property
    def ids(self) -> _Strings:
        """The ids, row by row."""
        return self._recent.ids

    @property
    def subscribers(self) -> _Strings:
        """The subscribers, row by row."""
        return self._recent.subscribers

    def given(self, row: int) -> Expression:
        """The expression of a row, or its condition."""
        return self._recent.subscriptions[row].expression

    @property
    def gone(self) -> NDArray[np.uint32]:
        """From which version on each row is removed."""
        return self._recent.delta.gone[: self._count]

    @property
    def expires(self) -> NDArray[np.int64]:
        """When each row ends."""
        return self._recent.delta.expires[: self._count]

    def remove(self, row: int, version: int) -> None:
        """Let a subscription match no longer, from a version on."""
        self._recent.delta.remove(row, version)
        if self._segment is not None:
            self._segment.removals += 1  # of those that were counted one is gone

    def renew(self) -> None:
        """Begin with version 0 again."""
        self._recent.delta.renew()
