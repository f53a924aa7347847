"""`Segment`: subscriptions as flat arrays, with the id, subscriber and expression of each row.

`SegmentReader` is the interface through which a snapshot reads its segments and the memtable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.engine.event_sampler import EMPTY_SAMPLE, EventSample
from fencepost.engine.postings import keyword_postings
from fencepost.engine.segment_builder import (
    NOT_DELETED,
    SAMPLED_EVENTS,
    build,
    flat_arrays,
    merge_to_table,
)
from fencepost.engine.selectivity import AccessPath
from fencepost.engine.subscriptions import Expression, Subscription, expression_text
from fencepost.kernels.match.match_scratch import DELETED_ROWS
from fencepost.kernels.match.segment_search import SegmentArrays
from fencepost.kernels.match.subscription_contents import ContentOffsets
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.kernels.text import vocabulary

_MAX_LISTED = 2**17  # a longer column has no Python object for each string; that saves memory
_MIN_MARKED = 64  # of fewer rows, a set finds the distinct strings faster than marks do
_MAX_MARKS_PER_ROW = 128


class StringColumn(Sequence[str]):
    """A column of strings without nulls, looked up by row and by value."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.array: pa.Array = column.combine_chunks()
        if isinstance(self.array, pa.ChunkedArray):  # no chunks, or more text than fits in one
            self.array = pa.concat_arrays([c.cast(pa.large_string()) for c in self.array.chunks])
        self._listed: list[str] | None = None
        self._rows: dict[str, int] | None = None
        self._slots: np.ndarray[tuple[int], np.dtype[np.uint32]] | None = None
        _, offsets, data = self.array.buffers()
        wide = pa.types.is_large_string(self.array.type)
        ends = np.frombuffer(offsets or bytes(8), np.int64 if wide else np.int32)
        self._ends = ends[self.array.offset : self.array.offset + len(self.array) + 1]
        self._text = memoryview(data) if data is not None else memoryview(b"")
        self._end_view = self._ends.data  # reading an item of a view is faster

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        """Return the string of a row, or the strings of a slice."""
        return self._list()[row] if isinstance(row, slice) else self.get(row)

    @property
    def get(self) -> Callable[[int], str]:
        """A function from a row to its string, for loops over many rows."""
        if len(self) <= _MAX_LISTED:
            return self._list().__getitem__
        text, end = self._text, self._end_view

        def string(row: int) -> str:
            return str(text[end[row] : end[row + 1]], "utf-8")

        return string

    def __iter__(self) -> Iterator[str]:
        return iter(self._list() if len(self) <= _MAX_LISTED else self.array.to_pylist())

    def _list(self) -> list[str]:
        if self._listed is None:
            self._listed = self.array.to_pylist()
        return self._listed

    def buffers(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Return the bytes of all strings, and offsets: string k is text[ends[k]:ends[k + 1]]."""
        return np.frombuffer(self._text, np.uint8), self._ends

    def row_of(self, value: str) -> int:
        """Return the row of a string, or -1. All strings must differ."""
        if len(self) <= _MAX_LISTED:
            if self._rows is None:
                self._rows = {string: row for row, string in enumerate(self._list())}
            return self._rows.get(value, -1)
        text, ends = self.buffers()
        if self._slots is None:
            slots = np.full(1 << (2 * len(self)).bit_length(), vocabulary.EMPTY_SLOT, np.uint32)
            vocabulary.fill_slots(slots, text, ends)
            self._slots = slots
        key = np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8)
        return int(vocabulary.row_in_slots(self._slots, text, ends, key))


class RepeatedStrings:
    """A column of strings without nulls that repeat; each is stored once, and they are sorted.

    Attributes
    ----------
    get : callable
        Function from a row to its string, for loops over many rows.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):  # no chunks
            encoded = pa.array([], encoded.type.value_type).dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        rank = np.empty(len(order), np.uint32)
        rank[order.to_numpy()] = np.arange(len(order), dtype=np.uint32)
        self._strings: list[str] = encoded.dictionary.take(order).to_pylist()
        self._min_marked = max(_MIN_MARKED, len(self._strings) // _MAX_MARKS_PER_ROW)
        self._codes = rank[encoded.indices.to_numpy()]
        self.get = [self._strings[code] for code in self._codes.tolist()].__getitem__

    def distinct(self, rows: Sequence[int]) -> Iterable[str]:
        """Return the distinct strings of rows."""
        if len(rows) < self._min_marked:
            return {*map(self.get, rows)}
        is_found = np.zeros(len(self._strings), bool)
        is_found[self._codes[np.frombuffer(array("I", rows), np.uint32)]] = True
        return map(self._strings.__getitem__, np.flatnonzero(is_found).tolist())


SCHEMA = pa.schema([("id", pa.string()), ("subscriber", pa.string()), ("expression", pa.string())])


class SegmentReader(ABC):
    """The rows of a segment, or of the memtable; `len` is the number of rows.

    Attributes
    ----------
    serial : int
        Unique among all segments and memtables of a matcher.
    arrays : SegmentArrays
        The arrays, without free capacity.
    struct_ref
        The struct reference that kernels search. That of a memtable includes free capacity.
    names : table
        The id, subscriber and expression of each row: see `Segment`.
    id_of, subscriber_of : callable
        Functions from a row to its id or subscriber, for loops over many rows.
    has_subscribers : bool
        Whether the subscriber of some row is not its id. A memtable counts later rows, too.
    deleted_version : array
        The first version in which each row is deleted.
    expires : array
        When each row expires, in nanoseconds since 1970.
    removals : int
        Number of calls of `remove`. A row's `deleted_version` is written before `removals` is
        raised; a reader that has counted live rows relies on it, because an unchanged number tells
        it that its count still holds.
    """

    serial: int
    arrays: SegmentArrays
    struct_ref: Any
    names: pa.Table
    id_of: Callable[[int], str]
    subscriber_of: Callable[[int], str]
    has_subscribers: bool
    deleted_version: NDArray[np.uint32]
    expires: NDArray[np.int64]
    removals = 0

    @abstractmethod
    def row_of(self, id: str) -> int:
        """Return the row of an id, or -1."""

    @abstractmethod
    def stored_expression(self, row: int) -> Expression:
        """Return the expression of a row, or its condition; None if it was added as columns."""

    @abstractmethod
    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on."""

    @abstractmethod
    def reset_versions(self) -> None:
        """Restart at version 0: live rows stay live, deleted rows stay deleted."""

    @abstractmethod
    def __len__(self) -> int: ...

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the "id" or the "subscriber" of each row."""
        names = self.names
        return names.column(name if name in names.column_names else "id")

    def expression(self, row: int) -> str | None:
        """Return the expression of a row; None if it was added as columns."""
        return expression_text(self.stored_expression(row))

    def live_rows(self, now: int, version: int) -> NDArray[np.int64]:
        """Return the rows that are neither expired nor deleted at a version."""
        return np.flatnonzero((self.deleted_version > version) & (self.expires > now))

    def live_ids(self, now: int, version: int) -> list[str]:
        """Return the ids of the rows that are neither expired nor deleted at a version."""
        ids: list[str] = self.column("id").take(pa.array(self.live_rows(now, version))).to_pylist()
        return ids

    def subscribers_of(self, rows: Sequence[int]) -> Iterable[str]:
        """Return the distinct subscribers of rows."""
        subscribers = map(self.subscriber_of, rows)
        # In the order of the rows, because often they are almost sorted.
        return dict.fromkeys(subscribers) if self.has_subscribers else subscribers

    def posting_entries_of(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the direct entries of rows in the postings, row by row, and the number of each.

        An entry is direct if its owner is a subscription: no check remains to be evaluated.
        """
        offsets = self.content_offsets
        first = offsets.entry_start[rows].astype(np.int64)
        sizes = offsets.entry_start[rows + 1] - first
        entries = offsets.entries[keyword_postings.ranges(first, sizes)]
        return entries.astype(np.int64), sizes

    def posting_lists_of(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the posting list that holds each direct entry."""
        return self.content_offsets.list_of_entry[entries].astype(np.int64)

    @cached_property
    def content_offsets(self) -> ContentOffsets:
        """Where the filters and the direct posting entries of each row stand."""
        postings = self.arrays.postings
        owner = postings.owner[: keyword_postings.direct_entry_count(postings)]
        by_entry = np.argsort(postings.lists["first"], kind="stable").astype(np.uint32)
        counts = postings.lists["count"][by_entry]
        words = np.arange(len(postings.token_lists) - 1, dtype=np.uint32)
        return ContentOffsets(
            _starts(self.arrays.filter_subscription, len(self)),
            _starts(owner, len(self)),
            np.argsort(owner, kind="stable").astype(np.uint32),
            np.repeat(by_entry, counts)[: len(owner)],
            np.repeat(words, np.diff(postings.token_lists)),
        )

    @cached_property
    def box_radii_m(self) -> NDArray[np.float64]:
        """The radius of the box of each spatial bound, 0 until a ranking needs it.

        The bounds are numbered as in `write_bounds`. Memory is used for those that are needed.
        """
        return np.zeros(len(self.arrays.checks) + len(self.content_offsets.entries))

    @property
    def deleted_count(self) -> int:
        """Number of deleted rows."""
        return int(self.arrays.state[DELETED_ROWS])

    @property
    def sampled_events(self) -> int:
        """Number of events in the sample that the segment was planned for."""
        return int(self.arrays.state[SAMPLED_EVENTS])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for _, array in flat_arrays(self.arrays))

    def paths(self) -> dict[str, int]:
        """Return the number of filters under each access path."""
        counts = np.bincount(self.arrays.path, minlength=len(AccessPath))
        counts[AccessPath.WORDS] += keyword_postings.direct_entry_count(self.arrays.postings)
        return {path.name.lower(): int(counts[path]) for path in AccessPath}


class Segment(SegmentReader):
    """An immutable segment: only the deletion marks of its rows change.

    Parameters
    ----------
    arrays : SegmentArrays
    names : table
        The columns `id`; `subscriber`, left out if it equals the id in each row; and `expression`,
        left out if all rows were added as columns.
    """

    def __init__(self, arrays: SegmentArrays, names: pa.Table) -> None:
        self.serial = 0
        self.arrays = arrays
        self.names = names
        self.deleted_version, self.expires = arrays.deleted_version, arrays.expires

    def __len__(self) -> int:
        return len(self.deleted_version)

    @cached_property
    def struct_ref(self) -> Any:
        """The struct reference that kernels search."""
        return struct_ref(self.arrays)

    @cached_property
    def _ids(self) -> StringColumn:
        return StringColumn(self.column("id"))

    @cached_property
    def id_of(self) -> Callable[[int], str]:  # type: ignore[override]
        """A function from a row to its id."""
        return self._ids.get

    @cached_property
    def subscriber_of(self) -> Callable[[int], str]:  # type: ignore[override]
        """A function from a row to its subscriber."""
        if not self.has_subscribers:
            return self.id_of
        if len(self) <= _MAX_LISTED:
            return self._repeated_subscribers.get
        return StringColumn(self.column("subscriber")).get

    @cached_property
    def has_subscribers(self) -> bool:  # type: ignore[override]
        """Whether the subscriber of some row is not its id."""
        names = self.names
        return "subscriber" in names.column_names and names["subscriber"] != names["id"]

    @cached_property
    def _repeated_subscribers(self) -> RepeatedStrings:
        return RepeatedStrings(self.column("subscriber"))

    def subscribers_of(self, rows: Sequence[int]) -> Iterable[str]:
        """Return the distinct subscribers of rows."""
        if self.has_subscribers and len(self) <= _MAX_LISTED:
            return self._repeated_subscribers.distinct(rows)
        return super().subscribers_of(rows)

    def row_of(self, id: str) -> int:
        """Return the row of an id, or -1."""
        return self._ids.row_of(id)

    def stored_expression(self, row: int) -> str | None:
        """Return the expression of a row; None if it was added as columns."""
        if "expression" not in self.names.column_names:
            return None
        expression: str | None = self.names.column("expression")[row].as_py()
        return expression

    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on.

        The count of deleted rows is raised before the row is marked; a match relies on it, because
        it reads the marks only if the count is not 0. `removals` is raised last: see
        `SegmentReader`.
        """
        self.arrays.state[DELETED_ROWS] += 1
        self.deleted_version[row] = version
        self.removals += 1

    def reset_versions(self) -> None:
        """Restart at version 0: live rows stay live, deleted rows stay deleted."""
        self.deleted_version[self.deleted_version != NOT_DELETED] = 0


def _starts(owners: NDArray[np.uint32], count: int) -> NDArray[np.uint32]:
    """Return where the items of each of `count` owners begin, and where the last ones end."""
    starts = np.zeros(count + 1, np.uint32)
    np.cumsum(np.bincount(owners, minlength=count), out=starts[1:])
    return starts


def merge_segments(
    segments: Sequence[SegmentReader],
    rows: Sequence[NDArray[np.int64]],
    sample: EventSample = EMPTY_SAMPLE,
) -> Segment:
    """Merge some rows of each segment into one segment, planned for events like the sample."""
    parts = [(segment.arrays, kept) for segment, kept in zip(segments, rows, strict=True)]
    expires = np.concatenate([arrays.expires[kept] for arrays, kept in parts])
    names = concatenate_names(
        segment.names.take(kept) for segment, kept in zip(segments, rows, strict=True)
    )
    return Segment(build(merge_to_table(parts), expires, sample=sample), names)


def concatenate_names(tables: Iterable[pa.Table]) -> pa.Table:
    """Concatenate the names of segments. A column that only some tables have is filled."""
    tables = list(tables)
    present = {name for table in tables for name in table.column_names}
    schema = pa.schema([field for field in SCHEMA if field.name in present])
    full = []
    for table in tables:
        columns = {name: table.column(name) for name in table.column_names}
        columns.setdefault("subscriber", columns["id"])
        columns.setdefault("expression", pa.nulls(len(table), pa.string()))
        full.append(pa.table([columns[name] for name in schema.names], schema=schema))
    return pa.concat_tables(full).combine_chunks()


def names_table(subscriptions: Sequence[Subscription]) -> pa.Table:
    """Return the id, subscriber and expression of each subscription."""
    return pa.table(
        [
            [s.id for s in subscriptions],
            [s.subscriber for s in subscriptions],
            [expression_text(s.expression) for s in subscriptions],
        ],
        schema=SCHEMA,
    )
