"""Provides the writer and the readers of a spool: a queue of messages on disk.

The spool keeps messages in the order of arrival, each at a position that never changes:

    folder/
      00000000000000000000.spool    a file, named after the position of its first message
      00000000000000052311.spool    the last file, to which the writer appends
      receiver.lock                 held by the one process that writes
      readers/<name>                the position up to which the reader of that name has read
      readers/<name>.lock           held by the one process that reads under that name
      readers.lock                  held while a reader starts or deletes files

One process writes; it and other processes read. `spool_files` describes the frames of a file, and
how a frame torn by a crash differs from a damaged one. The messages of a torn frame were not
acknowledged, so the broker sends them again.

This module knows neither MQTT nor Spark.
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

#: The last messages, which stay on disk although every reader has passed them.
MIN_RETAINED_MESSAGES = 4096

_MAX_FILE_BYTES = 64 << 20
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class SpoolWriter:
    """Appends to a spool; `open_writer` makes it.

    Parameters
    ----------
    folder : Path
        The spool.
    lock : int
        The file descriptor of the writer's lock, which `close` releases.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock
        files = _spool_files(folder)
        self._current_file = files[-1] if files else self._create(0)
        torn_bytes = self._current_file.scan()
        self._file = os.open(self._current_file.path, os.O_WRONLY | os.O_APPEND)
        if torn_bytes:
            os.ftruncate(self._file, self._current_file.size)
            os.fsync(self._file)

    @property
    def end(self) -> int:
        """The position after the last message."""
        return self._current_file.end

    def append(self, messages: Sequence[Message]) -> None:
        """Append messages; when it returns, they are on disk.

        Raises
        ------
        StoreError
            If they cannot be written; the writer must then be closed.
        """
        try:
            for count, frame in frames_of(messages, self.end):
                self._write(count, frame)
            os.fsync(self._file)
        except OSError as error:
            raise StoreError(
                f"the spool {self._folder} cannot be written: {error.strerror}; free disk space "
                "and start the query again: messages not on disk were not acknowledged"
            ) from error

    def last(self, count: int) -> list[tuple[str, bytes]]:
        """Return the topics and payloads of the last messages, at most `count`."""
        messages: list[tuple[str, bytes]] = []
        for file in reversed(_spool_files(self._folder)):
            missing = count - len(messages)
            if not missing:
                break
            file.scan()
            rows: list[tuple[str, bytes]] = []
            for message_range in ranges_of(file, file.end - missing, file.end, missing):
                for batch in read_range(message_range):
                    topics, payloads = batch.column("topic"), batch.column("payload")
                    rows += zip(topics.to_pylist(), payloads.to_pylist(), strict=True)
            messages = rows + messages
        return messages

    def close(self) -> None:
        """Close the file and release the lock, so that another process can write."""
        os.close(self._file)
        os.close(self._lock)

    def _write(self, count: int, frame: bytes) -> None:
        size = self._current_file.size
        if size and size + len(frame) > _MAX_FILE_BYTES:
            os.fsync(self._file)
            os.close(self._file)
            self._current_file = self._create(self.end)
            self._file = os.open(self._current_file.path, os.O_WRONLY | os.O_APPEND)
        remaining = memoryview(frame)
        while remaining:
            remaining = remaining[os.write(self._file, remaining) :]
        self._current_file.record_frame(count, len(frame))

    def _create(self, first: int) -> SpoolFile:
        file = SpoolFile(self._folder / f"{first:020d}.spool", first)
        os.close(os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        sync_folder(self._folder)
        return file


def open_writer(folder: Path, wait_s: float = 0.0) -> SpoolWriter | None:
    """Return the writer of a spool, or None while another process writes to it.

    Parameters
    ----------
    folder : Path
        The spool; created if it is missing.
    wait_s : float
        How long to wait for another writer to close.

    Raises
    ------
    StoreError
        If the last file is damaged.
    """
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
    """Reads a spool under a name; the spool stores the position that each name has reached.

    Parameters
    ----------
    folder : Path
        The spool; created if it is missing.
    name : str
        The name of the reader. Messages stay until the readers of all names have passed them. A
        new name begins with the oldest message.
    wait_s : float
        How long to wait for another reader of this name to close.

    Raises
    ------
    StoreError
        If the name is invalid, or another reader of this name is open.
    """

    def __init__(self, folder: Path, name: str = "default", wait_s: float = 30.0) -> None:
        if not _NAME.fullmatch(name):
            raise StoreError(
                f"{name!r} cannot name a reader of a spool; use letters, digits, '-' and '_'"
            )
        self._folder = folder
        self._position_file = folder / "readers" / name
        self._position_file.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder / "readers" / f"{name}.lock", wait_s)
        if lock is None:
            raise StoreError(
                f"another query reads the spool {folder} as {name!r}; give each query its own "
                "reader name, with the option 'reader'"
            )
        self._lock = lock
        self._spool_files: dict[Path, SpoolFile] = {}
        try:
            with self._readers_locked():
                self.refresh()
                if not self._position_file.exists():
                    self._save_position(self.first)
        except StoreError:
            self.close()
            raise

    @property
    def first(self) -> int:
        """The position of the oldest message; 0 if the spool has no files."""
        return min((file.first for file in self._spool_files.values()), default=0)

    @property
    def end(self) -> int:
        """The position after the last message seen by `refresh`."""
        return max((file.end for file in self._spool_files.values()), default=0)

    def refresh(self) -> int:
        """Read the frames that were appended; return the position after the last message."""
        current = _spool_files(self._folder)
        self._spool_files = {file.path: self._spool_files.get(file.path, file) for file in current}
        files = list(self._spool_files.values())
        for file, next_file in zip(files, [*files[1:], None], strict=False):
            if next_file is None:
                file.scan()
            elif file.end < next_file.first and (file.scan() or file.end < next_file.first):
                raise damaged(file)
        return self.end

    def ranges(self, start: int, end: int, max_messages: int) -> list[MessageRange]:
        """Return the ranges of files that hold a range of positions.

        Parameters
        ----------
        start, end : int
            The first position, and the position after the last.
        max_messages : int
            The largest number of messages in a range.

        Raises
        ------
        StoreError
            If the spool lacks some of the positions.
        """
        if start < end and (start < self.first or end > self.end):
            raise StoreError(
                f"positions {start} to {end - 1} were requested from the spool {self._folder}, "
                f"which has {self.first} to {self.end - 1}; spool and checkpoint do not belong "
                "together, or one of them was emptied: start with a new spool and checkpoint"
            )
        return [
            message_range
            for file in self._spool_files.values()
            for message_range in ranges_of(file, start, end, max_messages)
        ]

    def commit(self, position: int) -> None:
        """Save that messages before a position are read; delete files that no reader needs."""
        with self._readers_locked():
            self._save_position(position)
            position_files = [
                path for path in self._position_file.parent.iterdir() if _NAME.fullmatch(path.name)
            ]
            min_position = min(int(path.read_text()) for path in position_files)
            first_needed = min(min_position, self.end - MIN_RETAINED_MESSAGES)
            files = list(self._spool_files.values())
            for file, next_file in pairwise(files):
                if next_file.first <= first_needed:
                    file.path.unlink(missing_ok=True)
                    del self._spool_files[file.path]

    def close(self) -> None:
        """Release the lock, so that another reader can use this name."""
        os.close(self._lock)

    def _save_position(self, position: int) -> None:
        replace_file(self._position_file, b"%d\n" % position, durable=True)

    @contextmanager
    def _readers_locked(self) -> Iterator[None]:
        """Exclude other readers from starting and from deleting files."""
        lock = os.open(self._folder / "readers.lock", os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _spool_files(folder: Path) -> list[SpoolFile]:
    return [SpoolFile(path, int(path.stem)) for path in sorted(folder.glob("*.spool"))]


def _lock(path: Path, wait_s: float) -> int | None:
    """Lock a file until the returned descriptor is closed or the process ends; None if taken."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(0.05)
