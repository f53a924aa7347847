"""Numba's types as JSON, and back."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import types

from fencepost.kernels import struct_ref
from fencepost.kernels.runtime.type_text import TypeTable, types_of


class Pair(NamedTuple):
    first: Any
    second: Any


RECORDS = [
    np.dtype([("n", "u4"), ("x", "f8")]),
    np.dtype([("n", "u4"), ("x", "f8")], align=True),
    np.dtype({"names": ["b"], "formats": ["f4"], "offsets": [8], "itemsize": 32}),
]
scalars = st.sampled_from([types.int64, types.uint8, types.float32, types.boolean, types.none])
dtypes = st.sampled_from([types.float64, types.uint16, *map(numba.from_dtype, RECORDS)])
arrays = st.builds(
    types.Array,
    dtypes,
    st.integers(1, 3),
    st.sampled_from("CFA"),
    readonly=st.booleans(),
    aligned=st.booleans(),
)
all_types = st.recursive(
    scalars | arrays | st.builds(types.Omitted, st.integers() | st.none() | st.text()),
    lambda inner: (
        st.lists(inner, max_size=4).map(types.BaseTuple.from_types)
        | st.tuples(inner, inner).map(lambda pair: types.BaseTuple.from_types(pair, Pair))
    ),
    max_leaves=12,
)


@given(st.lists(all_types, max_size=5))
def test_types_survive(given_types: list[Any]) -> None:
    table = TypeTable()
    places = table.add_all(given_types)
    read = types_of(json.loads(json.dumps(table.entries)))
    assert [read[place] for place in places] == given_types
    assert [repr(read[place]) for place in places] == list(map(repr, given_types))


def test_each_type_is_listed_once() -> None:
    table = TypeTable()
    array = types.float64[::1]
    assert table.add(types.BaseTuple.from_types([array] * 9)) == 2
    assert table.add(array) == 1
    assert len(table.entries) == 3


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_references_to_arrays_survive() -> None:
    type = numba.typeof(struct_ref(Pair(np.zeros(1), np.zeros(2, "u1"))))
    table = TypeTable()
    place = table.add(types.ListType(type))
    assert types_of(table.entries)[place] == types.ListType(type)


def test_a_type_that_kernels_cannot_have_is_named() -> None:
    with pytest.raises(TypeError, match="values of type unicode_type"):
        TypeTable().add(types.unicode_type)
