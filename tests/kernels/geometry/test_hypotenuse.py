"""`hypotenuse` against exact arithmetic: no double is nearer to the length."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.kernels.geometry.hypotenuse import hypotenuse
from tests.engine.strategies import examples

LEAST_NORMAL = 2.0**-1022
COORDINATES = st.one_of(
    st.floats(-4, 4),
    st.integers(-(2**53), 2**53).map(float),
    st.floats(-1e300, 1e300, allow_subnormal=False),
)
# The part of the longer side that the shorter one is: around where it changes no bit, too.
PARTS = st.one_of(st.floats(-1, 1), st.integers(20, 64).map(lambda bits: 2.0**-bits))


def is_nearest(length: float, x: float, y: float) -> bool:
    """Return whether the length lies between the midpoints to its neighbours."""
    square = Fraction(x) ** 2 + Fraction(y) ** 2
    below, above = (Fraction(math.nextafter(length, end)) for end in (0.0, math.inf))
    low, high = (Fraction(length) + below) / 2, (Fraction(length) + above) / 2
    return low**2 <= square <= high**2


@given(COORDINATES, COORDINATES, PARTS)
@example(3.0, 4.0, 1.0)
@example(1.7e308 / 4, -1.7e308 / 4, 1.0)
@example(LEAST_NORMAL, LEAST_NORMAL, 2.0**-52)
@examples(500)
def test_no_double_is_nearer(x: float, other: float, part: float) -> None:
    for y in (other, x * part):
        length = hypotenuse(x, y)
        assert hypotenuse(-y, x) == length
        if length == 0:
            assert x == y == 0
        elif length >= LEAST_NORMAL:
            assert is_nearest(length, x, y)
            assert math.hypot(x, y) == length  # which scores of the reference use
