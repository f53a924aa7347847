"""Orientation of three points: on which side of a line a point lies, exact for finite doubles.

The test has three stages; each decides only where it is certain:

1. Floating point with an error bound (Shewchuk 1997, section 4.3). The bound holds with or
   without fused multiply-add, and carries an absolute term for products that underflow.
2. 64-bit integers and a 128-bit comparison of the two products, where the six coordinates fit
   a common window of 62 bits.
3. A fixed-point accumulator wide enough for the product of any two doubles, which sums the
   determinant.

Stages 2 and 3 use no floating-point arithmetic, so no rounding, overflow, underflow or
contraction can touch the answer.
"""

from __future__ import annotations

import math

import numpy as np

from fencepost.kernels.runtime.compilation import kernel, no_refcount

_UNIT_ROUNDOFF = 2.0**-53
RELATIVE_BOUND = (3.0 + 16.0 * _UNIT_ROUNDOFF) * _UNIT_ROUNDOFF
UNDERFLOW_BOUND = 1e-290

_WINDOW_BITS = 62
_LOW_32 = np.uint64(0xFFFFFFFF)
_SHIFT_32 = np.uint64(32)

# Stage 3: bit 0 of the accumulator weighs 2**_LOWEST_EXPONENT, the last bit of the smallest
# product.
_LOWEST_EXPONENT = 2 * (-1074 - 52)
LIMB_COUNT = (2 * 1024 - _LOWEST_EXPONENT) // 32 + 4


@no_refcount
def orient(ax, ay, bx, by, cx, cy):
    """Return 1 if a, b, c turn left, -1 if they turn right, 0 if they lie on one line."""
    ux = bx - ax
    uy = by - ay
    vx = cx - ax
    vy = cy - ay
    left = ux * vy
    right = uy * vx
    difference = left - right
    bound = RELATIVE_BOUND * (abs(left) + abs(right)) + UNDERFLOW_BOUND
    if difference > bound:
        return 1
    if -difference > bound:
        return -1
    # Certainly collinear: both products are exactly zero, or b and c are one point.
    if (ux == 0.0 or vy == 0.0) and (uy == 0.0 or vx == 0.0):
        return 0
    if bx == cx and by == cy:
        return 0
    return orient_integer(ax, ay, bx, by, cx, cy)


@no_refcount
def orient_integer(ax, ay, bx, by, cx, cy):
    """Return what `orient` returns, without the floating-point stage."""
    amx, aex = math.frexp(ax)
    amy, aey = math.frexp(ay)
    bmx, bex = math.frexp(bx)
    bmy, bey = math.frexp(by)
    cmx, cex = math.frexp(cx)
    cmy, cey = math.frexp(cy)
    # Zero must not widen the window: frexp gives it the exponent 0.
    high = -5000
    low = 5000
    for m, e in ((amx, aex), (amy, aey), (bmx, bex), (bmy, bey), (cmx, cex), (cmy, cey)):
        if m != 0.0:
            high = max(high, e)
            low = min(low, e)
    if high - (low - 53) <= _WINDOW_BITS:
        base = low - 53
        ix = _to_fixed_point(amx, aex, base)
        iy = _to_fixed_point(amy, aey, base)
        return _compare_products(
            _to_fixed_point(bmx, bex, base) - ix,
            _to_fixed_point(cmy, cey, base) - iy,
            _to_fixed_point(bmy, bey, base) - iy,
            _to_fixed_point(cmx, cex, base) - ix,
        )
    return orient_accumulated(ax, ay, bx, by, cx, cy)


@no_refcount
def _to_fixed_point(mantissa, exponent, base):
    """Return mantissa * 2**exponent as an integer multiple of 2**base."""
    if mantissa == 0.0:
        return 0
    return np.int64(mantissa * 9007199254740992.0) << np.int64(exponent - 53 - base)


