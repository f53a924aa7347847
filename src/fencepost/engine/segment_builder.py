"""`build`: makes the arrays of a segment from a table of filters.

`merge_to_table` makes one table of several segments, without their deleted subscriptions.

The planner chooses one access path for each filter:

- *words*: a check needs words in a list or text. The posting also holds the box that the event
  must meet, a string that it must have, and the bounds of a number;
- *signature*: checks need strings in several columns, or strings and a box. The filter is posted
  under all of these strings at once;
- *region*: a check needs a relation to an area, in a packed Hilbert R-tree of its geometry column;
- *box*: a check needs contact with, or nearness to, another geometry, in such a tree of boxes;
- *equality*: a check needs one of a few strings, a truth value, or that an attribute is missing;
- *interval*: a check needs a number, or the beginning or end of a string, between two bounds, in a
  tree of boxes without height;
- *scan*: any other filter.

`build` is a pipeline. Each pass reads the results of earlier passes and returns its own arrays::

    number_words         filters whose checks refer to words by number; the vocabulary
    plan                 a path for each filter
    post_by_keywords     posting rows of filters that need words; the plan, changed for these
    post_by_signatures   posting rows of other filters that need strings; the plan, changed again
    _build_regions       the region index; the final order of shapes
    _build_trees, _build_intervals, _build_equality_postings
                         the other paths, in any order
    keyword_postings.build
                         the postings, from all posting rows
    _finish_checks       checks in their final order, with marks and the final rows of shapes

Checks that an access path decides are collected on the way and marked in the last pass. Until then,
a check keeps its row of the table and refers to the table's shapes. Once built, a segment changes
only in `deleted_version`, and in the number of deleted rows in `state`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.access_paths import Plan, plan
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.event_sampler import EMPTY_SAMPLE, EventSample
from fencepost.engine.filter_table import FilterTable, NumberedFilters, TableArrays
from fencepost.engine.postings import keyword_postings
from fencepost.engine.postings.keyword_postings import PostingRows, ranges
from fencepost.engine.postings.posting_passes import (
    add_number_bounds,
    post_by_keywords,
    post_by_signatures,
)
from fencepost.engine.regions import region_index
from fencepost.engine.selectivity import AccessPath
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.index import rtree
from fencepost.kernels.index.rtree import RTreeArrays
from fencepost.kernels.match import check_evaluation, segment_search
from fencepost.kernels.match.check_evaluation import ITEM_OF, SHAPE_ITEM, STRING_ITEM
from fencepost.kernels.match.region_walk import RegionArrays
from fencepost.kernels.match.segment_search import SegmentArrays
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.text import vocabulary

NEVER_EXPIRES = np.iinfo(np.int64).max
SAMPLED_EVENTS = -1  # the last item of `state`, behind those that kernels read
NOT_DELETED = np.iinfo(np.uint32).max  # a version that is never reached


def build(
    table: TableArrays,
    expires: NDArray[np.int64],
    report_step: keyword_postings.StepReporter = keyword_postings.ignore_step,
    sample: EventSample = EMPTY_SAMPLE,
) -> SegmentArrays:
    """Build the arrays of a segment, planned for events like those of the sample.

    expires : when each subscription expires. report_step : called with the name of each step.
    """
    numbered, words, word_of_string = number_words(table)
    first_plan = plan(
        numbered.checks,
        numbered.owner,
        numbered.filter_count,
        numbered.shapes,
        numbered.set_items,
        numbered.set_start,
        words,
        sample,
    )
    by_keywords = post_by_keywords(numbered, first_plan)
    by_signatures = post_by_signatures(numbered, by_keywords.plan, len(words.start) - 1)
    final_plan = by_signatures.plan
    regions = _build_regions(numbered, final_plan, table)
    tree_column, trees = _build_trees(numbered.checks, final_plan)
    interval_source, interval_column, intervals = _build_intervals(numbered.checks, final_plan)
    equality_key, equality_start, equality_filter = _build_equality_postings(numbered, final_plan)
    scan = final_plan.filters_on(AccessPath.SCAN)
    scan_column = np.full(len(scan), -1, np.int32)
    direct_rows = table.postings._replace(
        tokens=word_of_string[table.postings.tokens].astype(np.int64)
    )
    filter_rows = [
        add_number_bounds(rows, numbered, final_plan)
        for rows in (by_keywords.rows, by_signatures.rows)
    ]
    word_count = len(words.start) + len(by_signatures.arrays.words.start) - 2
    postings = keyword_postings.build(
        keyword_postings.concatenate([direct_rows, *filter_rows]), word_count, report_step
    )
    decided = np.concatenate((by_keywords.decided, by_signatures.decided, regions.decided))
    max_chains = max(table.shapes.max_chains, 1)
    are_unique = _are_matches_unique(table, final_plan)
    return SegmentArrays(
        checks=_finish_checks(numbered, decided, regions.new_shape_rows),
        filter_check=table.filter_check.astype(np.uint32),
        filter_subscription=table.filter_subscription.astype(np.uint32),
        deleted_version=np.full(len(expires), NOT_DELETED, np.uint32),
        created_version=np.empty(0, np.uint32),
        expires=expires.astype(np.int64),
        set_start=table.set_start.astype(np.uint32),
        set_items=numbered.set_items.astype(np.uint32),
        equality_key=equality_key,
        equality_start=equality_start,
        equality_filter=equality_filter,
        tree_column=tree_column,
        interval_source=interval_source,
        interval_column=interval_column,
        scan=scan.astype(np.uint32),
        scan_column=scan_column,
        scan_box=np.full((-(-len(scan) // WIDTH), 4, WIDTH), np.nan),
        scan_free=unbounded_lanes(scan_column),
        path=final_plan.path,
        selectivity=final_plan.selectivity,
        state=np.array(
            [0, expires.min(initial=NEVER_EXPIRES), max_chains, are_unique, len(sample)], np.int64
        ),
        region_column=regions.column,
        region_direct=regions.direct,
        signatures=by_signatures.arrays,
        postings=by_signatures.with_discs(postings),
        regions=regions.arrays,
        trees=trees,
        intervals=intervals,
        vocabulary=words,
        shapes=regions.shapes,
    )


@cache
def empty_segment() -> SegmentArrays:
    """Return the arrays of a segment without subscriptions."""
    return build(FilterTable(ColumnRegistry()).arrays(), np.empty(0, np.int64))


def unbounded_lanes(columns: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Return a bit mask for each block: the filters without a box.

    columns : of each filter, the geometry column that must meet its box; -1 without a box.
    """
    lanes = np.zeros((-(-len(columns) // WIDTH), WIDTH), bool)
    lanes.reshape(-1)[: len(columns)] = columns < 0
    return np.packbits(lanes, axis=1, bitorder="little").view("<u2").astype(np.uint16).reshape(-1)


def number_words(
    table: TableArrays,
) -> tuple[NumberedFilters, vocabulary.Vocabulary, NDArray[np.integer]]:
    """Number the distinct strings of a table, as words of a vocabulary.

    Returns
    -------
    numbered : NumberedFilters
        The table's filters; their checks refer to words instead of strings.
    words : Vocabulary
    word_of_string : array
        The word of each string of the table.
    """
    words, word_of_string = vocabulary.build(table.text, table.string_start)
    checks = table.checks
    textual = np.flatnonzero(ITEM_OF[checks["kind"]] == STRING_ITEM)
    if len(textual):
        checks = checks.copy()
        checks["item"][textual] = word_of_string[checks["item"][textual]]
    count = len(table.filter_subscription)
    numbered = NumberedFilters(
        checks=checks,
        owner=np.repeat(np.arange(count), np.diff(table.filter_check)),
        filter_count=count,
        set_items=_sort_sets(word_of_string[table.set_items], table.set_start),
        set_start=table.set_start,
        shapes=table.shapes.arrays,
    )
    return numbered, words, word_of_string


def _finish_checks(
    numbered: NumberedFilters, decided: NDArray[np.int64], new_shape_rows: NDArray[np.uint32]
) -> NDArray[np.void]:
    """Sort the checks of each filter by cost, and mark those that its access path decides.

    The marked checks come last.

    new_shape_rows : the final row of each shape of the table.
    """
    is_decided = np.zeros(len(numbered.checks), bool)
    is_decided[decided] = True
    key = (2 * numbered.owner + is_decided) * len(ITEM_OF) + numbered.checks["kind"]
    order = np.argsort(key, kind="stable")
    checks = numbered.checks[order]
    checks["flags"][is_decided[order]] |= check_evaluation.DECIDED
    geometric = ITEM_OF[checks["kind"]] == SHAPE_ITEM
    checks["item"][geometric] = new_shape_rows[checks["item"][geometric]]
    return checks


def _are_matches_unique(table: TableArrays, final_plan: Plan) -> bool:
    """Return whether no event can find a subscription twice."""
    paths = np.isin(
        final_plan.path,
        (AccessPath.SIGNATURE, AccessPath.EQUALITY, AccessPath.SCAN, AccessPath.REGION),
    )
    one_filter_each = np.bincount(table.filter_subscription, minlength=1).max() < 2
    return bool(one_filter_each and paths.all() and not len(table.postings.group))


def _sort_sets(items: NDArray[np.uint32], start: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Sort the items of each set."""
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return items[np.lexsort((items, owner))]


def _build_trees(
    checks: NDArray[np.void], final_plan: Plan
) -> tuple[NDArray[np.uint32], RTreeArrays]:
    """Return the geometry column of each tree, and the trees of boxes that events must meet."""
    filters = final_plan.filters_on(AccessPath.BOX)
    spatial = final_plan.check[filters]
    columns, tree = np.unique(checks["column"][spatial], return_inverse=True)
    split, beyond = final_plan.bounding_boxes.wrapped_boxes_of(spatial)
    boxes = np.concatenate((final_plan.bounding_boxes.boxes[spatial], beyond))
    tree = np.concatenate((tree, tree[split])).astype(np.int64)
    values = np.concatenate((filters, filters[split])).astype(np.uint32)
    trees = rtree.build(boxes, tree, values, len(columns))
    return columns.astype(np.uint32), trees


def _build_intervals(
    checks: NDArray[np.void], final_plan: Plan
) -> tuple[NDArray[np.uint8], NDArray[np.uint32], RTreeArrays]:
    """Return the source and the column of each tree of intervals, and the trees."""
    filters = final_plan.filters_on(AccessPath.INTERVAL)
    bounded = final_plan.check[filters]
    codes, tree = np.unique(
        final_plan.source[bounded] << 32 | checks["column"][bounded].astype(np.int64),
        return_inverse=True,
    )
    low, high = final_plan.intervals[bounded].T
    level = np.zeros(len(bounded))
    trees = rtree.build(
        np.column_stack((low, level, high, level)),
        tree.astype(np.int64),
        filters.astype(np.uint32),
        len(codes),
    )
    return (codes >> 32).astype(np.uint8), (codes & 0xFFFFFFFF).astype(np.uint32), trees


class _Regions(NamedTuple):
    """The region index of a segment, and its shapes in their final order."""

    arrays: RegionArrays
    column: NDArray[np.uint32]  # of each tree
    direct: NDArray[np.uint8]  # of each tree: 1 if owners are subscriptions, 0 if filters
    shapes: ShapeArrays  # all shapes of the segment, those of regions first, in tree order
    new_shape_rows: NDArray[np.uint32]  # of each shape of the table: its row in `shapes`
    decided: NDArray[np.int64]  # the checks that the index decides


def _build_regions(numbered: NumberedFilters, final_plan: Plan, table: TableArrays) -> _Regions:
    filters = final_plan.filters_on(AccessPath.REGION)
    decided = final_plan.check[filters]
    checks = numbered.checks[decided]
    direct = (np.bincount(numbered.owner, minlength=numbered.filter_count) == 1)[filters]
    codes, tree = np.unique(checks["column"].astype(np.int64) * 2 + direct, return_inverse=True)
    inversion = np.where(checks["flags"] & check_evaluation.NEGATED, 0xFF, 0).astype(np.uint8)
    regions = region_index.build(
        region_index.RegionRows(
            tree.astype(np.int64),
            np.where(direct, table.filter_subscription[filters], filters).astype(np.uint32),
            checks["item"],
            checks["areas_mask"] ^ inversion,
            checks["lines_mask"] ^ inversion,
        ),
        numbered.shapes,
        len(codes),
    )
    # An event visits neighbours in the tree together, so their shapes lie together.
    used = np.concatenate((regions.entries["shape"], regions.large["shape"])).astype(np.int64)
    is_unused = np.ones(len(table.shapes), bool)
    is_unused[used] = False
    order = np.concatenate((used, np.flatnonzero(is_unused)))
    new_rows = np.empty(len(order), np.uint32)
    new_rows[order] = np.arange(len(order))
    shapes = Shapes.gather([(numbered.shapes, order)]).arrays
    return _Regions(
        arrays=region_index.with_reordered_shapes(regions, new_rows, shapes),
        column=(codes >> 1).astype(np.uint32),
        direct=(codes & 1).astype(np.uint8),
        shapes=shapes,
        new_shape_rows=new_rows,
        decided=decided,
    )


def _build_equality_postings(
    numbered: NumberedFilters, final_plan: Plan
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the keys of values, where the filters of each key begin, and the filters."""
    filters = final_plan.filters_on(AccessPath.EQUALITY)
    checks = numbered.checks[final_plan.check[filters]]
    set_start = numbered.set_start
    member = checks["kind"] == check_evaluation.MEMBER
    sets = checks["item"][member].astype(np.int64)
    sizes = set_start[sets + 1] - set_start[sets]
    items = numbered.set_items[ranges(set_start[sets], sizes)].astype(np.uint64)
    strings = _equality_keys(
        segment_search.STRINGS, np.repeat(checks["column"][member], sizes), items
    )
    boolean = checks["kind"] == check_evaluation.BOOLEAN
    truth = checks["flags"][boolean] & check_evaluation.ALLOWS_TRUE > 0
    absent = checks["kind"] == check_evaluation.NULL
    keys = np.concatenate(
        (
            strings,
            _equality_keys(segment_search.TRUTHS, checks["column"][boolean], truth),
            _equality_keys(
                segment_search.ABSENCES, checks["column"][absent], np.ones(absent.sum())
            ),
        )
    )
    owners = np.concatenate((np.repeat(filters[member], sizes), filters[boolean], filters[absent]))
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    start = np.append(first, len(order)).astype(np.uint32)
    return distinct, start, owners[order].astype(np.uint32)


def _equality_keys(space: int, columns: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the keys of values: see `segment_search.equality_key`."""
    high = np.uint64(space << 62) | columns.astype(np.uint64) << np.uint64(32)
    keys: NDArray[np.uint64] = high | values.astype(np.uint64)
    return keys


def flat_arrays(value: object, prefix: str = "") -> list[tuple[str, NDArray[np.generic]]]:
    """Return all arrays of nested named tuples, each with its dotted name."""
    if isinstance(value, np.ndarray):
        return [(prefix, value)]
    arrays: list[tuple[str, NDArray[np.generic]]] = []
    for name in value._fields:  # type: ignore[attr-defined]
        arrays += flat_arrays(getattr(value, name), f"{prefix}.{name}" if prefix else name)
    return arrays


def merge_to_table(parts: Sequence[tuple[SegmentArrays, NDArray[np.int64]]]) -> TableArrays:
    """Make one table of some subscriptions of each segment; all are numbered in order."""
    subscriptions = checks = shapes = sets = items = strings = text = 0
    out_checks, out_ends, out_owner, out_sets, out_items, out_text, out_strings = (
        [], [np.zeros(1, np.int64)], [], [np.zeros(1, np.int64)], [], [], [np.zeros(1, np.int64)],
    )  # fmt: skip
    geometries: list[tuple[ShapeArrays, NDArray[np.int64]]] = []
    postings: list[PostingRows] = []
    for kept in [_KeptRows(arrays, rows) for arrays, rows in parts]:
        rows = kept.checks
        rows["item"][kept.geometric] += shapes
        rows["item"][kept.with_sets] += sets
        rows["item"][kept.textual] += strings
        out_checks.append(rows)
        out_ends.append(kept.filter_ends + checks)
        out_owner.append(kept.filter_subscription + subscriptions)
        out_sets.append(kept.set_ends + items)
        out_items.append(kept.set_items + strings)
        out_text.append(kept.text)
        out_strings.append(kept.string_ends + text)
        postings.append(
            kept.postings._replace(
                owner=kept.postings.owner + subscriptions, tokens=kept.postings.tokens + strings
            )
        )
        geometries.append((kept.arrays.shapes, kept.shape_rows))
        subscriptions += kept.subscriptions
        checks += len(rows)
        shapes += len(kept.shape_rows)
        sets += len(kept.set_ends)
        items += len(kept.set_items)
        strings += len(kept.string_ends)
        text += len(kept.text)
    return TableArrays(
        np.concatenate(out_checks),
        np.concatenate(out_ends),
        np.concatenate(out_owner),
        np.concatenate(out_sets),
        np.concatenate(out_items),
        np.concatenate(out_text),
        np.concatenate(out_strings),
        Shapes.gather(geometries),
        keyword_postings.concatenate(postings),
    )


class _KeptRows:
    """The filters of some subscriptions of a segment, with all numbers from 0."""

    def __init__(self, arrays: SegmentArrays, rows: NDArray[np.int64]) -> None:
        self.arrays = arrays
        self.subscriptions = len(rows)
        new_row = np.full(len(arrays.deleted_version), -1, np.int64)
        new_row[rows] = np.arange(len(rows))
        owner = new_row[arrays.filter_subscription]
        filters = np.flatnonzero(owner >= 0)
        # Filters of a subscription stay together and in order; so do the checks of a filter.
        filters = filters[np.argsort(owner[filters], kind="stable")]
        self.filter_subscription = owner[filters]
        ends = arrays.filter_check.astype(np.int64)
        sizes = ends[filters + 1] - ends[filters]
        self.filter_ends = np.cumsum(sizes)
        self.checks = arrays.checks[ranges(ends[filters], sizes)].copy()
        self.checks["flags"] &= 0xFF & ~check_evaluation.DECIDED
        item_kind = check_evaluation.ITEM_OF[self.checks["kind"]]
        self.geometric = item_kind == check_evaluation.SHAPE_ITEM
        self.textual = item_kind == check_evaluation.STRING_ITEM
        set_counts = np.where(
            item_kind == check_evaluation.TWO_SETS_ITEM, 2, item_kind == check_evaluation.SET_ITEM
        )
        self.with_sets = set_counts > 0
        self.shape_rows = self.checks["item"][self.geometric].astype(np.int64)
        self.checks["item"][self.geometric] = np.arange(len(self.shape_rows))
        self._keep_postings(new_row)
        self._keep_sets(set_counts[self.with_sets])
        self._keep_strings()

    def _keep_postings(self, new_row: NDArray[np.int64]) -> None:
        words = len(self.arrays.postings.token_lists) - 2
        self.postings = keyword_postings.renumber_owners(
            keyword_postings.direct_rows_of(self.arrays.postings, words), new_row
        )

    def _keep_sets(self, set_counts: NDArray[np.int64]) -> None:
        """Keep the sets of the checks that have any; `set_counts` is the number of each."""
        first = self.checks["item"][self.with_sets].astype(np.int64)
        self.checks["item"][self.with_sets] = np.cumsum(set_counts) - set_counts
        sets = ranges(first, set_counts)
        start = self.arrays.set_start.astype(np.int64)
        sizes = start[sets + 1] - start[sets]
        self.set_ends = np.cumsum(sizes)
        self.set_items = self.arrays.set_items[ranges(start[sets], sizes)].astype(np.int64)

    def _keep_strings(self) -> None:
        items = self.checks["item"][self.textual].astype(np.int64)
        parts = (self.set_items, items, self.postings.tokens)
        used, number = np.unique(np.concatenate(parts), return_inverse=True)
        self.set_items, items, tokens = np.split(number, np.cumsum([len(p) for p in parts[:-1]]))
        self.checks["item"][self.textual] = items
        self.postings = self.postings._replace(tokens=tokens)
        start = self.arrays.vocabulary.start.astype(np.int64)
        sizes = start[used + 1] - start[used]
        self.string_ends = np.cumsum(sizes)
        self.text = self.arrays.vocabulary.bytes[ranges(start[used], sizes)]
