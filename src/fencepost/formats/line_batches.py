"""Lines of a file or a pipe in batches, in bounded memory.

A batch ends when it is full, or when a pipe has nothing more for the moment: whoever sends a
line through a pipe that stays open gets its answer at once.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

BATCH_ROWS = 10_000
BATCH_BYTES = 1 << 26
LINE_BYTES = 1 << 26
_CHUNK = 1 << 18
_PATIENCE_S = 0.02
_KEPT = 1_000


class Line(NamedTuple):
    """A line without its end; of one that is too long only the beginning."""

    number: int
    text: bytes
    length: int

    @property
    def too_long(self) -> bool:
        """Whether it was longer than what is kept."""
        return self.length > len(self.text)


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Some lines, the bytes read by their end, and whether the pipe is silent after them."""

    lines: list[Line]
    done: int
    pause: bool


def line_batches(stream: BinaryIO, longest: int = LINE_BYTES) -> Iterator[LineBatch]:
    """The lines of a stream, a batch at a time; a line longer than `longest` bytes is cut."""
    batch: list[Line] = []
    size = done = 0
    for line in _lines(stream, longest):
        if line is not None:
            batch.append(line)
            size += len(line.text)
            done += line.length + 1
        silent = line is None
        if batch and (silent or len(batch) >= BATCH_ROWS or size >= BATCH_BYTES):
            yield LineBatch(batch, done, silent)
            batch, size = [], 0
    if batch:
        yield LineBatch(batch, done, False)


def _lines(stream: BinaryIO, longest: int) -> Iterator[Line | None]:
    """Lines, and None before every wait for a pipe."""
    waiting = _may_wait(stream)
    number = 1
    parts: list[bytes] = []  # of a line whose end has not come
    length = 0
    while True:
        if waiting and not select.select([stream], [], [], _PATIENCE_S)[0]:
            yield None
        chunk = stream.read1(_CHUNK)  # type: ignore[attr-defined]
        if not chunk:
            break
        *ended, rest = chunk.split(b"\n")
        for text in ended:
            parts.append(text)
            yield _line(number, parts, length + len(text), longest)
            parts, length = [], 0
            number += 1
        if rest:
            if length <= longest:
                parts.append(rest)
            length += len(rest)
    if parts:
        yield _line(number, parts, length, longest)


def _line(number: int, parts: list[bytes], length: int, longest: int) -> Line:
    whole = b"".join(parts) if length <= longest else parts[0][: min(_KEPT, longest)]
    return Line(number, whole, length)


def too_long(line: Line) -> str:
    """What to say of a line that was cut."""
    return (
        f"the line has {line.length:,} bytes and {LINE_BYTES:,} are the most; simplify its "
        "geometry, or split it"
    )


def _may_wait(stream: BinaryIO) -> bool:
    """Whether reading may wait for somebody: a pipe, a socket or a terminal."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except OSError:  # a stream in memory has no number
        return False
    return os.name == "posix" and not stat.S_ISREG(mode)
