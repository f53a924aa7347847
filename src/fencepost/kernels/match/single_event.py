"""Matching of one event against all segments, in one call.

Where the filters of all segments stand under regions, a point's matches go from the trees straight
to the answer. Any other event is a batch of one for `match_segments`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
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

ITEM_SEPARATOR = 0  # the byte between list items that were written as one string


class SingleEventContext(NamedTuple):
    """What matching reuses for one event after another; each event overwrites the last."""

    segments: Any  # list of struct references to SegmentArrays
    scratch: Any  # struct reference to MatchScratch
    events: Any  # struct reference to EventArrays of one event, whose only shape is a point
    joined_items: NDArray[np.int64]  # begin and end, in `text`, of items still in one string
    stops: NDArray[np.int64]  # (segments, 1): scratch
    answer: NDArray[np.uint32]  # the output, see `match_point`
    max_abs_x: float  # finite bounds of coordinates
    max_abs_y: float


@kernel
def match_point(context_ref, x, y, now, version):
    """Match the event of a context whose only geometry, if any, is the point (x, y).

    Writes to `answer` where the subscriptions of each segment end, and then the subscriptions.

    Parameters
    ----------
    context_ref : struct reference to SingleEventContext
    x, y : float
    now, version
        As in `match_events`.

    Returns
    -------
    int
        How many numbers were written. Minus the number needed if `answer` is too small. 0 if the
        event must be matched with `match_events`, because a coordinate is out of bounds or a
        distance too close to call.
    """
    context = context_ref.arrays
    if not (abs(x) <= context.max_abs_x and abs(y) <= context.max_abs_y):
        return 0
    count = _match_regions(context, x + 0.0, y + 0.0, now, np.uint32(version))  # -0.0 to 0.0
    if count > 0:
        return count
    _write_point(context.events.arrays.shapes, x, y)
    return _match_segments(context, context.events, now, version)


@kernel
def match_one(context_ref, xy, chain_start, chain_part, shape_chain, dimension, now, version):
    """Match the event of a context with any shapes, given as in `lay_out_unchecked`.

    The result is as in `match_point`, and also 0 if the shapes cannot be laid out.
    """
    context = context_ref.arrays
    shapes, usable = lay_out_unchecked(
        xy, chain_start, chain_part, shape_chain, dimension, context.max_abs_x, context.max_abs_y
    )
    if not usable:
        return 0
    return _match_segments(context, _with_shapes(context.events.arrays, shapes), now, version)


@outlined(returns=types.int64)
@kernel
def _match_regions(context, x, y, now, version):
    """Match a point if all filters stand under regions: from the trees straight to the answer.

    Returns 0 if some filter does not, or if `answer` or the scratch is too small.
    """
    segments = len(context.segments)
    total = np.int64(segments)
    for s in range(segments):
        total = _match_regions_of(
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
def _match_regions_of(segment, scratch, events, x, y, now, version, answer, total):
    """Append the matches of a point in one segment. Return where they end, or 0."""
    if not has_regions_only(segment):
        return np.int64(0)
    count = find_point(
        segment, events.arrays.geometry, x, y, scratch.arrays.trees.stack, scratch.arrays.points,
        answer[total:],
    )  # fmt: skip
    if count < 0 or (count > 1 and segment.arrays.state[UNIQUE] == 0):
        return np.int64(0)
    return drop_dead_rows(segment, now, version, answer, total, total + count)


@no_refcount
def _write_point(shapes, x, y):
    """Write a point as the only shape of the event."""
    x += 0.0  # makes -0.0 a 0.0
    y += 0.0
    shapes.x[0] = x
    shapes.y[0] = y
    shapes.shapes[0]["x0"] = x
    shapes.shapes[0]["y0"] = y
    shapes.shapes[0]["x1"] = x
    shapes.shapes[0]["y1"] = y


@kernel
def _with_shapes(event, shapes):
    """Return a struct reference to the event with other shapes."""
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
    """Remove the `ITEM_SEPARATOR` between joined items, and write where each item begins."""
    write = joined[0]
    item_start[0] = write
    item = 1
    for k in range(joined[0], joined[1]):
        if text[k] == ITEM_SEPARATOR:
            item_start[item] = write
            item += 1
        else:
            text[write] = text[k]
            write += 1
    item_start[item] = write
    joined[1] = joined[0]


@outlined(returns=types.int64)
@kernel
def _match_segments(context, events, now, version):
    """Match an event as a batch of one, and copy the results to `answer`."""
    if context.joined_items[0] < context.joined_items[1]:
        split_joined_items(
            context.joined_items, context.events.arrays.text, context.events.arrays.item_start
        )
    counts = context.scratch.arrays.counts
    before = (counts[0], counts[1], counts[2], counts[3])
    total, uncertain_count = match_segments(
        context.segments, events, context.scratch, now, np.uint32(version), context.stops
    )
    segments = context.stops.shape[0]
    fits = segments + total <= context.answer.shape[0]
    if uncertain_count > 0 or not fits:  # the event is matched again, and counted then
        for k in range(len(before)):
            counts[k] = before[k]
        return 0 if uncertain_count > 0 else -(segments + total)
    for k in range(segments):
        context.answer[k] = context.stops[k, 0]
    results = context.scratch.arrays.results
    for k in range(total):
        context.answer[segments + k] = results[k]
    return segments + total
