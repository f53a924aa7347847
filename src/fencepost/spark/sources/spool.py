"""A spool: messages on disk in the order they came, each at a position that never changes.

    folder/
      00000000000000000000.spool    a segment, named after the position of its first message
      00000000000000052311.spool    the last one is written to
      receiver.lock                 held by the one process that writes
      readers/<name>                how far the reader of that name has come
      readers/<name>.lock           held by the one process that reads under that name

One process writes; it, and others, read. What a frame is, and how a torn one is told from a
damaged one, is in `spool_segment`. What was torn had not been acknowledged, so it comes again.

Nothing here knows of MQTT or of Spark.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from fencepost.atomic_replace import replace_file, sync_folder
from fencepost.errors import StoreError
from fencepost.spark.sources.spool_files import (
    Message,
    MessageRange,
    SpoolFile,
    damaged,
    frames_of,
    ranges_of,
    read_range,
)

#: So many messages of the end stay on disk although every reader has passed them.
MIN_RETAINED_MESSAGES = 4096

_MAX_FILE_BYTES = 64 << 20
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class SpoolWriter:
    """The one that appends to a spool; made by `open_writer`."""

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock
        found = _spool_files(folder)
        self._current_file = found[-1] if found else self._create(0)
        torn = self._current_file.scan()
        self._file = os.open(self._current_file.path, os.O_WRONLY | os.O_APPEND)
        if torn:
            os.ftruncate(self._file, self._current_file.size)
            os.fsync(self._file)

    @property
    def end(self) -> int:
        """The position after the last message."""
        return self._current_file.end

    def append(self, messages: Sequence[Message]) -> None:
        """Write messages at the end; on return they are on disk.

        Raises
        ------
        StoreError
            If they cannot be written; then this writer is of no more use.
        """
        try:
            for count, frame in frames_of(messages, self.end):
                self._write(count, frame)
            os.fsync(self._file)
        except OSError as error:
            raise StoreError(
                f"the spool {self._folder} cannot be written: {error.strerror}; make room there "
                "and start the query again: what is not on disk was not acknowledged"
            ) from error

    def last(self, count: int) -> list[tuple[str, bytes]]:
        """Topics and payloads of the last messages, as many as are there and asked for."""
        found: list[tuple[str, bytes]] = []
        for segment in reversed(_spool_files(self._folder)):
            wanted = count - len(found)
            if not wanted:
                break
            segment.scan()
            rows: list[tuple[str, bytes]] = []
            for some in ranges_of(segment, segment.end - wanted, segment.end, wanted):
                for batch in read_range(some):
                    topics, payloads = batch.column("topic"), batch.column("payload")
                    rows += zip(topics.to_pylist(), payloads.to_pylist(), strict=True)
            found = rows + found
        return found

    def close(self) -> None:
        """Let the spool go, for another one to write."""
        os.close(self._file)
        os.close(self._lock)

    def _write(self, count: int, frame: bytes) -> None:
        size = self._current_file.size
        if size and size + len(frame) > _MAX_FILE_BYTES:
            os.fsync(self._file)
            os.close(self._file)
            self._current_file = self._create(self.end)
            self._file = os.open(self._current_file.path, os.O_WRONLY | os.O_APPEND)
        left = memoryview(frame)
        while left:
            left = left[os.write(self._file, left) :]
        self._current_file.record_frame(count, len(frame))

    def _create(self, first: int) -> SpoolFile:
        made = SpoolFile(self._folder / f"{first:020d}.spool", first)
        os.close(os.open(made.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        sync_folder(self._folder)
        return made


def open_writer(folder: Path, wait_s: float = 0.0) -> SpoolWriter | None:
    """The writer of a spool, which is made where there is none; None while another has it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder / "receiver.lock", wait_s)
    if lock is None:
        return None
    try:
        return SpoolWriter(folder, lock)
    except StoreError:
        os.close(lock)
        raise


