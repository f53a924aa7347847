"""Compiled functions: arrays in, arrays or numbers out, nothing raised, nothing allocated per row.

Only NumPy and Numba are imported here. Callers check their input first. Each module holds one
family; `compiling` says how they are compiled and where the machine code is kept.

- `detect/`: Joins of events that composites ask for
- `geodesic/`: Distances on the WGS84 ellipsoid
- `geometry/`: Exact relations and distances of shapes in the plane
- `index/`: Arrays that are searched: R-trees, postings, the memtable
- `match/`: Events against segments of subscriptions
- `runtime/`: Compilation, and arrays as compiled code takes them
- `text/`: Words and strings in UTF-8
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencepost.kernels.geometry.edge_trees import new_tree_scratch
    from fencepost.kernels.geometry.planar_distance import NO, UNSURE, YES
    from fencepost.kernels.match.segment_search import EventArrays
    from fencepost.kernels.runtime.compilation import cache_folder, kernel
    from fencepost.kernels.runtime.simd import WIDTH
    from fencepost.kernels.runtime.struct_references import arrays_of, struct_ref

__all__ = [
    "NO",
    "UNSURE",
    "WIDTH",
    "YES",
    "EventArrays",
    "arrays_of",
    "cache_folder",
    "kernel",
    "new_tree_scratch",
]

_MODULE_OF = {
    "NO": "geometry.planar_distance",
    "UNSURE": "geometry.planar_distance",
    "WIDTH": "runtime.simd",
    "YES": "geometry.planar_distance",
    "EventArrays": "match.segment_search",
    "arrays_of": "runtime.struct_references",
    "cache_folder": "runtime.compilation",
    "kernel": "runtime.compilation",
    "new_tree_scratch": "geometry.edge_trees",
}

if not TYPE_CHECKING:  # as in `fencepost.lazy_exports`, which kernels may not import

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
