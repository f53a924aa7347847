"""Posted filters, by words and by strings, for several events in one go: looked for, then decided.

What is found must have its other words among the event's, and a box, or a disc, that the event
meets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.box_contact import fills_its_box, meets_box
from fencepost.kernels.geometry.shape_arrays import Positions
from fencepost.kernels.index.posting_arrays import BOX, DISC, SIGNATURES
from fencepost.kernels.match.posting_search import (
    BATCH_SIZE,
    CERTAIN,
    ENTRY,
    clear_word_bits,
    find_hits,
    is_sequential,
    set_word_bits,
)
from fencepost.kernels.runtime.compilation import inlined, no_refcount, outlined
from fencepost.kernels.runtime.prefetch import prefetch

BATCH_EVENTS = 64  # events that are looked at in one go
_SOON = 16  # entries
_ONE = np.uint64(1)


class PostingMatches(NamedTuple):
    """MatchScratch for what is found for some events before the rest is looked for."""

    matches: Positions  # subscriptions, of event after event
    candidates: Positions  # filters
    stops: NDArray[
        np.int64
    ]  # (BATCH_EVENTS + 1, 2): where those of each event end; the first are 0


@outlined
@no_refcount
def find_posting_matches(
    segment, events_ref, item_id, with_string, combined, begin, tree_scratch, scratch, out
):
    """Find what some events match, and filters that they may match; the event after the last.

    segment, events_ref : handles of SegmentArrays and EventArrays. item_id, with_string,
    combined : the numbers of the events' words, see `find_hits`. begin : the first event.
    scratch : PostingScratch. out : PostingMatches, filled; it has as much tree_scratch as what is near.
    """
    postings = segment.arrays.postings
    events = events_ref.arrays
    first_word = segment.arrays.vocabulary.start.shape[0] - 1
    near = -1
    stop = begin
    while near < 0:  # for a single event there is tree_scratch
        stop = min(combined.shape[1], begin + scratch.limits[BATCH_SIZE])
        near = find_hits(
            postings,
            events,
            item_id,
            with_string,
            combined,
            first_word,
            begin,
            stop,
            tree_scratch.stack,
            scratch,
        )
        scratch.limits[BATCH_SIZE] = (
            min(2 * scratch.limits[BATCH_SIZE], BATCH_EVENTS)
            if near >= 0
            else 1 + scratch.limits[BATCH_SIZE] // 8
        )
    _sort_by_event(scratch, near, stop - begin, out.stops, is_sequential(postings, scratch))
    owner = segment.arrays.filter_subscription
    _decide(
        postings, owner, events, item_id, with_string, begin, stop, near, tree_scratch, scratch, out
    )
    return stop


@outlined
@no_refcount
def _sort_by_event(scratch, near, events, stops, sorted):
    """Bring what is near in the order of the events; where each one's end is left in `stops`."""
    for k in range(events + 1):
        stops[k, 0] = 0
    if sorted:
        for k in range(near):
            stops[scratch.hits[k]["event"], 0] = k + 1
        for k in range(events):
            stops[k + 1, 0] = max(stops[k, 0], stops[k + 1, 0])
        return
    for k in range(near):
        stops[scratch.hits[k]["event"] + 1, 0] += 1
    for k in range(events):
        stops[k + 1, 0] += stops[k, 0]
    for k in range(near):
        event = scratch.hits[k]["event"]
        scratch.hits_by_event[stops[event, 0]] = scratch.hits[k]
        stops[event, 0] += 1  # at last where its scratch end


