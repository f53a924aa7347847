"""Files that are replaced in one step: a reader, or a crash, meets the old one or the new one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path, *, durable: bool, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A new file, which takes the place of `path` where the block ends without an error.

    Parameters
    ----------
    durable : bool
        Whether file and folder are synchronised, so that the new file outlasts the machine.
    mode : int
        Permissions, of which the umask takes some.
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(handle)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def replace_file(path: Path, content: bytes, *, durable: bool, mode: int = 0o666) -> None:
    """Write a file in one step; see `atomic_write`."""
    with atomic_write(path, durable=durable, mode=mode) as file:
        file.write(content)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder would outlast the machine."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
