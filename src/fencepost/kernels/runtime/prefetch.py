"""Asking for memory before it is read, so that the waits of several reads overlap."""

from __future__ import annotations

from typing import Any

import numba

from fencepost.kernels.runtime.numba_internals import cgutils, intrinsic, ir, types

_TO_READ, _TO_KEEP, _DATA = 0, 3, 1  # what LLVM calls rw, locality and cache type


def _nothing(array: Any, index: Any) -> None:
    """What stands for it where kernels are not compiled."""


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing, array, index):  # type: ignore[no-untyped-def]
    """Ask for array[index], of an array of one dimension; any index is harmless."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        item = builder.gep(view.data, [arguments[1]])
        pointer = builder.bitcast(item, cgutils.voidptr_t)
        flag = cgutils.int32_t
        form = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], form)
        builder.call(ask, [pointer, flag(_TO_READ), flag(_TO_KEEP), flag(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch = _nothing if numba.config.DISABLE_JIT else _prefetch
