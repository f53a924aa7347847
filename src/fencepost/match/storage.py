"""A matcher's subscriptions in a folder: one folder a segment, a manifest that names them.

    manifest.json   see `manifest`
    segment-abc/    see `segment_files`

Segments are written first, under names not used before; then the manifest is replaced in one step,
and what it no longer names is removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from fencepost import errors
from fencepost.atomic import replace_file
from fencepost.index.columns import Columns, Storage
from fencepost.match.decompile import condition_of
from fencepost.match.explain import written
from fencepost.match.manifest import (
    FORMAT,
    MANIFEST,
    Manifest,
    SegmentEntry,
    column_entries,
    damaged,
    decoded,
    encoded,
)
from fencepost.match.segment_files import (
    PREFIX,
    open_segment,
    write_segment,
)
from fencepost.match.segments import Segment, SegmentReader
from fencepost.match.snapshot import Snapshot

Opened = tuple[tuple[Segment, ...], Columns]


def expression(shelf: SegmentReader, row: int, columns: Columns) -> str:
    """The expression of a subscription, as given or put together from its checks."""
    given = shelf.expression(row)
    if given is not None:
        return given
    return written(condition_of(shelf, row, columns))


def save(path: Path, segments: Snapshot, columns: Columns) -> None:
    """Write an index, in place of one that may be there."""
    try:
        _save(path, segments, columns)
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"no index can be written to {path!s:.200}: {error}") from error


def _save(path: Path, segments: Snapshot, columns: Columns) -> None:
    if path.exists() and not (path / MANIFEST).exists() and any(path.iterdir()):
        raise errors.IndexingError(
            f"{path} is not empty and holds no index; give another folder, or remove it"
        )
    path.mkdir(parents=True, exist_ok=True)
    entries: list[SegmentEntry] = []
    try:
        entries.extend(write_segment(path, segment, segments.version) for segment in segments)
        text = encoded(manifest_for(entries, columns))
        replace_file(path / MANIFEST, text.encode(), durable=True)
    except BaseException:
        for entry in entries:
            shutil.rmtree(path / entry.folder, ignore_errors=True)
        raise
    named = {entry.folder for entry in entries}
    for old in path.glob(f"{PREFIX}*"):
        if old.name not in named:
            shutil.rmtree(old, ignore_errors=True)


def manifest_for(
    entries: Sequence[SegmentEntry],
    columns: Columns,
    version: int | None = None,
    router: str | None = None,
) -> Manifest:
    """The manifest of an index of these segments."""
    return Manifest(
        format=FORMAT,
        space=columns.space,
        stop_words=sorted(columns.tokeniser.stop_words),
        columns=column_entries(columns),
        segments=list(entries),
        version=version,
        router=router,
    )


def manifest_name(version: int | None = None) -> str:
    """The file of the newest manifest, or of that of a version."""
    return MANIFEST if version is None else f"manifest-{version}.json"


def open(path: Path) -> Opened:
    """What `save` wrote: segments mapped from their files, and the columns."""
    while True:
        text = _read_manifest(path)
        try:
            found = decoded(str(path), text)
            return open_segments(path, found, found.segments)
        except DAMAGES as error:
            # Between reading the manifest and the files, somebody may have saved another.
            if _read_manifest(path) == text:
                raise damaged(str(path), error) from error


def open_segments(path: Path, manifest: Manifest, entries: Sequence[SegmentEntry]) -> Opened:
    """Some of the segments that a manifest names, and the columns; `DAMAGES` if they cannot be."""
    columns = manifest.event_columns()
    for entry in entries:
        for name, last in entry.last_columns.items():
            if last >= len(columns.of(Storage[name])):
                raise ValueError(
                    f"{MANIFEST}: $.columns lacks columns of {name} that {entry.folder} asks for"
                )
    return tuple(open_segment(path, entry) for entry in entries), columns


DAMAGES = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    pa.ArrowException,
    errors.LanguageError,
)


def _read_manifest(path: Path) -> str:
    try:
        return (path / MANIFEST).read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise no_index(str(path)) from None
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"the index in {path} cannot be read: {error}") from error


def no_index(name: str) -> errors.IndexingError:
    """What is said of a folder without an index."""
    return errors.IndexingError(
        f"there is no index in {name}; write one with Matcher.save or `fencepost index`"
    )
