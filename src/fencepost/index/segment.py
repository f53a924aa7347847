"""An immutable segment of subscriptions, built from a table of filters.

Each filter is put under one access path, which the planner chooses:

- *words*: where a check needs words in a list or text; with them goes the box in which another
  check needs the event to be, a string that a third one needs, and the bounds of a number;
- *combined*: where checks need strings in several columns, or in one and a place: posted likewise,
  under all of these strings at once;
- *region*: where a check asks for a relation to an area, *place*: where it needs contact with, or
  nearness to, some other geometry. Each geometry column has packed Hilbert R-trees for them;
- *equality*: postings of a value, where a check needs one of a few strings, one truth value, or
  that an attribute is missing;
- *interval*: where a check needs a number, or the beginning or end of a string, between two
  bounds: trees again, of boxes without height;
- *scan* otherwise.

Only `gone` ever changes, and in `state` how many are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.index import posts, regions
from fencepost.index.columns import Columns
from fencepost.index.combined import combine
from fencepost.index.planner import Path, Plan, plan
from fencepost.index.posts import EVERYWHERE, Form, PostRows, ranges
from fencepost.index.seen import NOTHING_SEEN, Sample
from fencepost.index.table import ITEMS, TEXT, FilterTable, TableArrays
from fencepost.kernels import checking, matching, rtree, vocabulary
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.region_walk import RegionArrays
from fencepost.kernels.rtree import RTreeArrays
from fencepost.kernels.shapes import ShapeArrays
from fencepost.kernels.vectors import WIDTH
from fencepost.model.geometry import Shapes

NEVER = np.iinfo(np.int64).max
EVENTS_SEEN = -1  # the last of the state, after what kernels need
_ACCEPTS = (ITEMS | TEXT) + 1  # what a form may accept: less than that
_MOST_SHARE = 0.5  # of a string, for it to go with words
_MOST_STRINGS = 8  # of one check; more are many postings for one filter
_MOST_STRING_COLUMNS = 4
_FEWEST_OF_A_COLUMN = 8  # at least one of so many filters must need a string of it
NEVER_GONE = np.iinfo(np.uint32).max  # a version that does not come


def build(
    table: TableArrays,
    expires: NDArray[np.int64],
    tell: posts.Tell = posts.untold,
    sample: Sample = NOTHING_SEEN,
) -> SegmentArrays:
    """A segment of the subscriptions whose expiry times are given; `tell` hears of the steps.

    It is planned for events like those of the sample.
    """
    words, ids = vocabulary.build(table.text, table.string_start)
    checks = table.checks.copy()
    in_vocabulary = np.isin(checks["kind"], (checking.ORDER, checking.LIKE))
    checks["item"][in_vocabulary] = ids[checks["item"][in_vocabulary]]
    set_items = _sorted_sets(ids[table.set_items], table.set_start)
    filters = len(table.filter_subscription)
    owner = np.repeat(np.arange(filters), np.diff(table.filter_check))
    chosen = plan(
        checks, owner, filters, table.shapes.arrays, set_items, table.set_start, words, sample
    )
    posted = _posted(checks, owner, set_items, table.set_start, chosen)
    together = combine(
        checks, owner, set_items, table.set_start, chosen, table.shapes.arrays, len(words.start) - 1
    )
    alone = np.bincount(owner, minlength=filters) == 1
    shapes, region_column, region_direct, walked = _walked(checks, chosen, table, alone)
    tree_column, trees = _trees(checks, chosen)
    interval_source, interval_column, intervals = _intervals(checks, chosen)
    post_key, post_start, post_filter = _postings(checks, chosen, set_items, table.set_start)
    scan = chosen.found_by(Path.SCAN)
    free = np.full(len(scan), -1, np.int32)
    direct = table.posts._replace(tokens=ids[table.posts.tokens].astype(np.int64))
    most_chains = max(table.shapes.most_chains, 1)
    all_words = len(words.start) + len(together.arrays.words.start) - 2
    asking = [_with_bounds(own, checks, owner, chosen) for own in (posted, together.rows)]
    laid_out = posts.build(posts.join([direct, *asking]), all_words, tell)
    together.give_discs(laid_out)
    once = _found_once(table, chosen)
    checks = checks[_order(checks, owner)]
    state = np.array([0, expires.min(initial=NEVER), most_chains, once, len(sample)], np.int64)
    return SegmentArrays(
        checks,
        table.filter_check.astype(np.uint32),
        table.filter_subscription.astype(np.uint32),
        np.full(len(expires), NEVER_GONE, np.uint32),
        np.empty(0, np.uint32),
        expires.astype(np.int64),
        table.set_start.astype(np.uint32),
        set_items.astype(np.uint32),
        post_key,
        post_start,
        post_filter,
        tree_column,
        interval_source,
        interval_column,
        scan.astype(np.uint32),
        free,
        np.full((-(-len(scan) // WIDTH), 4, WIDTH), np.nan),
        free_of(free),
        chosen.path,
        chosen.share,
        state,
        region_column,
        region_direct,
        together.arrays,
        laid_out,
        walked,
        trees,
        intervals,
        words,
        shapes,
    )


@cache
def nothing() -> SegmentArrays:
    """A segment of no subscriptions."""
    return build(FilterTable(Columns()).arrays(), np.empty(0, np.int64))


def free_of(columns: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Which filters of each block ask for no box, as bits, by the columns that they ask for."""
    lanes = np.zeros((-(-len(columns) // WIDTH), WIDTH), bool)
    lanes.reshape(-1)[: len(columns)] = columns < 0
    return np.packbits(lanes, axis=1, bitorder="little").view("<u2").astype(np.uint16).reshape(-1)


def _order(checks: NDArray[np.void], owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of checks: those of a filter that find it last, before them the cheapest first."""
    place = np.argsort(checking.CHEAPEST_FIRST)
    found = checks["flags"] & checking.FOUND > 0
    key = (2 * owner + found) * len(place) + place[checks["kind"]]
    return np.argsort(key, kind="stable")


def _found_once(table: TableArrays, chosen: Plan) -> bool:
    """Whether no event can find a subscription twice."""
    paths = np.isin(chosen.path, (Path.COMBINED, Path.EQUALITY, Path.SCAN))
    alone = np.bincount(table.filter_subscription, minlength=1).max() < 2
    return bool(alone and paths.all() and not len(table.posts.form))


def _sorted_sets(items: NDArray[np.uint32], start: NDArray[np.int64]) -> NDArray[np.uint32]:
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return items[np.lexsort((items, owner))]


def _trees(checks: NDArray[np.void], chosen: Plan) -> tuple[NDArray[np.uint32], RTreeArrays]:
    """The trees of boxes that an event must meet, and the geometry column of each."""
    found = chosen.found_by(Path.PLACE)
    own = chosen.check[found]
    columns, tree = np.unique(checks["column"][own], return_inverse=True)
    split, beyond = chosen.places.beyond_of(own)
    boxes = np.concatenate((chosen.places.boxes[own], beyond))
    tree = np.concatenate((tree, tree[split])).astype(np.int64)
    filters = np.concatenate((found, found[split])).astype(np.uint32)
    trees = rtree.build(boxes, tree, filters, len(columns))
    return columns.astype(np.uint32), trees


def _intervals(
    checks: NDArray[np.void], chosen: Plan
) -> tuple[NDArray[np.uint8], NDArray[np.uint32], RTreeArrays]:
    """The trees of intervals; what each is of, and the column."""
    found = chosen.found_by(Path.INTERVAL)
    own = chosen.check[found]
    kinds, tree = np.unique(
        chosen.source[own] << 32 | checks["column"][own].astype(np.int64), return_inverse=True
    )
    low, high = chosen.intervals[own].T
    level = np.zeros(len(own))
    trees = rtree.build(
        np.column_stack((low, level, high, level)),
        tree.astype(np.int64),
        found.astype(np.uint32),
        len(kinds),
    )
    return (kinds >> 32).astype(np.uint8), (kinds & 0xFFFFFFFF).astype(np.uint32), trees


def _posted(
    checks: NDArray[np.void],
    owner: NDArray[np.int64],
    set_items: NDArray[np.uint32],
    set_start: NDArray[np.int64],
    chosen_plan: Plan,
) -> PostRows:
    """Filters that need words and ask for more, with the box that their place must meet.

    The check that needs most words is taken, and marked where finding a filter decides it. They
    leave the plan's other paths.
    """
    function = checks["function"]
    usable = np.flatnonzero(
        (checks["kind"] == checking.LIST)
        & ((checks["flags"] & checking.NEGATED) == 0)
        & (function != checking.CONTAINED_BY)
    )
    sizes = np.diff(set_start)[checks["item"][usable]]
    usable, sizes = usable[sizes > 0], sizes[sizes > 0]
    all_of = function[usable] != checking.OVERLAPS
    best = np.full(len(chosen_plan.check), -1, np.int64)
    order = np.lexsort((np.where(all_of, sizes, -sizes), all_of))
    best[owner[usable[order]]] = usable[order]
    filters = np.flatnonzero(best >= 0)
    chosen = checks[best[filters]]
    marked = best[filters[chosen["function"] != checking.EQUAL]]
    checks["flags"][marked] |= checking.FOUND
    spatial = chosen_plan.place[filters]
    boxes = np.where((spatial >= 0)[:, None], chosen_plan.places.boxes[spatial], EVERYWHERE)
    geometry = np.where(spatial >= 0, checks["column"][spatial].astype(np.int64), -1)
    first_set = chosen["item"].astype(np.int64)
    same = _equal_sets(set_items, set_start, first_set, first_set + 1)
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
                tuple(
                    Form(int(a), int(b) - 1, int(c), False)
                    for a, b, c in zip(*np.unravel_index(distinct, shape), strict=True)
                ),
                np.repeat(form, times),
                np.repeat(filters[kept], times),
                np.repeat(boxes[kept], times, axis=0),
                np.cumsum(np.append(0, np.repeat(np.where(apart, 1, sizes), times))),
                set_items[ranges(set_start[own_set], sizes)].astype(np.int64),
            )
        )
    posted = _on_both_sides(posts.join(parts), chosen_plan)
    shares = _word_shares(posted)[filters]
    strings = _strings(checks, owner, set_start, filters, chosen_plan.shares)
    checks["flags"][strings[strings >= 0]] |= checking.FOUND
    shares *= np.append(chosen_plan.shares, 1.0)[strings[filters]].astype(np.float32)
    chosen_plan.put_under(Path.WORDS, filters, shares)
    return _with_each_string(posted, checks, strings, set_items, set_start)


def _strings(
    checks: NDArray[np.void],
    owner: NDArray[np.int64],
    set_start: NDArray[np.int64],
    filters: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Of each filter the check for a string that goes with its words, or -1.

    An event looks for its words once more for each string column, so there are few of them.
    """
    worded = np.zeros(int(owner.max(initial=-1)) + 1, bool)
    worded[filters] = True
    asked = (checks["kind"] == checking.MEMBER) & ((checks["flags"] & checking.NEGATED) == 0)
    own = np.flatnonzero(asked & worded[owner] & (shares <= _MOST_SHARE))
    sizes = np.diff(set_start)[checks["item"][own]]
    own = own[(sizes > 0) & (sizes <= _MOST_STRINGS)]
    columns, number, counts = np.unique(
        checks["column"][own], return_inverse=True, return_counts=True
    )
    often = np.argsort(-counts, kind="stable")[:_MOST_STRING_COLUMNS]
    pays = np.zeros(len(columns), bool)
    pays[often] = counts[often] * _FEWEST_OF_A_COLUMN >= len(filters)
    own = own[pays[number]]
    own = own[np.argsort(-shares[own], kind="stable")]
    chosen = np.full(len(worded), -1, np.int64)
    chosen[owner[own]] = own  # the smallest share is written last, and stays
    return chosen


def _with_each_string(
    posted: PostRows,
    checks: NDArray[np.void],
    strings: NDArray[np.int64],
    set_items: NDArray[np.uint32],
    set_start: NDArray[np.int64],
) -> PostRows:
    """The rows, those of a filter with a check for strings once for each of them."""
    own = strings[posted.owner]
    if not (own >= 0).any():
        return posted
    sets = np.where(own >= 0, checks["item"][own].astype(np.int64), 0)
    sizes = np.where(own >= 0, set_start[sets + 1] - set_start[sets], 1)
    rows = np.repeat(np.arange(len(own)), sizes)
    found = np.full(len(rows), -1, np.int64)
    with_one = own[rows] >= 0
    found[with_one] = set_items[ranges(set_start[sets[own >= 0]], sizes[own >= 0])]
    column = np.where(own >= 0, checks["column"][own].astype(np.int64), -1)
    kinds, form = np.unique(posted.form << 32 | (column + 1), return_inverse=True)
    forms = tuple(
        posted.forms[kind >> 32]._replace(string_column=(kind & 0xFFFFFFFF) - 1)
        for kind in kinds.tolist()
    )
    repeated = posts.take(posted, rows)
    return repeated._replace(forms=forms, form=form[rows], strings=found)


def _with_bounds(
    posted: PostRows, checks: NDArray[np.void], owner: NDArray[np.int64], chosen: Plan
) -> PostRows:
    """The rows with bounds of a number that an event must have, which is the same for a form.

    It is the number that tells most events apart.
    """
    ranged = np.flatnonzero(chosen.source == matching.NUMBERS)
    forms = list(posted.forms)
    bounds = np.full((len(posted.form), 2), np.nan)
    of_filter = np.full((len(chosen.path), 2), np.nan)
    asks = np.zeros(len(chosen.path), bool)
    for number in range(len(forms)):
        rows = np.flatnonzero(posted.form == number)
        asks[posted.owner[rows]] = True
        own = ranged[asks[owner[ranged]]]
        if len(own):
            columns, place = np.unique(checks["column"][own], return_inverse=True)
            best = np.argmax(np.bincount(place, 1.0 - chosen.shares[own]))
            own = own[place == best]
            of_filter[owner[own]] = chosen.intervals[own]
            bounds[rows] = of_filter[posted.owner[rows]]
            of_filter[owner[own]] = np.nan
            forms[number] = forms[number]._replace(number_column=int(columns[best]))
        asks[posted.owner[rows]] = False
    if np.isnan(bounds).all():
        return posted
    return posted._replace(forms=tuple(forms), bounds=bounds)


def _on_both_sides(posted: PostRows, chosen_plan: Plan) -> PostRows:
    """The rows, and those that have another box beyond the antimeridian once more, with that."""
    split, beyond = chosen_plan.places.beyond_of(chosen_plan.place[posted.owner])
    return posts.join([posted, posts.take(posted, split)._replace(boxes=beyond)])


def _word_shares(posted: PostRows) -> NDArray[np.float32]:
    """Of each filter: how often its rarest word is asked for, of all rows."""
    share = np.zeros(int(posted.owner.max(initial=-1)) + 1, np.float32)
    sizes = np.diff(posted.token_start)
    some = sizes > 0
    counts = np.bincount(posted.tokens, minlength=1)[posted.tokens]
    rarest = np.full(len(sizes), len(sizes), np.int64)
    if some.any():
        rarest[some] = np.minimum.reduceat(counts, posted.token_start[:-1][some])
    np.maximum.at(share, posted.owner, (rarest / max(len(sizes), 1)).astype(np.float32))
    return share


def _equal_sets(
    items: NDArray[np.uint32],
    start: NDArray[np.int64],
    some: NDArray[np.int64],
    others: NDArray[np.int64],
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


def _walked(
    checks: NDArray[np.void],
    chosen: Plan,
    table: TableArrays,
    alone: NDArray[np.bool_],
) -> tuple[ShapeArrays, NDArray[np.uint32], NDArray[np.uint8], RegionArrays]:
    """The filters found by walking, marked so; and the shapes, in the order of the walk.

    alone : of each filter, whether it has no other check.
    """
    found = chosen.found_by(Path.REGION)
    own = checks[chosen.check[found]]
    checks["flags"][chosen.check[found]] |= checking.FOUND
    keys = own["column"].astype(np.int64) * 2 + alone[found]
    kinds, tree = np.unique(keys, return_inverse=True)
    full = np.where(own["flags"] & checking.NEGATED, 0xFF, 0).astype(np.uint8)
    laid = regions.build(
        regions.Regions(
            tree.astype(np.int64),
            np.where(alone[found], table.filter_subscription[found], found).astype(np.uint32),
            own["item"],
            own["areas_mask"] ^ full,
            own["lines_mask"] ^ full,
        ),
        table.shapes.arrays,
        len(kinds),
    )
    # Neighbours in the tree are looked at together, so their shapes shall lie together.
    used = np.concatenate((laid.entries["shape"], laid.large["shape"])).astype(np.int64)
    others = np.ones(len(table.shapes), bool)
    others[used] = False
    order = np.concatenate((used, np.flatnonzero(others)))
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order))
    geometric = np.isin(checks["kind"], (checking.RELATE, checking.NEAR))
    checks["item"][geometric] = place[checks["item"][geometric]]
    shapes = Shapes.gather([(table.shapes.arrays, order)]).arrays
    regions.point_to(laid, place, shapes)
    return (
        shapes,
        (kinds >> 1).astype(np.uint32),
        (kinds & 1).astype(np.uint8),
        laid,
    )


def _postings(
    checks: NDArray[np.void],
    chosen: Plan,
    set_items: NDArray[np.uint32],
    set_start: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    """The values under which filters are posted, and the filters under each."""
    filters = chosen.found_by(Path.EQUALITY)
    own = checks[chosen.check[filters]]
    member = own["kind"] == checking.MEMBER
    sets = own["item"][member].astype(np.int64)
    sizes = set_start[sets + 1] - set_start[sets]
    items = set_items[ranges(set_start[sets], sizes)].astype(np.uint64)
    strings = _keys(matching.STRINGS, np.repeat(own["column"][member], sizes), items)
    boolean = own["kind"] == checking.BOOLEAN
    truth = own["flags"][boolean] & checking.ALLOWS_TRUE > 0
    absent = own["kind"] == checking.NULL
    keys = np.concatenate(
        (
            strings,
            _keys(matching.TRUTHS, own["column"][boolean], truth),
            _keys(matching.ABSENCES, own["column"][absent], np.ones(absent.sum())),
        )
    )
    owners = np.concatenate((np.repeat(filters[member], sizes), filters[boolean], filters[absent]))
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    start = np.append(first, len(order)).astype(np.uint32)
    return distinct, start, owners[order].astype(np.uint32)


def _keys(space: int, columns: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint64]:
    """See `matching.post_key`."""
    high = np.uint64(space << 62) | columns.astype(np.uint64) << np.uint64(32)
    keys: NDArray[np.uint64] = high | values.astype(np.uint64)
    return keys


def flat_arrays(value: object, prefix: str = "") -> list[tuple[str, NDArray[np.generic]]]:
    """Every array of nested named tuples, with a dotted name."""
    if isinstance(value, np.ndarray):
        return [(prefix, value)]
    found: list[tuple[str, NDArray[np.generic]]] = []
    for name in value._fields:  # type: ignore[attr-defined]
        found += flat_arrays(getattr(value, name), f"{prefix}.{name}" if prefix else name)
    return found
