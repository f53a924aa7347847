"""Many arrays behind one pointer.

Handing 80 arrays to a kernel takes Numba 15 microseconds a call, more than most matches. A handle
keeps them as compiled code sees them, so that a call hands over a pointer.

Compiled code counts who uses an array, atomically, wherever it takes a tuple of them into its
hands: for one event that took longer than all else. So a handle has its arrays twice: as they are,
which keeps them alive, and as they are read, without the counts.
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
    """A handle in compiled code; `arrays` is what it holds."""


class _StructRef(structref.StructRefProxy):  # type: ignore[misc]
    """A handle in Python, which only passes it on."""


structref.define_proxy(_StructRef, _StructRefType, ["arrays", "owned"])


_DATA = 3  # where what Numba keeps about memory has its address


@lower_getattr(_StructRefType, "arrays")  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, type: Any, value: Any) -> Any:
    """What `.arrays` is, where nothing is counted too."""
    struct_ref = cgutils.create_struct_proxy(type)(context, builder, value=value)
    about = builder.bitcast(struct_ref.meminfo, meminfo_struct_type.as_pointer())
    data = builder.load(cgutils.gep_inbounds(builder, about, 0, _DATA))
    held = type.get_data_type()
    pointer = context.data_model_manager[held].get_value_type().as_pointer()
    fields = cgutils.create_struct_proxy(held)(context, builder, ref=builder.bitcast(data, pointer))
    # With as many calls as there will be when it is done with: then most of both are left out.
    return impl_ret_borrowed(context, builder, type.field_dict["arrays"], fields.arrays)


@intrinsic  # type: ignore[untyped-decorator]
def _without_refcount(_: Any, given: Any) -> Any:
    """The same arrays without counts of who uses them; somebody else must keep them alive."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return _without_counts(context, builder, given, arguments[0])

    return given(given), generate


def _without_counts(context: Any, builder: Any, type: Any, value: Any) -> Any:
    if isinstance(type, types.Array):
        array = context.make_array(type)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(type, types.BaseTuple):  # type: ignore[attr-defined]
        for k, own in enumerate(type):
            one = _without_counts(context, builder, own, builder.extract_value(value, k))
            value = builder.insert_value(value, one, k)
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


def _plain(arrays: Any) -> Any:
    return SimpleNamespace(arrays=arrays, owned=arrays)


def _replace_arrays_plain(struct_ref: Any, arrays: Any) -> None:
    struct_ref.arrays = struct_ref.owned = arrays


struct_ref: Any = _plain if numba.config.DISABLE_JIT else _new_struct_ref
"""What a kernel takes for a named tuple of arrays, and reads as `.arrays`; kernels make it too."""

replace_arrays: Any = _replace_arrays_plain if numba.config.DISABLE_JIT else _replace_arrays
"""Puts other arrays behind a handle; who still reads the old ones must not, from then on."""


@kernel
def new_ref_list(first):
    """A list of one handle, which kernels go through."""
    struct_refs = List()
    struct_refs.append(first)
    return struct_refs


@kernel
def ref_list_with(struct_refs, last):
    """A list of one handle more."""
    longer = List()
    for k in range(len(struct_refs)):
        longer.append(struct_refs[k])
    longer.append(last)
    return longer


arrays_of: Any = _owned_arrays
"""The named tuple behind a handle."""
