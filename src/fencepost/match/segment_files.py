"""A segment in a folder: one file an array, and the names of its subscriptions.

    x.y.npy       each array of the segment, memory-mapped when opened
    names.arrow   id, and where given subscriber and expression, of each subscription

Who has mapped files that are removed keeps them.
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

from fencepost.index.segment import NEVER_GONE, Segment, flat_arrays
from fencepost.kernels.combined import CombinedArrays
from fencepost.kernels.matching import CHECK, SegmentArrays
from fencepost.kernels.posts_arrays import GROUP, GUARD, LIST, PostArrays
from fencepost.kernels.region_walk import ENTRY, RegionArrays
from fencepost.kernels.rooms import REMOVED
from fencepost.kernels.rtree import TREE, RTreeArrays
from fencepost.kernels.shapes import CHAIN, NODE, SHAPE, TOUCHING, ShapeArrays
from fencepost.kernels.vocabulary import Vocabulary
from fencepost.match.catalogue import FiledShelf, Shelf

PREFIX = "segment-"
_NAMES = "names.arrow"
_READING = threading.Lock()  # NumPy reads headers by a part of Python that threads can break

# What a manifest says of a segment: its `folder`, the forms of its `arrays`, how many
# `subscriptions` it has and, where some were removed later, the file that says which are `gone`.
Entry = dict[str, Any]


def write_segment(path: Path, shelf: Shelf, version: int, prefix: str = PREFIX) -> Entry:
    """Write a shelf, as it is at a version, to a new folder in `path`, and onto the disk."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path))
    folder.chmod(0o755)
    own = shelf.segment.arrays
    # Whoever opens it begins with version 0.
    arrays = _with_gone(own, np.where(own.gone <= version, np.uint32(0), np.uint32(NEVER_GONE)))
    for array_name, array in flat_arrays(arrays):
        write_array(folder / f"{array_name}.npy", array)
    names = shelf.table
    with (folder / _NAMES).open("wb") as file:
        with pa.ipc.new_file(file, names.schema) as writer:
            writer.write_table(names)
        sync(file)
    sync_folder(folder)
    return {"folder": folder.name, "arrays": _forms(arrays), "subscriptions": len(shelf)}


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


def _forms(arrays: SegmentArrays) -> dict[str, list[object]]:
    """The type and shape of each array."""
    found: dict[str, list[object]] = {}
    for name, array in flat_arrays(arrays):
        found[name] = [str(np.lib.format.dtype_to_descr(array.dtype)), list(array.shape)]
    return found


def open_segment(path: Path, entry: Entry) -> Shelf:
    """A segment in a folder in `path`, mapped; ValueError where it is not what was written."""
    folder = path / entry["folder"]
    arrays: SegmentArrays = _open_part(folder, SegmentArrays, "")
    seen, forms = _forms(arrays), entry["arrays"]
    for name in seen:
        if seen[name] != forms[name]:
            raise ValueError(f"{name}.npy holds {seen[name]}, not {forms[name]}")
    names = names_of(path, entry)
    if names.num_rows != len(arrays.gone):
        raise ValueError(f"names.arrow has {names.num_rows} rows, not {len(arrays.gone)}")
    if "gone" in entry:
        gone = gone_of(path, entry)
        if gone.dtype != np.uint32 or len(gone) != len(arrays.gone):
            raise ValueError(f"{entry['gone']} does not fit the segment")
        arrays = _with_gone(arrays, gone)
    return FiledShelf(Segment(arrays), names)


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
    return f"{entry['folder']}/{entry.get('gone', 'gone.npy')}"


def files_of(entry: Entry) -> list[str]:
    """The files that `open_segment` opens."""
    arrays = [f"{entry['folder']}/{name}.npy" for name in entry["arrays"]]
    return list(dict.fromkeys([*arrays, *name_files_of(entry)]))


def name_files_of(entry: Entry) -> list[str]:
    """The files that `names_of` and `gone_of` open."""
    return [f"{entry['folder']}/{_NAMES}", _gone_file(entry)]


_PARTS: dict[str, Any] = {
    "combined": CombinedArrays,
    "combined.words": Vocabulary,
    "posts": PostArrays,
    "posts.string_words": Vocabulary,
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
    "posts.guards": GUARD,
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
