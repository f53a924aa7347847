"""Opens indexes in a Spark worker process and keeps the most recently used ones mapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from fencepost.engine.matcher import Matcher, matcher_from_segments
from fencepost.engine.storage.manifest import (
    MANIFEST,
    Manifest,
    SegmentEntry,
    decode_manifest,
    manifest_name,
)
from fencepost.engine.storage.segment_files import DAMAGE_ERRORS, files_of, open_segments
from fencepost.errors import IndexingError
from fencepost.spark.indexes.index_folders import Folder, folder_of, removed_version_error

_MAX_OPEN = 8
_MAX_MAPPED_BYTES = 1 << 30  # of all open matchers; a single one may be larger

_OPEN: dict[tuple[str, object], Matcher] = {}  # least recently used first


def matcher(path: str, version: int | None) -> Matcher:
    """Return a matcher of a version of an index; of its current files if it has no versions."""
    folder, name = folder_of(path), manifest_name(version)
    # The stamp is part of the key, because an index that was removed and rebuilt repeats versions.
    return _cached((path, (name, folder.stamp(name))), lambda: whole_index(folder, version))


def whole_index(folder: Folder, version: int | None) -> Matcher:
    """Open all segments of a version of an index."""
    manifest = folder.manifest(version)
    try:
        return _open_matcher(folder, manifest, manifest.segments)
    except IndexingError:
        # Another index may have been saved after the manifest was read and before the files were.
        if version is not None or folder.manifest() == manifest:
            raise
        return whole_index(folder, version)


def router(path: str, version: int | None) -> Matcher:
    """Return the matcher whose subscriptions are the parts of an index, for routing events."""
    folder = folder_of(path)
    manifest = folder.manifest(version)
    if manifest.router is None:
        raise IndexingError(
            f"the index in {path} no longer has parts, because Matcher.save replaced it; build it "
            "with fencepost.spark.build_index, or match with how='whole'"
        )
    # The name of a router's folder is unique, so it identifies the version.
    name = manifest.router
    return _cached((path, name), lambda: _open_router(folder, manifest.version, name))


def _open_router(folder: Folder, version: int | None, name: str) -> Matcher:
    file = f"{name}/{MANIFEST}"
    text = folder.read_text(file)
    if text is None:
        raise removed_version_error(folder.name, version)
    manifest = replace(decode_manifest(folder.name, text, file), version=version)
    entries = [replace(entry, folder=f"{name}/{entry.folder}") for entry in manifest.segments]
    return _open_matcher(folder, manifest, entries)


def part(path: str, version: int | None, number: int) -> Matcher:
    """Return a matcher of one part of an index."""
    folder = folder_of(path)
    manifest = folder.manifest(version)
    entry = manifest.segments[number]
    return _cached(
        (path, (entry.folder, entry.deleted_file)), lambda: _open_matcher(folder, manifest, [entry])
    )


def _open_matcher(folder: Folder, manifest: Manifest, entries: Sequence[SegmentEntry]) -> Matcher:
    try:
        with folder.local_files(name for entry in entries for name in files_of(entry)) as path:
            segments, columns = open_segments(path, manifest, entries)
    except DAMAGE_ERRORS as error:
        raise removed_version_error(folder.name, manifest.version, error) from error
    return matcher_from_segments(columns, segments)


def _cached(key: tuple[str, object], make: Callable[[], Matcher]) -> Matcher:
    matcher = _OPEN.pop(key, None)
    if matcher is not None:
        _OPEN[key] = matcher
        return matcher
    matcher = _OPEN[key] = make()
    while len(_OPEN) > 1 and (len(_OPEN) > _MAX_OPEN or _mapped_bytes() > _MAX_MAPPED_BYTES):
        del _OPEN[next(iter(_OPEN))]
    return matcher


def _mapped_bytes() -> int:
    return sum(matcher.view().nbytes for matcher in _OPEN.values())
