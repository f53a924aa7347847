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
from fencepost.language import ast
from fencepost.language.parse import parse
from fencepost.language.render import render_json
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
from fencepost.match.segments import Segment, SegmentReader
from fencepost.match.snapshot import Snapshot
from fencepost.model.space import Space
from fencepost.model.tokens import Tokeniser
from fencepost.plan.checks import Column, Kind

FORMAT = 9
MANIFEST = "manifest.json"
Manifest = dict[str, Any]
Opened = tuple[tuple[Segment, ...], Columns]


def expression(shelf: SegmentReader, row: int, columns: Columns) -> str:
    """The expression of a subscription, as given or put together from its checks."""
    given = shelf.expression(row)
    if given is not None:
        return given
    return written(condition_of(shelf, row, columns))


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
        replace(path / MANIFEST, manifest_text(entries, columns))
    except BaseException:
        for entry in entries:
            shutil.rmtree(path / entry["folder"], ignore_errors=True)
        raise
    named = {entry["folder"] for entry in entries}
    for old in path.glob(f"{PREFIX}*"):
        if old.name not in named:
            shutil.rmtree(old, ignore_errors=True)


def manifest_text(entries: Sequence[Entry], columns: Columns, **more: Any) -> str:
    """What the manifest of an index says of these segments, and more."""
    return json.dumps(
        {
            "format": FORMAT,
            "space": columns.space.value,
            "stop_words": sorted(columns.tokeniser.stop_words),
            "columns": columns_json(columns),
            "segments": list(entries),
            **more,
        }
    )


def manifest_name(version: int | None = None) -> str:
    """The file of the newest manifest, or of that of a version."""
    return MANIFEST if version is None else f"manifest-{version}.json"


def replace(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=".manifest-", dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        sync(file)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    sync_folder(path.parent)


def open(path: Path) -> Opened:
    """What `save` wrote: segments mapped from their files, and the columns."""
    while True:
        text = _read_manifest(path)
        try:
            found = manifest_of(str(path), text)
            return open_segments(path, found, found["segments"])
        except DAMAGES as error:
            # Between reading the manifest and the files, somebody may have saved another.
            if _read_manifest(path) == text:
                raise errors.IndexingError(
                    f"the index in {path} is damaged ({error}); build it again"
                ) from error


def open_segments(path: Path, manifest: Manifest, entries: Sequence[Entry]) -> Opened:
    """Some of the segments that a manifest names, and the columns; `DAMAGES` if they cannot be."""
    columns = columns_of(manifest)
    for entry in entries:
        for name, last in entry["asked"].items():
            if last >= len(columns.of(Storage[name])):
                raise ValueError("the manifest lacks columns that the segments ask for")
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


def manifest_of(name: str, text: str) -> Manifest:
    """What the text of a manifest says, of the index in the folder of that name."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.IndexingError(
            f"the index in {name} is damaged ({error}); build it again"
        ) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        seen = found.get("format") if isinstance(found, dict) else found
        raise errors.IndexingError(
            f"the index in {name} has format {seen!r:.40}; this version reads {FORMAT}: "
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
