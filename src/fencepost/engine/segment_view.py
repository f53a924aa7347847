"""`SegmentView`: what other packages may read of a matcher's subscriptions and segments."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.cql2.ast import Condition
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.decompiler import condition_of
from fencepost.engine.executors import Clock, condition_of_row
from fencepost.engine.explain.explanation import condition_text
from fencepost.engine.requirements import Requirements, requirements_of_segment
from fencepost.engine.segment import SegmentReader
from fencepost.engine.segment_manager import SegmentManager
from fencepost.engine.snapshot import Snapshot
from fencepost.engine.subscriptions import compile_condition
from fencepost.events.event_attributes import attributes
from fencepost.events.event_values import EventValues
from fencepost.filters.checks import Filter

ChangeListener: TypeAlias = Callable[[Sequence[str]], None]


class SegmentView:
    """A matcher's subscriptions, to be read: `Matcher.view` gives it.

    It is live: what it tells is true at the moment of the call. A reader that needs several answers
    of one moment holds `lock`, or takes one `snapshot`.

    Attributes
    ----------
    lock : threading.RLock
        Held while subscriptions change; a caller that holds it sees no other change.
    clock : callable
        The present in nanoseconds since 1970, by which subscriptions expire.
    columns : Columns
        Which columns of events the subscriptions ask for.
    """

    def __init__(self, segments: SegmentManager, columns: ColumnRegistry, clock: Clock) -> None:
        self._segments = segments
        self._followers: list[weakref.WeakMethod[ChangeListener]] = []
        self.columns = columns
        self.clock = clock

    @property
    def lock(self) -> threading.RLock:
        """Held while subscriptions change."""
        return self._segments.lock

    def snapshot(self) -> Snapshot:
        """The segments as they are now."""
        return self._segments.snapshot()

    def live_segments(self) -> Iterator[tuple[SegmentReader, NDArray[np.int64]]]:
        """The segments as they are now, with the rows that are neither expired nor deleted."""
        snapshot, now = self.snapshot(), self.clock()
        for segment in snapshot:
            yield segment, segment.live_rows(now, snapshot.version)

    def requirements(self) -> Iterator[tuple[SegmentReader, NDArray[np.int64], Requirements]]:
        """The segments as they are now, with those rows, and what all of theirs require."""
        for segment, rows in self.live_segments():
            yield segment, rows, requirements_of_segment(segment)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(segment.nbytes for segment in self.snapshot())

    def expression(self, id: str) -> str:
        """The expression of a subscription, as given or put together from its checks."""
        with self.lock:
            segment, row = self._segments.find(id)
            given = segment.expression(row)
            return (
                condition_text(condition_of(segment, row, self.columns)) if given is None else given
            )

    def condition(self, id: str) -> Condition:
        """What a subscription asks, as given or put together from its checks."""
        with self.lock:
            return condition_of_row(*self._segments.find(id), self.columns)

    def filters(self, id: str) -> tuple[Filter, ...]:
        """The filters of a subscription, one of which must hold."""
        return compile_condition(self.condition(id), self.columns.space)

    def expires(self, id: str) -> int:
        """When a subscription ends, in nanoseconds since 1970."""
        with self.lock:
            segment, row = self._segments.find(id)
            return int(segment.expires[row])

    def subscriber(self, id: str) -> str:
        """To whom a subscription belongs."""
        with self.lock:
            segment, row = self._segments.find(id)
            return segment.subscriber_of(row)

    def event_values(self, event: object) -> EventValues:
        """An event's values as its conditions see them."""
        return EventValues(attributes(event), self.columns.tokenizer, self.columns.space)

    # Following changes

    def on_change(self, follow: ChangeListener) -> None:
        """Have a method called after each change, with the lock held, as long as its object lives.

        It is given the ids that came, went or were replaced.
        """
        with self.lock:
            living = [one for one in self._followers if one() is not None]
            self._followers = [*living, weakref.WeakMethod(follow)]

    def listeners(self) -> list[ChangeListener]:
        """The methods to be called after a change, of objects that live."""
        return [follow for one in self._followers if (follow := one()) is not None]