@outlined
@no_refcount
def _decide(
    postings, owner, events, item_id, with_string, begin, stop, near, tree_scratch, scratch, out
):
    """Write to `out` the subscriptions that match, and filters that may."""
    shapes = events.shapes
    found = total = np.int64(0)
    j = np.int64(0)
    entries = scratch.hits if is_sequential(postings, scratch) else scratch.hits_by_event
    for k in range(min(_SOON, near)):
        _fetch(postings, entries, k)
    for e in range(begin, stop):
        last = out.stops[e - begin, 0]  # of what is near, before it says where matches end
        out.stops[e - begin, 0] = found
        out.stops[e - begin, 1] = total
        marked = np.int64(-1)
        placed = np.int64(-1)  # the group whose place is read
        x0 = y0 = x1 = y1 = 0.0
        row = np.int64(-1)
        while j < last:
            if j + _SOON < near:
                _fetch(postings, entries, j + _SOON)
            entry = np.int64(entries[j]["entry"] & ENTRY)
            certain = entries[j]["entry"] & CERTAIN
            g = np.int64(entries[j]["group"])
            j += 1
            combined = postings.groups[g]["list_column"] == SIGNATURES
            if not combined and postings.rest_start[entry] < postings.rest_start[entry + 1]:
                column = np.int64(postings.groups[g]["list_column"])
                if column != marked:
                    if marked >= 0:
                        clear_word_bits(events, item_id, with_string, e, marked, -1, scratch)
                    marked = column
                    set_word_bits(events, item_id, with_string, e, marked, -1, scratch)
                if not _has_all(postings, entry, scratch.word_bits):
                    continue
            decides = postings.groups[g]["decides"]
            decided = decides == BOX if combined else postings.groups[g]["direct"] > 0
            if not decided and not (combined and decides == DISC):
                out.candidates[total] = postings.owner[entry]
                total += 1
                continue
            subscription = owner[postings.owner[entry]] if combined else postings.owner[entry]
            if postings.groups[g]["geometry_column"] < 0:
                out.matches[found] = subscription
                found += 1
                continue
            if g != placed:
                placed = g
                row = events.geometry[postings.groups[g]["geometry_column"], e]
                x0, y0 = shapes.shapes[row]["x0"], shapes.shapes[row]["y0"]
                x1, y1 = shapes.shapes[row]["x1"], shapes.shapes[row]["y1"]
            point = x0 == x1 and y0 == y1
            # Without branches where it is a matter of luck which way they go.
            if not decided:
                out.matches[found] = subscription
                out.candidates[total] = postings.owner[entry]
                if point:
                    x, y = postings.exact[entry, 0] - x0, postings.exact[entry, 1] - y0
                    square = x * x + y * y
                    sure = square <= postings.exact[entry, 2]
                    found += sure
                    total += (not sure) & (square <= postings.exact[entry, 3])
                else:
                    total += 1
            elif point or fills_its_box(shapes, row):
                out.matches[found] = subscription
                found += certain > 0 or (
                    (postings.exact[entry, 0] <= x1)
                    & (postings.exact[entry, 1] <= y1)
                    & (postings.exact[entry, 2] >= x0)
                    & (postings.exact[entry, 3] >= y0)
                )
            elif meets_box(shapes, row, postings.exact[entry], tree_scratch):
                out.matches[found] = subscription
                found += 1
        if marked >= 0:
            clear_word_bits(events, item_id, with_string, e, marked, -1, scratch)
    out.stops[stop - begin, 0] = found
    out.stops[stop - begin, 1] = total


@inlined
def _fetch(postings, near, j):
    """Ask for what is needed of an entry."""
    entry = np.int64(near[j]["entry"] & ENTRY)
    prefetch(postings.rest, np.int64(postings.rest_start[entry]))
    group = postings.groups[near[j]["group"]]
    if group["direct"] or group["decides"]:
        prefetch(postings.exact[entry], 0)


@inlined
def _has_all(postings, entry, bits):
    """Whether the event has the other words of an entry."""
    for k in range(postings.rest_start[entry], postings.rest_start[entry + 1]):
        token = postings.rest[k]
        if not (bits[token >> 6] >> np.uint64(token & 63)) & _ONE:
            return False
    return True
