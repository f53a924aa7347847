"""`SegmentManager`: the subscriptions of a matcher, in a memtable and immutable segments.

A writer holds the lock; readers do not. A reader takes the published snapshot: segments, the rows
of the memtable, and a version.

- A row's `deleted_version` is written before the snapshot of that version is published. A reader of
  that snapshot relies on it, because kernels compare the two: it never sees the deleted row. A
  reader of an older snapshot still does.
- A new row is written, and the row that it replaces marked, before the one snapshot that shows both
  changes. A reader relies on it, because a replaced subscription is never absent and never present
  twice.
- A merge reads rows without the lock. The rows deleted meanwhile are marked in the merged segment
  before the snapshot that holds it is published, with the versions at which they were deleted. A
  reader relies on it, because it would find them again otherwise.
- A merged segment is built before the snapshot with it is published. A reader relies on it, because
  it searches the old segments until then; an older snapshot keeps them as long as it is in use.

New subscriptions go to the memtable. The writer that fills it flushes it to a segment, which takes
some milliseconds; a separate thread would need Python's lock at every step, and fell behind.
`merge_policy` names the segments to merge, and one background thread merges them while other
threads read and write. During a bulk load, before any event is matched, small segments are not
merged early. When nothing has changed for a second, `find_merge_at_rest` names the segments to
merge.
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
from fencepost.engine.snapshot import Snapshot, as_single_array
from fencepost.engine.subscriptions import Subscription, id_text
from fencepost.errors import ModelError

MAX_MEMTABLE_ROWS = 512  # every event visits each subscription there
MAX_SMALL_ROWS = 16 * MAX_MEMTABLE_ROWS  # up to this, the last segment absorbs the next one
LAST_VERSION = int(NOT_DELETED) - 1
_BULK_LOAD_SEGMENTS = 16  # this many segments without an event between them are a bulk load
_REST_S = 1.0  # time without a change after which segments are merged at rest
_MAX_SEGMENTS = 64  # with more, a writer that adds another waits for a merge
_MIN_BATCH = 65  # this many subscriptions at once become a segment, past the memtable

Rows: TypeAlias = NDArray[np.int64]


class SegmentManager:
    """Subscriptions that are added and removed, in few segments.

    Attributes
    ----------
    lock : threading.RLock
        Held during each change.
    event_sampler : EventSampler
        Samples events for the planner.
    max_memtable_rows, max_small_rows : int
        See the constants of these names.
    """

    def __init__(self, columns: ColumnRegistry, clock: Callable[[], int]) -> None:
        self.columns = columns
        self.lock = threading.RLock()
        self._clock = clock
        self.event_sampler = EventSampler()
        self.max_memtable_rows = MAX_MEMTABLE_ROWS
        self.max_small_rows = MAX_SMALL_ROWS
        self._segments: list[Segment] = []
        self._memtable = Memtable(columns, 1)
        self._serial = 1
        self._snapshot = Snapshot((), 0)
        self._segments_changed = threading.Condition(self.lock)  # by a writer or by a merge
        self._merger: threading.Thread | None = None
        self._merging: list[Segment] = []  # the segments that the merger merges now
        self._failure: BaseException | None = None  # the error of the last merge, if it failed
        self._last_position = self.event_sampler.position  # when a segment was last added
        self._segments_without_events = _BULK_LOAD_SEGMENTS  # added since an event was matched
        self._reindexing = False
        self._compacting = 0  # number of callers that wait for merges at rest
        _managers.add(self)

    def snapshot(self) -> Snapshot:
        """Return the current snapshot."""
        return self._snapshot

    def load(self, segments: Iterable[Segment]) -> None:
        """Replace all segments."""
        with self.lock:
            self._segments = [self._numbered(segment) for segment in segments]
            self._publish(self._snapshot.version)

    def add_segment(self, segment: Segment) -> None:
        """Add a segment of subscriptions, which replace those with the same ids."""
        with self.lock:
            old_rows = self._locate_all(as_single_array(segment.column("id")))
            version = self._next_version() if old_rows else self._snapshot.version
            for old_segment, row in old_rows:
                old_segment.remove(row, version)
            self._flush()
            self._append(segment)
            self._publish(version)
            self._start_merging()

    def add(self, subscriptions: Iterable[Subscription], replace: bool) -> None:
        """Add subscriptions. With `replace`, they replace those with the same ids."""
        with self.lock:
            added = {subscription.id: subscription for subscription in subscriptions}
            old_rows = self._locate_all(added)
            if not replace:
                for segment, row in old_rows:
                    if self._is_unexpired(segment, row):
                        raise ModelError(id_in_use_message(segment.id_of(row)))
            version = self._next_version()
            built = self._build(list(added.values())) if len(added) >= _MIN_BATCH else None
            if built is None:
                self._memtable.add(added.values(), version)
            for segment, row in old_rows:
                segment.remove(row, version)
            flushed = built is not None or len(self._memtable) >= self.max_memtable_rows
            if flushed:
                self._flush()
            if built is not None:
                self._append(built)
            self._publish(version)
            if flushed:
                self._start_merging()

    def remove(self, id: object) -> bool:
        """Remove a subscription. Return whether it existed."""
        id = id_text(id)
        if not isinstance(id, str):
            return False
        with self.lock:
            location = self._locate(id)
            if location is None:
                return False
            segment, row = location
            existed = self._is_unexpired(segment, row)
            version = self._next_version()
            segment.remove(row, version)
            self._snapshot = self._snapshot.at(version)
            return existed

    def find(self, id: object) -> tuple[SegmentReader, int]:
        """Return the segment and row of a subscription, which may be expired.

        Raise ModelError if the id is unknown.
        """
        id = id_text(id)
        with self.lock:
            location = self._locate(id) if isinstance(id, str) else None
            if location is None:
                raise ModelError(f"there is no subscription {id!r:.60}")
            return location

    def ids_in_use(self, ids: Collection[str] | pa.Array) -> set[str]:
        """Return the ids that belong to unexpired subscriptions."""
        with self.lock:
            return {
                segment.id_of(row)
                for segment, row in self._locate_all(ids)
                if self._is_unexpired(segment, row)
            }

    def __contains__(self, id: object) -> bool:
        id = id_text(id)
        with self.lock:
            location = self._locate(id) if isinstance(id, str) else None
            return location is not None and self._is_unexpired(*location)

    def __len__(self) -> int:
        now, snapshot = self._clock(), self._snapshot
        return sum(len(segment.live_rows(now, snapshot.version)) for segment in snapshot)

    def ids(self) -> list[str]:
        """Return the ids of all subscriptions, sorted."""
        now, snapshot = self._clock(), self._snapshot
        return sorted(id for segment in snapshot for id in segment.live_ids(now, snapshot.version))

    def compact(self) -> None:
        """Flush the memtable, and wait until no merge remains."""
        with self.lock:
            self._flush()
            self._publish(self._snapshot.version)
            self._compacting += 1
            self._failure = None
            self._start_merging()
            merger = self._merger
        if merger is not None:
            merger.join()
        with self.lock:
            self._compacting -= 1
            if self._failure is not None:
                raise self._failure

    def reindex(self) -> None:
        """Rebuild all segments as one, planned for events like those that were sampled."""
        with self.lock:
            self._reindexing = bool(self._segments) or len(self._memtable) > 0
        self.compact()

    def _is_unexpired(self, segment: SegmentReader, row: int) -> bool:
        return bool(segment.expires[row] > self._clock())

    def _numbered(self, segment: Segment) -> Segment:
        """Give a segment the next serial number, and return it."""
        self._serial += 1
        segment.serial = self._serial
        return segment

    def _locate(self, id: str) -> tuple[SegmentReader, int] | None:
        """Return the segment and row of a subscription that is not deleted, or None."""
        for segment in reversed(self._snapshot):
            row = segment.row_of(id)
            if row >= 0 and segment.deleted_version[row] == NOT_DELETED:
                return segment, row
        return None

    def _locate_all(self, ids: Collection[str] | pa.Array) -> list[tuple[SegmentReader, int]]:
        """Return the segments and rows of all subscriptions with these ids that are not deleted."""
        if isinstance(ids, pa.Array):
            keys = ids
        elif len(ids) < _MIN_BATCH:
            return [location for location in map(self._locate, ids) if location is not None]
        else:
            keys = pa.array(list(ids), pa.string())
        locations: list[tuple[SegmentReader, int]] = []
        for segment in self._snapshot:
            matches = pc.is_in(segment.column("id").cast(keys.type), value_set=keys)
            rows = np.flatnonzero(matches.to_numpy())
            rows = rows[segment.deleted_version[rows] == NOT_DELETED]
            locations += ((segment, row) for row in rows.tolist())
        return locations

    def _next_version(self) -> int:
        """Return the version of the next change. After the last version, restart at 1.

        A match that runs during the restart may miss rows that are deleted while it runs.
        """
        if self._snapshot.version == LAST_VERSION:
            for segment in self._snapshot:
                segment.reset_versions()
            self._publish(0)
        return self._snapshot.version + 1

    def _publish(self, version: int) -> None:
        """Publish the segments and the memtable's rows as the snapshot of a version.

        All rows are written before the snapshot is published; readers rely on it, because they hold
        no lock.
        """
        segments: list[SegmentReader] = [*self._segments]
        if len(self._memtable):
            segments.append(MemtableView(self._memtable))
        self._snapshot = Snapshot(segments, version, self._snapshot)

    # Segments

    def _build(self, subscriptions: list[Subscription]) -> Segment:
        table = FilterTable(self.columns)
        for number, subscription in enumerate(subscriptions):
            table.add(number, subscription.compiled)
        expires = np.array([s.expires for s in subscriptions], np.int64)
        arrays = build(table.arrays(), expires, sample=self.event_sampler.sample())
        return Segment(arrays, names_table(subscriptions))

    def _flush(self) -> None:
        """Flush the memtable to a new segment or to a small last one, and start a new memtable."""
        memtable = self._memtable
        if not len(memtable):
            return
        view = MemtableView(memtable)
        # Expired rows are kept: a caller may still ask for their expressions.
        kept = np.flatnonzero(view.deleted_version == NOT_DELETED)
        if len(kept) and memtable.has_posting_filters:
            self._append(self._build([memtable.subscriptions[row] for row in kept.tolist()]))
        elif len(kept):
            self._append(view, kept)
        self._serial += 1
        capacity = max(INITIAL_CAPACITY, min(memtable.capacity, 2 * MAX_MEMTABLE_ROWS))
        self._memtable = Memtable(self.columns, self._serial, capacity)

    def _append(self, reader: SegmentReader, kept: Rows | None = None) -> None:
        """Append a segment, or the kept rows of the memtable, merged with a small last segment."""
        parts, rows = [reader], [np.arange(len(reader)) if kept is None else kept]
        last_position, self._last_position = self._last_position, self.event_sampler.position
        has_no_event = last_position == self._last_position
        self._segments_without_events = self._segments_without_events + 1 if has_no_event else 0
        last = self._segments[-1] if self._segments and self._is_matching() else None
        is_small = last is not None and len(last) + len(reader) <= self.max_small_rows
        if last is not None and is_small and last not in self._merging:
            self._segments.pop()
            parts.insert(0, last)
            rows.insert(0, last.live_rows(self._clock(), LAST_VERSION))
        if len(parts) == 1 and isinstance(reader, Segment):
            segment = reader
        else:
            segment = merge_segments(parts, rows, self.event_sampler.sample())
        self._segments.append(self._numbered(segment))

    def _is_matching(self) -> bool:
        """Return whether events arrive between segments, so that this is no bulk load."""
        return self._segments_without_events < _BULK_LOAD_SEGMENTS

    # Merges

    def _start_merging(self) -> None:
        """Start the background thread if a merge is due and none runs.

        Wait while there are too many segments.
        """
        if self._find_urgent_merge() is None and self._find_merge_at_rest() is None:
            return
        if self._merger is None or not self._merger.is_alive():
            self._merger = threading.Thread(target=self._merge_all, daemon=True)
            self._merger.start()
        self._segments_changed.notify_all()
        while len(self._segments) > _MAX_SEGMENTS and self._merger.is_alive():
            self._segments_changed.wait(1.0)

    def _merge_all(self) -> None:
        """Merge until no merge remains; the background thread runs this."""
        while True:
            with self.lock:
                run = self._find_urgent_merge() or self._wait_for_merge()
                if run is None:
                    # `_merger` is cleared before the lock is released. A writer relies on it,
                    # because it starts a new thread only if it finds none.
                    self._merger = None
                    return
                old = self._segments[run.start : run.stop]
                if len(old) == len(self._segments):
                    self._reindexing = False
                version = self._snapshot.version
                # `_merging` is written before the lock is released. A writer relies on it, because
                # it extends the last segment only while that is not being merged.
                self._merging = old
            try:
                now = self._clock()
                rows = [segment.live_rows(now, version) for segment in old]
                merged = merge_segments(old, rows, self.event_sampler.sample())
            except BaseException as error:  # the segments stay; waiting callers get the error
                with self.lock:
                    self._failure, self._merging = error, []
                raise
            with self.lock:
                self._swap_in(old, merged, rows)
                self._merging = []
                self._segments_changed.notify_all()

    def _sizes(self) -> list[SegmentSize]:
        return [SegmentSize(len(segment), segment.deleted_count) for segment in self._segments]

    def _find_urgent_merge(self) -> range | None:
        """Return the segments to merge without waiting, or None."""
        if self._reindexing and self._segments:
            return range(len(self._segments))
        return find_merge(self._sizes(), self.max_small_rows if self._is_matching() else None)

    def _find_merge_at_rest(self) -> range | None:
        """Return the segments to merge once nothing changes, or None."""
        return find_merge_at_rest(self._sizes(), self._compacting > 0)

    def _wait_for_merge(self) -> range | None:
        """Wait for a rest or an urgent merge. Return the segments to merge, or None."""
        while self._find_merge_at_rest() is not None:
            before = self._snapshot
            if not self._compacting:
                self._segments_changed.wait(_REST_S)
            urgent = self._find_urgent_merge()
            if urgent is not None:
                return urgent
            if self._compacting or self._snapshot is before:
                return self._find_merge_at_rest()
        return None

    def _swap_in(self, old: list[Segment], merged: Segment, rows: list[Rows]) -> None:
        """Replace old segments by the segment merged from these rows of them.

        Rows that were deleted since are marked in it first.
        """
        first = self._segments.index(old[0])
        deleted_version = np.concatenate(
            [segment.deleted_version[kept] for segment, kept in zip(old, rows, strict=True)]
        )
        for row in np.flatnonzero(deleted_version != NOT_DELETED).tolist():
            merged.remove(row, int(deleted_version[row]))
        replacement = [self._numbered(merged)] if len(merged) else []
        self._segments[first : first + len(old)] = replacement
        self._publish(self._snapshot.version)


_managers: weakref.WeakSet[SegmentManager] = weakref.WeakSet()


def _lock_all() -> None:
    for manager in list(_managers):
        manager.lock.acquire()


def _unlock_all() -> None:
    for manager in list(_managers):
        manager.lock.release()


# The merger does not run in a forked child, so it must not hold a lock there.
os.register_at_fork(before=_lock_all, after_in_parent=_unlock_all, after_in_child=_unlock_all)


def id_in_use_message(id: str) -> str:
    """Return the error message for an id that is in use."""
    return f"there is a subscription {id!r:.60} already; give replace=True to replace it"
