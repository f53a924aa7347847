"""`Snapshot`: the segments of a matcher, and its memtable, at one version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa

from fencepost.engine.segment import SegmentReader
from fencepost.kernels.runtime.struct_references import new_ref_list, ref_list_with

Names: TypeAlias = tuple[Callable[[int], str], ...]


class Snapshot(tuple[SegmentReader, ...]):
    """Segments at a version, the memtable last. Rows deleted after that version are still live.

    Attributes
    ----------
    version : int
    """

    version: int

    def __new__(
        cls, segments: Iterable[SegmentReader], version: int, previous: Snapshot | None = None
    ) -> Snapshot:
        """Create a snapshot, with the cached properties of `previous` if its segments are equal."""
        snapshot = super().__new__(cls, segments)
        if previous is not None and previous._has_same_struct_refs(snapshot):
            vars(snapshot).update(vars(previous))
        snapshot.version = version
        return snapshot

    def at(self, version: int) -> Snapshot:
        """Return a snapshot of the same segments at a later version, which deleted a row."""
        return Snapshot(self, version, self)

    def _has_same_struct_refs(self, other: Snapshot) -> bool:
        """Return whether the segments are equal. Memtables may differ in their number of rows."""
        if len(self) != len(other) or self[:-1] != other[:-1]:
            return False
        return not self or self[-1] is other[-1] or self[-1].struct_ref is other[-1].struct_ref

    @cached_property
    def ids(self) -> Names:
        """One function a segment, from a row to its id."""
        return tuple(segment.id_of for segment in self)

    def subscribers_of(self, hits: Sequence[Sequence[int]]) -> Iterable[str]:
        """Return the distinct subscribers of rows of each segment."""
        if len(self) == 1:
            return self[0].subscribers_of(hits[0])
        parts = [
            segment.subscribers_of(rows) for segment, rows in zip(self, hits, strict=True) if rows
        ]
        if len(parts) == 1:
            return parts[0]
        subscribers = chain.from_iterable(parts)
        has_subscribers = any(segment.has_subscribers for segment in self)
        return dict.fromkeys(subscribers) if has_subscribers else subscribers

    @cached_property
    def struct_refs(self) -> Any:
        """The list of struct references that kernels search. There must be a segment."""
        first, *rest = (segment.struct_ref for segment in self)
        struct_refs = new_ref_list(first)
        for struct_ref in rest:
            struct_refs = ref_list_with(struct_refs, struct_ref)
        return struct_refs

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the "id" or the "subscriber" of each row, all segments end to end."""
        chunks = [chunk for segment in self for chunk in segment.column(name).chunks]
        return pa.chunked_array(chunks, pa.string())


def as_single_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of strings as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
