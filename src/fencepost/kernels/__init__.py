"""Compiled functions over NumPy arrays: the kernels of matching, detection and geometry.

Kernels import NumPy and Numba only, never raise, and do not allocate per row. Callers check the
input first. `runtime/compilation.py` says how kernels are compiled and where the machine
code is kept.

- `detect/`: Live members of composite events, and the join that completes pairs
- `geodesic/`: Distances on the WGS84 ellipsoid
- `geometry/`: Exact relations and distances of shapes in the plane
- `index/`: The arrays that are searched: R-trees, postings, the memtable
- `match/`: Matching of events against the segments of subscriptions
- `runtime/`: Compilation, references to structs of arrays, SIMD comparisons, prefetching
- `text/`: Tokenizer, vocabulary and LIKE on UTF-8 bytes
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencepost.kernels.geometry.edge_trees import new_tree_scratch
    from fencepost.kernels.geometry.planar_distance import NO, UNSURE, YES
    from fencepost.kernels.match.segment_search import EventArrays
    from fencepost.kernels.runtime.code_folders import cache_folder
    from fencepost.kernels.runtime.compilation import kernel
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
    "struct_ref",
]

_MODULE_OF = {
    "NO": "geometry.planar_distance",
    "UNSURE": "geometry.planar_distance",
    "WIDTH": "runtime.simd",
    "YES": "geometry.planar_distance",
    "EventArrays": "match.segment_search",
    "arrays_of": "runtime.struct_references",
    "cache_folder": "runtime.code_folders",
    "kernel": "runtime.compilation",
    "new_tree_scratch": "geometry.edge_trees",
    "struct_ref": "runtime.struct_references",
}

if not TYPE_CHECKING:  # as in `fencepost.lazy_exports`, which kernels may not import

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
