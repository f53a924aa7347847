"""Provides `Folder`: an index's folder, mapped in place, or in an object store and cached on disk.

File names are relative to the index. Only manifests are ever replaced, so a cached file never
differs from the file in the store.
"""

from __future__ import annotations

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
from fencepost.engine.storage.folder_lock import folder_lock
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


class Folder(ABC):
    """The folder of an index.

    Attributes
    ----------
    uri : str
        The path or address; `folder_of(uri)` opens the same folder in another process.
    name : str
        The path or address in messages, without credentials.
    """

    def __init__(self, uri: str, name: str) -> None:
        self.uri = uri
        self.name = name

    def manifest(self, version: int | None = None) -> Manifest:
        """Return the newest manifest, or the manifest of a version."""
        file = manifest_name(version)
        text = self.read_text(file)
        if text is not None:
            return decode_manifest(self.name, text, file)
        if version is not None and self.has_index():
            raise removed_version_error(self.name, version)
        raise missing_index_error(self.name)

    def has_index(self) -> bool:
        """Return whether the folder holds an index."""
        return self.read_text(MANIFEST) is not None

    @abstractmethod
    def read_text(self, name: str) -> str | None:
        """Return the current text of a small file; None if the file does not exist."""

    @abstractmethod
    def stamp(self, name: str) -> object:
        """Return a value that changes when the file is replaced; None if it does not exist."""

    @abstractmethod
    def modified_s(self) -> dict[str, float]:
        """Return the names in this folder, not below it, and their modification times."""

    @abstractmethod
    def local_files(self, names: Iterable[str]) -> AbstractContextManager[Path]:
        """Provide a local folder with these files; mappings made in it outlive the context."""

    @abstractmethod
    def staging_folder(self) -> AbstractContextManager[Path]:
        """Provide a local folder; files written into it are in the index when the context ends."""

    @abstractmethod
    def replace(self, name: str, text: str) -> None:
        """Replace the text of a file in one step, or create the file."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files and folders; missing ones are ignored."""

    @abstractmethod
    def build_lock(self) -> AbstractContextManager[None]:
        """Exclude other writers while the context lasts, where the file system has locks."""

    @abstractmethod
    def address_of(self, name: str) -> str:
        """Return the path or address of a file in this folder."""


def removed_version_error(name: str, version: object, why: object = None) -> IndexingError:
    """Return the error for a version of an index of which the manifest or a file is missing.

    Parameters
    ----------
    name : str
        The name of the folder.
    version : int or None
        None if the index has no versions; the error then says that the index is damaged.
    why : object
        What reading it raised.
    """
    if version is None:
        return damaged_index_error(name, why)
    damage = "" if why is None else f" or is damaged ({why})"
    return IndexingError(
        f"version {version} of the index in {name} was removed after newer versions were "
        f"published{damage}; match again, or start the stream again: it continues with the newest"
    )


def folder_of(path: str) -> Folder:
    """Return the folder at a path, or at an address such as ``s3://bucket/index``."""
    if "://" not in path:
        return _LocalFolder(Path(path).absolute())
    parts = urlsplit(path)
    if parts.scheme == "file":
        return _LocalFolder(Path(unquote(parts.path)))
    return _object_store_folder(path)


@cache
def _object_store_folder(uri: str) -> ObjectStoreFolder:
    """Return the folder at an address; cached, because it holds connections."""
    parts = urlsplit(uri)
    try:
        system, root = _file_system(uri)
    except (OSError, ValueError) as error:
        raise IndexingError(
            f"cannot reach an object store at {parts.scheme}://{parts.hostname or ''}{parts.path}: "
            f"{error}; give a path, or an address that pyarrow.fs.FileSystem.from_uri accepts"
        ) from error
    return ObjectStoreFolder(uri, system, root)


def _file_system(uri: str) -> tuple[fs.FileSystem, str]:
    opened: tuple[fs.FileSystem, str]
    if uri.startswith("s3://"):
        with suppress(ValueError):  # an older pyarrow does not know the option
            # With it, a small file takes one request instead of three.
            option = f"{'&' if '?' in uri else '?'}allow_delayed_open=true"
            opened = fs.FileSystem.from_uri(uri + option)
            return opened
    opened = fs.FileSystem.from_uri(uri)
    return opened


class _LocalFolder(Folder):
    """A folder that all workers share: on the local disk of one machine, or a network drive."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), str(path))
        self._path = path

    def read_text(self, name: str) -> str | None:
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
        with os.scandir(self._path) as entries:
            return {entry.name: entry.stat().st_mtime for entry in entries}

    @contextmanager
    def local_files(self, names: Iterable[str]) -> Iterator[Path]:
        yield self._path

    @contextmanager
    def staging_folder(self) -> Iterator[Path]:
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
        self._path.mkdir(parents=True, exist_ok=True)
        with folder_lock(self._path):
            yield

    def address_of(self, name: str) -> str:
        return str(self._path / name)


class ObjectStoreFolder(Folder):
    """A folder in an object store, or in any other file system of `pyarrow.fs`.

    There are no locks: `build_lock` excludes nobody. A file is replaced by overwriting it, which is
    atomic in an object store.
    """

    def __init__(self, uri: str, system: fs.FileSystem, root: str) -> None:
        parts = urlsplit(uri)  # `name` leaves out a password in the URI
        super().__init__(uri, f"{parts.scheme}://{parts.hostname or ''}{parts.path}")
        self._system = system
        self._root = root.rstrip("/")
        self._cache = FileCache.of(uri)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def read_text(self, name: str) -> str | None:
        try:
            with self._system.open_input_stream(self._path(name)) as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise IndexingError(f"the index in {self.name} cannot be read: {error}") from error

    def stamp(self, name: str) -> object:
        info = self._system.get_file_info(self._path(name))
        return (info.mtime_ns, info.size) if info.type == fs.FileType.File else None

    def modified_s(self) -> dict[str, float]:
        selector = fs.FileSelector(self._root, allow_not_found=True)
        infos = self._system.get_file_info(selector)
        return {info.base_name: (info.mtime_ns or 0) / 1e9 for info in infos}

    @contextmanager
    def local_files(self, names: Iterable[str]) -> Iterator[Path]:
        with self._cache.local_files(names, self._download) as path:
            yield path

    def _download(self, name: str, file: BinaryIO) -> None:
        with self._system.open_input_stream(self._path(name)) as source:
            shutil.copyfileobj(source, file, 2**20)

    @contextmanager
    def staging_folder(self) -> Iterator[Path]:
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
        path = self._path(name)
        try:
            return self._system.open_output_stream(path)
        except FileNotFoundError:  # a file system with real folders, unlike an object store
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
            return self._system.open_output_stream(path)

    def remove(self, names: Iterable[str]) -> None:
        infos = self._system.get_file_info([self._path(name) for name in names])
        for info in infos:
            if info.type == fs.FileType.Directory:
                self._system.delete_dir(info.path)
            elif info.type == fs.FileType.File:
                self._system.delete_file(info.path)

    @contextmanager
    def build_lock(self) -> Iterator[None]:
        yield

    def address_of(self, name: str) -> str:
        base, mark, query = self.uri.partition("?")
        return f"{base.rstrip('/')}/{name}{mark}{query}"
