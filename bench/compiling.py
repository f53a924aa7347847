"""`compiled`: a decorator that compiles functions of benchmarks with Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile `function` on its first call for each signature; cache the code beside the file.

    Functions that it calls must be in the same file, because Numba's cache ignores edits in others.
    """
    return numba.njit(nogil=True, error_model="numpy", cache=True)(function)  # type: ignore[no-any-return]
