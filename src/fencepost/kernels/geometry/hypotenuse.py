"""`hypotenuse`, the length of a vector in the plane, rounded once.

`math.hypot` in compiled code is the C library's, whose last bit differs from that of Python and
between machines. Here the sum of both squares is kept with its rounding errors, and one step of
Newton's method corrects the root by what it misses. The products are split in halves (Dekker 1971,
"A floating-point technique for extending the available precision").
"""

from __future__ import annotations

import math

from fencepost.kernels.runtime.compilation import inlined, no_refcount

_SPLITTER = 2.0**27 + 1.0
_NEGLIGIBLE = 2.0**-60  # a shorter side of this part of the longer one changes no bit of the length


@no_refcount
def hypotenuse(x, y):
    """Return the square root of x**2 + y**2 for finite x and y.

    A length below the least normal double is rounded twice.
    """
    x = abs(x)
    y = abs(y)
    long = max(x, y)
    short = min(x, y)
    if short <= long * _NEGLIGIBLE:
        return long
    exponent = math.frexp(long)[1]
    long = math.ldexp(long, -exponent)  # from 1/2 to 1: no product overflows or underflows
    short = math.ldexp(short, -exponent)
    square = long * long
    other_square = short * short
    total = square + other_square
    rest = (square - total) + other_square
    rest += _product_error(long, square) + _product_error(short, other_square)
    root = math.sqrt(total)
    product = root * root
    rest = (total - product) + (rest - _product_error(root, product))
    return math.ldexp(root + rest / (2.0 * root), exponent)


@inlined
def _product_error(factor, product):
    """Return factor**2 minus the rounded product."""
    scaled = _SPLITTER * factor
    high = scaled - (scaled - factor)
    low = factor - high
    return ((high * high - product) + 2.0 * high * low) + low * low
