"""Calls of kernels that are found when they are first called.

An outlined kernel is called through a slot: eight bytes that hold the address of its machine code,
or zero before the first call. The caller's machine code refers to the slot by a symbol, and if the
slot is empty, it asks `_bind` for the address. So a caller is compiled and loaded without the
kernels that it calls, and what is never called is never compiled.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import threading
from dataclasses import dataclass, field
from typing import Any

from fencepost.kernels.runtime.numba_internals import (
    cgutils,
    impl_ret_new_ref,
    ir,
    llvm,
)

PREFIX = "fencepost.late."
_BIND = "fencepost.bind"


@dataclass
class Slot:
    """Where callers find the address of a kernel for arguments of certain types."""

    symbol: str
    module: str
    name: str
    argument_types: tuple[Any, ...]
    kernel: Any = None
    """The kernel, if it is known; else it is imported when it is first called."""

    address: ctypes.c_void_p = field(default_factory=lambda: ctypes.c_void_p(0))


_slots: dict[str, Slot] = {}
_slot_at: dict[int, Slot] = {}
_raised: dict[int, BaseException] = {}
"""By thread, what `_bind` raised: kept alive until the caller has set it."""


def slot_of(module: str, name: str, argument_types: tuple[Any, ...], kernel: Any = None) -> Slot:
    """Return the slot of a kernel, and let machine code refer to it."""
    digest = hashlib.sha256(repr(argument_types).encode()).hexdigest()[:24]
    symbol = f"{PREFIX}{module}.{name}.{digest}"
    if symbol not in _slots:
        slot = _slots[symbol] = Slot(symbol, module, name, argument_types, kernel)
        where = ctypes.addressof(slot.address)
        _slot_at[where] = slot
        llvm.add_symbol(symbol, where)
    return _slots[symbol]


def slots_in(llvm_module: Any) -> list[Slot]:
    """Return the slots that LLVM code refers to."""
    names = (variable.name for variable in llvm_module.global_variables)
    return [_slots[name] for name in names if name.startswith(PREFIX)]


def late_call(slot: Slot, returned: Any) -> Any:
    """Return the code generator for calls through a slot, in the form that Numba keeps them."""
    argument_types = slot.argument_types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function_type = context.call_conv.get_function_type(returned, argument_types)
        callee = _address(context, builder, slot.symbol)
        callee = builder.bitcast(callee, function_type.as_pointer())
        status, value = context.call_conv.call_function(
            builder, callee, returned, argument_types, arguments
        )
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return impl_ret_new_ref(context, builder, returned, value)

    generate.signature, generate.libs = argument_types, ()  # type: ignore[attr-defined]
    return generate


def _address(context: Any, builder: Any, symbol: str) -> Any:
    """Generate code that reads a slot, and that binds it first if it is empty."""
    pointer = cgutils.voidptr_t
    slot = builder.module.globals.get(symbol)
    if slot is None:
        slot = ir.GlobalVariable(builder.module, pointer, symbol)
    found = builder.load(slot)
    before = builder.block
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, found)):
        bind_type = ir.FunctionType(pointer, [pointer, pointer.as_pointer()])
        bind = cgutils.get_or_insert_function(builder.module, bind_type, _BIND)
        error = cgutils.alloca_once(builder, pointer, size=2)
        bound = builder.call(bind, [builder.bitcast(slot, pointer), error])
        with cgutils.if_unlikely(builder, cgutils.is_null(builder, bound)):
            _raise(context, builder, error)
        after = builder.block
    address = builder.phi(pointer)
    address.add_incoming(found, before)
    address.add_incoming(bound, after)
    return address


def _raise(context: Any, builder: Any, error: Any) -> None:
    """Generate code that returns with a Python exception set: its type and itself in `error`."""
    python = context.get_python_api(builder)
    state = python.gil_ensure()
    parts = [builder.load(builder.gep(error, [cgutils.int32_t(k)])) for k in range(2)]
    python.err_set_object(*(builder.bitcast(part, python.pyobj) for part in parts))
    python.gil_release(state)
    builder.ret(_PYTHON_ERROR)


_PYTHON_ERROR = ir.Constant(ir.IntType(32), -1)
"""What a kernel returns if a Python exception is set; Numba's own name for it is private."""


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
def _bind(slot_address: int, error: Any) -> int:
    """Fill a slot and return the address; zero, with `error` filled, if an exception is raised."""
    slot = _slot_at[slot_address]
    try:
        kernel = slot.kernel or _imported(slot)
        slot.address.value = kernel.late_address(slot.argument_types)
        return slot.address.value or 0
    except BaseException as raised:
        _raised[threading.get_ident()] = raised
        error[0], error[1] = id(type(raised)), id(raised)
        return 0


def _imported(slot: Slot) -> Any:
    found: Any = importlib.import_module(slot.module)
    for part in slot.name.split("."):
        found = getattr(found, part)
    return found


llvm.add_symbol(_BIND, ctypes.cast(_bind, ctypes.c_void_p).value)
