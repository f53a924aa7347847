"""References to structs of arrays, which kernels take as one pointer.

Passing 80 arrays to a kernel costs Numba 15 microseconds a call, more than most matches. A struct
reference stores a named tuple of arrays in its compiled form, so that a call passes one pointer.

Compiled code updates reference counts atomically wherever it reads a tuple of arrays; for one event
this took longer than everything else. A struct reference therefore stores its arrays twice: `owned`
keeps them alive, and `arrays`, which kernels read, has no reference counts.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numba
from numba.typed import List

from fencepost.kernels.runtime.compilation import kernel
from fencepost.kernels.runtime.numba_internals import (
    cgutils,
    impl_ret_borrowed,
    intrinsic,
    lower_getattr,
    meminfo_struct_type,
    structref,
    types,
)


@structref.register
class _StructRefType(types.StructRef):  # type: ignore[misc, name-defined]
    """The type of a struct reference in compiled code."""


class _StructRef(structref.StructRefProxy):  # type: ignore[misc]
    """A struct reference in Python, which only passes it on."""


structref.define_proxy(_StructRef, _StructRefType, ["arrays", "owned"])


_DATA = 3  # the field of Numba's memory record that holds the address


@lower_getattr(_StructRefType, "arrays")  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, type: Any, value: Any) -> Any:
    """Read `.arrays`, also in kernels without reference counting."""
    struct_ref = cgutils.create_struct_proxy(type)(context, builder, value=value)
    meminfo = builder.bitcast(struct_ref.meminfo, meminfo_struct_type.as_pointer())
    data = builder.load(cgutils.gep_inbounds(builder, meminfo, 0, _DATA))
    struct = type.get_data_type()
    pointer = context.data_model_manager[struct].get_value_type().as_pointer()
    data = builder.bitcast(data, pointer)
    fields = cgutils.create_struct_proxy(struct)(context, builder, ref=data)
    # Emit as many increments as there will be decrements: then LLVM removes most pairs.
    return impl_ret_borrowed(context, builder, type.field_dict["arrays"], fields.arrays)


@intrinsic  # type: ignore[untyped-decorator]
def _without_refcount(_: Any, type: Any) -> Any:
    """Return arrays without reference counts; the caller must keep the originals alive."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return _strip_refcount(context, builder, type, arguments[0])

    return type(type), generate


def _strip_refcount(context: Any, builder: Any, type: Any, value: Any) -> Any:
    if isinstance(type, types.Array):
        array = context.make_array(type)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(type, types.BaseTuple):  # type: ignore[attr-defined]
        for k, item_type in enumerate(type):
            item = _strip_refcount(context, builder, item_type, builder.extract_value(value, k))
            value = builder.insert_value(value, item, k)
        return value
    context.nrt.incref(builder, type, value)
    return value


@kernel
def _new_struct_ref(arrays):
    return _StructRef(_without_refcount(arrays), arrays)


@kernel
def _owned_arrays(struct_ref):
    return struct_ref.owned


@kernel
def _replace_arrays(struct_ref, arrays):
    struct_ref.arrays = _without_refcount(arrays)
    struct_ref.owned = arrays


def _new_struct_ref_plain(arrays: Any) -> Any:
    return SimpleNamespace(arrays=arrays, owned=arrays)


def _replace_arrays_plain(struct_ref: Any, arrays: Any) -> None:
    struct_ref.arrays = struct_ref.owned = arrays


struct_ref: Any = _new_struct_ref_plain if numba.config.DISABLE_JIT else _new_struct_ref
"""Return a reference to a named tuple of arrays, which kernels read as `.arrays`.

Kernels can call it, too.
"""

replace_arrays: Any = _replace_arrays_plain if numba.config.DISABLE_JIT else _replace_arrays
"""Replace the arrays behind a struct reference; the old ones must not be read afterwards."""


@kernel
def new_ref_list(first):
    """Return a list of one struct reference, over which kernels iterate."""
    struct_refs = List()
    struct_refs.append(first)
    return struct_refs


@kernel
def ref_list_with(struct_refs, last):
    """Return a copy of a list with one more struct reference at the end."""
    longer = List()
    for k in range(len(struct_refs)):
        longer.append(struct_refs[k])
    longer.append(last)
    return longer


arrays_of: Any = _owned_arrays
"""Return the named tuple behind a struct reference."""
