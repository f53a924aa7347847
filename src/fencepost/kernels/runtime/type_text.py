"""The types of kernels' arguments and results as JSON, and back.

Files of machine code name the types of the kernels that they call. A table holds each type once, so
that a type with a hundred arrays of the same dtype stays short; a type is its place in the table.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from fencepost.kernels.runtime.numba_internals import types


class TypeTable:
    """A table of types, filled by `add`."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self._position_of: dict[str, int] = {}

    def add(self, type: Any) -> int:
        """Return the place of a type in the table. Raise TypeError if kernels cannot have it."""
        entry = self._entry(type)
        text = json.dumps(entry)
        if text not in self._position_of:
            self._position_of[text] = len(self.entries)
            self.entries.append(entry)
        return self._position_of[text]

    def add_all(self, all_types: Any) -> list[int]:
        """Return the places of several types."""
        return [self.add(type) for type in all_types]

    def _entry(self, type: Any) -> list[Any]:
        if isinstance(type, types.Integer | types.Float | types.Boolean | types.NoneType):
            if getattr(types, type.name, None) == type:
                return ["scalar", type.name]
        if isinstance(type, types.Array):
            writable, aligned = type.mutable, type.aligned
            return ["array", self.add(type.dtype), type.ndim, type.layout, writable, aligned]
        if isinstance(type, types.Record):
            fields = [[name, self.add(part.type), *part[1:]] for name, part in type.fields.items()]
            return ["record", fields, type.size, type.aligned]
        if isinstance(type, types.BaseNamedTuple):
            owner = type.instance_class
            fields = list(owner._fields)
            name = owner.__qualname__
            return ["named tuple", owner.__module__, name, fields, self.add_all(type)]
        if isinstance(type, types.BaseTuple):
            return ["tuple", self.add_all(type)]
        if isinstance(type, types.ListType):
            return ["list", self.add(type.dtype)]
        if isinstance(type, types.StructRef):
            fields = [[name, self.add(kind)] for name, kind in type._fields]
            return ["struct", type.__class__.__module__, type.__class__.__qualname__, fields]
        if isinstance(type, types.Omitted):
            return ["omitted", type.value]
        raise TypeError(f"kernels cannot take or return values of type {type}")


def types_of(entries: list[list[Any]]) -> list[Any]:
    """Return the types of a table's entries."""
    known: list[Any] = []
    for kind, *parts in entries:
        known.append(_READERS[kind](known, *parts))
    return known


def _scalar(_: list[Any], name: str) -> Any:
    return getattr(types, name)


def _array(
    known: list[Any], dtype: int, ndim: int, layout: str, writable: bool, aligned: bool
) -> Any:
    return types.Array(known[dtype], ndim, layout, readonly=not writable, aligned=aligned)


def _record(known: list[Any], fields: list[list[Any]], size: int, aligned: bool) -> Any:
    names = ("type", "offset", "alignment", "title")
    parts = [
        (name, dict(zip(names, (known[type], *rest), strict=True))) for name, type, *rest in fields
    ]
    return types.Record(parts, size, aligned)


def _named_tuple(
    known: list[Any], module: str, name: str, fields: list[str], items: list[int]
) -> Any:
    owner = _class_of(module, name)
    return types.BaseTuple.from_types([known[item] for item in items], owner)


def _tuple(known: list[Any], items: list[int]) -> Any:
    return types.BaseTuple.from_types([known[item] for item in items])


def _list(known: list[Any], item: int) -> Any:
    return types.ListType(known[item])


def _struct(known: list[Any], module: str, name: str, fields: list[list[Any]]) -> Any:
    return _class_of(module, name)([(field, known[type]) for field, type in fields])


def _omitted(_: list[Any], value: object) -> Any:
    return types.Omitted(value)


def _class_of(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


_READERS: dict[str, Any] = {
    "scalar": _scalar,
    "array": _array,
    "record": _record,
    "named tuple": _named_tuple,
    "tuple": _tuple,
    "list": _list,
    "struct": _struct,
    "omitted": _omitted,
}
