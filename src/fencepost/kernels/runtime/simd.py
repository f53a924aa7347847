"""Comparisons of 16 boxes or numbers at once, which a compiler does not make from a loop.

Results are bit sets: bit k is about box k. Each function has a plain twin, which defines what it
returns and which runs where kernels are not compiled.
"""

from __future__ import annotations

from typing import Any

import numba

from fencepost.kernels.runtime.numba_internals import cgutils, intrinsic, ir, types

WIDTH = 16
_LANES = ir.VectorType(ir.IntType(16), WIDTH)
_WORDS = ir.VectorType(ir.IntType(32), WIDTH)
_DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)


def _plain_meeting(boxes: Any, at: Any, width: Any, a: Any, b: Any, c: Any, d: Any) -> int:
    """Return which of up to 16 boxes meet the box a, b, c, d.

    boxes : uint16; from `at` on, `width` x0 are followed by as many y0, x1 and y1.
    """
    bits = 0
    for k in range(width):
        x0, y0, x1, y1 = (int(boxes[at + side * width + k]) for side in range(4))
        bits |= (x0 <= c and y0 <= d and x1 >= a and y1 >= b) << k
    return bits


def _plain_overlapping(boxes: Any, at: Any, width: Any, a: Any, b: Any, c: Any, d: Any) -> int:
    """Return which of up to 16 boxes share interior with the box a, b, c, d."""
    bits = 0
    for k in range(width):
        x0, y0, x1, y1 = (int(boxes[at + side * width + k]) for side in range(4))
        bits |= (x0 < c and y0 < d and x1 > a and y1 > b) << k
    return bits


def _plain_inside(boxes: Any, at: Any, width: Any, a: Any, b: Any, c: Any, d: Any) -> int:
    """Return which of up to 16 boxes lie within the box a, b, c, d."""
    bits = 0
    for k in range(width):
        x0, y0, x1, y1 = (int(boxes[at + side * width + k]) for side in range(4))
        bits |= (x0 >= a and y0 >= b and x1 <= c and y1 <= d) << k
    return bits


def plain_admitting(bounds: Any, at: Any, width: Any, low: Any, high: Any) -> int:
    """Return which of up to 16 ranges have a lower bound <= `low` and an upper bound >= `high`.

    bounds : uint16; from `at` on, `width` lower bounds are followed by as many upper bounds.
    """
    bits = 0
    for k in range(width):
        bits |= (int(bounds[at + k]) <= low and int(bounds[at + width + k]) >= high) << k
    return bits


def plain_block_meeting(boxes: Any, record: Any, x0: Any, y0: Any, x1: Any, y1: Any) -> int:
    """Return which of the 16 boxes of a block meet the box x0, y0, x1, y1.

    boxes : float64, (blocks, 4, 16): the x0, y0, x1 and y1 of each block; NaN meets nothing.
    """
    bits = 0
    for k in range(WIDTH):
        low_x, low_y, high_x, high_y = boxes[record, :, k]
        bits |= (low_x <= x1 and low_y <= y1 and high_x >= x0 and high_y >= y0) << k
    return bits


def plain_block_inside(boxes: Any, record: Any, x0: Any, y0: Any, x1: Any, y1: Any) -> int:
    """Return which of the 16 boxes of a block lie within the box x0, y0, x1, y1."""
    bits = 0
    for k in range(WIDTH):
        low_x, low_y, high_x, high_y = boxes[record, :, k]
        bits |= (low_x >= x0 and low_y >= y0 and high_x <= x1 and high_y <= y1) << k
    return bits


def plain_below(numbers: Any, at: Any, limit: Any) -> int:
    """Return how many of the 16 numbers from `at` on are below `limit`. numbers : uint32."""
    return sum(int(number) < int(limit) for number in numbers[at : at + WIDTH])


def plain_lowest(bits: Any) -> int:
    """Return the position of the lowest bit that is set."""
    number = int(bits)
    return (number & -number).bit_length() - 1


def _compare(operators: str) -> Any:
    """Return a code generator that compares each side of 16 boxes with a number, for bits."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, at, width, *bounds = arguments
        start = context.make_array(signature.args[0])(context, builder, array).data
        result = None
        for side, (operator, bound) in enumerate(zip(operators.split(), bounds, strict=True)):
            offset = builder.add(at, builder.mul(width, at.type(side)))
            lanes = builder.load(
                builder.bitcast(builder.gep(start, [offset]), _LANES.as_pointer()), align=2
            )
            first_lane = builder.insert_element(
                ir.Constant(_LANES, ir.Undefined),
                builder.trunc(bound, _LANES.element),
                cgutils.int32_t(0),
            )
            holds = builder.icmp_unsigned(operator, lanes, _broadcast(builder, first_lane))
            result = holds if result is None else builder.and_(result, holds)
        bits = builder.zext(builder.bitcast(result, ir.IntType(WIDTH)), at.type)
        used = builder.sub(builder.shl(at.type(1), width), at.type(1))
        return builder.and_(bits, used)

    return generate


def _broadcast(builder: Any, vector: Any) -> Any:
    """Copy the first lane of a vector to all lanes."""
    mask = ir.Constant(ir.VectorType(cgutils.int32_t, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(vector, vector, mask)


def _compare_block(operators: str, order: tuple[int, int, int, int]) -> Any:
    """Return a code generator that compares each side of a block's boxes with a bound.

    order : which of the bounds each of the four sides is compared with.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, record, *bounds = arguments
        start = context.make_array(signature.args[0])(context, builder, array).data
        start = builder.bitcast(start, _DOUBLES.element.as_pointer())
        first = builder.mul(record, record.type(4 * WIDTH))
        result = None
        for side, (operator, bound) in enumerate(zip(operators.split(), order, strict=True)):
            address = builder.gep(start, [builder.add(first, record.type(side * WIDTH))])
            lanes = builder.load(builder.bitcast(address, _DOUBLES.as_pointer()), align=8)
            first_lane = builder.insert_element(
                ir.Constant(_DOUBLES, ir.Undefined), bounds[bound], cgutils.int32_t(0)
            )
            holds = builder.fcmp_ordered(operator, lanes, _broadcast(builder, first_lane))
            result = holds if result is None else builder.and_(result, holds)
        return builder.zext(builder.bitcast(result, ir.IntType(WIDTH)), record.type)

    return generate


