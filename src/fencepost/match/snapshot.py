"""Snapshots: the segments of a matcher, and its memtable, as they were at one version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from fencepost.kernels.handles import followed_by, listed
from fencepost.match.segments import SegmentReader

Names: TypeAlias = tuple[Callable[[int], str], ...]


class Snapshot(tuple[SegmentReader, ...]):
    """Segments at a version, the memtable last; rows deleted later are still there.

    Attributes
    ----------
    version : int
    """

    version: int
    _names: dict[str, Names]
    _handles: Any

    def __new__(
        cls, segments: Iterable[SegmentReader], version: int, before: Snapshot | None = None
    ) -> Snapshot:
        """Segments at a version; what kernels match with is that of `before` where it is alike."""
        made = super().__new__(cls, segments)
        made.version = version
        if before is not None and before._same_handles(made):
            made._handles = before._handles
            made._names = before._names
        else:
            made._handles = None
            made._names = {}
        return made

    def at(self, version: int) -> Snapshot:
        """The same segments at a later version, by which a row was deleted."""
        made: Snapshot = tuple.__new__(Snapshot, self)
        made.version = version
        made._names = self._names
        made._handles = self._handles
        return made

    def _same_handles(self, others: Snapshot) -> bool:
        """Whether all segments are the same, but for how many rows the memtable has."""
        if len(self) != len(others) or self[:-1] != others[:-1]:
            return False
        return not self or self[-1] is others[-1] or self[-1].handle is others[-1].handle

    @property
    def ids(self) -> Names:
        """From the rows of each segment to their ids."""
        names = self._names.get("id")
        if names is None:
            names = self._names["id"] = tuple(segment.id_of for segment in self)
        return names

    @property
    def subscribers(self) -> Names:
        """From the rows of each segment to their subscribers."""
        names = self._names.get("subscriber")
        if names is None:
            names = self._names["subscriber"] = tuple(segment.subscriber_of for segment in self)
        return names

    @property
    def handles(self) -> Any:
        """The segments as kernels take them; there must be one at least."""
        if self._handles is None:
            first, *others = (segment.handle for segment in self)
            handles = listed(first)
            for other in others:
                handles = followed_by(handles, other)
            self._handles = handles
        return self._handles

    def column(self, name: str) -> pa.ChunkedArray:
        """The "id" or the "subscriber" of each row, counted through all segments."""
        chunks = [chunk for segment in self for chunk in segment.column(name).chunks]
        return pa.chunked_array(chunks, pa.string())


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column of strings in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
