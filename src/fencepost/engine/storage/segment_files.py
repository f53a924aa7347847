"""Write and open the folder of a segment, and mark rows deleted without opening the segment.

A folder holds the arrays of a segment in one file, and the names of its subscriptions:

    arrays                 the arrays one after another, aligned to 64 bytes; mapped as one
    deleted_version.npy    which subscriptions are deleted
    names.arrow            id, and where given subscriber and expression, of each subscription

A mapped file stays open, and the number of open files of a process is limited; hence one file for
all arrays. A process that has mapped a file keeps it after the file is removed.
"""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from fencepost.atomic_replace import sync_folder
from fencepost.engine.columns.check_kinds import STORAGE_BY_CODE
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.segment import Segment, SegmentReader
from fencepost.engine.segment_builder import NOT_DELETED, empty_segment, flat_arrays
from fencepost.engine.storage.manifest import MANIFEST, ArrayEntry, DType, Manifest, SegmentEntry
from fencepost.errors import LanguageError
from fencepost.kernels.index.posting_arrays import SIGNATURES
from fencepost.kernels.match.match_scratch import DELETED_ROWS
from fencepost.kernels.match.segment_search import SegmentArrays

PREFIX = "segment-"
_ARRAYS = "arrays"
_DELETED = "deleted_version"
_NAMES = "names.arrow"
_ALIGNMENT = 64
DAMAGE_ERRORS = (  # what may be raised where files are not what was written
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    pa.ArrowException,
    LanguageError,
)
_READING = threading.Lock()  # NumPy reads headers by a part of Python that threads can break


def write_segment(
    path: Path, segment: SegmentReader, version: int, prefix: str = PREFIX
) -> SegmentEntry:
    """Write a segment, as it is at a version, to a new folder in `path`, and onto the disk."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path))
    folder.chmod(0o755)
    arrays = segment.arrays
    forms, size = _write_arrays(folder / _ARRAYS, arrays)
    # Whoever opens it begins with version 0.
    gone = np.where(arrays.deleted_version <= version, np.uint32(0), np.uint32(NOT_DELETED))
    _write_array(folder / f"{_DELETED}.npy", gone)
    names = segment.names
    with (folder / _NAMES).open("wb") as file:
        with pa.ipc.new_file(file, names.schema) as writer:
            writer.write_table(names)
        _sync(file)
    sync_folder(folder)
    return SegmentEntry(
        folder=folder.name,
        subscriptions=len(segment),
        arrays=forms,
        arrays_bytes=size,
        last_columns=_last_columns(arrays),
        names=names.column_names,
    )


def _write_arrays(path: Path, arrays: SegmentArrays) -> tuple[dict[str, ArrayEntry], int]:
    """Write all arrays but for `gone`: the entry of each, and how many bytes they are."""
    forms: dict[str, ArrayEntry] = {}
    with path.open("wb") as file:
        for name, array in flat_arrays(arrays):
            if name == _DELETED:
                continue
            file.write(bytes(-file.tell() % _ALIGNMENT))
            forms[name] = ArrayEntry(
                dtype=_type_of(array), shape=list(array.shape), start=file.tell()
            )
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        _sync(file)
        return forms, file.tell()


def _type_of(array: NDArray[Any]) -> DType:
    found: Any = np.lib.format.dtype_to_descr(array.dtype)
    return cast(DType, found)


def _write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array to a file, and onto the disk."""
    with path.open("wb") as file:
        np.save(file, array)
        _sync(file)


def _with_gone(arrays: SegmentArrays, gone: NDArray[np.uint32]) -> SegmentArrays:
    state = arrays.state.copy()
    state[DELETED_ROWS] = np.count_nonzero(gone == 0)
    return arrays._replace(deleted_version=gone, state=state)


def _sync(file: IO[Any]) -> None:
    """Wait until what was written to a file would outlast the machine."""
    file.flush()
    os.fsync(file.fileno())


def _last_columns(arrays: SegmentArrays) -> dict[str, int]:
    """By storage the last column that a segment asks for, or -1."""
    found = {storage.name: -1 for storage in Storage}
    lists = arrays.postings.groups["list_column"]
    asked = [
        (lists[lists != SIGNATURES], Storage.LIST),
        (arrays.postings.groups["geometry_column"], Storage.GEOMETRY),
        (arrays.signatures.columns, Storage.STRING),
    ]
    for kind, storage in enumerate(STORAGE_BY_CODE):
        asked.append((arrays.checks["column"][arrays.checks["kind"] == kind], storage))
    for columns, storage in asked:
        found[storage.name] = max(
            found[storage.name], int(columns.astype(np.int64).max(initial=-1))
        )
    return found


