"""A matcher's subscriptions in a folder: one file an array, a manifest that names them.

    manifest.json             format, space, stop words, columns, segments
    segment-abc/x.y.npy       each array of the segment, memory-mapped when opened
    segment-abc/names.arrow   id, and where given subscriber and expression, of each subscription

Segments are written first, under names not used before; then the manifest is replaced in one step,
and what it no longer names is removed. Who has mapped removed files keeps them.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost import errors
from fencepost.index.columns import Columns, Storage
from fencepost.index.segment import NEVER_GONE, Segment, flat_arrays
from fencepost.kernels import matching
from fencepost.kernels.combined import CombinedArrays
from fencepost.kernels.matching import CHECK, SegmentArrays
from fencepost.kernels.posts_arrays import COMBINED, GROUP, LIST, PostArrays
from fencepost.kernels.region_walk import ENTRY, RegionArrays
from fencepost.kernels.rooms import REMOVED
from fencepost.kernels.rtree import TREE, RTreeArrays
from fencepost.kernels.shapes import CHAIN, NODE, SHAPE, TOUCHING, ShapeArrays
from fencepost.kernels.vocabulary import Vocabulary
from fencepost.language import ast
from fencepost.language.parse import parse
from fencepost.language.render import render_json
from fencepost.match.catalogue import FiledShelf, Shelf, Snapshot
from fencepost.match.decompile import condition_of
from fencepost.match.explain import written
from fencepost.model.space import Space
from fencepost.model.tokens import Tokeniser
from fencepost.plan.checks import Column, Kind

FORMAT = 5
_READING = threading.Lock()  # NumPy reads headers by a part of Python that threads can break
MANIFEST = "manifest.json"


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
    written_segments: list[str] = []
    try:
        written_segments.extend(_write_shelf(path, shelf, shelves.version) for shelf in shelves)
        manifest = {
            "format": FORMAT,
            "space": columns.space.value,
            "stop_words": sorted(columns.tokeniser.stop_words),
            "columns": [[_column_json(c) for c in rows] for rows in columns.by_storage],
            "segments": [
                {"folder": name, "arrays": _forms(shelf.segment.arrays)}
                for name, shelf in zip(written_segments, shelves, strict=True)
            ],
        }
        _replace(path / MANIFEST, json.dumps(manifest))
    except BaseException:
        for name in written_segments:
            shutil.rmtree(path / name, ignore_errors=True)
        raise
    for old in path.glob("segment-*"):
        if old.name not in written_segments:
            shutil.rmtree(old, ignore_errors=True)


def _write_shelf(path: Path, shelf: Shelf, version: int) -> str:
    folder = Path(tempfile.mkdtemp(prefix="segment-", dir=path))
    folder.chmod(0o755)
    names = shelf.table
    # Whoever opens it begins with version 0.
    gone = np.where(shelf.segment.arrays.gone <= version, np.uint32(0), np.uint32(NEVER_GONE))
    state = shelf.segment.arrays.state.copy()
    state[REMOVED] = np.count_nonzero(gone == 0)
    arrays = shelf.segment.arrays._replace(gone=gone, state=state)
    for array_name, array in flat_arrays(arrays):
        with (folder / f"{array_name}.npy").open("wb") as file:
            np.save(file, array)
            _sync(file)
    with (folder / "names.arrow").open("wb") as file:
        with pa.ipc.new_file(file, names.schema) as writer:
            writer.write_table(names)
        _sync(file)
    _sync_folder(folder)
    return folder.name


def _sync(file: IO[Any]) -> None:
    """Wait until what was written to a file would outlast the machine."""
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=".manifest-", dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        _sync(file)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    _sync_folder(path.parent)


def open(path: Path) -> tuple[tuple[Shelf, ...], Columns]:
    """What `save` wrote: segments mapped from their files, and columns."""
    while True:
        text = _read_manifest(path)
        try:
            return _open(path, text)
        except (
            OSError,
            EOFError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
            pa.ArrowException,
            errors.LanguageError,
        ) as error:
            # Between reading the manifest and the files, somebody may have saved another.
            if _read_manifest(path) == text:
                raise errors.IndexingError(
                    f"the index in {path} is damaged ({error}); build it again"
                ) from error


def _read_manifest(path: Path) -> str:
    try:
        return (path / MANIFEST).read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise errors.IndexingError(
            f"there is no index in {path}; write one with Matcher.save or `fencepost index`"
        ) from None
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"the index in {path} cannot be read: {error}") from error


def _open(path: Path, text: str) -> tuple[tuple[Shelf, ...], Columns]:
    manifest = json.loads(text)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        seen = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise errors.IndexingError(
            f"the index in {path} has format {seen!r:.40}; this version reads {FORMAT}: "
            "build it again"
        )
    columns = Columns(Tokeniser.without(manifest["stop_words"]), Space(manifest["space"]))
    for rows in manifest["columns"]:
        for row in rows:
            columns.number(_column(row))
    shelves = tuple(
        _open_shelf(path / part["folder"], part["arrays"]) for part in manifest["segments"]
    )
    for shelf in shelves:
        _check_columns(shelf.segment.arrays, columns)
    return shelves, columns


def _forms(arrays: SegmentArrays) -> dict[str, list[object]]:
    """The type and shape of each array."""
    found: dict[str, list[object]] = {}
    for name, array in flat_arrays(arrays):
        found[name] = [str(np.lib.format.dtype_to_descr(array.dtype)), list(array.shape)]
    return found


def _open_shelf(folder: Path, forms: dict[str, list[object]]) -> Shelf:
    arrays = _open_segment(folder)
    seen = _forms(arrays)
    for name in seen:
        if seen[name] != forms[name]:
            raise ValueError(f"{name}.npy holds {seen[name]}, not {forms[name]}")
    with pa.memory_map(str(folder / "names.arrow")) as source:
        names = pa.ipc.open_file(source).read_all()
    if names.num_rows != len(arrays.gone):
        raise ValueError(f"names.arrow has {names.num_rows} rows, not {len(arrays.gone)}")
    return FiledShelf(Segment(arrays), names)


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


_PARTS: dict[str, Any] = {
    "combined": CombinedArrays,
    "combined.words": Vocabulary,
    "posts": PostArrays,
    "regions": RegionArrays,
    "regions.trees": RTreeArrays,
    "trees": RTreeArrays,
    "intervals": RTreeArrays,
    "vocabulary": Vocabulary,
    "shapes": ShapeArrays,
}
_RECORDS = {
    "checks": CHECK,
    "posts.groups": GROUP,
    "posts.lists": LIST,
    "regions.entries": ENTRY,
    "regions.large": ENTRY,
    "regions.trees.trees": TREE,
    "trees.trees": TREE,
    "intervals.trees": TREE,
    "shapes.chains": CHAIN,
    "shapes.shapes": SHAPE,
    "shapes.nodes": NODE,
    "shapes.touches": TOUCHING,
}


def _open_segment(folder: Path) -> SegmentArrays:
    """The arrays of a segment, mapped from their files."""
    arrays: SegmentArrays = _open_part(folder, SegmentArrays, "")
    return arrays


def _open_part(folder: Path, part: Any, prefix: str) -> Any:
    """A named tuple of arrays and of others like it."""
    names = [f"{prefix}{name}" for name in part._fields]
    return part(
        *(
            _open_part(folder, _PARTS[name], f"{name}.")
            if name in _PARTS
            else _open_array(folder, name)
            for name in names
        )
    )


def _open_array(folder: Path, name: str) -> NDArray[Any]:
    """A mapped array as a plain view, copied on write.

    Numba would compile everything again for a memmap, a read-only array, or a record whose type
    does not say that it is aligned, as a file cannot; and removing a subscription here must not
    write to the file.
    """
    path = folder / f"{name}.npy"
    with _READING:
        try:
            mapped = np.load(path, mmap_mode="c")
        except ValueError:
            mapped = np.load(path)  # an array without items cannot be mapped
    plain = np.asarray(mapped).view(np.ndarray)
    return plain.view(_RECORDS[name]) if name in _RECORDS else plain


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


def _column(row: dict[str, Any]) -> Column:
    kind = Kind[row["kind"]]
    if "property" in row:
        return Column(kind, ast.Property(row["property"]))
    condition: Any = parse(row["condition"])
    return Column(kind, condition if kind is Kind.TRUTH else condition.left)
