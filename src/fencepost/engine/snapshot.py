"""Snapshots: the segments of a matcher, and its memtable, as they were at one version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from fencepost.engine.segment import SegmentReader
from fencepost.kernels.runtime.struct_references import new_ref_list, ref_list_with

Names: TypeAlias = tuple[Callable[[int], str], ...]


class Snapshot(tuple[SegmentReader, ...]):
    """Segments at a version, the memtable last; rows deleted later are still there.

    Attributes
    ----------
    version : int
    """

    version: int

    def __new__(
        cls, segments: Iterable[SegmentReader], version: int, before: Snapshot | None = None
    ) -> Snapshot:
        """Segments at a version; what kernels match with is that of `before` where it is alike."""
        made = super().__new__(cls, segments)
        if before is not None and before._has_same_struct_refs(made):
            vars(made).update(vars(before))
        made.version = version
        return made

    def at(self, version: int) -> Snapshot:
        """The same segments at a later version, by which a row was deleted."""
        return Snapshot(self, version, self)

    def _has_same_struct_refs(self, others: Snapshot) -> bool:
        """Whether all segments are the same, but for how many rows the memtable has."""
        if len(self) != len(others) or self[:-1] != others[:-1]:
            return False
        return not self or self[-1] is others[-1] or self[-1].struct_ref is others[-1].struct_ref

    @cached_property
    def ids(self) -> Names:
        """From the rows of each segment to their ids."""
        return tuple(segment.id_of for segment in self)

    @cached_property
    def subscribers(self) -> Names:
        """From the rows of each segment to their subscribers."""
        return tuple(segment.subscriber_of for segment in self)

    @cached_property
    def struct_refs(self) -> Any:
        """The segments as kernels take them; there must be one at least."""
        first, *others = (segment.struct_ref for segment in self)
        struct_refs = new_ref_list(first)
        for other in others:
            struct_refs = ref_list_with(struct_refs, other)
        return struct_refs

    def column(self, name: str) -> pa.ChunkedArray:
        """The "id" or the "subscriber" of each row, counted through all segments."""
        chunks = [chunk for segment in self for chunk in segment.column(name).chunks]
        return pa.chunked_array(chunks, pa.string())


def as_single_array(column: pa.ChunkedArray) -> pa.Array:
    """A column of strings in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
