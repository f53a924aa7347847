"""`line_batches`: the lines of a file or a pipe in batches, in bounded memory.

A batch ends when it is full, or when a pipe has no further data at the moment, so that lines sent
through an open pipe are processed at once.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

MAX_BATCH_ROWS = 10_000
MAX_BATCH_BYTES = 1 << 26
MAX_LINE_BYTES = 1 << 26
_CHUNK = 1 << 18
_MAX_WAIT_S = 0.02
_KEPT_BYTES = 1_000


class Line(NamedTuple):
    """A line without its newline; only the beginning of a line that is too long."""

    number: int
    text: bytes
    length: int

    @property
    def is_too_long(self) -> bool:
        """Whether the line was cut."""
        return self.length > len(self.text)


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Some lines, the bytes read up to their end, and whether the pipe has no data after them."""

    lines: list[Line]
    done: int
    pause: bool


def line_batches(stream: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[LineBatch]:
    """Yield the lines of a stream in batches; a line longer than `max_line_bytes` is cut."""
    batch: list[Line] = []
    size = done = 0
    for line in _lines(stream, max_line_bytes):
        if line is not None:
            batch.append(line)
            size += len(line.text)
            done += line.length + 1
        silent = line is None
        if batch and (silent or len(batch) >= MAX_BATCH_ROWS or size >= MAX_BATCH_BYTES):
            yield LineBatch(batch, done, silent)
            batch, size = [], 0
    if batch:
        yield LineBatch(batch, done, False)


def _lines(stream: BinaryIO, max_line_bytes: int) -> Iterator[Line | None]:
    """Yield lines, and None before each wait for a pipe."""
    waiting = _may_wait(stream)
    number = 1
    parts: list[bytes] = []  # of the line that is not complete yet
    length = 0
    while True:
        if waiting and not select.select([stream], [], [], _MAX_WAIT_S)[0]:
            yield None
        chunk = stream.read1(_CHUNK)  # type: ignore[attr-defined]
        if not chunk:
            break
        *ended, rest = chunk.split(b"\n")
        for text in ended:
            parts.append(text)
            yield _line(number, parts, length + len(text), max_line_bytes)
            parts, length = [], 0
            number += 1
        if rest:
            if length <= max_line_bytes:
                parts.append(rest)
            length += len(rest)
    if parts:
        yield _line(number, parts, length, max_line_bytes)


def _line(number: int, parts: list[bytes], length: int, max_line_bytes: int) -> Line:
    text = (
        b"".join(parts)
        if length <= max_line_bytes
        else parts[0][: min(_KEPT_BYTES, max_line_bytes)]
    )
    return Line(number, text, length)


def too_long_reason(line: Line) -> str:
    """Return the reason for a line that was cut."""
    return (
        f"the line has {line.length:,} bytes, more than {MAX_LINE_BYTES:,}; simplify its "
        "geometry, or split it"
    )


def _may_wait(stream: BinaryIO) -> bool:
    """Return whether reads may block for long: from a pipe, a socket or a terminal."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except OSError:  # a stream in memory has no file descriptor
        return False
    return os.name == "posix" and not stat.S_ISREG(mode)
