"""What a thread reuses from match to match, and how it grows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.edge_trees import Scratch
from fencepost.kernels.geometry.shape_arrays import STACK
from fencepost.kernels.match.posting_matches import AHEAD, Ahead
from fencepost.kernels.match.posting_search import (
    ASKED,
    FEW,
    FILTER_WORDS,
    NEAR,
    QUEUED,
    PostingScratch,
)
from fencepost.kernels.match.region_points import PointRoom, point_room
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.runtime.struct_references import replace_arrays

_NUMBERS = 2**12
_LEAST = 2**8  # what there is room for, of several sorts, for each event that looks

EVENTS, CANDIDATES, MATCHES, UNSURE = range(4)  # what is counted
# The state of a segment; of the last, 1: no event finds a subscription of it twice.
REMOVED, FIRST_EXPIRY, MOST_CHAINS, ONCE = range(4)


class Room(NamedTuple):
    """Room for matching; a thread holds it behind a handle, and kernels replace what is small."""

    pairs: Scratch
    postings: PostingScratch  # whose bits are all 0
    ahead: Ahead
    points: PointRoom
    numbers: NDArray[np.int64]  # of the words of a few events
    candidates: NDArray[np.uint32]  # one a filter, or entry of the posts
    seen: NDArray[np.uint64]  # a bit a subscription, all 0
    results: NDArray[np.uint32]
    uncertain: NDArray[np.uint32]  # (n, 3)
    counts: NDArray[np.int64]  # of everything so far


def no_room() -> Room:
    """Nothing yet, but the counts."""
    none = np.empty(0, np.uint32)
    bits = np.zeros(0, np.uint64)
    return Room(
        pairs=Scratch(
            stack=np.empty(STACK, np.uint32),
            pairs=np.empty(2 * STACK, np.uint32),
            touched=np.zeros(2, np.uint8),
        ),
        postings=PostingScratch(
            bits=bits,
            filter=np.zeros(FILTER_WORDS, np.uint64),
            asked=np.empty(0, ASKED),
            queue=np.empty(0, QUEUED),
            found=none,
            near=np.empty(0, NEAR),
            by_event=np.empty(0, NEAR),
            limits=np.array([AHEAD, FEW]),
        ),
        ahead=Ahead(matches=none, candidates=none, stops=np.zeros((AHEAD + 1, 2), np.int64)),
        points=point_room(),
        numbers=np.empty(_NUMBERS, np.int64),
        candidates=none,
        seen=bits,
        results=none,
        uncertain=np.empty((0, 3), np.uint32),
        counts=np.zeros(4, np.int64),
    )


class Needs(NamedTuple):
    """How much room there must be."""

    chains: int
    candidates: int
    bits: int
    words: int
    asked: int
    queued: int
    near: int


@outlined
@no_refcount
def needs(segment, events):
    """What events need to be matched with a segment; handles both."""
    postings = segment.arrays.postings
    items = np.int64(0)
    for c in range(events.arrays.list_start.shape[0]):
        for e in range(events.arrays.list_start.shape[1]):
            items = max(items, events.arrays.list_stop[c, e] - events.arrays.list_start[c, e])
    # What a single event may find: words, alone and with strings, their lists, and blocks of those.
    groups, entries = postings.groups.shape[0], postings.owner.shape[0]
    words = (items + 2) * events.arrays.list_start.shape[0] * (1 + postings.string_columns.shape[0])
    words += segment.arrays.signatures.start.shape[0]
    return Needs(
        chains=max(segment.arrays.state[MOST_CHAINS], _most_chains(events.arrays.shapes)),
        candidates=most_candidates(segment),
        bits=(segment.arrays.deleted_version.shape[0] + 63) >> 6,
        words=postings.token_lists.shape[0] // 64 + 1,
        asked=AHEAD * groups,
        queued=words * (4 * groups + 1) + entries // 8 + WIDTH,
        near=entries + WIDTH,
    )


@outlined
@no_refcount
def has_room(scratch_ref, needed):
    """Whether there is room enough behind a handle."""
    room = scratch_ref.arrays
    return (
        room.pairs.touched.shape[0] >= 2 * needed.chains
        and room.candidates.shape[0] >= needed.candidates
        and room.seen.shape[0] >= needed.bits
        and room.postings.bits.shape[0] >= needed.words
        and room.postings.asked.shape[0] >= needed.asked
        and room.postings.queue.shape[0] >= needed.queued
        and room.postings.near.shape[0] >= needed.near
    )


@outlined
@kernel
def grow(scratch_ref, needed):
    """Let there be room enough behind a handle."""
    own = scratch_ref.owned
    near = max(needed.near, own.postings.near.shape[0], _LEAST * AHEAD)
    replace_arrays(
        scratch_ref,
        Room(
            pairs=Scratch(
                stack=own.pairs.stack,
                pairs=own.pairs.pairs,
                touched=np.zeros(max(2 * needed.chains, own.pairs.touched.shape[0]), np.uint8),
            ),
            postings=PostingScratch(
                bits=np.zeros(max(needed.words, own.postings.bits.shape[0]), np.uint64),
                filter=own.postings.filter,
                asked=np.empty(max(needed.asked, own.postings.asked.shape[0]), ASKED),
                queue=np.empty(
                    max(needed.queued, own.postings.queue.shape[0], _LEAST * AHEAD), QUEUED
                ),
                found=np.empty(near, np.uint32),
                near=np.empty(near, NEAR),
                by_event=np.empty(near, NEAR),
                limits=own.postings.limits,
            ),
            ahead=Ahead(
                matches=np.empty(near, np.uint32),
                candidates=np.empty(near, np.uint32),
                stops=own.ahead.stops,
            ),
            points=own.points,
            numbers=own.numbers,
            candidates=np.empty(max(needed.candidates, own.candidates.shape[0]), np.uint32),
            seen=np.zeros(max(needed.bits, own.seen.shape[0]), np.uint64),
            results=own.results,
            uncertain=own.uncertain,
            counts=own.counts,
        ),
    )


@inlined
def most_candidates(segment):
    """How many filters, or entries of the postings, an event can find at most."""
    return (
        segment.arrays.filter_subscription.shape[0]
        + segment.arrays.postings.owner.shape[0]
        + segment.arrays.trees.values.shape[0]  # where a filter may be twice
    )


@no_refcount
def _most_chains(g):
    most = np.int64(1)
    for s in range(g.shapes.shape[0] - 1):
        most = max(most, np.int64(g.shapes[s + 1]["chain"]) - np.int64(g.shapes[s]["chain"]))
    return most
