"""Compiled functions: arrays in, arrays or numbers out, nothing raised, nothing allocated per row.

Only NumPy and Numba are imported here. Callers check their input first. Each module holds one
family; `compiling` says how they are compiled and where the machine code is kept.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencepost.kernels.compiling import cache_folder, kernel
    from fencepost.kernels.distance import NO, UNSURE, YES
    from fencepost.kernels.handles import arrays_of, handle
    from fencepost.kernels.matching import EventArrays
    from fencepost.kernels.trees import scratch
    from fencepost.kernels.vectors import WIDTH

__all__ = [
    "NO",
    "UNSURE",
    "WIDTH",
    "YES",
    "EventArrays",
    "arrays_of",
    "cache_folder",
    "handle",
    "kernel",
    "scratch",
]

_MODULE_OF = {
    "NO": "distance",
    "UNSURE": "distance",
    "WIDTH": "vectors",
    "YES": "distance",
    "EventArrays": "matching",
    "arrays_of": "handles",
    "cache_folder": "compiling",
    "handle": "handles",
    "kernel": "compiling",
    "scratch": "trees",
}

if not TYPE_CHECKING:  # as in `fencepost.lazy`, which kernels may not import

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
