"""The decorators of kernels: `kernel` and its kin compile a function with Numba.

A `kernel` is compiled when it is first called with arguments of certain types, and its machine code
is kept on disk (`code_cache`). Numba compiles a kernel together with all kernels that it calls.
Large kernels are therefore `outlined`: compiled by themselves, and found when they are first called
(`late_calls`). So a first match compiles only what it runs.

No global setting of Numba is changed, so other users of Numba in the process are unaffected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from fencepost.kernels.runtime.kernel_dispatcher import KernelDispatcher

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on its first call for each signature; release the GIL while it runs."""
    return _compiled(function, refcount=True)


def no_refcount(function: Function) -> Function:
    """Compile `function` as a `kernel` without reference counting.

    The kernel must not create arrays, nor receive any from the kernels that it calls. Numba calls a
    function for each assignment of an array to a name, even if the array has no reference count;
    these calls took half of the time of some kernels.
    """
    return _compiled(function, refcount=False)


def _compiled(function: Function, *, refcount: bool) -> Function:
    if numba.config.DISABLE_JIT:
        return function
    return KernelDispatcher(function, refcount=refcount)  # type: ignore[return-value]


def outlined(*, returns: Any) -> Callable[[Function], Function]:
    """Keep a kernel out of the machine code of its callers: for large kernels.

    It is compiled when a caller first reaches the call. A call costs a few nanoseconds more, and is
    never inlined.

    Parameters
    ----------
    returns : Numba's type of the result. Callers are compiled before the kernel is.
    """

    def decorate(dispatcher: Function) -> Function:
        if not numba.config.DISABLE_JIT:
            dispatcher.returns = returns  # type: ignore[attr-defined]
        return dispatcher

    return decorate


def inlined(function: Function) -> Function:
    """Compile `function` into each kernel that calls it.

    For functions that a hot loop calls with whole `ShapeArrays`: as arguments of a real call these
    are a hundred machine words.
    """
    return numba.njit(nogil=True, error_model="numpy", inline="always")(function)  # type: ignore[no-any-return]


def entry(dispatcher: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a kernel's entry point for arguments of exactly these types.

    It does not check the types of its arguments, which saves half a microsecond a call.
    """
    if numba.config.DISABLE_JIT:
        return dispatcher  # type: ignore[no-any-return]
    return dispatcher.compile(tuple(map(numba.typeof, arguments)))  # type: ignore[no-any-return]
