"""Every undocumented name of Numba that Fencepost uses, imported in one place.

Machine code on disk, kernels called late, struct references without reference counts and vectors
of 16 lanes rely on internals of the compiler, which change between versions of Numba. So the
version is bounded: the tests pass with the versions in `TESTED`, and `pyproject.toml` has the same
range. If a version lacks a name that is imported here, the ImportError names it;
`tests/kernels/runtime/test_numba_internals.py` checks the attributes of compiled kernels that
other modules read.
"""

from __future__ import annotations

import re
import warnings

import numba

TESTED = ">=0.61,<0.69"

try:
    import llvmlite.binding as llvm
    from llvmlite import ir
    from numba.core import cgutils, sigutils, types, typing
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Flags, compile_extra
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.environment import Environment, lookup_environment
    from numba.core.extending import lower_getattr
    from numba.core.funcdesc import PythonFunctionDescriptor
    from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime.nrtdynmod import _meminfo_struct_type as meminfo_struct_type
    from numba.core.types import unliteral  # type: ignore[attr-defined]
    from numba.experimental import structref
    from numba.extending import intrinsic
    from numba.np.numpy_support import as_dtype, from_dtype
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
    "CPUDispatcher",
    "Environment",
    "Flags",
    "JITCodeLibrary",
    "PythonFunctionDescriptor",
    "as_dtype",
    "cgutils",
    "compile_extra",
    "from_dtype",
    "global_compiler_lock",
    "impl_ret_borrowed",
    "impl_ret_new_ref",
    "intrinsic",
    "ir",
    "llvm",
    "lookup_environment",
    "lower_getattr",
    "meminfo_struct_type",
    "sigutils",
    "structref",
    "types",
    "typing",
    "unliteral",
]
