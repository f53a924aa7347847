"""The pass of building a segment that posts filters under the words they need.

With the words of a filter go the box that it needs its place to meet, a string that it needs in
another column, and the bounds of a number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.index import posts
from fencepost.index.planner import Plan
from fencepost.index.posts import EVERYWHERE, Form, PostRows, ranges
from fencepost.index.selectivity import Path
from fencepost.index.table import NumberedFilters
from fencepost.kernels import checking, matching
from fencepost.kernels.checking import ITEMS, TEXT

Ints = NDArray[np.int64]

_ACCEPTS = (ITEMS | TEXT) + 1  # what a form may accept: less than that
_MAX_SHARE = 0.5  # of a string, for it to go with words
_MAX_STRINGS = 8  # of one check; more are many postings for one filter
_MAX_STRING_COLUMNS = 4
_FILTERS_A_STRING = 8  # at least one of so many filters must need a string of a column


class Worded(NamedTuple):
    """What is posted under words."""

    rows: PostRows
    plan: Plan  # in which these filters are found by words
    decided: Ints  # the checks that finding a filter decides


def post_words(given: NumberedFilters, plan: Plan) -> Worded:
    """Post the filters that need words, under those of the check that needs most."""
    checks, set_start = given.checks, given.set_start
    best = _most_words(given)
    filters = np.flatnonzero(best >= 0)
    chosen = checks[best[filters]]
    # That a list has the words of a set does not tell that it has no others.
    decided = best[filters[chosen["function"] != checking.EQUAL]]
    spatial = plan.place[filters]
    boxes = np.where((spatial >= 0)[:, None], plan.places.boxes[spatial], EVERYWHERE)
    geometry = np.where(spatial >= 0, checks["column"][spatial].astype(np.int64), -1)
    first_set = chosen["item"].astype(np.int64)
    same = _equal_sets(given.set_items, set_start, first_set, first_set + 1)
    in_texts = ~same & (chosen["flags"] & checking.TOKENS > 0)
    parts = []
    for second, kept in ((0, np.arange(len(filters))), (1, np.flatnonzero(in_texts))):
        own_set = first_set[kept] + second
        sizes = set_start[own_set + 1] - set_start[own_set]
        # Of a check that needs any of its words, each is a row of its own.
        apart = (chosen["function"][kept] == checking.OVERLAPS) & (sizes > 0)
        times = np.where(apart, sizes, 1)
        accepts = np.where(same[kept], ITEMS | TEXT, TEXT if second else ITEMS)
        shape = int(chosen["column"].max(initial=0)) + 1, int(geometry.max(initial=0)) + 2, _ACCEPTS
        kinds = np.ravel_multi_index((chosen["column"][kept], geometry[kept] + 1, accepts), shape)
        distinct, form = np.unique(kinds, return_inverse=True)
        parts.append(
            PostRows(
                forms=tuple(
                    Form(int(a), int(b) - 1, int(c), False)
                    for a, b, c in zip(*np.unravel_index(distinct, shape), strict=True)
                ),
                form=np.repeat(form, times),
                owner=np.repeat(filters[kept], times),
                boxes=np.repeat(boxes[kept], times, axis=0),
                token_start=np.cumsum(np.append(0, np.repeat(np.where(apart, 1, sizes), times))),
                tokens=given.set_items[ranges(set_start[own_set], sizes)].astype(np.int64),
            )
        )
    rows = _on_both_sides(posts.join(parts), plan)
    shares = _word_shares(rows)[filters]
    strings = _strings(given, filters, plan.shares)
    shares *= np.append(plan.shares, 1.0)[strings[filters]].astype(np.float32)
    return Worded(
        _with_each_string(rows, given, strings),
        plan.put_under(Path.WORDS, filters, shares),
        np.concatenate((decided, strings[strings >= 0])),
    )


def with_bounds(rows: PostRows, given: NumberedFilters, plan: Plan) -> PostRows:
    """The rows with bounds of a number that an event must have, which is the same for a form.

    It is the number that tells most events apart.
    """
    checks, owner = given.checks, given.owner
    ranged = np.flatnonzero(plan.source == matching.NUMBERS)
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
            best = np.argmax(np.bincount(place, 1.0 - plan.shares[own]))
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
        (checks["kind"] == checking.LIST)
        & ((checks["flags"] & checking.NEGATED) == 0)
        & (function != checking.CONTAINED_BY)
    )
    sizes = np.diff(given.set_start)[checks["item"][usable]]
    usable, sizes = usable[sizes > 0], sizes[sizes > 0]
    all_of = function[usable] != checking.OVERLAPS
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
    asked = (checks["kind"] == checking.MEMBER) & ((checks["flags"] & checking.NEGATED) == 0)
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


def _with_each_string(rows: PostRows, given: NumberedFilters, strings: Ints) -> PostRows:
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
    taken = posts.take(rows, repeated)
    return taken._replace(forms=forms, form=form[repeated], strings=found)


def _on_both_sides(rows: PostRows, plan: Plan) -> PostRows:
    """The rows, and those that have another box beyond the antimeridian once more, with that."""
    split, beyond = plan.places.beyond_of(plan.place[rows.owner])
    return posts.join([rows, posts.take(rows, split)._replace(boxes=beyond)])


def _word_shares(rows: PostRows) -> NDArray[np.float32]:
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
