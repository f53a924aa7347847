"""Matches and candidates among keyword postings, for a batch of events.

`posting_search` returns hits: entries of posting lists that share a word with the event and whose
box images meet the event's. Here each hit is tested for its other words, and for contact with its
exact box or disc.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
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

BATCH_EVENTS = 64  # maximum in a batch
_DISTANCE = 16  # hits between a prefetch and the read that it is for
_ONE = np.uint64(1)


class PostingMatches(NamedTuple):
    """The matches and candidates of a batch of events, event after event."""

    matches: Positions  # subscriptions
    candidates: Positions  # filters
    stops: NDArray[np.int64]  # (BATCH_EVENTS + 1, 2): where event k - 1 ends in both arrays


@outlined(returns=types.int64)
@no_refcount
def find_posting_matches(
    segment,
    events_ref,
    item_id,
    word_string_keys,
    signature_keys,
    begin,
    tree_scratch,
    scratch,
    out,
):
    """Find the matches and candidates of a batch of events. Return the event after the batch.

    segment, events_ref : struct references to SegmentArrays and EventArrays. item_id,
    word_string_keys, signature_keys : see `find_hits`. begin : the first event.
    scratch : PostingScratch. out : PostingMatches, filled; it must have capacity for all hits.
    """
    postings = segment.arrays.postings
    events = events_ref.arrays
    first_signature_key = segment.arrays.vocabulary.start.shape[0] - 1
    hit_count = -1
    stop = begin
    while hit_count < 0:  # terminates: one event always fits
        stop = min(signature_keys.shape[1], begin + scratch.limits[BATCH_SIZE])
        hit_count = find_hits(
            postings, events, item_id, word_string_keys, signature_keys, first_signature_key,
            begin, stop, tree_scratch.stack, scratch,
        )  # fmt: skip
        if hit_count >= 0:
            scratch.limits[BATCH_SIZE] = min(2 * scratch.limits[BATCH_SIZE], BATCH_EVENTS)
        else:
            scratch.limits[BATCH_SIZE] = 1 + scratch.limits[BATCH_SIZE] // 8
    _sort_by_event(scratch, hit_count, stop - begin, out.stops, is_sequential(postings, scratch))
    _decide(
        postings, segment.arrays.filter_subscription, events, item_id, word_string_keys, begin,
        stop, hit_count, tree_scratch, scratch, out,
    )  # fmt: skip
    return stop


@outlined(returns=types.none)
@no_refcount
def _sort_by_event(scratch, hit_count, events, stops, is_sorted):
    """Order hits by event, and write to `stops` where the hits of each event end.

    is_sorted : the hits are in that order already, and stay where they are.
    """
    for k in range(events + 1):
        stops[k, 0] = 0
    if is_sorted:
        for k in range(hit_count):
            stops[scratch.hits[k]["event"], 0] = k + 1
        for k in range(events):
            stops[k + 1, 0] = max(stops[k, 0], stops[k + 1, 0])
        return
    for k in range(hit_count):
        stops[scratch.hits[k]["event"] + 1, 0] += 1
    for k in range(events):
        stops[k + 1, 0] += stops[k, 0]
    for k in range(hit_count):
        event = scratch.hits[k]["event"]
        scratch.hits_by_event[stops[event, 0]] = scratch.hits[k]
        stops[event, 0] += 1  # from the event's first hit to its end


@outlined(returns=types.none)
@no_refcount
def _decide(
    postings, filter_subscription, events, item_id, word_string_keys, begin, stop, hit_count,
    tree_scratch, scratch, out
):  # fmt: skip
    """Write to `out` the subscriptions that match, and the filters whose checks must decide."""
    shapes = events.shapes
    matches = candidates = np.int64(0)
    j = np.int64(0)
    sorted_hits = scratch.hits if is_sequential(postings, scratch) else scratch.hits_by_event
    for k in range(min(_DISTANCE, hit_count)):
        _prefetch_entry(postings, sorted_hits, k)
    for e in range(begin, stop):
        # Row e - begin had the end of the event's hits; from here on, the start of its matches.
        last = out.stops[e - begin, 0]
        out.stops[e - begin, 0] = matches
        out.stops[e - begin, 1] = candidates
        marked_column = np.int64(-1)  # the column whose words have their bits set
        box_group = np.int64(-1)  # the group whose geometry column gave x0, y0, x1, y1
        x0 = y0 = x1 = y1 = 0.0
        row = np.int64(-1)
        while j < last:
            if j + _DISTANCE < hit_count:
                _prefetch_entry(postings, sorted_hits, j + _DISTANCE)
            entry = np.int64(sorted_hits[j]["entry"] & ENTRY)
            certain = sorted_hits[j]["entry"] & CERTAIN
            g = np.int64(sorted_hits[j]["group"])
            j += 1
            by_signature = postings.groups[g]["list_column"] == SIGNATURES
            if not by_signature and postings.rest_start[entry] < postings.rest_start[entry + 1]:
                column = np.int64(postings.groups[g]["list_column"])
                if column != marked_column:
                    if marked_column >= 0:
                        clear_word_bits(
                            events, item_id, word_string_keys, e, marked_column, -1, scratch
                        )
                    marked_column = column
                    set_word_bits(events, item_id, word_string_keys, e, column, -1, scratch)
                if not _has_other_words(postings, entry, scratch.word_bits):
                    continue
            decides = postings.groups[g]["decides"]
            box_decides = decides == BOX if by_signature else postings.groups[g]["direct"] > 0
            if not box_decides and not (by_signature and decides == DISC):
                out.candidates[candidates] = postings.owner[entry]
                candidates += 1
                continue
            owner = postings.owner[entry]
            subscription = filter_subscription[owner] if by_signature else owner
            if postings.groups[g]["geometry_column"] < 0:
                out.matches[matches] = subscription
                matches += 1
                continue
            if g != box_group:
                box_group = g
                row = events.geometry[postings.groups[g]["geometry_column"], e]
                x0, y0 = shapes.shapes[row]["x0"], shapes.shapes[row]["y0"]
                x1, y1 = shapes.shapes[row]["x1"], shapes.shapes[row]["y1"]
            is_point = x0 == x1 and y0 == y1
            # No branch that would be mispredicted: write always, and count if the test holds.
            if not box_decides:
                out.matches[matches] = subscription
                out.candidates[candidates] = owner
                if is_point:
                    x, y = postings.exact[entry, 0] - x0, postings.exact[entry, 1] - y0
                    square = x * x + y * y
                    is_near = square <= postings.exact[entry, 2]
                    matches += is_near
                    candidates += (not is_near) & (square <= postings.exact[entry, 3])
                else:
                    candidates += 1
            elif is_point or fills_its_box(shapes, row):
                out.matches[matches] = subscription
                matches += certain > 0 or (
                    (postings.exact[entry, 0] <= x1)
                    & (postings.exact[entry, 1] <= y1)
                    & (postings.exact[entry, 2] >= x0)
                    & (postings.exact[entry, 3] >= y0)
                )
            elif meets_box(shapes, row, postings.exact[entry], tree_scratch):
                out.matches[matches] = subscription
                matches += 1
        if marked_column >= 0:
            clear_word_bits(events, item_id, word_string_keys, e, marked_column, -1, scratch)
    out.stops[stop - begin, 0] = matches
    out.stops[stop - begin, 1] = candidates


@inlined
def _prefetch_entry(postings, hits, j):
    """Prefetch what deciding a hit reads of its entry."""
    entry = np.int64(hits[j]["entry"] & ENTRY)
    prefetch(postings.rest, np.int64(postings.rest_start[entry]))
    group = postings.groups[hits[j]["group"]]
    if group["direct"] or group["decides"]:
        prefetch(postings.exact[entry], 0)


@inlined
def _has_other_words(postings, entry, word_bits):
    """Return whether the event has the other words of an entry."""
    for k in range(postings.rest_start[entry], postings.rest_start[entry + 1]):
        token = postings.rest[k]
        if not (word_bits[token >> 6] >> np.uint64(token & 63)) & _ONE:
            return False
    return True
