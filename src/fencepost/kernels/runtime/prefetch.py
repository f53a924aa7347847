"""Prefetch memory before it is read, so that cache misses overlap."""

from __future__ import annotations

from typing import Any

import numba

from fencepost.kernels.runtime.numba_internals import cgutils, intrinsic, ir, types

_READ, _HIGH_LOCALITY, _DATA = 0, 3, 1  # LLVM's arguments rw, locality and cache type


def _no_prefetch(array: Any, index: Any) -> None:
    """Do nothing: the stand-in where kernels are not compiled."""


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing, array, index):  # type: ignore[no-untyped-def]
    """Prefetch array[index] of a one-dimensional array; an index out of bounds is harmless."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        item = builder.gep(view.data, [arguments[1]])
        pointer = builder.bitcast(item, cgutils.voidptr_t)
        flag = cgutils.int32_t
        signature = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], signature)
        builder.call(function, [pointer, flag(_READ), flag(_HIGH_LOCALITY), flag(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch = _no_prefetch if numba.config.DISABLE_JIT else _prefetch
