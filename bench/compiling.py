"""Compiled functions of benchmarks; the machine code is kept beside the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile `function` on its first call for each signature.

    What it calls must be in the same file: Numba does not look for edits elsewhere.
    """
    return numba.njit(nogil=True, error_model="numpy", cache=True)(function)  # type: ignore[no-any-return]
