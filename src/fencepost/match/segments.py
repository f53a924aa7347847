"""Segments: subscriptions as flat arrays, and the names that belong to their rows.

A snapshot reads segments, and last the memtable, through one interface: `SegmentReader`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.index import posts
from fencepost.index.merge import merge
from fencepost.index.seen import NOTHING_SEEN, Sample
from fencepost.index.segment import EVENTS_SEEN, NEVER_GONE, build, flat_arrays
from fencepost.index.selectivity import Path
from fencepost.kernels.handles import handle
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.rooms import REMOVED
from fencepost.match.catalogue import Expression, Subscription, as_text
from fencepost.match.strings import Strings

SCHEMA = pa.schema([("id", pa.string()), ("subscriber", pa.string()), ("expression", pa.string())])


class SegmentReader(ABC):
    """What is read of a segment, or of the memtable's rows: `len` is their number.

    Attributes
    ----------
    serial : int
        Differs for all that a matcher ever had.
    arrays : SegmentArrays
        Without any room behind.
    handle
        What kernels match with: the arrays, of the memtable with the room behind.
    names : table
        The names by row: see `Segment`.
    id_of, subscriber_of : callable
        From a row to its id or subscriber, as fast as can be.
    deleted_version : array
        The first version in which each row is deleted.
    expires : array
        When each row ends.
    removals : int
        How often a row was deleted. A row is marked before this is raised; whoever counted rows
        and sees the same number here relies on none being marked since.
    """

    serial: int
    arrays: SegmentArrays
    handle: Any
    names: pa.Table
    id_of: Callable[[int], str]
    subscriber_of: Callable[[int], str]
    deleted_version: NDArray[np.uint32]
    expires: NDArray[np.int64]
    removals = 0
    _entries: tuple[NDArray[np.int64], NDArray[np.uint32]] | None = None
    _lists: tuple[NDArray[np.uint32], NDArray[np.int64]] | None = None

    @abstractmethod
    def row_of(self, id: str) -> int:
        """The row of an id, or -1."""

    @abstractmethod
    def given(self, row: int) -> Expression:
        """The expression of a row, or its condition; None where it was given as columns."""

    @abstractmethod
    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on."""

    @abstractmethod
    def restart_versions(self) -> None:
        """Begin with version 0 again: what is there is there, what is deleted is deleted."""

    @abstractmethod
    def __len__(self) -> int: ...

    def column(self, name: str) -> pa.ChunkedArray:
        """The "id" or the "subscriber" of each row."""
        names = self.names
        return names.column(name if name in names.column_names else "id")

    def expression(self, row: int) -> str | None:
        """The expression of a row, if it was given as one."""
        return as_text(self.given(row))

    def living(self, now: int, version: int) -> NDArray[np.int64]:
        """The rows that are neither expired nor deleted by a version."""
        return np.flatnonzero((self.deleted_version > version) & (self.expires > now))

    def living_ids(self, now: int, version: int) -> list[str]:
        """The ids of those rows."""
        ids: list[str] = self.column("id").take(pa.array(self.living(now, version))).to_pylist()
        return ids

    def entries_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The entries of the posts that subscriptions own themselves, in turn; how many each."""
        if self._entries is None:
            owner = self.arrays.posts.owner[: posts.direct_count(self.arrays.posts)]
            start = np.zeros(len(self) + 1, np.int64)
            np.cumsum(np.bincount(owner, minlength=len(self)), out=start[1:])
            self._entries = start, np.argsort(owner, kind="stable").astype(np.uint32)
        start, entries = self._entries
        sizes = start[rows + 1] - start[rows]
        return entries[posts.ranges(start[rows], sizes)].astype(np.int64), sizes

    def lists_of(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """The list of the posts that each entry is in."""
        if self._lists is None:
            first = self.arrays.posts.lists["first"]
            by_entry = np.argsort(first, kind="stable")
            self._lists = first[by_entry], by_entry
        first, by_entry = self._lists
        return by_entry[np.searchsorted(first, entries.astype(np.uint32), "right") - 1]

    @property
    def deleted_count(self) -> int:
        """How many rows are deleted."""
        return int(self.arrays.state[REMOVED])

    @property
    def events_seen(self) -> int:
        """From how many events the planner learned what they are like."""
        return int(self.arrays.state[EVENTS_SEEN])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for _, array in flat_arrays(self.arrays))

    def paths(self) -> dict[str, int]:
        """The number of filters under each access path."""
        counts = np.bincount(self.arrays.path, minlength=len(Path))
        counts[Path.WORDS] += posts.direct_count(self.arrays.posts)
        return {path.name.lower(): int(counts[path]) for path in Path}


class Segment(SegmentReader):
    """An immutable segment: only which rows are deleted ever changes.

    Parameters
    ----------
    arrays : SegmentArrays
    names : table
        The `id` of each row; its `subscriber`, left out where all are the ids; its `expression`,
        left out where none was given.
    """

    def __init__(self, arrays: SegmentArrays, names: pa.Table) -> None:
        self.serial = 0
        self.arrays = arrays
        self.names = names
        self.deleted_version, self.expires = arrays.gone, arrays.expires

    def __len__(self) -> int:
        return len(self.deleted_version)

    @cached_property
    def handle(self) -> Any:
        """The arrays as kernels take them."""
        return handle(self.arrays)

    @cached_property
    def _ids(self) -> Strings:
        return Strings(self.column("id"))

    @cached_property
    def id_of(self) -> Callable[[int], str]:  # type: ignore[override]
        """From a row to its id."""
        return self._ids.get

    @cached_property
    def subscriber_of(self) -> Callable[[int], str]:  # type: ignore[override]
        """From a row to its subscriber."""
        own = "subscriber" in self.names.column_names
        return Strings(self.column("subscriber")).get if own else self.id_of

    def row_of(self, id: str) -> int:
        """The row of an id, or -1."""
        return self._ids.row_of(id)

    def given(self, row: int) -> str | None:
        """The expression of a row, if it was given as one."""
        if "expression" not in self.names.column_names:
            return None
        given: str | None = self.names.column("expression")[row].as_py()
        return given

    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on.

        The count is raised before the row is marked; a match relies on it, because it looks at
        marks only where the count is not 0. `removals` is raised last: see there.
        """
        self.arrays.state[REMOVED] += 1
        self.deleted_version[row] = version
        self.removals += 1

    def restart_versions(self) -> None:
        """Begin with version 0 again."""
        self.deleted_version[self.deleted_version != NEVER_GONE] = 0


def merge_segments(
    segments: Sequence[SegmentReader],
    rows: Sequence[NDArray[np.int64]],
    sample: Sample = NOTHING_SEEN,
) -> Segment:
    """One segment of some rows of each of several, planned for events like those of a sample."""
    parts = [(own.arrays, kept) for own, kept in zip(segments, rows, strict=True)]
    expires = np.concatenate([arrays.expires[kept] for arrays, kept in parts])
    names = joined(own.names.take(kept) for own, kept in zip(segments, rows, strict=True))
    return Segment(build(merge(parts), expires, sample=sample), names)


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """Names of several segments as one table; a column that some lack is filled."""
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


def names_table(subscriptions: Sequence[Subscription]) -> pa.Table:
    """The names of subscriptions, row by row."""
    return pa.table(
        [
            [s.id for s in subscriptions],
            [s.subscriber for s in subscriptions],
            [as_text(s.expression) for s in subscriptions],
        ],
        schema=SCHEMA,
    )