def open_segments(
    path: Path, manifest: Manifest, entries: Sequence[SegmentEntry]
) -> tuple[tuple[Segment, ...], ColumnRegistry]:
    """Some of the segments that a manifest names, and the columns; `DAMAGES` if they cannot be."""
    columns = manifest.event_columns()
    for entry in entries:
        for name, last in entry.last_columns.items():
            if last >= len(columns.of(Storage[name])):
                raise ValueError(
                    f"{MANIFEST}: $.columns lacks columns of {name} that {entry.folder} asks for"
                )
    return tuple(open_segment(path, entry) for entry in entries), columns


def open_segment(path: Path, entry: SegmentEntry) -> Segment:
    """A segment in a folder in `path`, mapped; ValueError where it is not what was written."""
    file = f"{entry.folder}/{_ARRAYS}"
    mapped = np.asarray(np.memmap(path / file, np.uint8, "c"))
    if len(mapped) != entry.arrays_bytes:
        raise ValueError(
            f"{entry.folder}/{_ARRAYS} has {len(mapped)} bytes, not {entry.arrays_bytes}"
        )
    gone, names = _gone_of(path, entry), _names_of(path, entry)
    if gone.dtype != np.uint32 or len(gone) != names.num_rows:
        raise ValueError(f"{entry.folder}/{_NAMES} has {names.num_rows} rows, not {len(gone)}")
    arrays: SegmentArrays = _mapped_part(empty_segment(), "", mapped, entry.arrays)
    if len(arrays.expires) != len(gone):
        raise ValueError(f"{file} is of {len(arrays.expires)} subscriptions, not {len(gone)}")
    return Segment(_with_gone(arrays, gone), names)


def _mapped_part(
    part: Any, name: str, mapped: NDArray[np.uint8], forms: dict[str, ArrayEntry]
) -> Any:
    """Views of what is mapped, in place of the arrays of a named tuple.

    It is copied on write: removing a subscription here must not write to the file. For a memmap, a
    read-only array, or a record whose type does not say that it is aligned, Numba would compile
    everything again.
    """
    if isinstance(part, tuple):
        before = f"{name}." if name else ""
        own = zip(part._fields, part, strict=True)  # type: ignore[attr-defined]
        return type(part)(*(_mapped_part(one, before + n, mapped, forms) for n, one in own))
    if name == _DELETED:
        return part
    if name not in forms:
        raise ValueError(f"manifest.json names no array {name!r}")
    written, shape, start = forms[name].dtype, forms[name].shape, forms[name].start
    size = int(np.prod(shape, dtype=np.int64)) * part.itemsize
    if written != _type_of(part) or len(shape) != part.ndim:
        raise ValueError(f"{name} is of {written} {shape}, not of {_type_of(part)}")
    if start % _ALIGNMENT or start + size > len(mapped):
        raise ValueError(f"{name} is not in the file")
    return mapped[start : start + size].view(part.dtype).reshape(shape)


def _names_of(path: Path, entry: SegmentEntry) -> pa.Table:
    """The names of the subscriptions of a segment, mapped."""
    with pa.memory_map(str(path / entry.folder / _NAMES)) as source:
        return pa.ipc.open_file(source).read_all()


def _gone_of(path: Path, entry: SegmentEntry) -> NDArray[np.uint32]:
    """From which version on each row of a segment is gone: from the first, or never."""
    with _READING:
        gone: NDArray[np.uint32] = np.load(path / _gone_file(entry))
    return gone


def _gone_file(entry: SegmentEntry) -> str:
    return f"{entry.folder}/{entry.deleted_file or f'{_DELETED}.npy'}"


def live_ids(path: Path, entry: SegmentEntry) -> tuple[pa.Array, NDArray[np.int64]]:
    """The ids of the rows of a segment that are not deleted, and those rows."""
    rows = np.flatnonzero(_gone_of(path, entry) == NOT_DELETED)
    ids = _names_of(path, entry).column("id").combine_chunks()
    return ids.take(pa.array(rows)), rows


def mark_rows_deleted(
    path: Path, entry: SegmentEntry, rows: NDArray[np.int64], version: int, out: Path
) -> SegmentEntry:
    """The entry of a segment of which these rows are deleted, too.

    Which rows those are is written to a new file in `out`, whatever opened the segment before.
    """
    gone = _gone_of(path, entry)
    gone[rows] = 0
    name = f"{_DELETED}-{version}-{uuid.uuid4().hex[:8]}.npy"
    (out / entry.folder).mkdir(exist_ok=True)
    _write_array(out / entry.folder / name, gone)
    return replace(entry, deleted_file=name, deleted=int(np.count_nonzero(gone != NOT_DELETED)))


def files_of(entry: SegmentEntry) -> list[str]:
    """The files that `open_segment` opens."""
    return [f"{entry.folder}/{_ARRAYS}", *name_files_of(entry)]


def name_files_of(entry: SegmentEntry) -> list[str]:
    """The files that `live_ids` and `mark_rows_deleted` open."""
    return [f"{entry.folder}/{_NAMES}", _gone_file(entry)]
