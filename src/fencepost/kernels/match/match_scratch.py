"""`MatchScratch`: arrays that a thread reuses from match to match, and how they grow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
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

_SCRATCH_NUMBERS = 2**12
_MIN_PER_EVENT = 2**8  # queue items, hits and results for each event of a batch

EVENTS, CANDIDATES, MATCHES, UNCERTAIN = range(4)  # indices of `counts`
# Indices of a segment's `state`. UNIQUE is 1 if no event can find a subscription twice.
DELETED_ROWS, FIRST_EXPIRY, MAX_CHAINS, UNIQUE = range(4)


class MatchScratch(NamedTuple):
    """Arrays that matching reuses, held by a thread behind a struct reference.

    Kernels replace arrays that are too small.
    """

    trees: TreeScratch
    postings: PostingScratch  # its bits are all 0 between matches
    posting_matches: PostingMatches
    points: PointScratch
    numbers: NDArray[np.int64]  # keys of the words and strings of a few events: see `EventKeys`
    candidates: NDArray[np.uint32]  # filters whose checks are to be evaluated
    seen: NDArray[np.uint64]  # a bit for each subscription; all 0 between matches
    results: NDArray[np.uint32]  # subscriptions, see `match_events`
    uncertain: NDArray[np.uint32]  # (n, 3): segment, event, filter
    counts: NDArray[np.int64]  # (4,): since the scratch was made


def empty_match_scratch() -> MatchScratch:
    """Return scratch without capacity; its arrays grow with the first match."""
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
        numbers=np.empty(_SCRATCH_NUMBERS, np.int64),
        candidates=none,
        seen=bits,
        results=none,
        uncertain=np.empty((0, 3), np.uint32),
        counts=np.zeros(4, np.int64),
    )


class ScratchSizes(NamedTuple):
    """The sizes that arrays of the scratch must have."""

    chains: int
    candidates: int
    subscription_bits: int
    word_bits: int
    queries: int
    queue: int
    hits: int


@outlined(returns=types.NamedUniTuple(types.int64, 7, ScratchSizes))
@no_refcount
def required_sizes(segment, events):
    """Return the sizes needed to match events with a segment, both struct references."""
    postings = segment.arrays.postings
    items = np.int64(0)
    for c in range(events.arrays.list_start.shape[0]):
        for e in range(events.arrays.list_start.shape[1]):
            items = max(items, events.arrays.list_stop[c, e] - events.arrays.list_start[c, e])
    # The queue of one event: words, alone and with strings, their lists, the blocks of the lists.
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


@outlined(returns=types.boolean)
@no_refcount
def is_large_enough(scratch_ref, sizes):
    """Return whether the arrays behind a struct reference have these sizes."""
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


@outlined(returns=types.none)
@kernel
def grow(scratch_ref, sizes):
    """Replace the arrays behind a struct reference by ones that have at least these sizes."""
    old = scratch_ref.owned
    max_hits = max(sizes.hits, old.postings.hits.shape[0], _MIN_PER_EVENT * BATCH_EVENTS)
    replace_arrays(
        scratch_ref,
        MatchScratch(
            trees=TreeScratch(
                stack=old.trees.stack,
                pairs=old.trees.pairs,
                touched=np.zeros(max(2 * sizes.chains, old.trees.touched.shape[0]), np.uint8),
            ),
            postings=PostingScratch(
                word_bits=np.zeros(
                    max(sizes.word_bits, old.postings.word_bits.shape[0]), np.uint64
                ),
                word_filter=old.postings.word_filter,
                queries=np.empty(max(sizes.queries, old.postings.queries.shape[0]), QUERY),
                queue=np.empty(
                    max(sizes.queue, old.postings.queue.shape[0], _MIN_PER_EVENT * BATCH_EVENTS),
                    QUEUE_ITEM,
                ),
                blocks=np.empty(max_hits, np.uint32),
                hits=np.empty(max_hits, HIT),
                hits_by_event=np.empty(max_hits, HIT),
                limits=old.postings.limits,
            ),
            posting_matches=PostingMatches(
                matches=np.empty(max_hits, np.uint32),
                candidates=np.empty(max_hits, np.uint32),
                stops=old.posting_matches.stops,
            ),
            points=old.points,
            numbers=old.numbers,
            candidates=np.empty(max(sizes.candidates, old.candidates.shape[0]), np.uint32),
            seen=np.zeros(max(sizes.subscription_bits, old.seen.shape[0]), np.uint64),
            results=old.results,
            uncertain=old.uncertain,
            counts=old.counts,
        ),
    )


@inlined
def max_candidates(segment):
    """Return the most filters, or entries of postings, that an event can find."""
    return (
        segment.arrays.filter_subscription.shape[0]
        + segment.arrays.postings.owner.shape[0]
        + segment.arrays.trees.values.shape[0]  # a filter with two boxes counts twice
    )


@no_refcount
def _max_chains(g):
    """Return the most chains that a shape has."""
    max_chains = np.int64(1)
    for s in range(g.shapes.shape[0] - 1):
        max_chains = max(
            max_chains, np.int64(g.shapes[s + 1]["chain"]) - np.int64(g.shapes[s]["chain"])
        )
    return max_chains
