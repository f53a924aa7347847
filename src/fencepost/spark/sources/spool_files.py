"""A segment of a spool: a file of frames, each a group of messages that was written at once.

    magic 4 | length of the body 4 | first position 8 | messages 4 | checksum 4 | body

The body is an Arrow record batch, so that a reader maps it and copies nothing row by row. Every
frame is whole but perhaps the last of the last segment, which a crash may have torn.
"""

from __future__ import annotations

import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fencepost.errors import StoreError

_STORED = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("payload", pa.binary()),
        pa.field("received", pa.timestamp("us", "UTC")),
        pa.field("redelivered", pa.bool_()),
    ]
)
SCHEMA = _STORED.append(pa.field("position", pa.int64()))  # as it is read

_HEADER = struct.Struct("<4sIQII")
_CHECKED = struct.Struct("<4sIQI")  # the header but for the checksum
_MAGIC = b"FPS1"
_MAX_FRAME_BYTES = 8 << 20


class Message(NamedTuple):
    """A message as it came; `received` is in microseconds since 1970."""

    topic: str
    payload: bytes
    received: int
    redelivered: bool


class Frame(NamedTuple):
    """Where a frame is: its first position, how many messages, its bytes in the segment."""

    first: int
    messages: int
    start: int
    end: int


class MessageRange(NamedTuple):
    """Neighbouring messages of a segment, the first of them `skipped` after byte `start`."""

    path: str
    start: int
    skipped: int
    messages: int


@dataclass
class SpoolFile:
    """A segment, and those of its frames that have been seen whole."""

    path: Path
    first: int
    frames: list[Frame] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The position after its last message."""
        return self.frames[-1].first + self.frames[-1].messages if self.frames else self.first

    @property
    def size(self) -> int:
        """How many bytes its frames take."""
        return self.frames[-1].end if self.frames else 0

    def scan(self) -> int:
        """Look for frames that are new since the last look; how many torn bytes follow them.

        Raises
        ------
        StoreError
            If what follows is more than a frame that was being written.
        """
        with self.path.open("rb") as file:
            base = self.size
            file.seek(base)
            data = memoryview(file.read())
            at = 0
            while (frame := self._frame(data, at, base)) is not None:
                self.frames.append(frame)
                at = frame.end - base
            if at:
                # Another process may have written it and not have come to synchronise it.
                os.fsync(file.fileno())
        if not _is_torn(data[at:]):
            raise damaged(self)
        return len(data) - at

    def record_frame(self, count: int, size: int) -> None:
        """Take a frame of so many messages and bytes as seen: it was written just now."""
        self.frames.append(Frame(self.end, count, self.size, self.size + size))

    def _frame(self, data: memoryview, at: int, base: int) -> Frame | None:
        if len(data) < at + _HEADER.size:
            return None
        magic, length, first, count, checksum = _HEADER.unpack_from(data, at)
        body = at + _HEADER.size
        if magic != _MAGIC or first != self.end or len(data) < body + length:
            return None
        if zlib.crc32(data[body : body + length], zlib.crc32(data[at : body - 4])) != checksum:
            return None
        return Frame(first, count, base + at, base + body + length)


def damaged(segment: SpoolFile) -> StoreError:
    """The error to raise where a segment is not readable."""
    return StoreError(
        f"the spool is damaged: {segment.path} cannot be read from byte {segment.size} on, at "
        f"position {segment.end}; restore the file, or begin with a new spool and checkpoint"
    )


def frames_of(messages: Sequence[Message], first: int) -> Iterator[tuple[int, bytes]]:
    """Frames of messages from a position on: how many are in it, and its bytes."""
    at = 0
    while at < len(messages):
        end, size = at + 1, len(messages[at].payload)
        while end < len(messages) and size + len(messages[end].payload) <= _MAX_FRAME_BYTES:
            size += len(messages[end].payload)
            end += 1
        columns = zip(*messages[at:end], strict=True)
        arrays = [pa.array(c, kind) for c, kind in zip(columns, _STORED.types, strict=True)]
        body = pa.RecordBatch.from_arrays(arrays, schema=_STORED).serialize().to_pybytes()
        header = _CHECKED.pack(_MAGIC, len(body), first + at, end - at)
        checksum = zlib.crc32(body, zlib.crc32(header))
        yield end - at, header + struct.pack("<I", checksum) + body
        at = end


def ranges_of(segment: SpoolFile, start: int, end: int, most: int) -> Iterator[MessageRange]:
    """The messages of a segment from one position to before another, at most so many a range."""
    start, end = max(start, segment.first), min(end, segment.end)
    while start < end:
        at = bisect_right(segment.frames, start, key=lambda frame: frame.first)
        frame = segment.frames[at - 1]
        count = min(most, end - start)
        yield MessageRange(str(segment.path), frame.start, start - frame.first, count)
        start += count


def read_range(some: MessageRange) -> Iterator[pa.RecordBatch]:
    """The messages of a range, with their positions."""
    try:
        file = pa.memory_map(some.path)
    except FileNotFoundError as error:
        raise StoreError(
            f"there is no {some.path}, which is still to be read; the driver and the workers must "
            "see the spool under the same path"
        ) from error
    with file:
        found, left, skipped = [], some.messages, some.skipped
        file.seek(some.start)
        while left:
            _, length, first, _, _ = _HEADER.unpack(file.read(_HEADER.size))
            batch = pa.ipc.read_record_batch(file.read_buffer(length), _STORED)
            batch = batch.slice(skipped, left)
            positions = np.arange(first + skipped, first + skipped + len(batch))
            found.append(pa.RecordBatch.from_arrays([*batch.columns, positions], schema=SCHEMA))
            left -= len(batch)
            skipped = 0
        yield from pa.Table.from_batches(found).combine_chunks().to_batches()


def _is_torn(rest: memoryview) -> bool:
    """Whether bytes may be a frame that was being written when the process or machine stopped."""
    if len(rest) < _HEADER.size or not any(rest):
        return True
    magic, length, _, _, _ = _HEADER.unpack_from(rest)
    return bool(magic == _MAGIC) and len(rest) <= _HEADER.size + length
