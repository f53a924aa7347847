"""Save a matcher's subscriptions to a folder, and open them.

    manifest.json   names the segments; see `manifest`
    segment-abc/    a segment; see `segment_files`

`save` writes the segments under new names, then replaces the manifest in one step, then removes the
segments that the manifest no longer names. So a reader finds either the old index or the new one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fencepost import errors
from fencepost.atomic_replace import replace_file
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.segment import Segment
from fencepost.engine.snapshot import Snapshot
from fencepost.engine.storage.manifest import (
    MANIFEST,
    SegmentEntry,
    build_manifest,
    damaged_index_error,
    decode_manifest,
    encode_json,
    missing_index_error,
)
from fencepost.engine.storage.segment_files import (
    DAMAGE_ERRORS,
    PREFIX,
    open_segments,
    write_segment,
)

Opened = tuple[tuple[Segment, ...], ColumnRegistry]


def save(path: Path, segments: Snapshot, columns: ColumnRegistry) -> None:
    """Write an index, replacing any index in the folder."""
    try:
        _save(path, segments, columns)
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"no index can be written to {path!s:.200}: {error}") from error


def _save(path: Path, segments: Snapshot, columns: ColumnRegistry) -> None:
    if path.exists() and not (path / MANIFEST).exists() and any(path.iterdir()):
        raise errors.IndexingError(
            f"{path} is not empty and holds no index; give another folder, or remove it"
        )
    path.mkdir(parents=True, exist_ok=True)
    entries: list[SegmentEntry] = []
    try:
        entries.extend(write_segment(path, segment, segments.version) for segment in segments)
        text = encode_json(build_manifest(entries, columns))
        replace_file(path / MANIFEST, text.encode(), durable=True)
    except BaseException:
        for entry in entries:
            shutil.rmtree(path / entry.folder, ignore_errors=True)
        raise
    current = {entry.folder for entry in entries}
    for folder in path.glob(f"{PREFIX}*"):
        if folder.name not in current:
            shutil.rmtree(folder, ignore_errors=True)


def open(path: Path) -> Opened:
    """Open an index. Return its segments, mapped from their files, and its columns."""
    while True:
        text = _read_manifest(path)
        try:
            manifest = decode_manifest(str(path), text)
            return open_segments(path, manifest, manifest.segments)
        except DAMAGE_ERRORS as error:
            # Another process may have replaced the index since the manifest was read.
            if _read_manifest(path) == text:
                raise damaged_index_error(str(path), error) from error


def _read_manifest(path: Path) -> str:
    try:
        return (path / MANIFEST).read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise missing_index_error(str(path)) from None
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"the index in {path} cannot be read: {error}") from error
