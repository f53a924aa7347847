"""What a thread reuses from match to match, and how it grows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.handles import put
from fencepost.kernels.posted import AHEAD, Ahead
from fencepost.kernels.posts import FILTER_WORDS, PostScratch
from fencepost.kernels.region_points import PointRoom, point_room
from fencepost.kernels.shapes import STACK
from fencepost.kernels.trees import Scratch

EVENTS, CANDIDATES, MATCHES, UNSURE = range(4)  # what is counted
# The state of a segment; of the last, 1: no event finds a subscription of it twice.
REMOVED, FIRST_EXPIRY, MOST_CHAINS, ONCE = range(4)


class Room(NamedTuple):
    """Room for matching; a thread holds it behind a handle, and kernels replace what is small."""

    pairs: Scratch
    posts: PostScratch  # whose bits are all 0
    ahead: Ahead
    points: PointRoom
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
        Scratch(np.empty(STACK, np.uint32), np.empty(2 * STACK, np.uint32), np.zeros(2, np.uint8)),
        PostScratch(bits, np.zeros(FILTER_WORDS, np.uint64), none, none, none, none, none),
        Ahead(none, none, np.zeros((AHEAD + 1, 2), np.int64)),
        point_room(),
        none,
        bits,
        none,
        np.empty((0, 3), np.uint32),
        np.zeros(4, np.int64),
    )


@kernel
def fit(room_handle, segment, events):
    """Let the room behind a handle grow to what events and a segment, handles too, need."""
    room = room_handle.arrays
    chains = max(segment.arrays.state[MOST_CHAINS], _most_chains(events.arrays.shapes))
    most = most_candidates(segment)
    bits = (segment.arrays.gone.shape[0] + 63) >> 6
    items = np.int64(0)
    for c in range(events.arrays.list_start.shape[0]):
        for e in range(events.arrays.list_start.shape[1]):
            items = max(items, events.arrays.list_stop[c, e] - events.arrays.list_start[c, e])
    words = segment.arrays.posts.token_lists.shape[0] // 64 + 1
    lists = (items + 1) * segment.arrays.posts.groups.shape[0]
    items += (items + 1) * segment.arrays.posts.string_columns.shape[0]
    entries = segment.arrays.posts.owner.shape[0]
    if (
        room.pairs.touched.shape[0] >= 2 * chains
        and room.candidates.shape[0] >= most
        and room.seen.shape[0] >= bits
        and room.posts.bits.shape[0] >= words
        and room.posts.known.shape[0] >= items
        and room.posts.lists.shape[0] >= lists
        and room.posts.near.shape[0] >= entries
        and room.ahead.matches.shape[0] >= entries
    ):
        return
    chains = max(chains, room.pairs.touched.shape[0] >> 1)
    words = max(words, room.posts.bits.shape[0])
    items = max(items, room.posts.known.shape[0])
    lists = max(lists, room.posts.lists.shape[0])
    entries = max(entries, room.posts.near.shape[0])
    own = room_handle.owned
    put(
        room_handle,
        Room(
            Scratch(own.pairs.stack, own.pairs.pairs, np.zeros(2 * chains, np.uint8)),
            post_scratch(words, items, lists, entries),
            Ahead(
                # More than one event may find, so that there is room for several.
                np.empty(2 * entries + 16 * AHEAD, np.uint32),
                np.empty(2 * entries + 16 * AHEAD, np.uint32),
                own.ahead.stops,
            ),
            own.points,
            np.empty(max(most, room.candidates.shape[0]), np.uint32),
            np.zeros(max(bits, room.seen.shape[0]), np.uint64),
            own.results,
            own.uncertain,
            own.counts,
        ),
    )


@inlined
def most_candidates(segment):
    """How many filters, or entries of the posts, an event can find at most."""
    return (
        segment.arrays.filter_subscription.shape[0]
        + segment.arrays.posts.owner.shape[0]
        + segment.arrays.trees.values.shape[0]  # where a filter may be twice
    )


@kernel
def _most_chains(g):
    most = np.int64(1)
    for s in range(g.shapes.shape[0] - 1):
        most = max(most, np.int64(g.shapes[s + 1]["chain"]) - np.int64(g.shapes[s]["chain"]))
    return most


@kernel
def post_scratch(words, items, lists, entries):
    """Room for events of so many items, in which they find so many lists and entries."""
    return PostScratch(
        np.zeros(words, np.uint64),
        np.zeros(FILTER_WORDS, np.uint64),
        np.empty(items, np.uint32),
        np.empty(lists, np.uint32),
        np.empty(2 * (lists + entries), np.uint32),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
    )
