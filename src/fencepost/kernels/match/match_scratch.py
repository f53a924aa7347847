"""What a thread reuses from match to match, and how it grows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.edge_trees import TreeScratch
from fencepost.kernels.geometry.shape_arrays import STACK_SIZE
from fencepost.kernels.match.posting_matches import BATCH_EVENTS, PostingMatches
from fencepost.kernels.match.posting_search import (
    FILTER_WORDS,
    HIT,
    MAX_SEQUENTIAL_ENTRIES,
    QUERY,
    QUEUE_ITEM,
    PostingScratch,
)
from fencepost.kernels.match.region_points import PointScratch, new_point_scratch
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.runtime.struct_references import replace_arrays

_NUMBERS = 2**12
_LEAST = 2**8  # what there is room for, of several sorts, for each event that looks

EVENTS, CANDIDATES, MATCHES, UNCERTAIN = range(4)  # what is counted
# The state of a segment; of the last, 1: no event finds a subscription of it twice.
DELETED_ROWS, FIRST_EXPIRY, MAX_CHAINS, UNIQUE = range(4)


class MatchScratch(NamedTuple):
    """MatchScratch for matching; a thread holds it behind a handle, and kernels replace what is small."""

    trees: TreeScratch
    postings: PostingScratch  # whose bits are all 0
    posting_matches: PostingMatches
    points: PointScratch
    numbers: NDArray[np.int64]  # of the words of a few events
    candidates: NDArray[np.uint32]  # one a filter, or entry of the posts
    seen: NDArray[np.uint64]  # a bit a subscription, all 0
    results: NDArray[np.uint32]
    uncertain: NDArray[np.uint32]  # (n, 3)
    counts: NDArray[np.int64]  # of everything so far


def empty_match_scratch() -> MatchScratch:
    """Nothing yet, but the counts."""
    none = np.empty(0, np.uint32)
    bits = np.zeros(0, np.uint64)
    return MatchScratch(
        trees=TreeScratch(
            stack=np.empty(STACK_SIZE, np.uint32),
            pairs=np.empty(2 * STACK_SIZE, np.uint32),
            touched=np.zeros(2, np.uint8),
        ),
        postings=PostingScratch(
            word_bits=bits,
            word_filter=np.zeros(FILTER_WORDS, np.uint64),
            queries=np.empty(0, QUERY),
            queue=np.empty(0, QUEUE_ITEM),
            blocks=none,
            hits=np.empty(0, HIT),
            hits_by_event=np.empty(0, HIT),
            limits=np.array([BATCH_EVENTS, MAX_SEQUENTIAL_ENTRIES]),
        ),
        posting_matches=PostingMatches(
            matches=none, candidates=none, stops=np.zeros((BATCH_EVENTS + 1, 2), np.int64)
        ),
        points=new_point_scratch(),
        numbers=np.empty(_NUMBERS, np.int64),
        candidates=none,
        seen=bits,
        results=none,
        uncertain=np.empty((0, 3), np.uint32),
        counts=np.zeros(4, np.int64),
    )


class ScratchSizes(NamedTuple):
    """How much room there must be."""

    chains: int
    candidates: int
    subscription_bits: int
    word_bits: int
    queries: int
    queue: int
    hits: int


@outlined
@no_refcount
def required_sizes(segment, events):
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
    return ScratchSizes(
        chains=max(segment.arrays.state[MAX_CHAINS], _max_chains(events.arrays.shapes)),
        candidates=max_candidates(segment),
        subscription_bits=(segment.arrays.deleted_version.shape[0] + 63) >> 6,
        word_bits=postings.token_lists.shape[0] // 64 + 1,
        queries=BATCH_EVENTS * groups,
        queue=words * (4 * groups + 1) + entries // 8 + WIDTH,
        hits=entries + WIDTH,
    )


@outlined
@no_refcount
def is_large_enough(scratch_ref, sizes):
    """Whether there is room enough behind a handle."""
    scratch = scratch_ref.arrays
    return (
        scratch.trees.touched.shape[0] >= 2 * sizes.chains
        and scratch.candidates.shape[0] >= sizes.candidates
        and scratch.seen.shape[0] >= sizes.subscription_bits
        and scratch.postings.word_bits.shape[0] >= sizes.word_bits
        and scratch.postings.queries.shape[0] >= sizes.queries
        and scratch.postings.queue.shape[0] >= sizes.queue
        and scratch.postings.hits.shape[0] >= sizes.hits
    )


@outlined
@kernel
def grow(scratch_ref, sizes):
    """Let there be room enough behind a handle."""
    own = scratch_ref.owned
    near = max(sizes.hits, own.postings.hits.shape[0], _LEAST * BATCH_EVENTS)
    replace_arrays(
        scratch_ref,
        MatchScratch(
            trees=TreeScratch(
                stack=own.trees.stack,
                pairs=own.trees.pairs,
                touched=np.zeros(max(2 * sizes.chains, own.trees.touched.shape[0]), np.uint8),
            ),
            postings=PostingScratch(
                word_bits=np.zeros(
                    max(sizes.word_bits, own.postings.word_bits.shape[0]), np.uint64
                ),
                word_filter=own.postings.word_filter,
                queries=np.empty(max(sizes.queries, own.postings.queries.shape[0]), QUERY),
                queue=np.empty(
                    max(sizes.queue, own.postings.queue.shape[0], _LEAST * BATCH_EVENTS), QUEUE_ITEM
                ),
                blocks=np.empty(near, np.uint32),
                hits=np.empty(near, HIT),
                hits_by_event=np.empty(near, HIT),
                limits=own.postings.limits,
            ),
            posting_matches=PostingMatches(
                matches=np.empty(near, np.uint32),
                candidates=np.empty(near, np.uint32),
                stops=own.posting_matches.stops,
            ),
            points=own.points,
            numbers=own.numbers,
            candidates=np.empty(max(sizes.candidates, own.candidates.shape[0]), np.uint32),
            seen=np.zeros(max(sizes.subscription_bits, own.seen.shape[0]), np.uint64),
            results=own.results,
            uncertain=own.uncertain,
            counts=own.counts,
        ),
    )


@inlined
def max_candidates(segment):
    """How many filters, or entries of the postings, an event can find at most."""
    return (
        segment.arrays.filter_subscription.shape[0]
        + segment.arrays.postings.owner.shape[0]
        + segment.arrays.trees.values.shape[0]  # where a filter may be twice
    )


@no_refcount
def _max_chains(g):
    most = np.int64(1)
    for s in range(g.shapes.shape[0] - 1):
        most = max(most, np.int64(g.shapes[s + 1]["chain"]) - np.int64(g.shapes[s]["chain"]))
    return most
