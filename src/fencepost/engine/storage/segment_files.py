"""Write and open the folder of a segment, and mark rows deleted without opening the segment.

A folder holds the arrays of a segment in one file, and the names of its subscriptions:

    arrays                 the arrays one after another, aligned to 64 bytes; mapped as one
    deleted_version.npy    the subscriptions that are deleted
    names.arrow            the id of each subscription; if given, its subscriber and its expression

A mapped file stays open, and a process may open a limited number of files; so all arrays share one
file. A mapped file stays readable after it is removed.
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
from fencepost.engine.storage.file_checksums import checked_path, checksum_of
from fencepost.engine.storage.manifest import MANIFEST, ArrayEntry, DType, Manifest, SegmentEntry
from fencepost.errors import LanguageError
from fencepost.kernels.index.posting_arrays import SIGNATURES
from fencepost.kernels.match.match_scratch import DELETED_ROWS
from fencepost.kernels.match.segment_search import SegmentArrays

PREFIX = "segment-"
_ARRAYS = "arrays"
_DELETED = "deleted_version"
_NAMES = "names.arrow"
ALIGNMENT = 64
DAMAGE_ERRORS = (  # that opening damaged files may raise
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
_numpy_header_lock = threading.Lock()  # NumPy parses headers in a way that is not thread-safe


def write_segment(
    path: Path, segment: SegmentReader, version: int, prefix: str = PREFIX
) -> SegmentEntry:
    """Write a segment, as of a version, to a new folder in `path`, and sync it to disk."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path))
    folder.chmod(0o755)
    arrays = segment.arrays
    with (folder / _ARRAYS).open("wb") as file:
        array_entries = write_arrays(file, arrays)
        _sync(file)
        size = file.tell()
    _write_array(folder / f"{_DELETED}.npy", deletion_marks(arrays, version))
    names = segment.names
    with (folder / _NAMES).open("wb") as file:
        write_names(file, names)
        _sync(file)
    sync_folder(folder)
    files = (_ARRAYS, f"{_DELETED}.npy", _NAMES)
    return SegmentEntry(
        folder=folder.name,
        subscriptions=len(segment),
        arrays=array_entries,
        arrays_bytes=size,
        checksums={name: checksum_of(folder / name) for name in files},
        last_columns=_last_columns(arrays),
        names=names.column_names,
    )


def write_arrays(file: IO[bytes], arrays: SegmentArrays) -> dict[str, ArrayEntry]:
    """Write all arrays but `deleted_version`. Return the entry of each."""
    entries: dict[str, ArrayEntry] = {}
    for name, array in flat_arrays(arrays):
        if name == _DELETED:
            continue
        file.write(bytes(-file.tell() % ALIGNMENT))
        entries[name] = ArrayEntry(
            dtype=_type_of(array), shape=list(array.shape), start=file.tell()
        )
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return entries


def deletion_marks(arrays: SegmentArrays, version: int) -> NDArray[np.uint32]:
    """Return 0 for each row that is deleted at a version, else NOT_DELETED.

    An opened index starts at version 0.
    """
    return np.where(arrays.deleted_version <= version, np.uint32(0), np.uint32(NOT_DELETED))


def write_names(file: IO[bytes], names: pa.Table) -> None:
    """Write the names of the subscriptions of a segment as an Arrow file."""
    with pa.ipc.new_file(file, names.schema) as writer:
        writer.write_table(names)


def _type_of(array: NDArray[Any]) -> DType:
    description: Any = np.lib.format.dtype_to_descr(array.dtype)
    return cast(DType, description)


