"""Filters under several of their strings at once, and under the place beside them.

A filter that needs strings in two columns, or in one and a place, is found by few events where it
stands under all of that together. It is posted under a word for the strings, one posting for each
combination of them (an attribute may be one of several), with the box of its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.index.planner import TO_COMPARE, Plan
from fencepost.index.posts import EVERYWHERE, Form, PostRows
from fencepost.index.selectivity import Path
from fencepost.index.table import NumberedFilters
from fencepost.kernels import checking, vocabulary
from fencepost.kernels.combined import KEY_NUMBERS, MOST_COLUMNS, CombinedArrays
from fencepost.kernels.distance import squares
from fencepost.kernels.places import WITH_AREA
from fencepost.kernels.posts_arrays import BOX, COMBINED, DISC, NOTHING, PostArrays
from fencepost.kernels.shapes import ShapeArrays

Ints = NDArray[np.int64]

_MOST_POSTINGS = 16  # of a filter
_MOST_SIGNATURES = 64  # of a segment: an event asks for each of them
_COLUMN_BITS = 21
_TO_MEET = 2.0  # how much more contact with a rectangle costs here than where regions are walked


class Combined(NamedTuple):
    """What is posted under several strings at once."""

    arrays: CombinedArrays
    rows: PostRows
    plan: Plan  # in which these filters are found so
    decided: Ints  # the checks that finding a filter decides
    filters: Ints  # those that a distance decides, ascending
    discs: NDArray[np.float64]  # of each x, y, and the squares of a distance that is near or far

    def with_discs(self, posts: PostArrays) -> PostArrays:
        """The posts with discs for boxes, in the entries that a distance decides."""
        groups = np.flatnonzero(posts.groups["decides"] == DISC)
        if not len(groups):
            return posts
        exact = posts.exact.copy()
        for group in groups:
            lists = posts.lists[posts.lists["group"] == group]  # their entries are neighbours
            entries = slice(lists["first"].min(), (lists["first"] + lists["count"]).max())
            exact[entries] = self.discs[np.searchsorted(self.filters, posts.owner[entries])]
        return posts._replace(exact=exact)


class _Chosen(NamedTuple):
    """Filters to be posted, and the sets of strings that each needs."""

    filters: Ints
    columns: Ints  # (filters, MOST_COLUMNS), ascending; -1 where there is none
    sets: Ints  # of those columns


def combine(given: NumberedFilters, plan: Plan, words: int) -> Combined:
    """Post filters where that is better than what was planned.

    words : how many the posts have before these.
    """
    checks, owner, set_start = given.checks, given.owner, given.set_start
    members = _members(checks, owner, set_start, plan)
    taken = np.bincount(owner[members], minlength=len(plan.path))
    placed = plan.place >= 0
    share = np.where(placed, np.append(plan.shares, 1.0)[plan.place], 1.0)
    np.multiply.at(share, owner[members], plan.shares[members])
    kind = np.append(plan.places.kinds, BOX)[plan.place]  # where there is none, -1, everywhere
    alone = np.bincount(owner, minlength=len(plan.path)) == taken + placed
    decides = np.where(alone & ((kind == BOX) | (kind == DISC)), kind, NOTHING).astype(np.int64)
    # A relation to an area would be decided by the walk; a box decides it for most events.
    area = placed & np.isin(kind, WITH_AREA)
    dearer = np.where(area, np.where(decides == NOTHING, TO_COMPARE, _TO_MEET), 1.0)
    better = share.astype(np.float32) * dearer <= plan.costs()
    better &= (taken > 0) & (taken + placed > 1)
    members = members[better[owner[members]]]
    members, chosen, signature, arrays = _signed(checks, owner, members)
    place = plan.place[chosen.filters]
    # Across the antimeridian one box that holds both; the last is for those without a place.
    held = np.append(plan.places.joined(), [EVERYWHERE], axis=0)
    boxes = held[place]
    geometry = np.where(place >= 0, checks["column"][place].astype(np.int64), -1)
    rows, keys = _combinations(chosen, signature, given.set_items, set_start)
    start = np.arange(len(keys) + 1) * keys.dtype.itemsize * KEY_NUMBERS
    built, ids = vocabulary.build(keys.reshape(-1).view(np.uint8), start)
    kinds = geometry * 4 + decides[chosen.filters]
    distinct, form = np.unique(kinds, return_inverse=True)
    forms = tuple(Form(COMBINED, k >> 2, 0, False, k & 3) for k in distinct.tolist())
    by_distance = decides[chosen.filters] == DISC
    shares = share[chosen.filters].astype(np.float32)
    return Combined(
        arrays=arrays._replace(words=built),
        rows=PostRows(
            forms=forms,
            form=form[rows],
            owner=chosen.filters[rows],
            boxes=boxes[rows],
            token_start=np.arange(len(rows) + 1),
            tokens=words + ids.astype(np.int64),
        ),
        plan=plan.put_under(Path.COMBINED, chosen.filters, shares),
        decided=members,
        filters=chosen.filters[by_distance],
        discs=_discs(checks[place[by_distance]], given.shapes),
    )


def _members(checks: NDArray[np.void], owner: Ints, set_start: Ints, plan: Plan) -> Ints:
    """Checks that need one of few strings: of each filter a few with the smallest shares."""
    asked = (checks["kind"] == checking.MEMBER) & ((checks["flags"] & checking.NEGATED) == 0)
    members = np.flatnonzero(asked & (plan.path[owner] != Path.WORDS))
    sizes = np.diff(set_start)[checks["item"][members]]
    members = members[(sizes > 0) & (sizes <= _MOST_POSTINGS)]
    members = members[np.lexsort((plan.shares[members], owner[members]))]
    columns = owner[members] << _COLUMN_BITS | checks["column"][members].astype(np.int64)
    members = members[np.sort(np.unique(columns, return_index=True)[1])]  # one a column
    sizes = np.diff(set_start)[checks["item"][members]]
    filters = owner[members]
    first = np.flatnonzero(np.diff(filters, prepend=-1))
    turn = np.arange(len(members)) - np.repeat(first, np.diff(first, append=len(members)))
    postings = np.ones(len(plan.path), np.int64)
    columns_taken = np.zeros(len(plan.path), np.int64)
    kept = np.zeros(len(members), bool)
    for own in (np.flatnonzero(turn == k) for k in range(turn.max(initial=-1) + 1)):
        more = postings[filters[own]] * sizes[own]
        own = own[(more <= _MOST_POSTINGS) & (columns_taken[filters[own]] < MOST_COLUMNS)]
        postings[filters[own]] *= sizes[own]
        columns_taken[filters[own]] += 1
        kept[own] = True
    chosen: Ints = members[kept]
    return chosen


def _signed(
    checks: NDArray[np.void], owner: Ints, members: Ints
) -> tuple[Ints, _Chosen, Ints, CombinedArrays]:
    """Filters with the most frequent signatures, their checks, and the signature of each."""
    columns = checks["column"][members].astype(np.int64)
    members = members[np.lexsort((columns, owner[members]))]
    filters, first, number = np.unique(owner[members], return_index=True, return_inverse=True)
    turn = np.arange(len(members)) - first[number]
    columns = np.full((len(filters), MOST_COLUMNS), -1, np.int64)
    columns[number, turn] = checks["column"][members]
    sets = np.zeros((len(filters), MOST_COLUMNS), np.int64)
    sets[number, turn] = checks["item"][members]
    codes = np.zeros(len(filters), np.int64)
    for k in range(MOST_COLUMNS):
        codes = codes << _COLUMN_BITS | columns[:, k] + 1
    distinct, signature, counts = np.unique(codes, return_inverse=True, return_counts=True)
    most = np.sort(np.argsort(-counts, kind="stable")[:_MOST_SIGNATURES])
    rank = np.full(len(distinct), -1, np.int64)
    rank[most] = np.arange(len(most))
    kept = rank[signature] >= 0
    shifts = _COLUMN_BITS * np.arange(MOST_COLUMNS - 1, -1, -1)
    asked = (distinct[most, None] >> shifts & 2**_COLUMN_BITS - 1) - 1
    start = np.append(0, np.cumsum((asked >= 0).sum(axis=1)))
    arrays = CombinedArrays(
        start=start.astype(np.uint32),
        columns=asked[asked >= 0].astype(np.uint32),
        words=vocabulary.Vocabulary(*_NONE),
    )
    chosen = _Chosen(filters[kept], columns[kept], sets[kept])
    return members[kept[number]], chosen, rank[signature[kept]], arrays


_NONE = (np.empty(0, np.uint64), np.zeros(1, np.int64), np.empty(0, np.uint8))


def _combinations(
    chosen: _Chosen, signature: Ints, set_items: NDArray[np.uint32], set_start: Ints
) -> tuple[Ints, NDArray[np.uint32]]:
    """A row for each combination of strings of each filter: whose it is, and its key."""
    sizes = np.where(chosen.columns >= 0, np.diff(set_start)[chosen.sets], 1)
    times = sizes.prod(axis=1)
    rows = np.repeat(np.arange(len(times)), times)
    turn = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    keys = np.zeros((len(rows), KEY_NUMBERS), np.uint32)
    keys[:, 0] = signature[rows]
    for k in range(MOST_COLUMNS):
        own = np.flatnonzero(chosen.columns[rows, k] >= 0)
        first = set_start[chosen.sets[rows[own], k]]
        keys[own, 1 + k] = set_items[first + turn[own] % sizes[rows[own], k]]
        turn //= sizes[rows, k]
    return rows, keys


def _discs(near: NDArray[np.void], shapes: ShapeArrays) -> NDArray[np.float64]:
    """The points of checks of a distance, and when an event is surely near, or far."""
    own = shapes.shapes[near["item"]]
    return np.column_stack((own["x0"], own["y0"], *squares(near["low"])))
