"""One event from its values to what it matches, in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_layout import lay_out_unchecked
from fencepost.kernels.match.match_scratch import EVENTS, MATCHES, UNIQUE
from fencepost.kernels.match.region_points import find_point
from fencepost.kernels.match.segment_search import (
    EventArrays,
    drop_dead_rows,
    has_regions_only,
    match_segments,
)
from fencepost.kernels.runtime.compilation import kernel, no_refcount, outlined
from fencepost.kernels.runtime.struct_references import struct_ref

BETWEEN = 0  # a byte between items that are written in one piece


class SingleEventContext(NamedTuple):
    """What one event after another is matched with, each written where the last one was."""

    segments: Any  # list of handles of SegmentArrays
    scratch: Any  # handle of MatchScratch
    events: Any  # handle of EventArrays: of one event, and its shape a point
    joined: NDArray[np.int64]  # where items begin and end in the text that are not told apart yet
    stops: NDArray[np.int64]  # (segments, 1)
    answer: NDArray[np.uint32]  # where what is found is written
    max_abs_x: float  # how far from 0 coordinates may be, which is finite
    max_abs_y: float


@kernel
def match_point(context_ref, x, y, now, version):
    """Match the event on a desk, a handle of it, whose only geometry, if it has any, is a point.

    now, version : as in `match_events`. Writes to `answer` where the subscriptions of each segment
    end, and these; returns how many numbers that are, the same below 0 where there is no scratch for
    them, or 0 where the event cannot be decided so.
    """
    context = context_ref.arrays
    if not (abs(x) <= context.max_abs_x and abs(y) <= context.max_abs_y):
        return 0
    count = _in_regions(context, x + 0.0, y + 0.0, now, np.uint32(version))  # 0.0 for -0.0
    if count > 0:
        return count
    _write(context.events.arrays.shapes, x, y)
    return _matched(context, context.events, now, version)


@kernel
def match_one(context_ref, xy, chain_start, chain_part, shape_chain, dimension, now, version):
    """The same for an event with any shapes, which are given as in `lay_out_unchecked`."""
    context = context_ref.arrays
    shapes, usable = lay_out_unchecked(
        xy, chain_start, chain_part, shape_chain, dimension, context.max_abs_x, context.max_abs_y
    )
    if not usable:
        return 0
    return _matched(context, _with_shapes(context.events.arrays, shapes), now, version)


@outlined
@kernel
def _in_regions(context, x, y, now, version):
    """The short way out, where all segments ask for nothing but relations to regions: what is
    found goes from the trees to the answer. 0 where that is not so, or there is no scratch.
    """
    segments = len(context.segments)
    total = np.int64(segments)
    for s in range(segments):
        total = _in_regions_of(
            context.segments[s],
            context.scratch,
            context.events,
            x,
            y,
            now,
            version,
            context.answer,
            total,
        )
        if total == 0:
            return total
        context.answer[s] = total - segments
    counts = context.scratch.arrays.counts
    counts[EVENTS] += 1
    counts[MATCHES] += total - segments
    return total


@no_refcount
def _in_regions_of(segment, scratch, events, x, y, now, version, answer, total):
    """Append what a point answers in one segment to `answer`; where it ends."""
    if not has_regions_only(segment):
        return np.int64(0)
    found = find_point(
        segment, events.arrays.geometry, x, y, scratch.arrays.trees.stack, scratch.arrays.points,
        answer[total:],
    )  # fmt: skip
    if found < 0 or (found > 1 and segment.arrays.state[UNIQUE] == 0):
        return np.int64(0)
    return drop_dead_rows(segment, now, version, answer, total, total + found)


@no_refcount
def _write(shapes, x, y):
    """Write a point as the only shape."""
    x += 0.0  # which makes -0.0 a 0.0
    y += 0.0
    shapes.x[0] = x
    shapes.y[0] = y
    shapes.shapes[0]["x0"] = x
    shapes.shapes[0]["y0"] = y
    shapes.shapes[0]["x1"] = x
    shapes.shapes[0]["y1"] = y


@kernel
def _with_shapes(event, shapes):
    return struct_ref(
        EventArrays(
            number=event.number,
            number_rest=event.number_rest,
            truth=event.truth,
            missing=event.missing,
            string_start=event.string_start,
            string_stop=event.string_stop,
            geometry=event.geometry,
            list_kind=event.list_kind,
            list_start=event.list_start,
            list_stop=event.list_stop,
            item_start=event.item_start,
            text=event.text,
            shapes=shapes,
        )
    )


@no_refcount
def split_joined_items(joined, text, item_start):
    """Move items together that have `BETWEEN` between them, and write where each begins."""
    write = joined[0]
    item_start[0] = write
    item = 1
    for k in range(joined[0], joined[1]):
        if text[k] == BETWEEN:
            item_start[item] = write
            item += 1
        else:
            text[write] = text[k]
            write += 1
    item_start[item] = write
    joined[1] = joined[0]


@outlined
@kernel
def _matched(context, events, now, version):
    if context.joined[0] < context.joined[1]:
        split_joined_items(
            context.joined, context.events.arrays.text, context.events.arrays.item_start
        )
    counts = context.scratch.arrays.counts
    before = (counts[0], counts[1], counts[2], counts[3])
    total, unsure = match_segments(
        context.segments, events, context.scratch, now, np.uint32(version), context.stops
    )
    first = context.stops.shape[0]
    fits = first + total <= context.answer.shape[0]
    if unsure > 0 or not fits:  # it is begun anew
        for k in range(len(before)):
            counts[k] = before[k]
        return 0 if unsure > 0 else -(first + total)
    for k in range(first):
        context.answer[k] = context.stops[k, 0]
    results = context.scratch.arrays.results
    for k in range(total):
        context.answer[first + k] = results[k]
    return first + total
