"""Sixteen at once, beside what that means one by one."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.kernels import WIDTH, kernel
from fencepost.kernels.runtime import simd

few = st.integers(0, 3) | st.integers(65_532, 65_535) | st.integers(0, 65_535)


@kernel
def admitted(bounds: Any, at: int, width: int, low: int, high: int) -> int:
    return simd.admitting(bounds, at, width, low, high)


@kernel
def lower(numbers: Any, at: int, own: Any) -> int:
    return simd.below(numbers, at, own)


@kernel
def first_bit(bits: Any) -> int:
    return simd.lowest(bits)


@given(st.lists(few, min_size=2 * WIDTH, max_size=2 * WIDTH), st.integers(1, WIDTH), few, few)
def test_bounds_that_admit_a_number(given: list[int], width: int, low: int, high: int) -> None:
    bounds = np.array([0, 0, 0, *given, *[7] * 64], np.uint16)
    found = admitted(bounds, 3, width, low, high)
    assert found == simd.plain_admitting(bounds, 3, width, low, high)
    pairs = zip(given[:width], given[width : 2 * width], strict=True)
    assert found == sum(1 << k for k, (a, b) in enumerate(pairs) if a <= low and high <= b)


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=WIDTH, max_size=WIDTH), st.integers(0, 2**32 - 1)
)
def test_numbers_below_another(given: list[int], own: int) -> None:
    numbers = np.array([5, *given, 5], np.uint32)
    for one in (own, given[0]):
        expected = sum(number < one for number in given)
        assert lower(numbers, 1, np.uint32(one)) == expected
        assert simd.plain_below(numbers, 1, np.uint32(one)) == expected


@given(st.integers(1, 2**64 - 1))
def test_the_lowest_bit_of_64(bits: int) -> None:
    expected = bin(bits)[::-1].index("1")
    given = np.uint64(bits).astype(np.int64)
    assert first_bit(given) == simd.plain_lowest(given) == expected


def test_what_is_compared_is_compiled() -> None:
    assert numba.config.DISABLE_JIT or simd.admitting is not simd.plain_admitting
