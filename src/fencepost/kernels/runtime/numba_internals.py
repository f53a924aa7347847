"""Every undocumented name of Numba that Fencepost uses, imported in one place.

Machine code on disk, kernels called by symbol, struct references without reference counts and
vectors of 16 lanes rely on internals of the compiler, which change between versions of Numba. So
the version is bounded: the tests pass with the versions in `TESTED`, and `pyproject.toml` has the
same range. If a version lacks a name that is imported here, the ImportError names it;
`tests/kernels/runtime/test_numba_internals.py` checks the attributes of compiled kernels that
`compilation` reads.
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
        f"Fencepost requires numba{TESTED}, but Numba {numba.__version__} lacks a name that it"
        f' uses: {error}. Install a supported version: pip install "numba{TESTED}".'
    ) from error


def version_of(text: str) -> tuple[int, ...]:
    """Return the major and minor number of a version."""
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


_LOW, _HIGH = map(version_of, re.findall(r"[\d.]+", TESTED))
if not _LOW <= version_of(numba.__version__) < _HIGH:
    warnings.warn(
        f"Fencepost was tested with numba{TESTED}, and this is Numba {numba.__version__}, with"
        f" which its kernels may give wrong results. Install a supported version:"
        f' pip install "numba{TESTED}".',
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
