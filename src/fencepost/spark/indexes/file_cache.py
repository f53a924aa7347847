"""Provides `FileCache`: files of an object store on a worker's disk, up to a number of bytes.

    <cache>/in-use                  shared lock to download and map files, exclusive lock to evict
    <cache>/<index>/<folder>/<file>
    <cache>/<index>/<folder>.lock   exclusive lock to download, so that a file is downloaded once

All processes of a machine and all indexes share the cache. A file appears in it whole or not at
all. Eviction removes whole folders, least recently used first; a process that has mapped files of
an evicted folder keeps its mappings.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from fencepost.atomic_replace import atomic_write
from fencepost.errors import ModelError

_FOLDER_VARIABLE = "FENCEPOST_INDEX_CACHE_DIR"
_CAPACITY_VARIABLE = "FENCEPOST_INDEX_CACHE_BYTES"
_DEFAULT_CAPACITY_BYTES = 16 * 2**30
_MAX_CONCURRENT_TRANSFERS = 8

Item = TypeVar("Item")
Download = Callable[[str, BinaryIO], None]


def run_concurrently(work: Callable[[Item], None], items: Sequence[Item]) -> None:
    """Call `work` with each item on a few threads, for work that waits for the network."""
    with ThreadPoolExecutor(_MAX_CONCURRENT_TRANSFERS) as pool:
        list(pool.map(work, items))


@dataclass(frozen=True, slots=True)
class FileCache:
    """The cached files of one index.

    Attributes
    ----------
    root : Path
        The folder of the cache, which all indexes share.
    index : str
        The folder of this index in it.
    capacity_bytes : int
        The size to which eviction reduces the whole cache; files in use may exceed it.
    """

    root: Path
    index: str
    capacity_bytes: int

    @classmethod
    def of(cls, uri: str) -> FileCache:
        """Return the cache of the index at a URI.

        Environment variables set its folder, by default in the folder for temporary files, and its
        capacity.
        """
        default = Path(tempfile.gettempdir()) / f"fencepost-indexes-{os.getuid()}"
        capacity = os.environ.get(_CAPACITY_VARIABLE, str(_DEFAULT_CAPACITY_BYTES))
        if not capacity.isdecimal():
            raise ModelError(
                f"{_CAPACITY_VARIABLE} must be a number of bytes; saw {capacity!r:.40}"
            )
        digest = hashlib.sha256(uri.encode()).hexdigest()[:16]
        return cls(Path(os.environ.get(_FOLDER_VARIABLE) or default), digest, int(capacity))

    @contextmanager
    def local_files(self, names: Iterable[str], download: Download) -> Iterator[Path]:
        """Provide the local folder of the index with these files; none is evicted meanwhile."""
        by_folder: dict[str, list[str]] = {}
        for name in names:
            by_folder.setdefault(name.partition("/")[0], []).append(name)
        path = self.root / self.index
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _file_lock(self.root / "in-use", fcntl.LOCK_SH):
            for folder, names_in_folder in by_folder.items():
                self._fetch(folder, names_in_folder, download)
            yield path
        self._evict(set(by_folder))

    def _fetch(self, folder: str, names: Sequence[str], download: Download) -> None:
        """Download the files that are missing."""
        path = self.root / self.index
        if all((path / name).exists() for name in names):
            os.utime(path / folder)
            return

        def fetch(name: str) -> None:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path / name, durable=True) as file:
                download(name, file)

        with _file_lock(path / f"{folder}.lock", fcntl.LOCK_EX):
            run_concurrently(fetch, [name for name in names if not (path / name).exists()])

    def _evict(self, used: set[str]) -> None:
        """Evict files, unless another process uses the cache; the last process to finish evicts."""
        try:
            with _file_lock(self.root / "in-use", fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._evict_oldest({self.root / self.index / folder for folder in used})
        except BlockingIOError:
            return

    def _evict_oldest(self, used: set[Path]) -> None:
        folders = [folder for folder in self.root.glob("*/*") if folder.is_dir()]
        size_bytes = {folder: _size_bytes(folder) for folder in folders}
        total_bytes = sum(size_bytes.values())
        for folder in sorted(
            size_bytes.keys() - used, key=lambda folder: folder.stat().st_mtime_ns
        ):
            if total_bytes <= self.capacity_bytes:
                return
            total_bytes -= size_bytes[folder]
            shutil.rmtree(folder, ignore_errors=True)
            folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@contextmanager
def _file_lock(path: Path, how: int) -> Iterator[None]:
    with path.open("a") as lock:
        fcntl.flock(lock, how)
        yield
