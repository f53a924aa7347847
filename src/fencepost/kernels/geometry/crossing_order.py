"""The order in which two edges cross a third one, exact for finite doubles.

An edge from p to n crosses a line through a and b at the fraction ``P / (P + N)`` of its way, where
P and N are the distances of p and n from the line, up to a common factor: the determinants that
`orientation` takes the sign of. So the order of two crossings is the order of two products of
determinants, and no point is constructed. Floating point decides where its error bound allows;
elsewhere the products are compared as integers of many limbs.
"""

from __future__ import annotations

import numpy as np
from numba import types

from fencepost.kernels.geometry.orientation import (
    LIMB_COUNT,
    RELATIVE_BOUND,
    UNDERFLOW_BOUND,
    accumulate_product,
)
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined

_SHIFT_32 = np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)
_ROUNDING = 2.0**-50  # far exceeds the rounding of a product and of the bounds themselves


@no_refcount
def compare_crossings(px, py, nx, ny, ax, ay, bx, by, cx, cy, dx, dy):
    """Return -1 if the edge p-n crosses a-b before c-d, 1 if it does so after, 0 if at one point.

    p lies on the left of a-b and of c-d, n on the right of both.
    """
    near_first, near_first_error = _determinant(ax, ay, bx, by, px, py)
    far_first, far_first_error = _determinant(bx, by, ax, ay, nx, ny)
    near_second, near_second_error = _determinant(cx, cy, dx, dy, px, py)
    far_second, far_second_error = _determinant(dx, dy, cx, cy, nx, ny)
    left = near_first * far_second
    right = near_second * far_first
    bound = (
        abs(near_first) * far_second_error
        + near_first_error * (abs(far_second) + far_second_error)
        + abs(near_second) * far_first_error
        + near_second_error * (abs(far_first) + far_first_error)
    )
    bound = bound * (1.0 + _ROUNDING) + _ROUNDING * (abs(left) + abs(right)) + UNDERFLOW_BOUND
    if right - left > bound:
        return -1
    if left - right > bound:
        return 1
    return compare_crossings_exactly(px, py, nx, ny, ax, ay, bx, by, cx, cy, dx, dy)


@inlined
def _determinant(ax, ay, bx, by, cx, cy):
    """Return twice the area of the triangle a, b, c, and a bound on its error."""
    left = (bx - ax) * (cy - ay)
    right = (by - ay) * (cx - ax)
    return left - right, RELATIVE_BOUND * (abs(left) + abs(right)) + UNDERFLOW_BOUND


@outlined(returns=types.int64)
@kernel
def compare_crossings_exactly(px, py, nx, ny, ax, ay, bx, by, cx, cy, dx, dy):
    """Return what `compare_crossings` returns, by integers alone."""
    left = _product(
        _determinant_limbs(ax, ay, bx, by, px, py), _determinant_limbs(dx, dy, cx, cy, nx, ny)
    )
    right = _product(
        _determinant_limbs(cx, cy, dx, dy, px, py), _determinant_limbs(bx, by, ax, ay, nx, ny)
    )
    for k in range(left.shape[0] - 1, -1, -1):
        if left[k] != right[k]:
            return -1 if left[k] < right[k] else 1
    return 0


@kernel
def _determinant_limbs(ax, ay, bx, by, cx, cy):
    """Return the determinant of a, b, c, which turn left, as digits to the base 2**32."""
    sums = np.zeros(LIMB_COUNT, np.int64)
    accumulate_product(sums, ax, by, 1)
    accumulate_product(sums, ay, bx, -1)
    accumulate_product(sums, bx, cy, 1)
    accumulate_product(sums, by, cx, -1)
    accumulate_product(sums, cx, ay, 1)
    accumulate_product(sums, cy, ax, -1)
    limbs = np.empty(LIMB_COUNT, np.uint64)
    carry = np.int64(0)
    for k in range(LIMB_COUNT):
        value = sums[k] + carry
        carry = value >> 32
        limbs[k] = np.uint64(value & 0xFFFFFFFF)
    return limbs


@kernel
def _product(a, b):
    """Return the product of two numbers of many limbs."""
    product = np.zeros(a.shape[0] + b.shape[0], np.uint64)
    b_low, b_high = 0, b.shape[0]
    while b_low < b_high and b[b_low] == 0:
        b_low += 1
    while b_low < b_high and b[b_high - 1] == 0:
        b_high -= 1
    for i in range(a.shape[0]):
        if a[i] == 0:
            continue
        carry = np.uint64(0)
        for j in range(b_low, b_high):
            value = a[i] * b[j] + product[i + j] + carry
            product[i + j] = value & _LOW_32
            carry = value >> _SHIFT_32
        product[i + b_high] = carry
    return product
