"""Save a matcher's subscriptions to a folder, and open them.

    manifest.json   names the segments; see `manifest`
    segment-abc/    a segment; see `segment_files`

`save` writes the segments under new names, then replaces the manifest in one step, then removes the
segments that the manifest no longer names. So a reader finds either the old index or the new one.
A lock excludes other writers from the comparison of the old manifest until the end.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fencepost import errors
from fencepost.atomic_replace import remove_unfinished_files, replace_file
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.segment import Segment
from fencepost.engine.snapshot import Snapshot
from fencepost.engine.storage.folder_lock import LOCK, folder_lock
from fencepost.engine.storage.known_versions import KnownVersions
from fencepost.engine.storage.manifest import (
    MANIFEST,
    SegmentEntry,
    build_manifest,
    damaged_index_error,
    decode_manifest,
    encode_manifest,
    read_manifest,
)
from fencepost.engine.storage.segment_files import (
    DAMAGE_ERRORS,
    PREFIX,
    open_segments,
    write_segment,
)

Opened = tuple[tuple[Segment, ...], ColumnRegistry]


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
                known.check(path, read_manifest(path))
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
    manifest = b""
    try:
        entries.extend(write_segment(path, segment, segments.version) for segment in segments)
        manifest = encode_manifest(build_manifest(entries, columns))
        replace_file(path / MANIFEST, manifest, durable=True)
    except BaseException:
        # The new manifest may be in place already, if the folder alone could not be synced.
        if not _has_manifest(path, manifest):
            for entry in entries:
                shutil.rmtree(path / entry.folder, ignore_errors=True)
        raise
    current = {entry.folder for entry in entries}
    for folder in path.glob(f"{PREFIX}*"):
        if folder.name not in current:
            shutil.rmtree(folder, ignore_errors=True)
    remove_unfinished_files(path / MANIFEST)
    return manifest


def _has_manifest(path: Path, manifest: bytes) -> bool:
    """Return whether the manifest in a folder is this one."""
    try:
        return (path / MANIFEST).read_bytes() == manifest
    except OSError:
        return False


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
        content = read_manifest(path)
        try:
            manifest = decode_manifest(str(path), content)
            opened = open_segments(path, manifest, manifest.segments)
        except DAMAGE_ERRORS as error:
            # Another process may have replaced the index since the manifest was read.
            if read_manifest(path) == content:
                raise damaged_index_error(str(path), error) from error
        else:
            known.add(path, content)
            return opened
