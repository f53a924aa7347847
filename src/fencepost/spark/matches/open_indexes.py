"""The indexes that a Spark worker process has mapped: opened once, kept while they are of use."""

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
from fencepost.spark.indexes.index_folders import Folder, folder_of, removed

_MOST_OPEN = 8
_MOST_BYTES = 1 << 30  # of all that are mapped, in memory where they were touched; or one alone

_OPEN: dict[tuple[str, object], Matcher] = {}  # in the order of their last use


def matcher(path: str, version: int | None) -> Matcher:
    """The matcher of a version of an index; of what there is, where there are no versions."""
    folder, name = folder_of(path), manifest_name(version)
    # A version may come twice where an index was removed.
    return _kept((path, (name, folder.stamp(name))), lambda: whole_index(folder, version))


def whole_index(folder: Folder, version: int | None) -> Matcher:
    manifest = folder.manifest(version)
    try:
        return _opened(folder, manifest, manifest.segments)
    except IndexingError:
        # Between reading the manifest and the files, somebody may have saved another.
        if version is not None or folder.manifest() == manifest:
            raise
        return whole_index(folder, version)


def router(path: str, version: int | None) -> Matcher:
    """What tells to which parts of an index events go."""
    folder = folder_of(path)
    manifest = folder.manifest(version)
    if manifest.router is None:
        raise IndexingError(
            f"the index in {path} has no parts any more, as it was saved in one piece; build it "
            "with fencepost.spark.build_index, or match it with how='whole'"
        )
    # A folder does not come twice.
    name = manifest.router
    return _kept((path, name), lambda: _routing(folder, manifest.version, name))


def _routing(folder: Folder, version: int | None, name: str) -> Matcher:
    file = f"{name}/{MANIFEST}"
    text = folder.text(file)
    if text is None:
        raise removed(folder.name, version)
    manifest = replace(decode_manifest(folder.name, text, file), version=version)
    entries = [replace(entry, folder=f"{name}/{entry.folder}") for entry in manifest.segments]
    return _opened(folder, manifest, entries)


def part(path: str, version: int | None, number: int) -> Matcher:
    """One part of an index."""
    folder = folder_of(path)
    manifest = folder.manifest(version)
    entry = manifest.segments[number]
    return _kept(
        (path, (entry.folder, entry.deleted_file)), lambda: _opened(folder, manifest, [entry])
    )


def _opened(folder: Folder, manifest: Manifest, entries: Sequence[SegmentEntry]) -> Matcher:
    try:
        with folder.held(name for entry in entries for name in files_of(entry)) as path:
            shelves, columns = open_segments(path, manifest, entries)
    except DAMAGE_ERRORS as error:
        raise removed(folder.name, manifest.version, error) from error
    return matcher_from_segments(columns, shelves)


def _kept(key: tuple[str, object], make: Callable[[], Matcher]) -> Matcher:
    found = _OPEN.pop(key, None)
    if found is not None:
        _OPEN[key] = found
        return found
    found = _OPEN[key] = make()
    while len(_OPEN) > 1 and (len(_OPEN) > _MOST_OPEN or _mapped_bytes() > _MOST_BYTES):
        del _OPEN[next(iter(_OPEN))]
    return found


def _mapped_bytes() -> int:
    return sum(one.view().nbytes for one in _OPEN.values())