def _write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array to a file, and sync it to disk."""
    with path.open("wb") as file:
        np.save(file, array)
        _sync(file)


def with_deleted_version(
    arrays: SegmentArrays, deleted_version: NDArray[np.uint32]
) -> SegmentArrays:
    """Return the arrays of a segment with these deletion marks."""
    state = arrays.state.copy()
    state[DELETED_ROWS] = np.count_nonzero(deleted_version == 0)
    return arrays._replace(deleted_version=deleted_version, state=state)


def _sync(file: IO[Any]) -> None:
    """Wait until the disk holds what was written to a file."""
    file.flush()
    os.fsync(file.fileno())


def _last_columns(arrays: SegmentArrays) -> dict[str, int]:
    """Return the last column of each storage that a segment uses, or -1."""
    last = {storage.name: -1 for storage in Storage}
    lists = arrays.postings.groups["list_column"]
    used_columns = [
        (lists[lists != SIGNATURES], Storage.LIST),
        (arrays.postings.groups["geometry_column"], Storage.GEOMETRY),
        (arrays.signatures.columns, Storage.STRING),
    ]
    for kind, storage in enumerate(STORAGE_BY_CODE):
        used_columns.append((arrays.checks["column"][arrays.checks["kind"] == kind], storage))
    for columns, storage in used_columns:
        last[storage.name] = max(last[storage.name], int(columns.astype(np.int64).max(initial=-1)))
    return last


def open_segments(
    path: Path, manifest: Manifest, entries: Sequence[SegmentEntry]
) -> tuple[tuple[Segment, ...], ColumnRegistry]:
    """Open some of the segments that a manifest names. Return them, and the index's columns.

    Raise one of `DAMAGE_ERRORS` if a segment is damaged.
    """
    columns = manifest.event_columns()
    for entry in entries:
        for name, last in entry.last_columns.items():
            if last >= len(columns.of(Storage[name])):
                raise ValueError(
                    f"{MANIFEST}: $.columns lacks columns of {name} that {entry.folder} uses"
                )
    return tuple(open_segment(path, entry) for entry in entries), columns


def open_segment(path: Path, entry: SegmentEntry) -> Segment:
    """Map a segment in a folder in `path`. Raise one of `DAMAGE_ERRORS` if it is damaged."""
    file = f"{entry.folder}/{_ARRAYS}"
    mapped = np.asarray(np.memmap(path / file, np.uint8, "c"))
    if len(mapped) != entry.arrays_bytes:
        raise ValueError(f"{file} has {len(mapped)} bytes, not {entry.arrays_bytes}")
    checked_path(path, entry, _ARRAYS)
    deleted_version, names = _read_deleted_version(path, entry), _map_names(path, entry)
    count = len(deleted_version)
    if deleted_version.dtype != np.uint32 or count != names.num_rows:
        raise ValueError(f"{entry.folder}/{_NAMES} has {names.num_rows} rows, not {count}")
    arrays: SegmentArrays = map_arrays(empty_segment(), "", mapped, entry.arrays)
    if len(arrays.expires) != count:
        raise ValueError(f"{file} holds {len(arrays.expires)} subscriptions, not {count}")
    return Segment(with_deleted_version(arrays, deleted_version), names)


def map_arrays(
    template: Any, name: str, mapped: NDArray[np.uint8], entries: dict[str, ArrayEntry]
) -> Any:
    """Replace the arrays in nested named tuples by views of the mapped file.

    The mapping is copy-on-write, because removing a subscription must not write to the file. The
    views are plain arrays with the types of the template: for a memmap, a read-only array or a
    record type without alignment, Numba would compile all kernels again.
    """
    if isinstance(template, tuple):
        prefix = f"{name}." if name else ""
        fields = zip(template._fields, template, strict=True)  # type: ignore[attr-defined]
        return type(template)(
            *(map_arrays(value, prefix + field, mapped, entries) for field, value in fields)
        )
    if name == _DELETED:
        return template
    if name not in entries:
        raise ValueError(f"manifest.json names no array {name!r}")
    dtype, shape, start = entries[name].dtype, entries[name].shape, entries[name].start
    size = int(np.prod(shape, dtype=np.int64)) * template.itemsize
    if dtype != _type_of(template) or len(shape) != template.ndim:
        raise ValueError(
            f"{name} has the type {dtype} and the shape {shape}; the type must be "
            f"{_type_of(template)}, and the shape of length {template.ndim}"
        )
    if start % ALIGNMENT or start + size > len(mapped):
        raise ValueError(f"{name} is not in the file")
    return mapped[start : start + size].view(template.dtype).reshape(shape)


def _map_names(path: Path, entry: SegmentEntry) -> pa.Table:
    """Map the names of the subscriptions of a segment."""
    with pa.memory_map(str(checked_path(path, entry, _NAMES))) as source:
        return pa.ipc.open_file(source).read_all()


def _read_deleted_version(path: Path, entry: SegmentEntry) -> NDArray[np.uint32]:
    """Read the deletion marks of a segment: 0 for a deleted row, else NOT_DELETED."""
    file = checked_path(path, entry, _deleted_file(entry))
    with _numpy_header_lock:
        deleted_version: NDArray[np.uint32] = np.load(file)
    return deleted_version


def _deleted_file(entry: SegmentEntry) -> str:
    return entry.deleted_file or f"{_DELETED}.npy"


def live_ids(path: Path, entry: SegmentEntry) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the ids of the rows that are not deleted, and these rows."""
    rows = np.flatnonzero(_read_deleted_version(path, entry) == NOT_DELETED)
    ids = _map_names(path, entry).column("id").combine_chunks()
    return ids.take(pa.array(rows)), rows


def mark_rows_deleted(
    path: Path, entry: SegmentEntry, rows: NDArray[np.int64], version: int, out: Path
) -> SegmentEntry:
    """Mark rows of a segment deleted, in a new file in `out`. Return the changed entry.

    Readers that have opened the segment keep the old file.
    """
    deleted_version = _read_deleted_version(path, entry)
    deleted_version[rows] = 0
    name = f"{_DELETED}-{version}-{uuid.uuid4().hex[:8]}.npy"
    (out / entry.folder).mkdir(exist_ok=True)
    _write_array(out / entry.folder / name, deleted_version)
    deleted = int(np.count_nonzero(deleted_version != NOT_DELETED))
    checksums = {**entry.checksums, name: checksum_of(out / entry.folder / name)}
    del checksums[_deleted_file(entry)]
    return replace(entry, deleted_file=name, deleted=deleted, checksums=checksums)


def files_of(entry: SegmentEntry) -> list[str]:
    """Return the files that `open_segment` opens."""
    return [f"{entry.folder}/{_ARRAYS}", *name_files_of(entry)]


def name_files_of(entry: SegmentEntry) -> list[str]:
    """Return the files that `live_ids` and `mark_rows_deleted` open."""
    return [f"{entry.folder}/{name}" for name in (_NAMES, _deleted_file(entry))]
