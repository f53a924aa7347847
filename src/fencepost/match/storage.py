"""A matcher's subscriptions in a folder: one file an array, a manifest that names them.

    manifest.json             format, space, columns, segments
    segment-000/x.y.npy       each array of the segment, memory-mapped when opened
    segment-000/names.arrow   id, subscriber, expression of each subscription

The folder is written beside its place and then renamed, so it is there whole or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost import errors
from fencepost.index.columns import Columns
from fencepost.index.segment import Segment, flat_arrays
from fencepost.kernels.matching import SegmentArrays
from fencepost.language import ast
from fencepost.language.parse import parse
from fencepost.language.render import render_json, render_text
from fencepost.match.catalogue import Shelf
from fencepost.match.decompile import condition_of
from fencepost.plan.checks import Column, Kind

FORMAT = 1


def json_text(expression: Mapping[str, object]) -> str:
    """CQL2 JSON as text."""
    return json.dumps(expression)


def expression(shelf: Shelf, row: int, columns: Columns) -> str:
    """The expression of a subscription, as given or put together from its checks."""
    given = shelf.names.column("expression")[row].as_py()
    if given is not None:
        return str(given)
    condition = condition_of(shelf.segment, row, columns)
    try:
        return render_text(condition)
    except errors.LanguageError:
        return json.dumps(render_json(condition))


def save(path: Path, shelves: tuple[Shelf, ...], columns: Columns, space: str) -> None:
    """Write a folder, in place of one that may be there."""
    path = path.absolute()
    if path.exists() and not (path / "manifest.json").exists() and any(path.iterdir()):
        raise errors.IndexingError(
            f"{path} is not empty and holds no index; give another folder, or remove it"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "space": space,
            "columns": [[_column_json(c) for c in rows] for rows in columns.by_storage],
            "segments": [],
        }
        for number, shelf in enumerate(shelves):
            name = f"segment-{number:03}"
            (made / name).mkdir()
            for array_name, array in flat_arrays(shelf.segment.arrays):
                np.save(made / name / f"{array_name}.npy", array)
            with (
                pa.OSFile(str(made / name / "names.arrow"), "wb") as sink,
                pa.ipc.new_file(sink, shelf.names.schema) as writer,
            ):
                writer.write_table(shelf.names)
            manifest["segments"].append(name)
        (made / "manifest.json").write_text(json.dumps(manifest))
        _put_in_place(made, path)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _put_in_place(made: Path, path: Path) -> None:
    os.chmod(made, 0o755)
    if not path.exists():
        made.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
    path.rename(old / "index")
    made.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def open(path: Path) -> tuple[tuple[Shelf, ...], Columns, str]:
    """What `save` wrote: segments mapped from their files, columns, space."""
    try:
        manifest = json.loads((path / "manifest.json").read_text())
    except FileNotFoundError:
        raise errors.IndexingError(
            f"there is no index in {path}; write one with Matcher.save or `fencepost index`"
        ) from None
    except (OSError, ValueError) as error:
        raise errors.IndexingError(f"the index in {path} cannot be read: {error}") from error
    if manifest.get("format") != FORMAT:
        raise errors.IndexingError(
            f"the index in {path} has format {manifest.get('format')!r}; this version reads "
            f"{FORMAT}: build it again"
        )
    columns = Columns()
    for rows in manifest["columns"]:
        for row in rows:
            columns.number(_column(row))
    try:
        shelves = tuple(_open_shelf(path / name) for name in manifest["segments"])
    except (OSError, ValueError, pa.ArrowInvalid) as error:
        raise errors.IndexingError(
            f"the index in {path} is damaged ({error}); build it again"
        ) from error
    return shelves, columns, manifest["space"]


def _open_shelf(folder: Path) -> Shelf:
    arrays = _open_arrays(SegmentArrays, folder, "")
    with pa.memory_map(str(folder / "names.arrow")) as source:
        names = pa.ipc.open_file(source).read_all()
    return Shelf(Segment(arrays), names)


def _open_arrays(kind: Any, folder: Path, prefix: str) -> Any:
    hints = get_type_hints(kind)
    fields = []
    for name in kind._fields:
        dotted = f"{prefix}.{name}" if prefix else name
        if hasattr(hints[name], "_fields"):
            fields.append(_open_arrays(hints[name], folder, dotted))
        else:
            fields.append(_open_array(folder / f"{dotted}.npy"))
    return kind(*fields)


def _open_array(path: Path) -> NDArray[np.generic]:
    """A mapped array as a plain view, copied on write.

    Numba would compile everything again for a memmap or a read-only array; and removing a
    subscription here must not write to the file.
    """
    try:
        mapped = np.load(path, mmap_mode="c")
    except ValueError:
        mapped = np.load(path)  # an array without items cannot be mapped
    return np.asarray(mapped).view(np.ndarray)


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
