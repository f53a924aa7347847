"""A matcher's subscriptions in a folder: one folder a segment, a manifest that names them.

    manifest.json   format, space, stop words, columns, segments; of an index that is changed in
                    place also its version
    segment-abc/    see `segment_files`

Segments are written first, under names not used before; then the manifest is replaced in one step,
and what it no longer names is removed.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fencepost import errors
from fencepost.index.columns import Columns, Storage
from fencepost.kernels import matching
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.posts_arrays import COMBINED
from fencepost.language import ast
from fencepost.language.parse import parse
from fencepost.language.render import render_json
from fencepost.match.catalogue import Shelf, Snapshot
from fencepost.match.decompile import condition_of
from fencepost.match.explain import written
from fencepost.match.segment_files import (
    PREFIX,
    Entry,
    open_segment,
    sync,
    sync_folder,
    write_segment,
)
from fencepost.model.space import Space
from fencepost.model.tokens import Tokeniser
from fencepost.plan.checks import Column, Kind

FORMAT = 5
MANIFEST = "manifest.json"
Manifest = dict[str, Any]


def expression(shelf: Shelf, row: int, columns: Columns) -> str:
    """The expression of a subscription, as given or put together from its checks."""
    given = shelf.expression(row)
    if given is not None:
        return given
    return written(condition_of(shelf.segment, row, columns))


def save(path: Path, shelves: Snapshot, columns: Columns) -> None:
    """Write an index, in place of one that may be there."""
    try:
        _save(path, shelves, columns)
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"no index can be written to {path!s:.200}: {error}") from error


def _save(path: Path, shelves: Snapshot, columns: Columns) -> None:
    if path.exists() and not (path / MANIFEST).exists() and any(path.iterdir()):
        raise errors.IndexingError(
            f"{path} is not empty and holds no index; give another folder, or remove it"
        )
    path.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    try:
        entries.extend(write_segment(path, shelf, shelves.version) for shelf in shelves)
        write_manifest(path, entries, columns)
    except BaseException:
        for entry in entries:
            shutil.rmtree(path / entry["folder"], ignore_errors=True)
        raise
    named = {entry["folder"] for entry in entries}
    for old in path.glob(f"{PREFIX}*"):
        if old.name not in named:
            shutil.rmtree(old, ignore_errors=True)


def write_manifest(path: Path, entries: Sequence[Entry], columns: Columns, **more: Any) -> None:
    """Let an index be these segments from now on, in one step.

    Where more is said, and a `version` in it, the manifest can be read by that later, too.
    """
    manifest: Manifest = {
        "format": FORMAT,
        "space": columns.space.value,
        "stop_words": sorted(columns.tokeniser.stop_words),
        "columns": columns_json(columns),
        "segments": list(entries),
        **more,
    }
    text = json.dumps(manifest)
    if "version" in more:
        _replace(path / _name(more["version"]), text)
    _replace(path / MANIFEST, text)


def _name(version: int | None) -> str:
    return MANIFEST if version is None else f"manifest-{version}.json"


def _replace(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=".manifest-", dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        sync(file)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    sync_folder(path.parent)


def open(path: Path) -> tuple[tuple[Shelf, ...], Columns]:
    """What `save` wrote: segments mapped from their files, and the columns."""
    while True:
        text = _read_manifest(path)
        try:
            found = _manifest(path, text)
            columns = columns_of(found)
            return tuple(_opened(path, entry, columns) for entry in found["segments"]), columns
        except _DAMAGES as error:
            # Between reading the manifest and the files, somebody may have saved another.
            if _read_manifest(path) == text:
                raise errors.IndexingError(
                    f"the index in {path} is damaged ({error}); build it again"
                ) from error


def open_segments(
    path: Path, manifest: Manifest, numbers: Sequence[int] | None = None
) -> tuple[tuple[Shelf, ...], Columns]:
    """The segments that a manifest names, or some by number, and the columns."""
    entries = manifest["segments"]
    try:
        columns = columns_of(manifest)
        chosen = entries if numbers is None else [entries[number] for number in numbers]
        return tuple(_opened(path, entry, columns) for entry in chosen), columns
    except _DAMAGES as error:
        raise errors.IndexingError(
            f"version {manifest.get('version')} of the index in {path} is damaged, or was removed "
            f"after newer ones came ({error}); match again, or start the stream again: it goes on "
            "with the newest"
        ) from error


def _opened(path: Path, entry: Entry, columns: Columns) -> Shelf:
    shelf = open_segment(path, entry)
    _check_columns(shelf.segment.arrays, columns)
    return shelf


_DAMAGES = (
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


def exists(path: Path) -> bool:
    """Whether there is an index in a folder."""
    return (path / MANIFEST).exists()


def manifest(path: Path, version: int | None = None) -> Manifest:
    """What the manifest of an index says, or said at a version."""
    try:
        return _manifest(path, _read_manifest(path, version))
    except _DAMAGES as error:
        raise errors.IndexingError(
            f"the index in {path} is damaged ({error}); build it again"
        ) from error


def manifest_state(path: Path, version: int | None) -> os.stat_result:
    """The state of the file of a manifest, by which one that was replaced can be told."""
    try:
        return (path / _name(version)).stat()
    except OSError:
        raise _no_manifest(path, version) from None


def _no_manifest(path: Path, version: int | None) -> errors.IndexingError:
    if version is not None and exists(path):
        return errors.IndexingError(
            f"version {version} of the index in {path} was removed after newer ones came; match "
            "again, or start the stream again: it goes on with the newest"
        )
    return errors.IndexingError(
        f"there is no index in {path}; write one with Matcher.save or `fencepost index`"
    )


def _read_manifest(path: Path, version: int | None = None) -> str:
    try:
        return (path / _name(version)).read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise _no_manifest(path, version) from None
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"the index in {path} cannot be read: {error}") from error


def _manifest(path: Path, text: str) -> Manifest:
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        seen = found.get("format") if isinstance(found, dict) else found
        raise errors.IndexingError(
            f"the index in {path} has format {seen!r:.40}; this version reads {FORMAT}: "
            "build it again"
        )
    return found


def columns_of(manifest: Manifest) -> Columns:
    """The columns of events that the subscriptions of an index ask for."""
    columns = Columns(Tokeniser.without(manifest["stop_words"]), Space(manifest["space"]))
    for rows in manifest["columns"]:
        for row in rows:
            columns.number(column_of(row))
    return columns


def columns_json(columns: Columns) -> list[list[dict[str, object]]]:
    """The columns for a manifest."""
    return [[_column_json(column) for column in rows] for rows in columns.by_storage]


_STORAGES = {
    matching.RANGE: Storage.NUMBER,
    matching.MEMBER: Storage.STRING,
    matching.ORDER: Storage.STRING,
    matching.LIKE: Storage.STRING,
    matching.BOOLEAN: Storage.TRUTH,
    matching.NULL: Storage.MISSING,
    matching.RELATE: Storage.GEOMETRY,
    matching.NEAR: Storage.GEOMETRY,
    matching.LIST: Storage.LIST,
}


def _check_columns(arrays: SegmentArrays, columns: Columns) -> None:
    """A segment must not ask for a column that the manifest does not have."""
    for kind, storage in _STORAGES.items():
        asked = arrays.checks["column"][arrays.checks["kind"] == kind]
        if len(asked) and asked.max() >= len(columns.of(storage)):
            raise ValueError("the manifest lacks columns that the segments ask for")
    lists = arrays.posts.groups["list_column"]
    for asked, storage in (
        (lists[lists != COMBINED], Storage.LIST),
        (arrays.posts.groups["geometry_column"], Storage.GEOMETRY),
        (arrays.combined.columns, Storage.STRING),
    ):
        if len(asked) and asked.max() >= len(columns.of(storage)):
            raise ValueError("the manifest lacks columns that the segments ask for")


def _column_json(column: Column) -> dict[str, object]:
    """A column for the manifest; a value that is no property travels in a condition about it."""
    source: Any = column.source
    if isinstance(source, ast.Property):
        return {"kind": column.kind.name, "property": source.name}
    if column.kind is Kind.STRING:
        source = ast.Comparison(ast.Compare.EQ, source, ast.String(""))
    elif column.kind is Kind.NUMBER:
        source = ast.Comparison(ast.Compare.EQ, source, ast.Number(0))
    elif column.kind is not Kind.TRUTH:
        source = ast.TemporalCondition(ast.Temporal.T_AFTER, source, ast.Time(0))
    return {"kind": column.kind.name, "condition": render_json(source)}


def column_of(row: dict[str, Any]) -> Column:
    """A column of a manifest."""
    kind = Kind[row["kind"]]
    if "property" in row:
        return Column(kind, ast.Property(row["property"]))
    condition: Any = parse(row["condition"])
    return Column(kind, condition if kind is Kind.TRUTH else condition.left)
