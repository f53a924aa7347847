"""Sixteen boxes compared at once: what a compiler would not make of a loop over them.

Each function has a plain form beside it, which is what it means, and what runs where kernels are
not compiled.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

WIDTH = 16
ir = cgutils.ir
_LANES = ir.VectorType(ir.IntType(16), WIDTH)


def _plain_meeting(boxes: Any, at: Any, width: Any, a: Any, b: Any, c: Any, d: Any) -> int:
    """Which of up to 16 boxes meet the box a, b, c, d, as bits.

    boxes : uint16, in which `width` x0 begin at `at`, then as many y0, x1 and y1.
    """
    bits = 0
    for k in range(width):
        x0, y0, x1, y1 = (int(boxes[at + side * width + k]) for side in range(4))
        bits |= (x0 <= c and y0 <= d and x1 >= a and y1 >= b) << k
    return bits


def _plain_inside(boxes: Any, at: Any, width: Any, a: Any, b: Any, c: Any, d: Any) -> int:
    """Which of up to 16 boxes lie wholly in the box a, b, c, d, as bits."""
    bits = 0
    for k in range(width):
        x0, y0, x1, y1 = (int(boxes[at + side * width + k]) for side in range(4))
        bits |= (x0 >= a and y0 >= b and x1 <= c and y1 <= d) << k
    return bits


def _plain_lowest(bits: int) -> int:
    """Which is the lowest bit set."""
    return (bits & -bits).bit_length() - 1


def _compare(operators: str) -> Any:
    """Code that compares x0, y0, x1, y1 of 16 boxes with four numbers, for a result in bits."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, at, width, *bounds = arguments
        start = context.make_array(signature.args[0])(context, builder, array).data
        result = None
        for side, (operator, bound) in enumerate(zip(operators.split(), bounds, strict=True)):
            place = builder.add(at, builder.mul(width, at.type(side)))
            lanes = builder.load(
                builder.bitcast(builder.gep(start, [place]), _LANES.as_pointer()), align=2
            )
            one = builder.insert_element(
                ir.Constant(_LANES, ir.Undefined),
                builder.trunc(bound, _LANES.element),
                cgutils.int32_t(0),
            )
            spread = builder.shuffle_vector(
                one, one, ir.Constant(ir.VectorType(cgutils.int32_t, WIDTH), [0] * WIDTH)
            )
            holds = builder.icmp_unsigned(operator, lanes, spread)
            result = holds if result is None else builder.and_(result, holds)
        bits = builder.zext(builder.bitcast(result, ir.IntType(WIDTH)), at.type)
        used = builder.sub(builder.shl(at.type(1), width), at.type(1))
        return builder.and_(bits, used)

    return generate


def _signature(boxes: Any) -> Any:
    return types.int64(boxes, *[types.int64] * 6)


@intrinsic  # type: ignore[untyped-decorator]
def _fast_meeting(typing, boxes, at, width, a, b, c, d):  # type: ignore[no-untyped-def]
    """See `_plain_meeting`; the bounds are from 0 to 65535, and 16 numbers more can be read."""
    generate = _compare("<= <= >= >=")

    def reordered(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, at, width, a, b, c, d = arguments
        return generate(context, builder, signature, [array, at, width, c, d, a, b])

    return _signature(boxes), reordered


@intrinsic  # type: ignore[untyped-decorator]
def _fast_inside(typing, boxes, at, width, a, b, c, d):  # type: ignore[no-untyped-def]
    """See `_plain_inside`."""
    return _signature(boxes), _compare(">= >= <= <=")


@intrinsic  # type: ignore[untyped-decorator]
def _fast_lowest(typing, bits):  # type: ignore[no-untyped-def]
    """See `_plain_lowest`; not 0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.int64), generate


if numba.config.DISABLE_JIT:
    meeting, inside, lowest = _plain_meeting, _plain_inside, _plain_lowest
else:
    meeting, inside, lowest = _fast_meeting, _fast_inside, _fast_lowest
