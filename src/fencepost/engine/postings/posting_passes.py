"""Passes over the filters of a new segment that write its posting lists.

`post_by_keywords` posts filters under keywords. A posting also holds the bounding box of the
filter, a string that it requires in another column, and bounds of a number.

`combine` posts them under several of their strings at once, and under the place beside them. A
filter that needs strings in two columns, or in one and a place, is found by few events where it
stands under all of that together. It is posted under a word for the strings, one posting for each
combination of them (an attribute may be one of several), with the box of its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.access_paths import GEOMETRY_COST_FACTOR, Plan
from fencepost.engine.filter_table import NumberedFilters
from fencepost.engine.postings import keyword_postings
from fencepost.engine.postings.keyword_postings import EVERYWHERE, PostingGroup, PostingRows, ranges
from fencepost.engine.selectivity import AccessPath
from fencepost.kernels.geometry.planar_distance import squared_bounds
from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.index.check_boxes import WITH_AREA
from fencepost.kernels.index.posting_arrays import BOX, DISC, NOTHING, SIGNATURES, PostingArrays
from fencepost.kernels.match import check_evaluation, segment_search
from fencepost.kernels.match.check_evaluation import ITEMS, TEXT
from fencepost.kernels.match.signature_keys import KEY_NUMBERS, MAX_COLUMNS, SignatureArrays
from fencepost.kernels.text import vocabulary

Ints = NDArray[np.int64]

_ACCEPTS = (ITEMS | TEXT) + 1  # what a form may accept: less than that
_MAX_SHARE = 0.5  # of a string, for it to go with words
_MAX_STRINGS = 8  # of one check; more are many postings for one filter
_MAX_STRING_COLUMNS = 4
_FILTERS_A_STRING = 8  # at least one of so many filters must need a string of a column


class KeywordPostings(NamedTuple):
    """What is posted under words."""

    rows: PostingRows
    plan: Plan  # in which these filters are found by words
    decided: Ints  # the checks that finding a filter decides


def post_by_keywords(given: NumberedFilters, plan: Plan) -> KeywordPostings:
    """Post the filters that need words, under those of the check that needs most."""
    checks, set_start = given.checks, given.set_start
    best = _most_words(given)
    filters = np.flatnonzero(best >= 0)
    chosen = checks[best[filters]]
    # That a list has the words of a set does not tell that it has no others.
    decided = best[filters[chosen["function"] != check_evaluation.EQUAL]]
    spatial = plan.place[filters]
    boxes = np.where((spatial >= 0)[:, None], plan.places.boxes[spatial], EVERYWHERE)
    geometry = np.where(spatial >= 0, checks["column"][spatial].astype(np.int64), -1)
    first_set = chosen["item"].astype(np.int64)
    same = _equal_sets(given.set_items, set_start, first_set, first_set + 1)
    in_texts = ~same & (chosen["flags"] & check_evaluation.TOKENS > 0)
    parts = []
    for second, kept in ((0, np.arange(len(filters))), (1, np.flatnonzero(in_texts))):
        own_set = first_set[kept] + second
        sizes = set_start[own_set + 1] - set_start[own_set]
        # Of a check that needs any of its words, each is a row of its own.
        apart = (chosen["function"][kept] == check_evaluation.OVERLAPS) & (sizes > 0)
        times = np.where(apart, sizes, 1)
        accepts = np.where(same[kept], ITEMS | TEXT, TEXT if second else ITEMS)
        shape = int(chosen["column"].max(initial=0)) + 1, int(geometry.max(initial=0)) + 2, _ACCEPTS
        kinds = np.ravel_multi_index((chosen["column"][kept], geometry[kept] + 1, accepts), shape)
        distinct, form = np.unique(kinds, return_inverse=True)
        parts.append(
            PostingRows(
                forms=tuple(
                    PostingGroup(int(a), int(b) - 1, int(c), False)
                    for a, b, c in zip(*np.unravel_index(distinct, shape), strict=True)
                ),
                form=np.repeat(form, times),
                owner=np.repeat(filters[kept], times),
                boxes=np.repeat(boxes[kept], times, axis=0),
                token_start=np.cumsum(np.append(0, np.repeat(np.where(apart, 1, sizes), times))),
                tokens=given.set_items[ranges(set_start[own_set], sizes)].astype(np.int64),
            )
        )
    rows = _on_both_sides(keyword_postings.concatenate(parts), plan)
    shares = _word_shares(rows)[filters]
    strings = _strings(given, filters, plan.check_selectivity)
    shares *= np.append(plan.check_selectivity, 1.0)[strings[filters]].astype(np.float32)
    return KeywordPostings(
        _with_each_string(rows, given, strings),
        plan.reassign(AccessPath.WORDS, filters, shares),
        np.concatenate((decided, strings[strings >= 0])),
    )


def add_number_bounds(rows: PostingRows, given: NumberedFilters, plan: Plan) -> PostingRows:
    """The rows with bounds of a number that an event must have, which is the same for a form.

    It is the number that tells most events apart.
    """
    checks, owner = given.checks, given.owner
    ranged = np.flatnonzero(plan.source == segment_search.NUMBERS)
    forms = list(rows.forms)
    bounds = np.full((len(rows.form), 2), np.nan)
    of_filter = np.full((len(plan.path), 2), np.nan)
    asks = np.zeros(len(plan.path), bool)
    for number in range(len(forms)):
        of_form = np.flatnonzero(rows.form == number)
        asks[rows.owner[of_form]] = True
        own = ranged[asks[owner[ranged]]]
        if len(own):
            columns, place = np.unique(checks["column"][own], return_inverse=True)
            best = np.argmax(np.bincount(place, 1.0 - plan.check_selectivity[own]))
            own = own[place == best]
            of_filter[owner[own]] = plan.intervals[own]
            bounds[of_form] = of_filter[rows.owner[of_form]]
            of_filter[owner[own]] = np.nan
            forms[number] = forms[number]._replace(number_column=int(columns[best]))
        asks[rows.owner[of_form]] = False
    if np.isnan(bounds).all():
        return rows
    return rows._replace(forms=tuple(forms), bounds=bounds)


def _most_words(given: NumberedFilters) -> Ints:
    """Of each filter the check that needs most words, or -1."""
    checks = given.checks
    function = checks["function"]
    usable = np.flatnonzero(
        (checks["kind"] == check_evaluation.LIST)
        & ((checks["flags"] & check_evaluation.NEGATED) == 0)
        & (function != check_evaluation.CONTAINED_BY)
    )
    sizes = np.diff(given.set_start)[checks["item"][usable]]
    usable, sizes = usable[sizes > 0], sizes[sizes > 0]
    all_of = function[usable] != check_evaluation.OVERLAPS
    best = np.full(given.filters, -1, np.int64)
    order = np.lexsort((np.where(all_of, sizes, -sizes), all_of))
    best[given.owner[usable[order]]] = usable[order]  # the last that is written stays
    return best


def _strings(given: NumberedFilters, filters: Ints, shares: NDArray[np.float64]) -> Ints:
    """Of each filter the check for a string that goes with its words, or -1.

    An event looks for its words once more for each string column, so there are few of them.
    """
    checks, owner = given.checks, given.owner
    worded = np.zeros(int(owner.max(initial=-1)) + 1, bool)
    worded[filters] = True
    asked = (checks["kind"] == check_evaluation.MEMBER) & (
        (checks["flags"] & check_evaluation.NEGATED) == 0
    )
    own = np.flatnonzero(asked & worded[owner] & (shares <= _MAX_SHARE))
    sizes = np.diff(given.set_start)[checks["item"][own]]
    own = own[(sizes > 0) & (sizes <= _MAX_STRINGS)]
    columns, number, counts = np.unique(
        checks["column"][own], return_inverse=True, return_counts=True
    )
    often = np.argsort(-counts, kind="stable")[:_MAX_STRING_COLUMNS]
    pays = np.zeros(len(columns), bool)
    pays[often] = counts[often] * _FILTERS_A_STRING >= len(filters)
    own = own[pays[number]]
    own = own[np.argsort(-shares[own], kind="stable")]
    chosen = np.full(len(worded), -1, np.int64)
    chosen[owner[own]] = own  # the smallest share is written last, and stays
    return chosen


def _with_each_string(rows: PostingRows, given: NumberedFilters, strings: Ints) -> PostingRows:
    """The rows, those of a filter with a check for strings once for each of them."""
    own = strings[rows.owner]
    if not (own >= 0).any():
        return rows
    checks, set_start = given.checks, given.set_start
    sets = np.where(own >= 0, checks["item"][own].astype(np.int64), 0)
    sizes = np.where(own >= 0, set_start[sets + 1] - set_start[sets], 1)
    repeated = np.repeat(np.arange(len(own)), sizes)
    found = np.full(len(repeated), -1, np.int64)
    with_one = own[repeated] >= 0
    found[with_one] = given.set_items[ranges(set_start[sets[own >= 0]], sizes[own >= 0])]
    column = np.where(own >= 0, checks["column"][own].astype(np.int64), -1)
    kinds, form = np.unique(rows.form << 32 | (column + 1), return_inverse=True)
    forms = tuple(
        rows.forms[kind >> 32]._replace(string_column=(kind & 0xFFFFFFFF) - 1)
        for kind in kinds.tolist()
    )
    taken = keyword_postings.take(rows, repeated)
    return taken._replace(forms=forms, form=form[repeated], strings=found)


def _on_both_sides(rows: PostingRows, plan: Plan) -> PostingRows:
    """The rows, and those that have another box beyond the antimeridian once more, with that."""
    split, beyond = plan.places.wrapped_boxes_of(plan.place[rows.owner])
    return keyword_postings.concatenate(
        [rows, keyword_postings.take(rows, split)._replace(boxes=beyond)]
    )


def _word_shares(rows: PostingRows) -> NDArray[np.float32]:
    """Of each filter: how often its rarest word is asked for, of all rows."""
    share = np.zeros(int(rows.owner.max(initial=-1)) + 1, np.float32)
    sizes = np.diff(rows.token_start)
    some = sizes > 0
    counts = np.bincount(rows.tokens, minlength=1)[rows.tokens]
    rarest = np.full(len(sizes), len(sizes), np.int64)
    if some.any():
        rarest[some] = np.minimum.reduceat(counts, rows.token_start[:-1][some])
    np.maximum.at(share, rows.owner, (rarest / max(len(sizes), 1)).astype(np.float32))
    return share


def _equal_sets(
    items: NDArray[np.uint32], start: Ints, some: Ints, others: Ints
) -> NDArray[np.bool_]:
    """Which sets are equal, pair by pair; items of a set are sorted."""
    sizes = start[some + 1] - start[some]
    same: NDArray[np.bool_] = sizes == start[others + 1] - start[others]
    pair = np.repeat(np.flatnonzero(same), sizes[same])
    differ = (
        items[ranges(start[some[same]], sizes[same])]
        != items[ranges(start[others[same]], sizes[same])]
    )
    same[pair[differ]] = False
    return same


_MOST_POSTINGS = 16  # of a filter
_MOST_SIGNATURES = 64  # of a segment: an event asks for each of them
_COLUMN_BITS = 21
_TO_MEET = 2.0  # how much more contact with a rectangle costs here than where regions are walked


class SignaturePostings(NamedTuple):
    """What is posted under several strings at once."""

    arrays: SignatureArrays
    rows: PostingRows
    plan: Plan  # in which these filters are found so
    decided: Ints  # the checks that finding a filter decides
    filters: Ints  # those that a distance decides, ascending
    discs: NDArray[np.float64]  # of each x, y, and the squares of a distance that is near or far

    def with_discs(self, postings: PostingArrays) -> PostingArrays:
        """The postings with discs for boxes, in the entries that a distance decides."""
        groups = np.flatnonzero(postings.groups["decides"] == DISC)
        if not len(groups):
            return postings
        exact = postings.exact.copy()
        for group in groups:
            lists = postings.lists[postings.lists["group"] == group]  # their entries are neighbours
            entries = slice(lists["first"].min(), (lists["first"] + lists["count"]).max())
            exact[entries] = self.discs[np.searchsorted(self.filters, postings.owner[entries])]
        return postings._replace(exact=exact)


class _Chosen(NamedTuple):
    """Filters to be posted, and the sets of strings that each needs."""

    filters: Ints
    columns: Ints  # (filters, MAX_COLUMNS), ascending; -1 where there is none
    sets: Ints  # of those columns


def post_by_signatures(given: NumberedFilters, plan: Plan, words: int) -> SignaturePostings:
    """Post filters where that is better than what was planned.

    words : how many the postings have before these.
    """
    checks, owner, set_start = given.checks, given.owner, given.set_start
    members = _members(checks, owner, set_start, plan)
    taken = np.bincount(owner[members], minlength=len(plan.path))
    placed = plan.place >= 0
    share = np.where(placed, np.append(plan.check_selectivity, 1.0)[plan.place], 1.0)
    np.multiply.at(share, owner[members], plan.check_selectivity[members])
    kind = np.append(plan.places.kinds, BOX)[plan.place]  # where there is none, -1, everywhere
    alone = np.bincount(owner, minlength=len(plan.path)) == taken + placed
    decides = np.where(alone & ((kind == BOX) | (kind == DISC)), kind, NOTHING).astype(np.int64)
    # A relation to an area would be decided by the walk; a box decides it for most events.
    area = placed & np.isin(kind, WITH_AREA)
    dearer = np.where(area, np.where(decides == NOTHING, GEOMETRY_COST_FACTOR, _TO_MEET), 1.0)
    better = share.astype(np.float32) * dearer <= plan.costs()
    better &= (taken > 0) & (taken + placed > 1)
    members = members[better[owner[members]]]
    members, chosen, signature, arrays = _signed(checks, owner, members)
    place = plan.place[chosen.filters]
    # Across the antimeridian one box that holds both; the last is for those without a place.
    held = np.append(plan.places.hulls(), [EVERYWHERE], axis=0)
    boxes = held[place]
    geometry = np.where(place >= 0, checks["column"][place].astype(np.int64), -1)
    rows, keys = _combinations(chosen, signature, given.set_items, set_start)
    start = np.arange(len(keys) + 1) * keys.dtype.itemsize * KEY_NUMBERS
    built, ids = vocabulary.build(keys.reshape(-1).view(np.uint8), start)
    kinds = geometry * 4 + decides[chosen.filters]
    distinct, form = np.unique(kinds, return_inverse=True)
    forms = tuple(PostingGroup(SIGNATURES, k >> 2, 0, False, k & 3) for k in distinct.tolist())
    by_distance = decides[chosen.filters] == DISC
    shares = share[chosen.filters].astype(np.float32)
    return SignaturePostings(
        arrays=arrays._replace(words=built),
        rows=PostingRows(
            forms=forms,
            form=form[rows],
            owner=chosen.filters[rows],
            boxes=boxes[rows],
            token_start=np.arange(len(rows) + 1),
            tokens=words + ids.astype(np.int64),
        ),
        plan=plan.reassign(AccessPath.SIGNATURE, chosen.filters, shares),
        decided=members,
        filters=chosen.filters[by_distance],
        discs=_discs(checks[place[by_distance]], given.shapes),
    )


def _members(checks: NDArray[np.void], owner: Ints, set_start: Ints, plan: Plan) -> Ints:
    """Checks that need one of few strings: of each filter a few with the smallest shares."""
    asked = (checks["kind"] == check_evaluation.MEMBER) & (
        (checks["flags"] & check_evaluation.NEGATED) == 0
    )
    members = np.flatnonzero(asked & (plan.path[owner] != AccessPath.WORDS))
    sizes = np.diff(set_start)[checks["item"][members]]
    members = members[(sizes > 0) & (sizes <= _MOST_POSTINGS)]
    members = members[np.lexsort((plan.check_selectivity[members], owner[members]))]
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
        own = own[(more <= _MOST_POSTINGS) & (columns_taken[filters[own]] < MAX_COLUMNS)]
        postings[filters[own]] *= sizes[own]
        columns_taken[filters[own]] += 1
        kept[own] = True
    chosen: Ints = members[kept]
    return chosen


def _signed(
    checks: NDArray[np.void], owner: Ints, members: Ints
) -> tuple[Ints, _Chosen, Ints, SignatureArrays]:
    """Filters with the most frequent signatures, their checks, and the signature of each."""
    columns = checks["column"][members].astype(np.int64)
    members = members[np.lexsort((columns, owner[members]))]
    filters, first, number = np.unique(owner[members], return_index=True, return_inverse=True)
    turn = np.arange(len(members)) - first[number]
    columns = np.full((len(filters), MAX_COLUMNS), -1, np.int64)
    columns[number, turn] = checks["column"][members]
    sets = np.zeros((len(filters), MAX_COLUMNS), np.int64)
    sets[number, turn] = checks["item"][members]
    codes = np.zeros(len(filters), np.int64)
    for k in range(MAX_COLUMNS):
        codes = codes << _COLUMN_BITS | columns[:, k] + 1
    distinct, signature, counts = np.unique(codes, return_inverse=True, return_counts=True)
    most = np.sort(np.argsort(-counts, kind="stable")[:_MOST_SIGNATURES])
    rank = np.full(len(distinct), -1, np.int64)
    rank[most] = np.arange(len(most))
    kept = rank[signature] >= 0
    shifts = _COLUMN_BITS * np.arange(MAX_COLUMNS - 1, -1, -1)
    asked = (distinct[most, None] >> shifts & 2**_COLUMN_BITS - 1) - 1
    start = np.append(0, np.cumsum((asked >= 0).sum(axis=1)))
    arrays = SignatureArrays(
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
    for k in range(MAX_COLUMNS):
        own = np.flatnonzero(chosen.columns[rows, k] >= 0)
        first = set_start[chosen.sets[rows[own], k]]
        keys[own, 1 + k] = set_items[first + turn[own] % sizes[rows[own], k]]
        turn //= sizes[rows, k]
    return rows, keys


def _discs(near: NDArray[np.void], shapes: ShapeArrays) -> NDArray[np.float64]:
    """The points of checks of a distance, and when an event is surely near, or far."""
    own = shapes.shapes[near["item"]]
    return np.column_stack((own["x0"], own["y0"], *squared_bounds(near["low"])))
