"""The subscriptions of a matcher: those that came last, the segments, and where each id is.

Writers hold the lock; readers do not. A reader takes the snapshot as it is published: some
shelves, and a version. A row that is removed says from which version on, so that whoever has an
older snapshot sees all of it as it was; what belongs together (a subscription replaced) happens in
one version.

New subscriptions go through `Recent`. Once there are a thousand, whoever added the last makes a
segment of them, which takes some milliseconds; a thread beside would have to ask for Python's lock
at every step, and fell behind. Segments of like size are merged on one. While it merges, others
read and write; what they removed meanwhile is removed from the merged one before it takes the place
of the old ones.

Every segment costs each event a look. So once nothing has changed for a second, merging goes on
until each segment is a few times as large as all that came after it: what was loaded in parts and
then stays is one segment.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.columns import Columns
from fencepost.index.merge import merge
from fencepost.index.seen import NOTHING_SEEN, Sample, Seen
from fencepost.index.segment import NEVER_GONE, build
from fencepost.index.table import FilterTable
from fencepost.match.catalogue import (
    FiledShelf,
    Shelf,
    Snapshot,
    Subscription,
    joined,
    names_table,
)
from fencepost.match.recent import Recent, RecentShelf

RECENT = 1024  # so many subscriptions are looked at one by one
_ALIKE_BITS = 2
_ALIKE = 2**_ALIKE_BITS  # so many segments of like size are merged
LAST_VERSION = int(NEVER_GONE) - 1
_MUCH_LARGER = 4  # at rest, a segment of so many times the size of all after it stays as it is
_REST_S = 1.0  # without a change
_MOST_UNMERGED = 64  # with more segments, whoever adds another waits for a merge
_MANY = 64  # so many subscriptions at once are worth a segment

Rows: TypeAlias = NDArray[np.int64]


class Shelves:
    """Subscriptions that come and go, in few segments."""

    def __init__(self, columns: Columns, clock: Callable[[], int]) -> None:
        self.columns = columns
        self.lock = threading.RLock()
        self._clock = clock
        self.seen = Seen()  # for the planner
        self.most_recent = RECENT
        self._filed: list[Shelf] = []
        self._recent = Recent(columns, 1)
        self._serial = 1
        self._snapshot = Snapshot((), 0)
        self._merged = threading.Condition(self.lock)
        self._merger: threading.Thread | None = None
        self._anew = False
        self._settling = 0  # how many wait for what is done at rest
        _all.add(self)

    def snapshot(self) -> Snapshot:
        """The shelves as they are now."""
        return self._snapshot

    def load(self, shelves: Iterable[Shelf]) -> None:
        """Take shelves as they are, as the only ones."""
        with self.lock:
            self._filed = [self._numbered(shelf) for shelf in shelves]
            self._publish(self._snapshot.version)

    def push(self, shelf: Shelf) -> None:
        """Add a shelf of subscriptions whose ids are not in use."""
        with self.lock:
            self._file_recent()
            self._filed.append(self._numbered(shelf))
            self._publish(self._snapshot.version)
            self._merge_beside()

    def add(self, subscriptions: Iterable[Subscription], replace: bool) -> None:
        """Add subscriptions; with `replace` in place of those with the same ids."""
        with self.lock:
            given = {one.id: one for one in subscriptions}
            places = []
            for id in given:
                place = self._place(id)
                if place is None:
                    continue
                if not replace and self._is_there(*place):
                    raise ModelError(in_use(id))
                places.append(place)
            version = self._next_version()
            filed = len(given) > _MANY
            if filed:
                self._file_recent()
                self._filed.append(self._numbered(self._filed_at_once(list(given.values()))))
            else:
                self._recent.add(given.values(), version)
            for shelf, row in places:
                shelf.remove(row, version)
            if len(self._recent) >= self.most_recent:
                filed = True
                self._file_recent()
            self._publish(version)
            if filed:
                self._merge_beside()

    def remove(self, id: object) -> bool:
        """Remove a subscription; whether there was one."""
        if not isinstance(id, str):
            return False
        with self.lock:
            place = self._place(id)
            if place is None:
                return False
            shelf, row = place
            was_there = self._is_there(shelf, row)
            version = self._next_version()
            shelf.remove(row, version)
            self._publish(version)
            return was_there

    def find(self, id: object) -> tuple[Shelf, int]:
        """The shelf and row of a subscription."""
        with self.lock:
            place = self._place(id) if isinstance(id, str) else None
            if place is None:
                raise ModelError(f"there is no subscription {id!r:.60}")
            return place

    def first_taken(self, ids: pa.Array) -> str | None:
        """One of these ids that is in use, if any is."""
        for shelf in self.snapshot():
            known = pc.is_in(ids, value_set=pa.array(shelf.column("id")).cast(ids.type))
            for id in ids.filter(known).to_pylist():
                if id in self:
                    return str(id)
        return None

    def __contains__(self, id: str) -> bool:
        with self.lock:
            place = self._place(id)
            return place is not None and self._is_there(*place)

    def __len__(self) -> int:
        now, shelves = self._clock(), self._snapshot
        return sum(len(shelf.living(now, shelves.version)) for shelf in shelves)

    def ids(self) -> list[str]:
        """The ids of all subscriptions, sorted."""
        now, shelves = self._clock(), self._snapshot
        return sorted(id for shelf in shelves for id in shelf.living_ids(now, shelves.version))

    def settle(self) -> None:
        """File what came last, and wait until nothing is left to be merged."""
        with self.lock:
            self._file_recent()
            self._publish(self._snapshot.version)
            self._settling += 1
            self._merge_beside()
            merger = self._merger
        if merger is not None:
            merger.join()
        with self.lock:
            self._settling -= 1

    def plan_anew(self) -> None:
        """Build all segments again, as one, for events like those that were seen."""
        with self.lock:
            self._anew = bool(self._filed) or len(self._recent) > 0
        self.settle()

    def _is_there(self, shelf: Shelf, row: int) -> bool:
        return bool(shelf.expires[row] > self._clock())

    def _numbered(self, shelf: Shelf) -> Shelf:
        self._serial += 1
        shelf.serial = self._serial
        return shelf

    def _place(self, id: str) -> tuple[Shelf, int] | None:
        """The shelf and row of a subscription that is not removed, if there is one."""
        for shelf in reversed(self._snapshot):
            row = shelf.ids.row_of(id)
            if row >= 0 and shelf.gone[row] == NEVER_GONE:
                return shelf, row
        return None

    def _next_version(self) -> int:
        """The version of the next change; after the last number that there is, they begin anew.

        A match that runs just then may miss what is removed while it runs.
        """
        if self._snapshot.version == LAST_VERSION:
            for shelf in self._snapshot:
                shelf.renew()
            self._publish(0)
        return self._snapshot.version + 1

    def _publish(self, version: int) -> None:
        shelves = [*self._filed, RecentShelf(self._recent)] if len(self._recent) else self._filed
        self._snapshot = Snapshot(shelves, version, self._snapshot)

    def _filed_at_once(self, subscriptions: list[Subscription]) -> Shelf:
        table = FilterTable(self.columns)
        for number, subscription in enumerate(subscriptions):
            table.add(number, subscription.filters)
        expires = np.array([s.expires for s in subscriptions], np.int64)
        segment = build(table.arrays(), expires, sample=self.seen.sample())
        return FiledShelf(segment, names_table(subscriptions))

    def _file_recent(self) -> None:
        """Let what came last be a shelf like the others."""
        if not len(self._recent):
            return
        # What is expired can still be asked about.
        gone = self._recent.delta.gone[: len(self._recent)]
        kept = np.flatnonzero(gone == NEVER_GONE).tolist()
        if kept:
            given = self._recent.subscriptions
            self._filed.append(self._numbered(self._filed_at_once([given[row] for row in kept])))
        self._serial += 1
        self._recent = Recent(self.columns, self._serial)

    # Merging

    def _merge_beside(self) -> None:
        """Have a thread merge what there is to merge, if none does so already."""
        if self._run_to_merge() is None and self._run_at_rest() is None:
            return
        if self._merger is None or not self._merger.is_alive():
            self._merger = threading.Thread(target=self._merge_all, daemon=True)
            self._merger.start()
        self._merged.notify_all()
        while len(self._filed) > _MOST_UNMERGED and self._merger.is_alive():
            self._merged.wait(1.0)

    def _merge_all(self) -> None:
        while True:
            with self.lock:
                chosen = self._run_to_merge() or self._awaited_run()
                if chosen is None:
                    self._merger = None  # under the lock: whoever files another starts a new one
                    return
                if len(chosen) == len(self._filed):
                    self._anew = False
                version = self._snapshot.version
            merged, taken = self._merge(chosen, version)
            with self.lock:
                self._take_place(chosen, merged, taken)
                self._merged.notify_all()

    def _run_to_merge(self) -> list[Shelf] | None:
        """Neighbouring shelves to be merged, newest last; or one alone that is worth it."""
        run: list[Shelf] = []
        for shelf in reversed(self._filed):
            if 2 * shelf.segment.gone_count > len(shelf):
                return [shelf]
            if len(run) < _ALIKE:
                if run and _size_class(shelf) > max(map(_size_class, run)):
                    run = [shelf]  # too few of the smaller ones
                else:
                    run.append(shelf)
        if self._anew and self._filed:
            return list(self._filed)
        return run[::-1] if len(run) >= _ALIKE else None

    def _awaited_run(self) -> list[Shelf] | None:
        """What to merge next: at once if somebody adds enough, else after a rest."""
        while self._run_at_rest() is not None:
            before = self._snapshot
            if not self._settling:
                self._merged.wait(_REST_S)
            at_once = self._run_to_merge()
            if at_once is not None:
                return at_once
            if self._settling or self._snapshot is before:
                return self._run_at_rest()
        return None

    def _run_at_rest(self) -> list[Shelf] | None:
        """The newest shelves of which none is much larger than all after it, if several."""
        run: list[Shelf] = []
        size = 0
        for shelf in reversed(self._filed):
            if run and len(shelf) > _MUCH_LARGER * size:
                break
            run.append(shelf)
            size += len(shelf)
        return run[::-1] if len(run) > 1 else None

    def _merge(self, shelves: list[Shelf], version: int) -> tuple[Shelf, list[Rows]]:
        """One shelf of what is living on some at a version, and which rows that is."""
        now = self._clock()
        rows = [shelf.living(now, version) for shelf in shelves]
        return merged(shelves, rows, self.seen.sample()), rows

    def _take_place(self, shelves: list[Shelf], merged: Shelf, rows: list[Rows]) -> None:
        """Put a merged shelf where the others were, without what is gone since."""
        first = self._filed.index(shelves[0])
        since = np.concatenate([shelf.gone[own] for shelf, own in zip(shelves, rows, strict=True)])
        for row in np.flatnonzero(since != NEVER_GONE).tolist():
            merged.segment.remove(row, int(since[row]))
        left = [self._numbered(merged)] if len(merged.segment) else []
        self._filed[first : first + len(shelves)] = left
        self._publish(self._snapshot.version)


def merged(shelves: Sequence[Shelf], rows: Sequence[Rows], sample: Sample = NOTHING_SEEN) -> Shelf:
    """One shelf of some rows of each of several."""
    parts = [(s.segment.arrays, r) for s, r in zip(shelves, rows, strict=True)]
    expires = np.concatenate([arrays.expires[r] for arrays, r in parts])
    names = joined(s.table.take(r) for s, r in zip(shelves, rows, strict=True))
    return FiledShelf(build(merge(parts), expires, sample=sample), names)


def _size_class(shelf: Shelf) -> int:
    living = len(shelf) - shelf.segment.gone_count
    return max(living // RECENT, 1).bit_length() // _ALIKE_BITS


_all: weakref.WeakSet[Shelves] = weakref.WeakSet()


def _lock_all() -> None:
    for shelves in list(_all):
        shelves.lock.acquire()


def _unlock_all() -> None:
    for shelves in list(_all):
        shelves.lock.release()


# A thread that merges must not hold a lock in a child, where it does not go on.
os.register_at_fork(before=_lock_all, after_in_parent=_unlock_all, after_in_child=_unlock_all)


def in_use(id: str) -> str:
    """What is said of an id that is taken."""
    return f"there is a subscription {id!r:.60} already; give replace=True to put this in its place"
