"""Save a matcher's subscriptions to a folder, open them, and verify the files of a folder.

    manifest.json   names the segments; see `manifest`
    segment-abc/    a segment; see `segment_files`

`save` writes the segments under new names, then replaces the manifest in one step, then removes the
segments that the manifest no longer names. So a reader finds either the old index or the new one.
A lock excludes other writers from the comparison of the old manifest until the end.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from fencepost import errors
from fencepost.atomic_replace import replace_file
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.segment import Segment
from fencepost.engine.snapshot import Snapshot
from fencepost.engine.storage.file_checksums import checked_path
from fencepost.engine.storage.folder_lock import LOCK, folder_lock
from fencepost.engine.storage.known_versions import KnownVersions
from fencepost.engine.storage.manifest import (
    MANIFEST,
    SegmentEntry,
    build_manifest,
    damaged_index_error,
    decode_manifest,
    encode_manifest,
    missing_index_error,
)
from fencepost.engine.storage.segment_files import (
    DAMAGE_ERRORS,
    PREFIX,
    open_segments,
    write_segment,
)

Opened = tuple[tuple[Segment, ...], ColumnRegistry]


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes
    ----------
    files, bytes : int
        The number of files that the manifest names, and their size. A missing file has no bytes.
    damaged : tuple of (str, str)
        The name of each damaged file, and what is wrong with it.
    """

    files: int
    bytes: int
    damaged: tuple[tuple[str, str], ...]


def save(
    path: Path, segments: Snapshot, columns: ColumnRegistry, known: KnownVersions, overwrite: bool
) -> None:
    """Write an index to a folder.

    Parameters
    ----------
    path : Path
        The folder.
    segments, columns : Snapshot, ColumnRegistry
        The subscriptions.
    known : KnownVersions
        The versions that the matcher holds; it also receives the version that is written.
    overwrite : bool
        Whether to replace an index of any version.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not (path / LOCK).exists():  # no lock file appears in a folder that holds no index
            _check_content(path)
        with folder_lock(path):
            _check_content(path)
            if not overwrite and (path / MANIFEST).exists():
                known.check(path, _read_manifest(path))
            known.add(path, _write(path, segments, columns))
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"no index can be written to {path!s:.200}: {error}") from error


def _check_content(path: Path) -> None:
    """Raise an `IndexingError` if a folder holds files but no index."""
    if (path / MANIFEST).exists() or all(file.name == LOCK for file in path.iterdir()):
        return
    raise errors.IndexingError(
        f"{path} is not empty and holds no index; give another folder, or remove it"
    )


def _write(path: Path, segments: Snapshot, columns: ColumnRegistry) -> bytes:
    """Write an index, replacing any index in the folder. Return the manifest."""
    entries: list[SegmentEntry] = []
    try:
        entries.extend(write_segment(path, segment, segments.version) for segment in segments)
        manifest = encode_manifest(build_manifest(entries, columns))
        replace_file(path / MANIFEST, manifest, durable=True)
    except BaseException:
        for entry in entries:
            shutil.rmtree(path / entry.folder, ignore_errors=True)
        raise
    current = {entry.folder for entry in entries}
    for folder in path.glob(f"{PREFIX}*"):
        if folder.name not in current:
            shutil.rmtree(folder, ignore_errors=True)
    return manifest


def open(path: Path, known: KnownVersions) -> Opened:
    """Open an index. Return its segments, mapped from their files, and its columns.

    Parameters
    ----------
    path : Path
        The folder.
    known : KnownVersions
        It receives the version that is opened.
    """
    while True:
        content = _read_manifest(path)
        try:
            manifest = decode_manifest(str(path), content)
            opened = open_segments(path, manifest, manifest.segments)
        except DAMAGE_ERRORS as error:
            # Another process may have replaced the index since the manifest was read.
            if _read_manifest(path) == content:
                raise damaged_index_error(str(path), error) from error
        else:
            known.add(path, content)
            return opened


def verify(path: Path) -> Verification:
    """Compare every file of an index with its checksum, whatever its size.

    The index is the newest version in the folder, with its router if Spark built it.

    Raises
    ------
    IndexingError
        If the folder holds no index, or a manifest is damaged.
    """
    while True:
        content = _read_manifest(path)
        names, size, damaged = 0, 0, []
        for entry, name in _files(path, content):
            names += 1
            try:
                size += checked_path(path, entry, name, max_bytes=None).stat().st_size
            except (OSError, ValueError) as error:
                damaged.append((f"{entry.folder}/{name}", _reason(error)))
        if not damaged or _read_manifest(path) == content:
            return Verification(names, size, tuple(damaged))


def _files(path: Path, content: bytes) -> Iterator[tuple[SegmentEntry, str]]:
    """Yield each file that a manifest names, with its segment."""
    manifest = decode_manifest(str(path), content)
    for entry in manifest.segments:
        for name in entry.checksums:
            yield entry, name
    if manifest.router is not None:
        router = _read_manifest(path / manifest.router)
        for entry, name in _files(path / manifest.router, router):
            yield replace(entry, folder=f"{manifest.router}/{entry.folder}"), name


def _reason(error: OSError | ValueError) -> str:
    """Return why a file is damaged, without its name."""
    if isinstance(error, FileNotFoundError):
        return "is missing"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return "differs from its checksum"


def _read_manifest(path: Path) -> bytes:
    try:
        return (path / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise missing_index_error(str(path)) from None
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"the index in {path} cannot be read: {error}") from error
