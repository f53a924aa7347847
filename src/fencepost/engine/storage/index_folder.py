"""A matcher's subscriptions in a folder: one folder a segment, a manifest that names them.

    manifest.json   see `manifest`
    segment-abc/    see `segment_files`

Segments are written first, under names not used before; then the manifest is replaced in one step,
and what it no longer names is removed.
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
    """Write an index, in place of one that may be there."""
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
    named = {entry.folder for entry in entries}
    for old in path.glob(f"{PREFIX}*"):
        if old.name not in named:
            shutil.rmtree(old, ignore_errors=True)


def open(path: Path) -> Opened:
    """What `save` wrote: segments mapped from their files, and the columns."""
    while True:
        text = _read_manifest(path)
        try:
            found = decode_manifest(str(path), text)
            return open_segments(path, found, found.segments)
        except DAMAGE_ERRORS as error:
            # Between reading the manifest and the files, somebody may have saved another.
            if _read_manifest(path) == text:
                raise damaged_index_error(str(path), error) from error


def _read_manifest(path: Path) -> str:
    try:
        return (path / MANIFEST).read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise missing_index_error(str(path)) from None
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"the index in {path} cannot be read: {error}") from error
