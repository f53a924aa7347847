"""Many arrays behind one pointer.

Handing 80 arrays to a kernel takes Numba 15 microseconds a call, more than most matches. A handle
keeps them as compiled code sees them, so that a call hands over a pointer.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numba
from numba.core import types
from numba.experimental import structref
from numba.typed import List

from fencepost.kernels.compiling import kernel


@structref.register
class _HandleType(types.StructRef):  # type: ignore[misc, name-defined]
    """A handle in compiled code; `arrays` is what it holds."""


class _Handle(structref.StructRefProxy):  # type: ignore[misc]
    """A handle in Python, which only passes it on."""


structref.define_proxy(_Handle, _HandleType, ["arrays"])


@kernel
def _new(arrays):
    return _Handle(arrays)


@kernel
def _held(handle):
    return handle.arrays


def _plain(arrays: Any) -> Any:
    return SimpleNamespace(arrays=arrays)


handle: Any = _plain if numba.config.DISABLE_JIT else _new
"""What a kernel takes for a named tuple of arrays, and reads as `.arrays`; kernels make it too."""


@kernel
def listed(first):
    """A list of one handle, which kernels go through."""
    handles = List()
    handles.append(first)
    return handles


@kernel
def followed_by(handles, last):
    """A list of one handle more."""
    longer = List()
    for k in range(len(handles)):
        longer.append(handles[k])
    longer.append(last)
    return longer


arrays_of: Any = _held
"""The named tuple behind a handle."""
