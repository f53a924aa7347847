"""The subscriptions of a matcher: those that came last, the segments, and where each id is.

Writers hold the lock; readers do not. A reader takes the snapshot as it is published: some
shelves, and a version. A row that is removed says from which version on, so that whoever has an
older snapshot sees all of it as it was; what belongs together (a subscription replaced) happens in
one version.

New subscriptions go through `Recent`. Once there are some hundreds, whoever added the last makes a
segment of them, which takes some milliseconds; a thread beside would have to ask for Python's lock
at every step, and fell behind. Segments are merged on one, those of like size. While it merges,
others read and write; what they removed meanwhile is removed from the merged one before it takes
the place of the old ones.

Every segment costs each event a look. So while events go by, what came last is filed together with
the segment before it, if that is small; and the thread beside merges what is no longer small with
the one before that, unless it is much larger. Who loads subscriptions before there are events is
spared that. Once nothing has changed for a second, merging goes on until each segment is a few
times as large as all that came after it: what was loaded in parts and then stays is one segment.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.columns import Columns
from fencepost.index.delta import FIRST_ROOM
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

RECENT = 512  # so many subscriptions are looked at one by one
SMALL = 16 * RECENT  # up to so many, what is filed becomes one with what was filed before it
_MIDDLE = 16 * SMALL  # up to so many, a segment takes in the small ones that follow it
_TOO_LARGE = 8  # one of so many times their size and more does not
_QUIET = 16  # after something was filed so often without an event, it is being loaded
_LEAST = 2 * RECENT  # all with fewer are of like size
_ALIKE_BITS = 2
_ALIKE = 2**_ALIKE_BITS  # so many segments of like size are merged
LAST_VERSION = int(NEVER_GONE) - 1
_MUCH_LARGER = 4  # at rest, a segment of so many times the size of all after it stays as it is
_LARGER_WHERE_ASKED = 32  # the same where somebody waits for it, and expects to match faster after
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
        self.most_small = SMALL
        self._filed: list[Shelf] = []
        self._recent = Recent(columns, 1)
        self._serial = 1
        self._snapshot = Snapshot((), 0)
        self._merged = threading.Condition(self.lock)
        self._merger: threading.Thread | None = None
        self._merging: list[Shelf] = []  # by that thread
        self._failure: BaseException | None = None  # of the last that it did, if it died of that
        self._moment = self.seen.moment  # when something was filed last
        self._filed_in_quiet = _QUIET  # how often, since an event went by
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
            self._file(shelf)
            self._publish(self._snapshot.version)
            self._merge_beside()

    def add(self, subscriptions: Iterable[Subscription], replace: bool) -> None:
        """Add subscriptions; with `replace` in place of those with the same ids."""
        with self.lock:
            given = {one.id: one for one in subscriptions}
            places = self._places(given)
            if not replace:
                for shelf, row in places:
                    if self._is_there(shelf, row):
                        raise ModelError(in_use(shelf.ids[row]))
            version = self._next_version()
            made = self._filed_at_once(list(given.values())) if len(given) > _MANY else None
            if made is None:
                self._recent.add(given.values(), version)
            for shelf, row in places:
                shelf.remove(row, version)
            filed = made is not None or len(self._recent) >= self.most_recent
            if filed:
                self._file_recent()
            if made is not None:
                self._file(made)
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
            self._snapshot = self._snapshot.at(version)
            return was_there

    def find(self, id: object) -> tuple[Shelf, int]:
        """The shelf and row of a subscription."""
        with self.lock:
            place = self._place(id) if isinstance(id, str) else None
            if place is None:
                raise ModelError(f"there is no subscription {id!r:.60}")
            return place

    def taken(self, ids: Collection[str] | pa.Array) -> set[str]:
        """Those of some ids that are in use."""
        with self.lock:
            places = self._places(ids)
            return {shelf.ids[row] for shelf, row in places if self._is_there(shelf, row)}

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
            self._failure = None
            self._merge_beside()
            merger = self._merger
        if merger is not None:
            merger.join()
        with self.lock:
            self._settling -= 1
            if self._failure is not None:
                raise self._failure

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

    def _places(self, ids: Collection[str] | pa.Array) -> list[tuple[Shelf, int]]:
        """The shelves and rows of those of some ids that are there and not removed."""
        if isinstance(ids, pa.Array):
            wanted = ids
        elif len(ids) <= _MANY:
            return [place for place in map(self._place, ids) if place is not None]
        else:
            wanted = pa.array(list(ids), pa.string())
        places: list[tuple[Shelf, int]] = []
        for shelf in self._snapshot:
            found = pc.is_in(shelf.column("id").cast(wanted.type), value_set=wanted)
            rows = np.flatnonzero(found.to_numpy())
            places += ((shelf, row) for row in rows[shelf.gone[rows] == NEVER_GONE].tolist())
        return places

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
            table.add(number, subscription.asked)
        expires = np.array([s.expires for s in subscriptions], np.int64)
        segment = build(table.arrays(), expires, sample=self.seen.sample())
        return FiledShelf(segment, names_table(subscriptions))

    def _file_recent(self) -> None:
        """Let what came last be a shelf like the others."""
        if not len(self._recent):
            return
        given = RecentShelf(self._recent)
        # What is expired can still be asked about.
        kept = np.flatnonzero(given.gone == NEVER_GONE)
        if len(kept) and self._recent.delta.may_be_posted:
            subscriptions = self._recent.subscriptions
            self._file(self._filed_at_once([subscriptions[row] for row in kept.tolist()]))
        elif len(kept):
            self._file(given, kept)
        self._serial += 1
        room = max(FIRST_ROOM, min(self._recent.delta.room, 2 * RECENT))
        self._recent = Recent(self.columns, self._serial, room)

    def _file(self, shelf: Shelf, kept: Rows | None = None) -> None:
        """Put a shelf, or some rows of it, behind the others; or in one with a small one there."""
        parts, rows = [shelf], [np.arange(len(shelf)) if kept is None else kept]
        moment, self._moment = self._moment, self.seen.moment
        self._filed_in_quiet = self._filed_in_quiet + 1 if moment == self._moment else 0
        last = self._filed[-1] if self._filed and self._filed_in_quiet < _QUIET else None
        small = last is not None and len(last) + len(shelf) <= self.most_small
        if last is not None and small and last not in self._merging:
            self._filed.pop()
            parts.insert(0, last)
            rows.insert(0, last.living(self._clock(), LAST_VERSION))
        if kept is not None or len(parts) > 1:
            shelf = merged(parts, rows, self.seen.sample())
        self._filed.append(self._numbered(shelf))

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
                self._merging = chosen
            try:
                merged, taken = self._merge(chosen, version)
            except BaseException as error:  # all stays as it was; who waits for it is told
                with self.lock:
                    self._failure, self._merging = error, []
                raise
            with self.lock:
                self._take_place(chosen, merged, taken)
                self._merging = []
                self._merged.notify_all()

    def _run_to_merge(self) -> list[Shelf] | None:
        """Neighbouring shelves to be merged, newest last; or one alone that is worth it."""
        for shelf in reversed(self._filed):
            if 2 * shelf.segment.gone_count > len(shelf):
                return [shelf]
        if self._anew and self._filed:
            return list(self._filed)
        return self._small_run() or self._run_of_alike()

    def _small_run(self) -> list[Shelf] | None:
        """While events go by: the newest small shelf that takes in no more, and those before it."""
        run: list[Shelf] = []
        size = 0
        for shelf in reversed(self._filed[:-1]) if self._filed_in_quiet < _QUIET else ():
            if len(shelf) > (max(_MIDDLE, _TOO_LARGE * size) if run else self.most_small):
                break
            run.append(shelf)
            size += len(shelf)
        return run[::-1] if len(run) > 1 else None

    def _run_of_alike(self) -> list[Shelf] | None:
        """The newest shelves of like size, if they are enough."""
        run: list[Shelf] = []
        for shelf in reversed(self._filed):
            if len(run) < _ALIKE:
                if run and _size_class(shelf) > max(map(_size_class, run)):
                    run = [shelf]  # too few of the smaller ones
                else:
                    run.append(shelf)
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
        """The shelves from the first on that is not much larger than all after it, if any is so."""
        run: list[Shelf] | None = None
        size = 0
        times = _LARGER_WHERE_ASKED if self._settling else _MUCH_LARGER
        for number in reversed(range(len(self._filed))):
            own = len(self._filed[number])
            if size and own <= times * size:
                run = self._filed[number:]
            size += own
        return run

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
    return max(living // _LEAST, 1).bit_length() // _ALIKE_BITS


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
