"""Where an index lies: a folder that is mapped in place, or an object store with a cache on disk.

Names of files are relative to the index. But for the manifests, no file is ever written twice, so
what is in the cache is what is in the store.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from fencepost.atomic_replace import replace_file
from fencepost.engine.storage.manifest import (
    MANIFEST,
    Manifest,
    damaged_index_error,
    decode_manifest,
    manifest_name,
    missing_index_error,
)
from fencepost.errors import IndexingError
from fencepost.spark.indexes.file_cache import FileCache, run_concurrently

_LOCK = ".building"


class Folder(ABC):
    """The folder of an index.

    Attributes
    ----------
    uri : str
        From which `folder_of` makes it again, in another process.
    name : str
        As it is shown.
    """

    def __init__(self, uri: str, name: str) -> None:
        self.uri = uri
        self.name = name

    def manifest(self, version: int | None = None) -> Manifest:
        """What the manifest says, or said at a version."""
        file = manifest_name(version)
        text = self.text(file)
        if text is not None:
            return decode_manifest(self.name, text, file)
        if version is not None and self.has_index():
            raise removed(self.name, version)
        raise missing_index_error(self.name)

    def has_index(self) -> bool:
        """Whether there is an index."""
        return self.text(MANIFEST) is not None

    @abstractmethod
    def text(self, name: str) -> str | None:
        """What a small file holds at this moment; None if there is none."""

    @abstractmethod
    def stamp(self, name: str) -> object:
        """What differs after a file was replaced; None if there is none."""

    @abstractmethod
    def modified_s(self) -> dict[str, float]:
        """The names of what is directly in it, and when files were written."""

    @abstractmethod
    def held(self, names: Iterable[str]) -> AbstractContextManager[Path]:
        """A folder on disk in which these files are; what is mapped there stays mapped."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Path]:
        """A folder on disk; new files that are written into it are files of the index then."""

    @abstractmethod
    def replace(self, name: str, text: str) -> None:
        """Let a file hold a text, in one step."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files and folders, where they are there."""

    @abstractmethod
    def build_lock(self) -> AbstractContextManager[None]:
        """Nobody else builds there, as far as that can be known."""

    @abstractmethod
    def within(self, name: str) -> str:
        """The address of something in it."""


def removed(name: str, version: object, why: object = None) -> IndexingError:
    """What is said where a version, or a file of it, is not there any more."""
    if version is None:
        return damaged_index_error(name, why)
    told = "" if why is None else f" or is damaged ({why})"
    return IndexingError(
        f"version {version} of the index in {name} was removed after newer ones came{told}; match "
        "again, or start the stream again: it goes on with the newest"
    )


def folder_of(path: str) -> Folder:
    """The folder at a path, or at an address such as s3://bucket/index."""
    if "://" not in path:
        return _Local(Path(path).absolute())
    parts = urlsplit(path)
    if parts.scheme == "file":
        return _Local(Path(unquote(parts.path)))
    return _store(path)


@cache
def _store(uri: str) -> Store:
    """One for a process: it holds connections."""
    parts = urlsplit(uri)
    try:
        found, root = _system(uri)
    except (OSError, ValueError) as error:
        raise IndexingError(
            f"no store can be reached at {parts.scheme}://{parts.hostname or ''}{parts.path}: "
            f"{error}; give a path, or an address that pyarrow.fs.FileSystem.from_uri takes"
        ) from error
    return Store(uri, found, root)


def _system(uri: str) -> tuple[fs.FileSystem, str]:
    found: tuple[fs.FileSystem, str]
    if uri.startswith("s3://"):
        with suppress(ValueError):  # an older pyarrow does not know how
            # A small file is written by one request in place of three.
            option = f"{'&' if '?' in uri else '?'}allow_delayed_open=true"
            found = fs.FileSystem.from_uri(uri + option)
            return found
    found = fs.FileSystem.from_uri(uri)
    return found


