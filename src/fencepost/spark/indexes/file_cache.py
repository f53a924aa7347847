"""Files of a store on the disk of a worker, as many bytes of them as there is room for.

    <cache>/in-use                  locked, shared, by those who fetch and map; alone to remove
    <cache>/<index>/<folder>/<file>
    <cache>/<index>/<folder>.lock   locked by the one who fetches, so that no two do

The cache is that of all processes of a machine, and of all indexes. A file appears in it whole or
not at all. What was used longest ago is removed first, a folder at a time; who has mapped its files
keeps them.
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
_DEFAULT_CAPACITY = 16 * 2**30
_MAX_TRANSFERS = 8  # at once

Item = TypeVar("Item")
Download = Callable[[str, BinaryIO], None]


def run_concurrently(work: Callable[[Item], None], items: Sequence[Item]) -> None:
    """Do something that waits for a network with many things, several at once."""
    with ThreadPoolExecutor(_MAX_TRANSFERS) as pool:
        list(pool.map(work, items))


@dataclass(frozen=True, slots=True)
class FileCache:
    """Files of one index.

    Attributes
    ----------
    root : Path
        Of all indexes.
    index : str
    room : int
        Bytes that may be there for all indexes, and what is in use besides.
    """

    root: Path
    index: str
    room: int

    @classmethod
    def of(cls, uri: str) -> FileCache:
        """That of an index, where the environment says, or in the folder for temporary files."""
        default = Path(tempfile.gettempdir()) / f"fencepost-indexes-{os.getuid()}"
        room = os.environ.get(_CAPACITY_VARIABLE, str(_DEFAULT_CAPACITY))
        if not room.isdecimal():
            raise ModelError(f"{_CAPACITY_VARIABLE} must be a number of bytes; saw {room!r:.40}")
        digest = hashlib.sha256(uri.encode()).hexdigest()[:16]
        return cls(Path(os.environ.get(_FOLDER_VARIABLE) or default), digest, int(room))

    @contextmanager
    def held(self, names: Iterable[str], download: Download) -> Iterator[Path]:
        """The folder of the index with these files, which nobody removes meanwhile."""
        by_folder: dict[str, list[str]] = {}
        for name in names:
            by_folder.setdefault(name.partition("/")[0], []).append(name)
        path = self.root / self.index
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self.root / "in-use", fcntl.LOCK_SH):
            for folder, own in by_folder.items():
                self._fetch(folder, own, download)
            yield path
        self._make_room(set(by_folder))

    def _fetch(self, folder: str, names: Sequence[str], download: Download) -> None:
        """Download what is not there."""
        path = self.root / self.index
        if all((path / name).exists() for name in names):
            os.utime(path / folder)
            return

        def fetch(name: str) -> None:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path / name, durable=True) as file:
                download(name, file)

        with _locked(path / f"{folder}.lock", fcntl.LOCK_EX):
            run_concurrently(fetch, [name for name in names if not (path / name).exists()])

    def _make_room(self, used: set[str]) -> None:
        """Remove what was used longest ago; whoever comes last to an end finds nobody there."""
        try:
            with _locked(self.root / "in-use", fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._remove_oldest({self.root / self.index / folder for folder in used})
        except BlockingIOError:
            return

    def _remove_oldest(self, used: set[Path]) -> None:
        folders = [folder for folder in self.root.glob("*/*") if folder.is_dir()]
        sizes = {folder: _size(folder) for folder in folders}
        total = sum(sizes.values())
        for folder in sorted(sizes.keys() - used, key=lambda own: own.stat().st_mtime_ns):
            if total <= self.room:
                return
            total -= sizes[folder]
            shutil.rmtree(folder, ignore_errors=True)
            folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    with path.open("a") as lock:
        fcntl.flock(lock, how)
        yield
