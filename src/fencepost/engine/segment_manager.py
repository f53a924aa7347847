"""The subscriptions of a matcher: the memtable, the segments, and where each id is.

A writer holds the lock; readers do not. A reader takes the snapshot as it is published: segments,
the memtable's rows, and a version.

- A row's `deleted_version` is written before the snapshot of that version is published. A reader of
  that snapshot relies on it, because kernels compare the two: it never sees the deleted row. A
  reader of an older snapshot still does.
- A new row is written, and the row that it replaces marked, before the one snapshot that shows both
  changes. A reader relies on it, because a replaced subscription is never absent and never twice
  there.
- A merge reads rows without the lock. The rows deleted meanwhile are marked in the merged segment
  before the snapshot that holds it is published, with the versions at which they were deleted. A
  reader relies on it, because it would find them again otherwise.
- Merged segments are swapped in only when built, and keep their places until then: an older
  snapshot holds the old ones as long as it is in use.

New subscriptions go to the memtable. When it is full, the writer that filled it makes it a segment,
which takes some milliseconds; a thread of its own would have to ask for Python's lock at every step
and fell behind. `merge_policy` says which segments to merge, and one background thread merges them
while others read and write. While subscriptions are loaded in bulk, before any event went by, small
segments are not merged early. When nothing has changed for a second, `find_merge_at_rest` names the
segments to merge.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.event_sampler import EventSampler
from fencepost.engine.filter_table import FilterTable
from fencepost.engine.memtable import INITIAL_CAPACITY, Memtable, MemtableView
from fencepost.engine.merge_policy import SegmentSize, find_merge, find_merge_at_rest
from fencepost.engine.segment import Segment, SegmentReader, merge_segments, names_table
from fencepost.engine.segment_builder import NOT_DELETED, build
from fencepost.engine.snapshot import Snapshot
from fencepost.engine.subscriptions import Subscription
from fencepost.errors import ModelError

MAX_MEMTABLE_ROWS = 512  # every event visits each subscription there
SMALL = 16 * MAX_MEMTABLE_ROWS  # a segment of up to so many rows takes in what is filed next
LAST_VERSION = int(NOT_DELETED) - 1
_BULK_LOAD = 16  # after so many segments without an event, subscriptions are being loaded
_REST_S = 1.0  # without a change
_MAX_SEGMENTS = 64  # with more, a writer that adds another waits for a merge
_MANY = 64  # so many subscriptions at once are worth a segment

Rows: TypeAlias = NDArray[np.int64]


class SegmentManager:
    """Subscriptions that come and go, in few segments.

    Attributes
    ----------
    lock : threading.RLock
        Held while anything changes.
    event_sampler : EventSampler
        What events were like, for the planner.
    max_memtable_rows, small : int
        See the constants of these names.
    """

    def __init__(self, columns: ColumnRegistry, clock: Callable[[], int]) -> None:
        self.columns = columns
        self.lock = threading.RLock()
        self._clock = clock
        self.event_sampler = EventSampler()
        self.max_memtable_rows = MAX_MEMTABLE_ROWS
        self.small = SMALL
        self._segments: list[Segment] = []
        self._memtable = Memtable(columns, 1)
        self._serial = 1
        self._snapshot = Snapshot((), 0)
        self._merged = threading.Condition(self.lock)
        self._merger: threading.Thread | None = None
        self._merging: list[Segment] = []  # by that thread
        self._failure: BaseException | None = None  # of which the last merge died
        self._moment = self.event_sampler.position  # when a segment was added last
        self._added_without_events = _BULK_LOAD  # segments, since an event went by
        self._reindexing = False
        self._compacting = 0  # how many callers wait for what is merged at rest
        _all.add(self)

    def snapshot(self) -> Snapshot:
        """The segments as they are now."""
        return self._snapshot

    def load(self, segments: Iterable[Segment]) -> None:
        """Take segments as they are, as the only ones."""
        with self.lock:
            self._segments = [self._numbered(segment) for segment in segments]
            self._publish(self._snapshot.version)

    def add_segment(self, segment: Segment) -> None:
        """Add a segment of subscriptions whose ids are not in use."""
        with self.lock:
            self._flush()
            self._append(segment)
            self._publish(self._snapshot.version)
            self._merge_beside()

    def add(self, subscriptions: Iterable[Subscription], replace: bool) -> None:
        """Add subscriptions; with `replace` in place of those with the same ids."""
        with self.lock:
            given = {one.id: one for one in subscriptions}
            places = self._places(given)
            if not replace:
                for segment, row in places:
                    if self._is_there(segment, row):
                        raise ModelError(id_in_use_message(segment.id_of(row)))
            version = self._next_version()
            made = self._built(list(given.values())) if len(given) > _MANY else None
            if made is None:
                self._memtable.add(given.values(), version)
            for segment, row in places:
                segment.remove(row, version)
            flushed = made is not None or len(self._memtable) >= self.max_memtable_rows
            if flushed:
                self._flush()
            if made is not None:
                self._append(made)
            self._publish(version)
            if flushed:
                self._merge_beside()

    def remove(self, id: object) -> bool:
        """Remove a subscription; whether there was one."""
        if not isinstance(id, str):
            return False
        with self.lock:
            place = self._place(id)
            if place is None:
                return False
            segment, row = place
            was_there = self._is_there(segment, row)
            version = self._next_version()
            segment.remove(row, version)
            self._snapshot = self._snapshot.at(version)
            return was_there

    def find(self, id: object) -> tuple[SegmentReader, int]:
        """The segment and row of a subscription."""
        with self.lock:
            place = self._place(id) if isinstance(id, str) else None
            if place is None:
                raise ModelError(f"there is no subscription {id!r:.60}")
            return place

    def ids_in_use(self, ids: Collection[str] | pa.Array) -> set[str]:
        """Those of some ids that are in use."""
        with self.lock:
            places = self._places(ids)
            return {own.id_of(row) for own, row in places if self._is_there(own, row)}

    def __contains__(self, id: str) -> bool:
        with self.lock:
            place = self._place(id)
            return place is not None and self._is_there(*place)

    def __len__(self) -> int:
        now, snapshot = self._clock(), self._snapshot
        return sum(len(segment.live_rows(now, snapshot.version)) for segment in snapshot)

    def ids(self) -> list[str]:
        """The ids of all subscriptions, sorted."""
        now, snapshot = self._clock(), self._snapshot
        return sorted(id for own in snapshot for id in own.live_ids(now, snapshot.version))

    def compact(self) -> None:
        """Flush the memtable, and wait until nothing is left to be merged."""
        with self.lock:
            self._flush()
            self._publish(self._snapshot.version)
            self._compacting += 1
            self._failure = None
            self._merge_beside()
            merger = self._merger
        if merger is not None:
            merger.join()
        with self.lock:
            self._compacting -= 1
            if self._failure is not None:
                raise self._failure

    def reindex(self) -> None:
        """Build all segments again, as one, for events like those that were seen."""
        with self.lock:
            self._reindexing = bool(self._segments) or len(self._memtable) > 0
        self.compact()

    def _is_there(self, segment: SegmentReader, row: int) -> bool:
        return bool(segment.expires[row] > self._clock())

    def _numbered(self, segment: Segment) -> Segment:
        self._serial += 1
        segment.serial = self._serial
        return segment

    def _place(self, id: str) -> tuple[SegmentReader, int] | None:
        """The segment and row of a subscription that is not deleted, if there is one."""
        for segment in reversed(self._snapshot):
            row = segment.row_of(id)
            if row >= 0 and segment.deleted_version[row] == NOT_DELETED:
                return segment, row
        return None

    def _places(self, ids: Collection[str] | pa.Array) -> list[tuple[SegmentReader, int]]:
        """The segments and rows of those of some ids that are there and not deleted."""
        if isinstance(ids, pa.Array):
            wanted = ids
        elif len(ids) <= _MANY:
            return [place for place in map(self._place, ids) if place is not None]
        else:
            wanted = pa.array(list(ids), pa.string())
        places: list[tuple[SegmentReader, int]] = []
        for segment in self._snapshot:
            found = pc.is_in(segment.column("id").cast(wanted.type), value_set=wanted)
            rows = np.flatnonzero(found.to_numpy())
            rows = rows[segment.deleted_version[rows] == NOT_DELETED]
            places += ((segment, row) for row in rows.tolist())
        return places

    def _next_version(self) -> int:
        """The version of the next change; after the last number that there is, they begin anew.

        A match that runs just then may miss what is removed while it runs.
        """
        if self._snapshot.version == LAST_VERSION:
            for segment in self._snapshot:
                segment.reset_versions()
            self._publish(0)
        return self._snapshot.version + 1

    def _publish(self, version: int) -> None:
        """Show readers what was written: nothing that they look at may be written later."""
        parts: list[SegmentReader] = [*self._segments]
        if len(self._memtable):
            parts.append(MemtableView(self._memtable))
        self._snapshot = Snapshot(parts, version, self._snapshot)

    # Segments

    def _built(self, subscriptions: list[Subscription]) -> Segment:
        table = FilterTable(self.columns)
        for number, subscription in enumerate(subscriptions):
            table.add(number, subscription.compiled)
        expires = np.array([s.expires for s in subscriptions], np.int64)
        arrays = build(table.arrays(), expires, sample=self.event_sampler.sample())
        return Segment(arrays, names_table(subscriptions))

    def _flush(self) -> None:
        """Make the memtable a segment, or part of the last one, and begin another."""
        memtable = self._memtable
        if not len(memtable):
            return
        given = MemtableView(memtable)
        # A row that is expired stays: its expression can still be asked for.
        kept = np.flatnonzero(given.deleted_version == NOT_DELETED)
        if len(kept) and memtable.has_posting_filters:
            self._append(self._built([memtable.subscriptions[row] for row in kept.tolist()]))
        elif len(kept):
            self._append(given, kept)
        self._serial += 1
        room = max(INITIAL_CAPACITY, min(memtable.capacity, 2 * MAX_MEMTABLE_ROWS))
        self._memtable = Memtable(self.columns, self._serial, room)

    def _append(self, given: SegmentReader, kept: Rows | None = None) -> None:
        """Add a segment, or those rows of the memtable; together with a small last one."""
        parts, rows = [given], [np.arange(len(given)) if kept is None else kept]
        moment, self._moment = self._moment, self.event_sampler.position
        quiet = moment == self._moment
        self._added_without_events = self._added_without_events + 1 if quiet else 0
        last = self._segments[-1] if self._segments and self._events_go_by() else None
        small = last is not None and len(last) + len(given) <= self.small
        if last is not None and small and last not in self._merging:
            self._segments.pop()
            parts.insert(0, last)
            rows.insert(0, last.live_rows(self._clock(), LAST_VERSION))
        if len(parts) == 1 and isinstance(given, Segment):
            made = given
        else:
            made = merge_segments(parts, rows, self.event_sampler.sample())
        self._segments.append(self._numbered(made))

    def _events_go_by(self) -> bool:
        """Whether subscriptions come among events, and are not being loaded in bulk."""
        return self._added_without_events < _BULK_LOAD

    # Merging

    def _merge_beside(self) -> None:
        """Have a thread merge what there is to merge, if none does so already."""
        if self._urgent() is None and self._at_rest() is None:
            return
        if self._merger is None or not self._merger.is_alive():
            self._merger = threading.Thread(target=self._merge_all, daemon=True)
            self._merger.start()
        self._merged.notify_all()
        while len(self._segments) > _MAX_SEGMENTS and self._merger.is_alive():
            self._merged.wait(1.0)

    def _merge_all(self) -> None:
        """Merge until nothing is left; what the background thread runs."""
        while True:
            with self.lock:
                run = self._urgent() or self._awaited()
                if run is None:
                    # The thread is forgotten before the lock is released. A writer relies on it,
                    # because it starts another one where it finds none.
                    self._merger = None
                    return
                chosen = self._segments[run.start : run.stop]
                if len(chosen) == len(self._segments):
                    self._reindexing = False
                version = self._snapshot.version
                # Written before the lock is released: a writer relies on it, because it appends
                # to the last segment only while that is not being merged.
                self._merging = chosen
            try:
                now = self._clock()
                rows = [segment.live_rows(now, version) for segment in chosen]
                merged = merge_segments(chosen, rows, self.event_sampler.sample())
            except BaseException as error:  # all stays as it was; callers that wait are told
                with self.lock:
                    self._failure, self._merging = error, []
                raise
            with self.lock:
                self._swap_in(chosen, merged, rows)
                self._merging = []
                self._merged.notify_all()

    def _sizes(self) -> list[SegmentSize]:
        return [SegmentSize(len(segment), segment.deleted_count) for segment in self._segments]

    def _urgent(self) -> range | None:
        """The segments to merge now."""
        if self._reindexing and self._segments:
            return range(len(self._segments))
        return find_merge(self._sizes(), self.small if self._events_go_by() else None)

    def _at_rest(self) -> range | None:
        """The segments to merge once nothing changes."""
        return find_merge_at_rest(self._sizes(), self._compacting > 0)

    def _awaited(self) -> range | None:
        """What to merge next: at once if enough is added, else after a rest."""
        while self._at_rest() is not None:
            before = self._snapshot
            if not self._compacting:
                self._merged.wait(_REST_S)
            urgent = self._urgent()
            if urgent is not None:
                return urgent
            if self._compacting or self._snapshot is before:
                return self._at_rest()
        return None

    def _swap_in(self, old: list[Segment], merged: Segment, rows: list[Rows]) -> None:
        """Put a merged segment in place of the old ones, without rows deleted since."""
        first = self._segments.index(old[0])
        since = np.concatenate([o.deleted_version[own] for o, own in zip(old, rows, strict=True)])
        for row in np.flatnonzero(since != NOT_DELETED).tolist():
            merged.remove(row, int(since[row]))
        left = [self._numbered(merged)] if len(merged) else []
        self._segments[first : first + len(old)] = left
        self._publish(self._snapshot.version)


_all: weakref.WeakSet[SegmentManager] = weakref.WeakSet()


def _lock_all() -> None:
    for manager in list(_all):
        manager.lock.acquire()


def _unlock_all() -> None:
    for manager in list(_all):
        manager.lock.release()


# A thread that merges must not hold a lock in a child, where it does not go on.
os.register_at_fork(before=_lock_all, after_in_parent=_unlock_all, after_in_child=_unlock_all)


def id_in_use_message(id: str) -> str:
    """What is said of an id that is taken."""
    return f"there is a subscription {id!r:.60} already; give replace=True to put this in its place"