class SpoolReader:
    """One that reads a spool, under a name by which the spool knows how far it has come.

    Parameters
    ----------
    folder : Path
        The spool, made where there is none.
    name : str
        Messages stay until the readers of all names have passed them. A new name begins with
        the oldest message that is there.
    wait_s : float
        How long to wait for another one of this name to end.

    Raises
    ------
    StoreError
        If another one of this name is at work.
    """

    def __init__(self, folder: Path, name: str = "default", wait_s: float = 30.0) -> None:
        if not _NAME.fullmatch(name):
            raise StoreError(
                f"{name!r} cannot name a reader of a spool; use letters, digits, '-' and '_'"
            )
        self._folder = folder
        self._mark = folder / "readers" / name
        self._mark.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder / "readers" / f"{name}.lock", wait_s)
        if lock is None:
            raise StoreError(
                f"another query reads the spool {folder} as {name!r}; give each query a reader "
                "name of its own, with the option 'reader'"
            )
        self._lock = lock
        self._spool_files: dict[Path, SpoolFile] = {}
        try:
            with self._alone():
                self.refresh()
                if not self._mark.exists():
                    self._note(self.first)
        except StoreError:
            self.close()
            raise

    @property
    def first(self) -> int:
        """The position of the oldest message that is there, or would be."""
        return min((segment.first for segment in self._spool_files.values()), default=0)

    @property
    def end(self) -> int:
        """The position after the last message seen by `refresh`."""
        return max((segment.end for segment in self._spool_files.values()), default=0)

    def refresh(self) -> int:
        """Look what has come; the position after the last message."""
        there = _spool_files(self._folder)
        self._spool_files = {new.path: self._spool_files.get(new.path, new) for new in there}
        known = list(self._spool_files.values())
        for segment, later in zip(known, [*known[1:], None], strict=False):
            if later is None:
                segment.scan()
            elif segment.end < later.first and (segment.scan() or segment.end < later.first):
                raise damaged(segment)
        return self.end

    def ranges(self, start: int, end: int, most: int) -> list[MessageRange]:
        """What is at positions `start` to before `end`, in ranges of at most `most` messages.

        Raises
        ------
        StoreError
            If some of it is not there.
        """
        if start < end and (start < self.first or end > self.end):
            raise StoreError(
                f"positions {start} to {end - 1} are asked of the spool {self._folder}, which has "
                f"{self.first} to {self.end - 1}; spool and checkpoint do not belong together, "
                "or one of them was emptied: begin with a new spool and a new checkpoint"
            )
        return [
            some
            for segment in self._spool_files.values()
            for some in ranges_of(segment, start, end, most)
        ]

    def commit(self, position: int) -> None:
        """Note that what is before a position is read, and delete what no reader needs."""
        with self._alone():
            self._note(position)
            marks = [path for path in self._mark.parent.iterdir() if _NAME.fullmatch(path.name)]
            passed = min(int(path.read_text()) for path in marks)
            needed = min(passed, self.end - MIN_RETAINED_MESSAGES)
            known = list(self._spool_files.values())
            for segment, later in pairwise(known):
                if later.first <= needed:
                    segment.path.unlink(missing_ok=True)
                    del self._spool_files[segment.path]

    def close(self) -> None:
        """Let another one of this name read."""
        os.close(self._lock)

    def _note(self, position: int) -> None:
        replace_file(self._mark, b"%d\n" % position, durable=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other reader comes or deletes meanwhile."""
        lock = os.open(self._folder / "readers.lock", os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _spool_files(folder: Path) -> list[SpoolFile]:
    return [SpoolFile(path, int(path.stem)) for path in sorted(folder.glob("*.spool"))]


def _lock(path: Path, wait_s: float) -> int | None:
    """A lock that is held until the descriptor is closed or the process ends; None if taken."""
    held = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return held
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(held)
                return None
            time.sleep(0.05)
