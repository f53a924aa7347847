"""A segment as bytes, for pickles: what `segment_files` writes to a folder, in memory."""

from __future__ import annotations

from io import BytesIO
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.engine.segment import Segment, SegmentReader
from fencepost.engine.segment_builder import empty_segment
from fencepost.engine.storage.manifest import ArrayEntry
from fencepost.engine.storage.segment_files import (
    ALIGNMENT,
    deletion_marks,
    map_arrays,
    with_deleted_version,
    write_arrays,
    write_names,
)


class SegmentBytes(NamedTuple):
    """A segment as of a version.

    Attributes
    ----------
    arrays : bytes
        All arrays but the deletion marks, one after another.
    entries : dict of str to ArrayEntry
        Where each array is.
    deleted_version : uint32 array
        0 for a deleted row, else NOT_DELETED.
    names : bytes
        The names of its subscriptions, as an Arrow file.
    """

    arrays: bytes
    entries: dict[str, ArrayEntry]
    deleted_version: NDArray[np.uint32]
    names: bytes


def segment_to_bytes(segment: SegmentReader, version: int) -> SegmentBytes:
    """Return a segment, as of a version, as bytes."""
    arrays, names = BytesIO(), BytesIO()
    entries = write_arrays(arrays, segment.arrays)
    write_names(names, segment.names)
    marks = deletion_marks(segment.arrays, version)
    return SegmentBytes(arrays.getvalue(), entries, marks, names.getvalue())


def segment_from_bytes(content: SegmentBytes) -> Segment:
    """Return the segment that `segment_to_bytes` made bytes of."""
    size = len(content.arrays)
    room = np.empty(size + ALIGNMENT, np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    aligned = room[first : first + size]
    aligned[:] = np.frombuffer(content.arrays, np.uint8)
    arrays = map_arrays(empty_segment(), "", aligned, content.entries)
    with pa.ipc.open_file(pa.py_buffer(content.names)) as file:
        names = file.read_all()
    return Segment(with_deleted_version(arrays, content.deleted_version.copy()), names)
