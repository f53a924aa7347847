"""One event from its values to what it matches, in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_layout import lay_out_plain
from fencepost.kernels.match.match_scratch import EVENTS, MATCHES, ONCE
from fencepost.kernels.match.region_points import find_point
from fencepost.kernels.match.segment_search import (
    EventArrays,
    drop_dead_rows,
    find_all,
    has_regions_only,
)
from fencepost.kernels.runtime.compilation import kernel, no_refcount, outlined
from fencepost.kernels.runtime.struct_references import struct_ref

BETWEEN = 0  # a byte between items that are written in one piece


class Desk(NamedTuple):
    """What one event after another is matched with, each written where the last one was."""

    segments: Any  # list of handles of SegmentArrays
    room: Any  # handle of MatchScratch
    events: Any  # handle of EventArrays: of one event, and its shape a point
    joined: NDArray[np.int64]  # where items begin and end in the text that are not told apart yet
    stops: NDArray[np.int64]  # (segments, 1)
    answer: NDArray[np.uint32]  # where what is found is written
    most_x: float  # how far from 0 coordinates may be, which is finite
    most_y: float


@kernel
def match_point(desk, x, y, now, version):
    """Match the event on a desk, a handle of it, whose only geometry, if it has any, is a point.

    now, version : as in `match_events`. Writes to `answer` where the subscriptions of each segment
    end, and these; returns how many numbers that are, the same below 0 where there is no room for
    them, or 0 where the event cannot be decided so.
    """
    own = desk.arrays
    if not (abs(x) <= own.most_x and abs(y) <= own.most_y):
        return 0
    count = _in_regions(own, x + 0.0, y + 0.0, now, np.uint32(version))  # 0.0 for -0.0
    if count > 0:
        return count
    _write(own.events.arrays.shapes, x, y)
    return _matched(own, own.events, now, version)


@kernel
def match_one(desk, xy, chain_start, chain_part, shape_chain, dimension, now, version):
    """The same for an event with any shapes, which are given as in `lay_out_plain`."""
    own = desk.arrays
    shapes, usable = lay_out_plain(
        xy, chain_start, chain_part, shape_chain, dimension, own.most_x, own.most_y
    )
    if not usable:
        return 0
    return _matched(own, _with_shapes(own.events.arrays, shapes), now, version)


@outlined
@kernel
def _in_regions(own, x, y, now, version):
    """The short way out, where all segments ask for nothing but relations to regions: what is
    found goes from the trees to the answer. 0 where that is not so, or there is no room.
    """
    segments = len(own.segments)
    total = np.int64(segments)
    for s in range(segments):
        total = _in_regions_of(
            own.segments[s], own.room, own.events, x, y, now, version, own.answer, total
        )
        if total == 0:
            return total
        own.answer[s] = total - segments
    counts = own.room.arrays.counts
    counts[EVENTS] += 1
    counts[MATCHES] += total - segments
    return total


@no_refcount
def _in_regions_of(segment, room, events, x, y, now, version, answer, total):
    """Append what a point answers in one segment to `answer`; where it ends."""
    if not has_regions_only(segment):
        return np.int64(0)
    found = find_point(
        segment, events.arrays.geometry, x, y, room.arrays.trees.stack, room.arrays.points,
        answer[total:],
    )  # fmt: skip
    if found < 0 or (found > 1 and segment.arrays.state[ONCE] == 0):
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
def tell_apart(joined, text, item_start):
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
def _matched(own, events, now, version):
    if own.joined[0] < own.joined[1]:
        tell_apart(own.joined, own.events.arrays.text, own.events.arrays.item_start)
    counts = own.room.arrays.counts
    before = (counts[0], counts[1], counts[2], counts[3])
    total, unsure = find_all(own.segments, events, own.room, now, np.uint32(version), own.stops)
    first = own.stops.shape[0]
    fits = first + total <= own.answer.shape[0]
    if unsure > 0 or not fits:  # it is begun anew
        for k in range(len(before)):
            counts[k] = before[k]
        return 0 if unsure > 0 else -(first + total)
    for k in range(first):
        own.answer[k] = own.stops[k, 0]
    results = own.room.arrays.results
    for k in range(total):
        own.answer[first + k] = results[k]
    return first + total
