"""The passes of building a segment that choose what to post, and under which words and strings.

`post_by_keywords` posts filters under keywords. A posting also holds the bounding box of the
filter, a string that it needs in another column, and the bounds of a number.

`post_by_signatures` posts filters that need strings in several columns, or a string and a box.
Few events find such a filter under all of its strings at once. An attribute may be one of several
strings, so there is a posting for each combination of them, with the filter's box.
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

_ACCEPTS = (ITEMS | TEXT) + 1  # `accepts` of a group is less than this
_MAX_STRING_SELECTIVITY = 0.5  # of a check for a string that is combined with words
_MAX_STRINGS = 8  # in such a check; a filter has a posting for each string
_MAX_STRING_COLUMNS = 4
_FILTERS_PER_STRING = 8  # one in this many filters must need a string of a column
_MAX_POSTINGS = 16  # of a filter
_MAX_SIGNATURES = 64  # of a segment; an event looks up each of them
_COLUMN_BITS = 21
_CONTACT_COST_FACTOR = 2.0  # of contact with a rectangle, compared with the region index


class KeywordPostings(NamedTuple):
    """The filters that are posted under words."""

    rows: PostingRows
    plan: Plan  # in which these filters have the path WORDS
    decided: Ints  # the checks that the postings decide


def post_by_keywords(numbered: NumberedFilters, plan: Plan) -> KeywordPostings:
    """Post the filters that need words, each under the words of one check."""
    checks, set_start = numbered.checks, numbered.set_start
    keyword_check = _keyword_checks(numbered)
    filters = np.flatnonzero(keyword_check >= 0)
    selected = checks[keyword_check[filters]]
    # A list that has all words of a set may have others, too, so EQUAL is not decided.
    decided = keyword_check[filters[selected["function"] != check_evaluation.EQUAL]]
    spatial = plan.box_check[filters]
    boxes = np.where((spatial >= 0)[:, None], plan.bounding_boxes.boxes[spatial], EVERYWHERE)
    geometry = np.where(spatial >= 0, checks["column"][spatial].astype(np.int64), -1)
    item_set = selected["item"].astype(np.int64)
    # Where items and their words are the same set, one posting serves for lists and texts.
    same = _are_sets_equal(numbered.set_items, set_start, item_set, item_set + 1)
    in_texts = ~same & (selected["flags"] & check_evaluation.TOKENS > 0)
    parts = []
    for is_text, kept in ((0, np.arange(len(filters))), (1, np.flatnonzero(in_texts))):
        sets = item_set[kept] + is_text
        sizes = set_start[sets + 1] - set_start[sets]
        # A check that needs any of its words has a row for each word.
        any_of = (selected["function"][kept] == check_evaluation.OVERLAPS) & (sizes > 0)
        times = np.where(any_of, sizes, 1)
        accepts = np.where(same[kept], ITEMS | TEXT, TEXT if is_text else ITEMS)
        shape = (
            int(selected["column"].max(initial=0)) + 1,
            int(geometry.max(initial=0)) + 2,
            _ACCEPTS,
        )
        codes = np.ravel_multi_index((selected["column"][kept], geometry[kept] + 1, accepts), shape)
        distinct, group = np.unique(codes, return_inverse=True)
        parts.append(
            PostingRows(
                groups=tuple(
                    PostingGroup(int(a), int(b) - 1, int(c), False)
                    for a, b, c in zip(*np.unravel_index(distinct, shape), strict=True)
                ),
                group=np.repeat(group, times),
                owner=np.repeat(filters[kept], times),
                boxes=np.repeat(boxes[kept], times, axis=0),
                token_start=np.cumsum(np.append(0, np.repeat(np.where(any_of, 1, sizes), times))),
                tokens=numbered.set_items[ranges(set_start[sets], sizes)].astype(np.int64),
            )
        )
    rows = _repeat_for_wrapped_boxes(keyword_postings.concatenate(parts), plan)
    selectivity = _word_selectivity(rows)[filters]
    string_check = _string_checks(numbered, filters, plan.check_selectivity)
    selectivity *= np.append(plan.check_selectivity, 1.0)[string_check[filters]].astype(np.float32)
    return KeywordPostings(
        _repeat_for_strings(rows, numbered, string_check),
        plan.reassign(AccessPath.WORDS, filters, selectivity),
        np.concatenate((decided, string_check[string_check >= 0])),
    )


def add_number_bounds(rows: PostingRows, numbered: NumberedFilters, plan: Plan) -> PostingRows:
    """Add to each row the bounds of a number that an event must have.

    A group has one number column: the column whose bounds exclude most events.
    """
    checks, owner = numbered.checks, numbered.owner
    bounded = np.flatnonzero(plan.source == segment_search.NUMBERS)
    groups = list(rows.groups)
    bounds = np.full((len(rows.group), 2), np.nan)
    bounds_of_filter = np.full((len(plan.path), 2), np.nan)
    is_in_group = np.zeros(len(plan.path), bool)
    for number in range(len(groups)):
        members = np.flatnonzero(rows.group == number)
        is_in_group[rows.owner[members]] = True
        candidates = bounded[is_in_group[owner[bounded]]]
        if len(candidates):
            columns, column_index = np.unique(checks["column"][candidates], return_inverse=True)
            excluded = 1.0 - plan.check_selectivity[candidates]
            best = np.argmax(np.bincount(column_index, excluded))
            used = candidates[column_index == best]
            bounds_of_filter[owner[used]] = plan.intervals[used]
            bounds[members] = bounds_of_filter[rows.owner[members]]
            bounds_of_filter[owner[used]] = np.nan
            groups[number] = groups[number]._replace(number_column=int(columns[best]))
        is_in_group[rows.owner[members]] = False
    if np.isnan(bounds).all():
        return rows
    return rows._replace(groups=tuple(groups), bounds=bounds)


def _keyword_checks(numbered: NumberedFilters) -> Ints:
    """Return the check of each filter under whose words it is posted, or -1.

    A check that needs all of its words is better than a check that needs any of them. Of the former
    the check with the most words is best, of the latter the check with the fewest.
    """
    checks = numbered.checks
    function = checks["function"]
    usable = np.flatnonzero(
        (checks["kind"] == check_evaluation.LIST)
        & ((checks["flags"] & check_evaluation.NEGATED) == 0)
        & (function != check_evaluation.CONTAINED_BY)
    )
    sizes = np.diff(numbered.set_start)[checks["item"][usable]]
    usable, sizes = usable[sizes > 0], sizes[sizes > 0]
    all_of = function[usable] != check_evaluation.OVERLAPS
    best = np.full(numbered.filter_count, -1, np.int64)
    order = np.lexsort((np.where(all_of, sizes, -sizes), all_of))
    best[numbered.owner[usable[order]]] = usable[order]  # the last one written stays
    return best


def _string_checks(
    numbered: NumberedFilters, filters: Ints, selectivity: NDArray[np.float64]
) -> Ints:
    """Return the check of each filter whose strings are combined with its words, or -1.

    An event looks up its words once more for each string column, so the columns are few.
    """
    checks, owner = numbered.checks, numbered.owner
    has_words = np.zeros(int(owner.max(initial=-1)) + 1, bool)
    has_words[filters] = True
    needs_string = (checks["kind"] == check_evaluation.MEMBER) & (
        (checks["flags"] & check_evaluation.NEGATED) == 0
    )
    candidates = np.flatnonzero(
        needs_string & has_words[owner] & (selectivity <= _MAX_STRING_SELECTIVITY)
    )
    sizes = np.diff(numbered.set_start)[checks["item"][candidates]]
    candidates = candidates[(sizes > 0) & (sizes <= _MAX_STRINGS)]
    columns, column_index, counts = np.unique(
        checks["column"][candidates], return_inverse=True, return_counts=True
    )
    most_frequent = np.argsort(-counts, kind="stable")[:_MAX_STRING_COLUMNS]
    pays = np.zeros(len(columns), bool)
    pays[most_frequent] = counts[most_frequent] * _FILTERS_PER_STRING >= len(filters)
    candidates = candidates[pays[column_index]]
    candidates = candidates[np.argsort(-selectivity[candidates], kind="stable")]
    best = np.full(len(has_words), -1, np.int64)
    best[owner[candidates]] = candidates  # the last one written stays: the most selective
    return best


def _repeat_for_strings(
    rows: PostingRows, numbered: NumberedFilters, string_check: Ints
) -> PostingRows:
    """Repeat the rows of a filter with a string check for each string of the check."""
    check = string_check[rows.owner]
    has_string = check >= 0
    if not has_string.any():
        return rows
    checks, set_start = numbered.checks, numbered.set_start
    sets = np.where(has_string, checks["item"][check].astype(np.int64), 0)
    sizes = np.where(has_string, set_start[sets + 1] - set_start[sets], 1)
    repeated = np.repeat(np.arange(len(check)), sizes)
    strings = np.full(len(repeated), -1, np.int64)
    strings[has_string[repeated]] = numbered.set_items[
        ranges(set_start[sets[has_string]], sizes[has_string])
    ]
    column = np.where(has_string, checks["column"][check].astype(np.int64), -1)
    codes, group = np.unique(rows.group << 32 | (column + 1), return_inverse=True)
    groups = tuple(
        rows.groups[code >> 32]._replace(string_column=(code & 0xFFFFFFFF) - 1)
        for code in codes.tolist()
    )
    taken = keyword_postings.take(rows, repeated)
    return taken._replace(groups=groups, group=group[repeated], strings=strings)


def _repeat_for_wrapped_boxes(rows: PostingRows, plan: Plan) -> PostingRows:
    """Append the rows with a second box, beyond the antimeridian, once more with that box."""
    split, beyond = plan.bounding_boxes.wrapped_boxes_of(plan.box_check[rows.owner])
    return keyword_postings.concatenate(
        [rows, keyword_postings.take(rows, split)._replace(boxes=beyond)]
    )


def _word_selectivity(rows: PostingRows) -> NDArray[np.float32]:
    """Return for each filter the fraction of rows that have its rarest word."""
    selectivity = np.zeros(int(rows.owner.max(initial=-1)) + 1, np.float32)
    sizes = np.diff(rows.token_start)
    has_words = sizes > 0
    counts = np.bincount(rows.tokens, minlength=1)[rows.tokens]
    rarest = np.full(len(sizes), len(sizes), np.int64)
    if has_words.any():
        rarest[has_words] = np.minimum.reduceat(counts, rows.token_start[:-1][has_words])
    np.maximum.at(selectivity, rows.owner, (rarest / max(len(sizes), 1)).astype(np.float32))
    return selectivity


def _are_sets_equal(
    items: NDArray[np.uint32], start: Ints, left: Ints, right: Ints
) -> NDArray[np.bool_]:
    """Return for each pair of sets whether they are equal; the items of a set are sorted."""
    sizes = start[left + 1] - start[left]
    same: NDArray[np.bool_] = sizes == start[right + 1] - start[right]
    pair = np.repeat(np.flatnonzero(same), sizes[same])
    differ = (
        items[ranges(start[left[same]], sizes[same])]
        != items[ranges(start[right[same]], sizes[same])]
    )
    same[pair[differ]] = False
    return same


class SignaturePostings(NamedTuple):
    """The filters that are posted under several strings at once."""

    arrays: SignatureArrays
    rows: PostingRows
    plan: Plan  # in which these filters have the path SIGNATURE
    decided: Ints  # the checks that the postings decide
    disc_filters: Ints  # the filters that a distance decides, ascending
    discs: NDArray[np.float64]  # of each: x, y and two squared distances, as in `PostingArrays`

    def with_discs(self, postings: PostingArrays) -> PostingArrays:
        """Return the postings with discs instead of boxes in entries that a distance decides."""
        groups = np.flatnonzero(postings.groups["decides"] == DISC)
        if not len(groups):
            return postings
        exact = postings.exact.copy()
        for group in groups:
            lists = postings.lists[postings.lists["group"] == group]  # their entries are neighbours
            entries = slice(lists["first"].min(), (lists["first"] + lists["count"]).max())
            row = np.searchsorted(self.disc_filters, postings.owner[entries])
            exact[entries] = self.discs[row]
        return postings._replace(exact=exact)


class _SignedFilters(NamedTuple):
    """Filters to be posted under signatures, and the sets of strings that each needs."""

    filters: Ints
    signature: Ints  # of each filter: the number of its set of columns
    columns: Ints  # (filters, MAX_COLUMNS), ascending; -1 for none
    sets: Ints  # of these columns


def post_by_signatures(numbered: NumberedFilters, plan: Plan, word_count: int) -> SignaturePostings:
    """Post filters under signatures where that costs less than their access path.

    word_count : number of words before the signature keys.
    """
    checks, owner, set_start = numbered.checks, numbered.owner, numbered.set_start
    members = _string_members(checks, owner, set_start, plan)
    member_count = np.bincount(owner[members], minlength=len(plan.path))
    has_box = plan.box_check >= 0
    selectivity = np.where(has_box, np.append(plan.check_selectivity, 1.0)[plan.box_check], 1.0)
    np.multiply.at(selectivity, owner[members], plan.check_selectivity[members])
    kind = np.append(plan.bounding_boxes.kinds, BOX)[
        plan.box_check
    ]  # -1 picks the kind appended here
    # Postings decide a filter whose checks are all among its strings and its box.
    is_complete = np.bincount(owner, minlength=len(plan.path)) == member_count + has_box
    decides = np.where(is_complete & ((kind == BOX) | (kind == DISC)), kind, NOTHING)
    decides = decides.astype(np.int64)
    # The region index would decide a relation to an area; here, a box does so for most events.
    has_area = has_box & np.isin(kind, WITH_AREA)
    cost_factor = np.where(
        has_area, np.where(decides == NOTHING, GEOMETRY_COST_FACTOR, _CONTACT_COST_FACTOR), 1.0
    )
    is_cheaper = selectivity.astype(np.float32) * cost_factor <= plan.costs()
    is_cheaper &= (member_count > 0) & (member_count + has_box > 1)
    members = members[is_cheaper[owner[members]]]
    members, signed, signature_start, signature_columns = _choose_signatures(checks, owner, members)
    spatial = plan.box_check[signed.filters]
    # A box that crosses the antimeridian becomes the hull of its two parts. Filters without a box
    # have the check -1, which picks the last row.
    hulls = np.append(plan.bounding_boxes.hulls(), [EVERYWHERE], axis=0)
    boxes = hulls[spatial]
    geometry = np.where(spatial >= 0, checks["column"][spatial].astype(np.int64), -1)
    rows, keys = _signature_keys(signed, numbered.set_items, set_start)
    start = np.arange(len(keys) + 1) * keys.dtype.itemsize * KEY_NUMBERS
    key_words, ids = vocabulary.build(keys.reshape(-1).view(np.uint8), start)
    codes = geometry * 4 + decides[signed.filters]
    distinct, group = np.unique(codes, return_inverse=True)
    groups = tuple(PostingGroup(SIGNATURES, k >> 2, 0, False, k & 3) for k in distinct.tolist())
    by_distance = decides[signed.filters] == DISC
    return SignaturePostings(
        arrays=SignatureArrays(start=signature_start, columns=signature_columns, words=key_words),
        rows=PostingRows(
            groups=groups,
            group=group[rows],
            owner=signed.filters[rows],
            boxes=boxes[rows],
            token_start=np.arange(len(rows) + 1),
            tokens=word_count + ids.astype(np.int64),
        ),
        plan=plan.reassign(
            AccessPath.SIGNATURE, signed.filters, selectivity[signed.filters].astype(np.float32)
        ),
        decided=members,
        disc_filters=signed.filters[by_distance],
        discs=_discs_of(checks[spatial[by_distance]], numbered.shapes),
    )


def _string_members(checks: NDArray[np.void], owner: Ints, set_start: Ints, plan: Plan) -> Ints:
    """Return checks that need one of few strings: of each filter, the most selective ones.

    A filter has at most one check a column, `MAX_COLUMNS` columns and `_MAX_POSTINGS` combinations
    of strings.
    """
    needs_string = (checks["kind"] == check_evaluation.MEMBER) & (
        (checks["flags"] & check_evaluation.NEGATED) == 0
    )
    members = np.flatnonzero(needs_string & (plan.path[owner] != AccessPath.WORDS))
    sizes = np.diff(set_start)[checks["item"][members]]
    members = members[(sizes > 0) & (sizes <= _MAX_POSTINGS)]
    members = members[np.lexsort((plan.check_selectivity[members], owner[members]))]
    columns = owner[members] << _COLUMN_BITS | checks["column"][members].astype(np.int64)
    members = members[np.sort(np.unique(columns, return_index=True)[1])]  # one a column
    sizes = np.diff(set_start)[checks["item"][members]]
    filters = owner[members]
    first = np.flatnonzero(np.diff(filters, prepend=-1))
    rank = np.arange(len(members)) - np.repeat(first, np.diff(first, append=len(members)))
    postings = np.ones(len(plan.path), np.int64)
    column_count = np.zeros(len(plan.path), np.int64)
    kept = np.zeros(len(members), bool)
    for k in range(rank.max(initial=-1) + 1):
        of_rank = np.flatnonzero(rank == k)
        product = postings[filters[of_rank]] * sizes[of_rank]
        of_rank = of_rank[
            (product <= _MAX_POSTINGS) & (column_count[filters[of_rank]] < MAX_COLUMNS)
        ]
        postings[filters[of_rank]] *= sizes[of_rank]
        column_count[filters[of_rank]] += 1
        kept[of_rank] = True
    kept_members: Ints = members[kept]
    return kept_members


def _choose_signatures(
    checks: NDArray[np.void], owner: Ints, members: Ints
) -> tuple[Ints, _SignedFilters, NDArray[np.uint32], NDArray[np.uint32]]:
    """Keep the filters with the `_MAX_SIGNATURES` most frequent signatures.

    Returns
    -------
    members : array
        The checks of these filters.
    signed : _SignedFilters
    start, columns : array
        See `SignatureArrays`.
    """
    member_columns = checks["column"][members].astype(np.int64)
    members = members[np.lexsort((member_columns, owner[members]))]
    filters, first, number = np.unique(owner[members], return_index=True, return_inverse=True)
    rank = np.arange(len(members)) - first[number]
    columns = np.full((len(filters), MAX_COLUMNS), -1, np.int64)
    columns[number, rank] = checks["column"][members]
    sets = np.zeros((len(filters), MAX_COLUMNS), np.int64)
    sets[number, rank] = checks["item"][members]
    codes = np.zeros(len(filters), np.int64)
    for k in range(MAX_COLUMNS):
        codes = codes << _COLUMN_BITS | columns[:, k] + 1
    distinct, code_index, counts = np.unique(codes, return_inverse=True, return_counts=True)
    most_frequent = np.sort(np.argsort(-counts, kind="stable")[:_MAX_SIGNATURES])
    signature_of_code = np.full(len(distinct), -1, np.int64)
    signature_of_code[most_frequent] = np.arange(len(most_frequent))
    signature = signature_of_code[code_index]
    kept = signature >= 0
    shifts = _COLUMN_BITS * np.arange(MAX_COLUMNS - 1, -1, -1)
    signature_columns = (distinct[most_frequent, None] >> shifts & 2**_COLUMN_BITS - 1) - 1
    start = np.append(0, np.cumsum((signature_columns >= 0).sum(axis=1)))
    return (
        members[kept[number]],
        _SignedFilters(filters[kept], signature[kept], columns[kept], sets[kept]),
        start.astype(np.uint32),
        signature_columns[signature_columns >= 0].astype(np.uint32),
    )


def _signature_keys(
    signed: _SignedFilters, set_items: NDArray[np.uint32], set_start: Ints
) -> tuple[Ints, NDArray[np.uint32]]:
    """Return a row for each combination of the strings of a filter: its filter, and its key."""
    sizes = np.where(signed.columns >= 0, np.diff(set_start)[signed.sets], 1)
    times = sizes.prod(axis=1)
    rows = np.repeat(np.arange(len(times)), times)
    combination = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    keys = np.zeros((len(rows), KEY_NUMBERS), np.uint32)
    keys[:, 0] = signed.signature[rows]
    for k in range(MAX_COLUMNS):
        used = np.flatnonzero(signed.columns[rows, k] >= 0)
        first = set_start[signed.sets[rows[used], k]]
        keys[used, 1 + k] = set_items[first + combination[used] % sizes[rows[used], k]]
        combination //= sizes[rows, k]
    return rows, keys


def _discs_of(checks: NDArray[np.void], shapes: ShapeArrays) -> NDArray[np.float64]:
    """Return the point of each distance check, and the squares of a near and a far distance."""
    points = shapes.shapes[checks["item"]]
    return np.column_stack((points["x0"], points["y0"], *squared_bounds(checks["low"])))
