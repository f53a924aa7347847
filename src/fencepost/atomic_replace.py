"""Replacement of files in one step: readers, and a crash, meet the old or the new file."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path, *, durable: bool, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` when the block ends without an error.

    Parameters
    ----------
    durable : bool
        Synchronise file and folder, so that the new file survives a crash of the machine.
    mode : int
        Permissions of the file, less those that the umask removes.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def replace_file(path: Path, content: bytes, *, durable: bool, mode: int = 0o666) -> None:
    """Replace the content of a file in one step; see `atomic_write`."""
    with atomic_write(path, durable=durable, mode=mode) as file:
        file.write(content)


def remove_unfinished_files(path: Path) -> None:
    """Remove files that killed writers left beside a file. No writer may be at work."""
    for temporary in path.parent.glob(f".{path.name}.*"):
        temporary.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Synchronise a folder, so that the names in it survive a crash of the machine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
