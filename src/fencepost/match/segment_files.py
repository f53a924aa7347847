"""A segment in a folder: its arrays in one file, and the names of its subscriptions.

    arrays        the arrays one after another, each from a multiple of 64 bytes on; mapped as one
    gone.npy      which subscriptions are gone
    names.arrow   id, and where given subscriber and expression, of each subscription

What is mapped holds a file open, and how many a process may hold open is limited: so there are not
as many as there are arrays. Who has mapped files that are removed keeps them.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.index.columns import Storage
from fencepost.index.segment import NEVER_GONE, flat_arrays, nothing
from fencepost.kernels import checking
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.posts_arrays import COMBINED
from fencepost.kernels.rooms import REMOVED
from fencepost.match.segments import Segment, SegmentReader

PREFIX = "segment-"
_ARRAYS = "arrays"
_GONE = "gone"
_NAMES = "names.arrow"
_ALIGNMENT = 64
_READING = threading.Lock()  # NumPy reads headers by a part of Python that threads can break

# What a manifest says of a segment: its `folder`; of its `arrays` their types, shapes and where
# they begin; their `size`; by storage the last column that is `asked` for; how many
# `subscriptions` it has and, where some were removed later, the file that says which are `gone`.
Entry = dict[str, Any]


def write_segment(path: Path, shelf: SegmentReader, version: int, prefix: str = PREFIX) -> Entry:
    """Write a shelf, as it is at a version, to a new folder in `path`, and onto the disk."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path))
    folder.chmod(0o755)
    arrays = shelf.arrays
    forms, size = _write_arrays(folder / _ARRAYS, arrays)
    # Whoever opens it begins with version 0.
    gone = np.where(arrays.gone <= version, np.uint32(0), np.uint32(NEVER_GONE))
    write_array(folder / f"{_GONE}.npy", gone)
    names = shelf.names
    with (folder / _NAMES).open("wb") as file:
        with pa.ipc.new_file(file, names.schema) as writer:
            writer.write_table(names)
        sync(file)
    sync_folder(folder)
    return {
        "folder": folder.name,
        "arrays": forms,
        "size": size,
        "asked": _last_columns(arrays),
        "subscriptions": len(shelf),
        "names": names.column_names,
    }


def _write_arrays(path: Path, arrays: SegmentArrays) -> tuple[dict[str, list[object]], int]:
    """Write all arrays but for `gone`: the form of each, and how many bytes they are."""
    forms: dict[str, list[object]] = {}
    with path.open("wb") as file:
        for name, array in flat_arrays(arrays):
            if name == _GONE:
                continue
            file.write(bytes(-file.tell() % _ALIGNMENT))
            forms[name] = [_type_of(array), list(array.shape), file.tell()]
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        sync(file)
        return forms, file.tell()


def _type_of(array: NDArray[Any]) -> str:
    return str(np.lib.format.dtype_to_descr(array.dtype))


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array to a file, and onto the disk."""
    with path.open("wb") as file:
        np.save(file, array)
        sync(file)


def _with_gone(arrays: SegmentArrays, gone: NDArray[np.uint32]) -> SegmentArrays:
    state = arrays.state.copy()
    state[REMOVED] = np.count_nonzero(gone == 0)
    return arrays._replace(gone=gone, state=state)


def sync(file: IO[Any]) -> None:
    """Wait until what was written to a file would outlast the machine."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_STORAGES = {
    checking.RANGE: Storage.NUMBER,
    checking.MEMBER: Storage.STRING,
    checking.ORDER: Storage.STRING,
    checking.LIKE: Storage.STRING,
    checking.BOOLEAN: Storage.TRUTH,
    checking.NULL: Storage.MISSING,
    checking.RELATE: Storage.GEOMETRY,
    checking.NEAR: Storage.GEOMETRY,
    checking.LIST: Storage.LIST,
}