@no_refcount
def _compare_products(a, b, c, d):
    """Return the sign of a * b - c * d for 64-bit integers."""
    left_sign = _sign(a) * _sign(b)
    right_sign = _sign(c) * _sign(d)
    if left_sign != right_sign:
        return 1 if left_sign > right_sign else -1
    if left_sign == 0:
        return 0
    left_high, left_low = _multiply(_magnitude(a), _magnitude(b))
    right_high, right_low = _multiply(_magnitude(c), _magnitude(d))
    if left_high != right_high:
        return left_sign if left_high > right_high else -left_sign
    if left_low != right_low:
        return left_sign if left_low > right_low else -left_sign
    return 0


@no_refcount
def _sign(a):
    return 1 if a > 0 else -1 if a < 0 else 0


@no_refcount
def _magnitude(a):
    return np.uint64(a if a >= 0 else -a)


@no_refcount
def _multiply(a, b):
    """Return the 128-bit product of two uint64 numbers below 2**63 as high and low words."""
    a_high = a >> _SHIFT_32
    a_low = a & _LOW_32
    b_high = b >> _SHIFT_32
    b_low = b & _LOW_32
    low = a_low * b_low
    middle = a_high * b_low + (low >> _SHIFT_32)
    other = a_low * b_high + (middle & _LOW_32)
    high = a_high * b_high + (middle >> _SHIFT_32) + (other >> _SHIFT_32)
    return high, (other << _SHIFT_32) | (low & _LOW_32)


@kernel
def orient_accumulated(ax, ay, bx, by, cx, cy):
    limbs = np.zeros(LIMB_COUNT, np.int64)
    accumulate_product(limbs, ax, by, 1)
    accumulate_product(limbs, ay, bx, -1)
    accumulate_product(limbs, bx, cy, 1)
    accumulate_product(limbs, by, cx, -1)
    accumulate_product(limbs, cx, ay, 1)
    accumulate_product(limbs, cy, ax, -1)
    # Carry upwards; floor shifts keep every limb but the carry out in 0 .. 2**32 - 1.
    carry = np.int64(0)
    any_nonzero = False
    for k in range(LIMB_COUNT):
        value = limbs[k] + carry
        carry = value >> 32
        if value & 0xFFFFFFFF:
            any_nonzero = True
    if carry < 0:
        return -1
    return 1 if any_nonzero or carry > 0 else 0


@no_refcount
def accumulate_product(limbs, a, b, sign):
    """Add sign * a * b; each limb grows by less than 2**36, so 6 products cannot overflow it."""
    if a == 0.0 or b == 0.0:
        return
    a_mantissa, a_exponent = math.frexp(a)
    b_mantissa, b_exponent = math.frexp(b)
    if a_mantissa < 0.0:
        a_mantissa = -a_mantissa
        sign = -sign
    if b_mantissa < 0.0:
        b_mantissa = -b_mantissa
        sign = -sign
    a_integer = np.int64(a_mantissa * 9007199254740992.0)
    b_integer = np.int64(b_mantissa * 9007199254740992.0)
    position = np.int64(a_exponent + b_exponent - 106 - _LOWEST_EXPONENT)
    low = (1 << 27) - 1
    a_low = a_integer & low
    a_high = a_integer >> 27
    b_low = b_integer & low
    b_high = b_integer >> 27
    _add_bits(limbs, position, a_low * b_low, sign)
    _add_bits(limbs, position + 27, a_low * b_high + a_high * b_low, sign)
    _add_bits(limbs, position + 54, a_high * b_high, sign)


@no_refcount
def _add_bits(limbs, position, value, sign):
    """Add sign * value * 2**position for 0 <= value < 2**56."""
    limb = position >> 5
    shift = position & 31
    low = (value & 0xFFFF) << shift
    middle = ((value >> 16) & 0xFFFF) << shift
    high = (value >> 32) << shift
    low += (middle & 0xFFFF) << 16
    high += middle >> 16
    limbs[limb] += sign * (low & 0xFFFFFFFF)
    limbs[limb + 1] += sign * ((low >> 32) + (high & 0xFFFFFFFF))
    limbs[limb + 2] += sign * (high >> 32)
