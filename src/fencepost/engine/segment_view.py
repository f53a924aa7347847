"""`SegmentView`: lets other packages read a matcher's subscriptions and segments."""

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
    """A live, read-only view of a matcher's subscriptions, made by `Matcher.view`.

    Each answer is true at the moment of its call. A reader that needs several answers of one moment
    holds `lock`, or takes one `snapshot`.

    Attributes
    ----------
    lock : threading.RLock
        Held while subscriptions change; they do not change while a caller holds it.
    clock : callable
        Returns the time in nanoseconds since 1970, by which subscriptions expire.
    columns : ColumnRegistry
        The columns of events that the subscriptions compare.
    """

    def __init__(self, segments: SegmentManager, columns: ColumnRegistry, clock: Clock) -> None:
        self._segments = segments
        self._listeners: list[weakref.WeakMethod[ChangeListener]] = []
        self.columns = columns
        self.clock = clock

    @property
    def lock(self) -> threading.RLock:
        """Held while subscriptions change."""
        return self._segments.lock

    def snapshot(self) -> Snapshot:
        """Return the current segments."""
        return self._segments.snapshot()

    def live_segments(self) -> Iterator[tuple[SegmentReader, NDArray[np.int64]]]:
        """Yield each segment, with its rows that are neither expired nor deleted."""
        snapshot, now = self.snapshot(), self.clock()
        for segment in snapshot:
            yield segment, segment.live_rows(now, snapshot.version)

    def requirements(self) -> Iterator[tuple[SegmentReader, NDArray[np.int64], Requirements]]:
        """Yield each segment, with its live rows and the requirements of all its rows."""
        for segment, rows in self.live_segments():
            yield segment, rows, requirements_of_segment(segment)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(segment.nbytes for segment in self.snapshot())

    def expression(self, id: str | int) -> str:
        """Return the expression of a subscription: its own text, or one made from its checks."""
        with self.lock:
            segment, row = self._segments.find(id)
            text = segment.expression(row)
            return (
                condition_text(condition_of(segment, row, self.columns)) if text is None else text
            )

    def condition(self, id: str | int) -> Condition:
        """Return the condition of a subscription: its own, or one made from its checks."""
        with self.lock:
            return condition_of_row(*self._segments.find(id), self.columns)

    def filters(self, id: str | int) -> tuple[Filter, ...]:
        """Return the filters of a subscription, one of which must hold."""
        return compile_condition(self.condition(id), self.columns.space)

    def expires(self, id: str | int) -> int:
        """Return when a subscription expires, in nanoseconds since 1970."""
        with self.lock:
            segment, row = self._segments.find(id)
            return int(segment.expires[row])

    def subscriber(self, id: str | int) -> str:
        """Return the subscriber of a subscription."""
        with self.lock:
            segment, row = self._segments.find(id)
            return segment.subscriber_of(row)

    def event_values(self, event: object) -> EventValues:
        """Return an event's values, read as conditions read them."""
        return EventValues(attributes(event), self.columns.tokenizer, self.columns.space)

    # Listeners

    def on_change(self, listener: ChangeListener) -> None:
        """Call a bound method after each change, with the lock held, while its object lives.

        Its argument is the ids of the subscriptions that were added, removed or replaced.
        """
        with self.lock:
            alive = [ref for ref in self._listeners if ref() is not None]
            self._listeners = [*alive, weakref.WeakMethod(listener)]

    def listeners(self) -> list[ChangeListener]:
        """Return the listeners whose objects live."""
        return [listener for ref in self._listeners if (listener := ref()) is not None]
