"""The indexes that a Spark worker process has mapped: opened once, kept while they are of use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fencepost.errors import IndexingError
from fencepost.match import storage
from fencepost.match.matcher import Matcher

_MOST_OPEN = 8  # a mapped part costs address space, and memory only where it was touched

_OPEN: dict[tuple[str, object], Matcher] = {}  # in the order of their last use


def matcher(path: str, version: int | None) -> Matcher:
    """The matcher of a version of an index; of the newest one, where there are no versions."""
    if version is None:
        return _kept((path, _stamp(path, None)), lambda: Matcher.open(path))
    return _kept(
        (path, _stamp(path, version)),
        lambda: _opened(path, storage.manifest(Path(path), version), None),
    )


def _stamp(path: str, version: int | None) -> tuple[int, int]:
    """What a file of a manifest is told by: a version may come twice if an index was removed."""
    state = storage.manifest_state(Path(path), version)
    return state.st_ino, state.st_mtime_ns


def router(path: str, version: int | None) -> Matcher:
    """What tells to which parts of an index events go."""
    manifest = storage.manifest(Path(path), version)
    if "router" not in manifest:
        raise IndexingError(
            f"the index in {path} has no parts any more, as it was saved in one piece; build it "
            "with fencepost.spark.build_index, or match it with how='whole'"
        )
    folder = str(Path(path) / manifest["router"])
    return _kept((folder, None), lambda: Matcher.open(folder))


def part(path: str, version: int | None, number: int) -> Matcher:
    """One part of an index."""
    manifest = storage.manifest(Path(path), version)
    entry = manifest["segments"][number]
    # A version may come twice where an index was removed; a folder does not.
    return _kept(
        (str(Path(path) / entry["folder"]), entry.get("gone")),
        lambda: _opened(path, manifest, [number]),
    )


def _opened(path: str, manifest: storage.Manifest, numbers: list[int] | None) -> Matcher:
    shelves, columns = storage.open_segments(Path(path), manifest, numbers)
    made = Matcher(columns.space)
    made._load(columns, shelves)
    return made


def _kept(key: tuple[str, object], make: Callable[[], Matcher]) -> Matcher:
    found = _OPEN.pop(key, None)
    if found is None:
        found = make()
        while len(_OPEN) >= _MOST_OPEN:
            del _OPEN[next(iter(_OPEN))]
    _OPEN[key] = found
    return found