class _Local(Folder):
    """A folder that all workers see: a local one for a local Spark, or a network drive."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), str(path))
        self._path = path

    def text(self, name: str) -> str | None:
        try:
            return (self._path / name).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise IndexingError(f"the index in {self.name} cannot be read: {error}") from error

    def stamp(self, name: str) -> object:
        try:
            state = (self._path / name).stat()
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns

    def modified_s(self) -> dict[str, float]:
        with os.scandir(self._path) as found:
            return {entry.name: entry.stat().st_mtime for entry in found}

    @contextmanager
    def held(self, names: Iterable[str]) -> Iterator[Path]:
        yield self._path

    @contextmanager
    def writing(self) -> Iterator[Path]:
        yield self._path

    def replace(self, name: str, text: str) -> None:
        replace_file(self._path / name, text.encode(), durable=True)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            path = self._path / name
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    @contextmanager
    def build_lock(self) -> Iterator[None]:
        """The system lets go of the lock when the process ends."""
        self._path.mkdir(parents=True, exist_ok=True)
        with (self._path / _LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise IndexingError(
                    f"an index is being built in {self.name} at this moment; build again when it "
                    "is done"
                ) from None
            yield

    def within(self, name: str) -> str:
        return str(self._path / name)


class Store(Folder):
    """A folder in an object store, or in any other file system of `pyarrow.fs`.

    There are no locks in it: `alone` lets everybody in. A file is replaced by writing it, which in
    an object store is one step.
    """

    def __init__(self, uri: str, system: fs.FileSystem, root: str) -> None:
        parts = urlsplit(uri)  # it may hold a password
        super().__init__(uri, f"{parts.scheme}://{parts.hostname or ''}{parts.path}")
        self._system = system
        self._root = root.rstrip("/")
        self._cache = FileCache.of(uri)

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def text(self, name: str) -> str | None:
        try:
            with self._system.open_input_stream(self._at(name)) as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise IndexingError(f"the index in {self.name} cannot be read: {error}") from error

    def stamp(self, name: str) -> object:
        info = self._system.get_file_info(self._at(name))
        return (info.mtime_ns, info.size) if info.type == fs.FileType.File else None

    def modified_s(self) -> dict[str, float]:
        selector = fs.FileSelector(self._root, allow_not_found=True)
        found = self._system.get_file_info(selector)
        return {info.base_name: (info.mtime_ns or 0) / 1e9 for info in found}

    @contextmanager
    def held(self, names: Iterable[str]) -> Iterator[Path]:
        with self._cache.held(names, self._download) as path:
            yield path

    def _download(self, name: str, file: BinaryIO) -> None:
        with self._system.open_input_stream(self._at(name)) as source:
            shutil.copyfileobj(source, file, 2**20)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
            path = Path(folder)
            yield path
            files = [file for file in path.rglob("*") if file.is_file()]
            run_concurrently(lambda file: self._upload(file, str(file.relative_to(path))), files)

    def _upload(self, file: Path, name: str) -> None:
        with file.open("rb") as source, self._output(name) as sink:
            shutil.copyfileobj(source, sink, 2**20)

    def replace(self, name: str, text: str) -> None:
        with self._output(name) as sink:
            sink.write(text.encode())

    def _output(self, name: str) -> fs.NativeFile:
        path = self._at(name)
        try:
            return self._system.open_output_stream(path)
        except FileNotFoundError:  # where folders are more than parts of names
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
            return self._system.open_output_stream(path)

    def remove(self, names: Iterable[str]) -> None:
        infos = self._system.get_file_info([self._at(name) for name in names])
        for info in infos:
            if info.type == fs.FileType.Directory:
                self._system.delete_dir(info.path)
            elif info.type == fs.FileType.File:
                self._system.delete_file(info.path)

    @contextmanager
    def build_lock(self) -> Iterator[None]:
        yield

    def within(self, name: str) -> str:
        base, mark, query = self.uri.partition("?")
        return f"{base.rstrip('/')}/{name}{mark}{query}"
