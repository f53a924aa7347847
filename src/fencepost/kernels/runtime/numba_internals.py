"""All that Fencepost takes of Numba beyond what Numba documents as stable, in one place.

Machine code on disk, kernels called by symbol, struct references without counts and vectors of 16
lanes need the inside of the compiler, which changes from one Numba to the next. So the versions are
bounded: `TESTED` are those that the tests passed with, `pyproject.toml` has the same. Where another
one lacks a name that is imported here, the import says which; the attributes that `compiling`
reads of compiled kernels are looked at by `tests/kernels/runtime/test_numba_internals.py`.
"""

from __future__ import annotations

import re
import warnings

import numba

TESTED = ">=0.61,<0.69"

try:
    import llvmlite.binding as llvm
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.caching import _CacheLocator as CacheLocator
    from numba.core.extending import lower_getattr
    from numba.core.imputils import impl_ret_borrowed
    from numba.core.runtime.nrtdynmod import _meminfo_struct_type as meminfo_struct_type
    from numba.core.serialize import dumps
    from numba.core.types import unliteral  # type: ignore[attr-defined]
    from numba.experimental import structref
    from numba.extending import intrinsic
except ImportError as error:
    raise ImportError(
        f"Fencepost compiles with numba{TESTED}, and Numba {numba.__version__} lacks something that"
        f' it needs: {error}. Install another one: pip install "numba{TESTED}".'
    ) from error


def version_of(text: str) -> tuple[int, ...]:
    """The two numbers that a version begins with."""
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


_LOW, _HIGH = map(version_of, re.findall(r"[\d.]+", TESTED))
if not _LOW <= version_of(numba.__version__) < _HIGH:
    warnings.warn(
        f"Fencepost was tested with numba{TESTED}, and this is Numba {numba.__version__}, whose"
        f' machine code it may get wrong. Install another one: pip install "numba{TESTED}".',
        RuntimeWarning,
        stacklevel=2,
    )

__all__ = [
    "TESTED",
    "CacheLocator",
    "CompileResultCacheImpl",
    "FunctionCache",
    "cgutils",
    "dumps",
    "impl_ret_borrowed",
    "intrinsic",
    "ir",
    "llvm",
    "lower_getattr",
    "meminfo_struct_type",
    "structref",
    "types",
    "unliteral",
]