def _last_columns(arrays: SegmentArrays) -> dict[str, int]:
    """By storage the last column that a segment asks for, or -1."""
    found = {storage.name: -1 for storage in Storage}
    lists = arrays.posts.groups["list_column"]
    asked = [
        (lists[lists != COMBINED], Storage.LIST),
        (arrays.posts.groups["geometry_column"], Storage.GEOMETRY),
        (arrays.combined.columns, Storage.STRING),
    ]
    for kind, storage in _STORAGES.items():
        asked.append((arrays.checks["column"][arrays.checks["kind"] == kind], storage))
    for columns, storage in asked:
        found[storage.name] = max(
            found[storage.name], int(columns.astype(np.int64).max(initial=-1))
        )
    return found


def open_segment(path: Path, entry: Entry) -> Segment:
    """A segment in a folder in `path`, mapped; ValueError where it is not what was written."""
    mapped = np.asarray(np.memmap(path / entry["folder"] / _ARRAYS, np.uint8, "c"))
    if len(mapped) != entry["size"]:
        raise ValueError(f"{_ARRAYS} has {len(mapped)} bytes, not {entry['size']}")
    gone, names = gone_of(path, entry), names_of(path, entry)
    if gone.dtype != np.uint32 or len(gone) != names.num_rows:
        raise ValueError(f"{_NAMES} has {names.num_rows} rows, not {len(gone)}")
    arrays: SegmentArrays = _mapped_part(nothing(), "", mapped, {**entry["arrays"], _GONE: None})
    if len(arrays.expires) != len(gone):
        raise ValueError(f"{_ARRAYS} is of {len(arrays.expires)} subscriptions, not {len(gone)}")
    return Segment(_with_gone(arrays, gone), names)


def _mapped_part(part: Any, name: str, mapped: NDArray[np.uint8], forms: dict[str, Any]) -> Any:
    """Views of what is mapped, in place of the arrays of a named tuple.

    It is copied on write: removing a subscription here must not write to the file. For a memmap, a
    read-only array, or a record whose type does not say that it is aligned, Numba would compile
    everything again.
    """
    if isinstance(part, tuple):
        before = f"{name}." if name else ""
        own = zip(part._fields, part, strict=True)  # type: ignore[attr-defined]
        return type(part)(*(_mapped_part(one, before + n, mapped, forms) for n, one in own))
    if forms[name] is None:
        return part
    written, shape, start = forms[name]
    size = int(np.prod(shape, dtype=np.int64)) * part.itemsize
    if written != _type_of(part) or len(shape) != part.ndim:
        raise ValueError(f"{name} is of {written} {shape}, not of {_type_of(part)}")
    if start < 0 or start % _ALIGNMENT or min(shape) < 0 or start + size > len(mapped):
        raise ValueError(f"{name} is not in the file")
    return mapped[start : start + size].view(part.dtype).reshape(shape)


def names_of(path: Path, entry: Entry) -> pa.Table:
    """The names of the subscriptions of a segment, mapped."""
    with pa.memory_map(str(path / entry["folder"] / _NAMES)) as source:
        return pa.ipc.open_file(source).read_all()


def gone_of(path: Path, entry: Entry) -> NDArray[np.uint32]:
    """From which version on each row of a segment is gone: from the first, or never."""
    with _READING:
        gone: NDArray[np.uint32] = np.load(path / _gone_file(entry))
    return gone


def _gone_file(entry: Entry) -> str:
    return f"{entry['folder']}/{entry.get(_GONE, f'{_GONE}.npy')}"


def files_of(entry: Entry) -> list[str]:
    """The files that `open_segment` opens."""
    return [f"{entry['folder']}/{_ARRAYS}", *name_files_of(entry)]


def name_files_of(entry: Entry) -> list[str]:
    """The files that `names_of` and `gone_of` open."""
    return [f"{entry['folder']}/{_NAMES}", _gone_file(entry)]
