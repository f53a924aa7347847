"""`folder_lock`: excludes other writers from the folder of an index.

A lock file in the folder is locked while one writer works, and removed afterwards. The operating
system releases the lock of a process that ends, so a lock file that such a process leaves behind
excludes nobody.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fencepost.errors import IndexingError

LOCK = ".building"


@contextmanager
def folder_lock(path: Path) -> Iterator[None]:
    """Exclude other writers from a folder while the context lasts.

    Raises
    ------
    IndexingError
        If another writer holds the lock.
    """
    file = path / LOCK
    while True:
        with file.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise IndexingError(
                    f"another process is writing an index in {path}; try again when it has finished"
                ) from None
            # The lock is worth nothing if its last owner removed the file after it was opened.
            if _is_at(lock, file):
                try:
                    yield
                finally:
                    file.unlink(missing_ok=True)
                return


def _is_at(opened: IO[Any], path: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(opened.fileno()), path.stat())
    except FileNotFoundError:
        return False