def _block_signature(boxes: Any) -> Any:
    return types.int64(boxes, types.int64, *[types.float64] * 4)


@intrinsic  # type: ignore[untyped-decorator]
def _fast_block_meeting(typing, boxes, record, x0, y0, x1, y1):  # type: ignore[no-untyped-def]
    """See `plain_block_meeting`. The boxes must be contiguous."""
    return _block_signature(boxes), _compare_block("<= <= >= >=", (2, 3, 0, 1))


@intrinsic  # type: ignore[untyped-decorator]
def _fast_block_inside(typing, boxes, record, x0, y0, x1, y1):  # type: ignore[no-untyped-def]
    """See `plain_block_inside`. The boxes must be contiguous."""
    return _block_signature(boxes), _compare_block(">= >= <= <=", (0, 1, 2, 3))


def _signature(boxes: Any) -> Any:
    return types.int64(boxes, *[types.int64] * 6)


@intrinsic  # type: ignore[untyped-decorator]
def _fast_meeting(typing, boxes, at, width, a, b, c, d):  # type: ignore[no-untyped-def]
    """See `_plain_meeting`. Bounds are from 0 to 65535; reads up to 16 numbers beyond the block."""
    return _signature(boxes), _compare_across("<= <= >= >=")


@intrinsic  # type: ignore[untyped-decorator]
def _fast_overlapping(typing, boxes, at, width, a, b, c, d):  # type: ignore[no-untyped-def]
    """See `_plain_overlapping`. Bounds and reads are as in `_fast_meeting`."""
    return _signature(boxes), _compare_across("< < > >")


def _compare_across(operators: str) -> Any:
    """Like `_compare`, but compare x0 and y0 with c and d, and x1 and y1 with a and b."""
    generate = _compare(operators)

    def reordered(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, at, width, a, b, c, d = arguments
        return generate(context, builder, signature, [array, at, width, c, d, a, b])

    return reordered


@intrinsic  # type: ignore[untyped-decorator]
def _fast_inside(typing, boxes, at, width, a, b, c, d):  # type: ignore[no-untyped-def]
    """See `_plain_inside`. Bounds and reads are as in `_fast_meeting`."""
    return _signature(boxes), _compare(">= >= <= <=")


@intrinsic  # type: ignore[untyped-decorator]
def _fast_admitting(typing, bounds, at, width, low, high):  # type: ignore[no-untyped-def]
    """See `plain_admitting`. Bounds and reads are as in `_fast_meeting`."""
    return types.int64(bounds, *[types.int64] * 4), _compare("<= >=")


@intrinsic  # type: ignore[untyped-decorator]
def _fast_below(typing, numbers, at, limit):  # type: ignore[no-untyped-def]
    """See `plain_below`."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, at, limit = arguments
        start = context.make_array(signature.args[0])(context, builder, array).data
        lanes = builder.load(
            builder.bitcast(builder.gep(start, [at]), _WORDS.as_pointer()), align=4
        )
        first_lane = builder.insert_element(
            ir.Constant(_WORDS, ir.Undefined), limit, cgutils.int32_t(0)
        )
        holds = builder.icmp_unsigned("<", lanes, _broadcast(builder, first_lane))
        bits = builder.zext(builder.bitcast(holds, ir.IntType(WIDTH)), at.type)
        return builder.ctpop(bits)

    return types.int64(numbers, types.int64, types.uint32), generate


@intrinsic  # type: ignore[untyped-decorator]
def _fast_lowest(typing, bits):  # type: ignore[no-untyped-def]
    """See `plain_lowest`. The argument must not be 0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.int64), generate


if numba.config.DISABLE_JIT:
    meeting, overlapping, inside = _plain_meeting, _plain_overlapping, _plain_inside
    lowest, admitting, below = plain_lowest, plain_admitting, plain_below
    block_meeting, block_inside = plain_block_meeting, plain_block_inside
else:
    meeting, overlapping, inside = _fast_meeting, _fast_overlapping, _fast_inside
    lowest, admitting, below = _fast_lowest, _fast_admitting, _fast_below
    block_meeting, block_inside = _fast_block_meeting, _fast_block_inside
