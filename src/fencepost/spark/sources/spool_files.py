"""Provides `SpoolFile`: a file of frames, each a group of messages that were written at once.

A frame, with sizes in bytes:

    magic 4 | length of the body 4 | first position 8 | messages 4 | checksum 4 | body

The body is an Arrow record batch, which readers map without copying rows. All frames are complete,
except that a crash may have torn the last frame of the last file.
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
SCHEMA = _STORED.append(pa.field("position", pa.int64()))  # the columns that readers yield

_HEADER = struct.Struct("<4sIQII")
_CHECKED = struct.Struct("<4sIQI")  # the header without the checksum
_MAGIC = b"FPS1"
_MAX_FRAME_BYTES = 8 << 20


class Message(NamedTuple):
    """A message as the broker sent it."""

    topic: str
    payload: bytes
    received: int  # microseconds since 1970
    redelivered: bool


class Frame(NamedTuple):
    """The place of a frame in its file."""

    first: int  # the position of its first message
    messages: int  # their number
    start: int  # in bytes
    end: int


class MessageRange(NamedTuple):
    """Consecutive messages of a file, which may begin inside a frame."""

    path: str
    start: int  # of the first frame, in bytes
    skipped: int  # messages of the first frame that come before the range
    messages: int  # their number


@dataclass
class SpoolFile:
    """A file of a spool, and its frames as far as it was scanned.

    Attributes
    ----------
    path : Path
        The file.
    first : int
        The position of its first message.
    frames : list of Frame
        The complete frames that `scan` has read.
    """

    path: Path
    first: int
    frames: list[Frame] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The position after the last message."""
        return self.frames[-1].first + self.frames[-1].messages if self.frames else self.first

    @property
    def size(self) -> int:
        """The bytes that the frames take."""
        return self.frames[-1].end if self.frames else 0

    def scan(self) -> int:
        """Read the frames appended since the last scan; return the torn bytes that follow them.

        Raises
        ------
        StoreError
            If the bytes that follow cannot be a torn frame, so the file is damaged.
        """
        with self.path.open("rb") as file:
            base = self.size
            file.seek(base)
            data = memoryview(file.read())
            at = 0
            while (frame := self._parse_frame(data, at, base)) is not None:
                self.frames.append(frame)
                at = frame.end - base
            if at:
                # The writer may not have called fsync yet; readers must only see what is on disk.
                os.fsync(file.fileno())
        if not _is_torn(data[at:]):
            raise damaged(self)
        return len(data) - at

    def record_frame(self, count: int, size: int) -> None:
        """Add a frame that was just appended, of `count` messages and `size` bytes."""
        self.frames.append(Frame(self.end, count, self.size, self.size + size))

    def _parse_frame(self, data: memoryview, at: int, base: int) -> Frame | None:
        if len(data) < at + _HEADER.size:
            return None
        magic, length, first, count, checksum = _HEADER.unpack_from(data, at)
        body = at + _HEADER.size
        if magic != _MAGIC or first != self.end or len(data) < body + length:
            return None
        if zlib.crc32(data[body : body + length], zlib.crc32(data[at : body - 4])) != checksum:
            return None
        return Frame(first, count, base + at, base + body + length)


def damaged(file: SpoolFile) -> StoreError:
    """Return the error for a file that cannot be read."""
    return StoreError(
        f"the spool is damaged: {file.path} cannot be read from byte {file.size} on, at "
        f"position {file.end}; restore the file, or start with a new spool and checkpoint"
    )


def frames_of(messages: Sequence[Message], first: int) -> Iterator[tuple[int, bytes]]:
    """Yield the frames of messages: the number of messages in a frame, and its bytes.

    Parameters
    ----------
    messages : sequence of Message
        The messages to encode.
    first : int
        The position of the first message.
    """
    start = 0
    while start < len(messages):
        end, size = start + 1, len(messages[start].payload)
        while end < len(messages) and size + len(messages[end].payload) <= _MAX_FRAME_BYTES:
            size += len(messages[end].payload)
            end += 1
        columns = zip(*messages[start:end], strict=True)
        arrays = [pa.array(c, type) for c, type in zip(columns, _STORED.types, strict=True)]
        body = pa.RecordBatch.from_arrays(arrays, schema=_STORED).serialize().to_pybytes()
        header = _CHECKED.pack(_MAGIC, len(body), first + start, end - start)
        checksum = zlib.crc32(body, zlib.crc32(header))
        yield end - start, header + struct.pack("<I", checksum) + body
        start = end


def ranges_of(file: SpoolFile, start: int, end: int, max_messages: int) -> Iterator[MessageRange]:
    """Yield the ranges of a file that hold a range of positions.

    Parameters
    ----------
    file : SpoolFile
        The scanned file.
    start, end : int
        The first position, and the position after the last; positions outside the file are ignored.
    max_messages : int
        The largest number of messages in a range.
    """
    start, end = max(start, file.first), min(end, file.end)
    while start < end:
        number = bisect_right(file.frames, start, key=lambda frame: frame.first)
        frame = file.frames[number - 1]
        count = min(max_messages, end - start)
        yield MessageRange(str(file.path), frame.start, start - frame.first, count)
        start += count


def read_range(message_range: MessageRange) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range as record batches with the columns `SCHEMA`."""
    try:
        file = pa.memory_map(message_range.path)
    except FileNotFoundError as error:
        raise StoreError(
            f"the spool file {message_range.path} is missing; the driver and the workers must "
            "reach the spool under the same path"
        ) from error
    with file:
        batches, remaining, skipped = [], message_range.messages, message_range.skipped
        file.seek(message_range.start)
        while remaining:
            _, length, first, _, _ = _HEADER.unpack(file.read(_HEADER.size))
            batch = pa.ipc.read_record_batch(file.read_buffer(length), _STORED)
            batch = batch.slice(skipped, remaining)
            positions = np.arange(first + skipped, first + skipped + len(batch))
            batches.append(pa.RecordBatch.from_arrays([*batch.columns, positions], schema=SCHEMA))
            remaining -= len(batch)
            skipped = 0
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def _is_torn(rest: memoryview) -> bool:
    """Return whether bytes may be an incomplete frame that a crash left."""
    if len(rest) < _HEADER.size or not any(rest):
        return True
    magic, length, _, _, _ = _HEADER.unpack_from(rest)
    return bool(magic == _MAGIC) and len(rest) <= _HEADER.size + length
