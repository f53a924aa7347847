"""Building an immutable segment of subscriptions from a table of filters.

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

`build` is a pipeline. Each pass reads what earlier ones returned and returns arrays of its own::

    number_words       filters whose checks refer to words by number; the vocabulary
    plan               a path for each filter
    post_by_keywords         rows of those that need words; the plan without them
    combine            rows of those that need several strings, of what is left; the plan again
    _regions           the walk over areas; in which order shapes lie from now on
    _trees, _intervals, _equality_postings      what is left; in any order
    postings.build        the rows of all that are posted
    _finished_checks   checks in their final order, marked, with shapes in theirs

What is decided by finding a filter is collected on the way, and marked in the last pass only: until
then a check is found at the row where the table has it, and refers to shapes as the table has them.
Of a segment only `gone` ever changes, and in `state` how many rows are deleted.

`merge` makes one table of several segments, without the subscriptions that are gone.
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
SAMPLED_EVENTS = -1  # the last of the state, after what kernels need
NOT_DELETED = np.iinfo(np.uint32).max  # a version that does not come


def build(
    table: TableArrays,
    expires: NDArray[np.int64],
    report_step: keyword_postings.StepReporter = keyword_postings.ignore_step,
    sample: EventSample = EMPTY_SAMPLE,
) -> SegmentArrays:
    """A segment of the subscriptions whose expiry times are given; `tell` hears of the steps.

    It is planned for events like those of the sample.
    """
    given, words, ids = number_words(table)
    planned = plan(
        given.checks,
        given.owner,
        given.filters,
        given.shapes,
        given.set_items,
        given.set_start,
        words,
        sample,
    )
    worded = post_by_keywords(given, planned)
    together = post_by_signatures(given, worded.plan, len(words.start) - 1)
    left = together.plan
    walk = _regions(given, left, table)
    tree_column, trees = _trees(given.checks, left)
    interval_source, interval_column, intervals = _intervals(given.checks, left)
    equality_key, equality_start, equality_filter = _equality_postings(given, left)
    scan = left.filters_on(AccessPath.SCAN)
    scan_column = np.full(len(scan), -1, np.int32)
    direct = table.postings._replace(tokens=ids[table.postings.tokens].astype(np.int64))
    asking = [add_number_bounds(rows, given, left) for rows in (worded.rows, together.rows)]
    all_words = len(words.start) + len(together.arrays.words.start) - 2
    posted = keyword_postings.build(
        keyword_postings.concatenate([direct, *asking]), all_words, report_step
    )
    decided = np.concatenate((worded.decided, together.decided, walk.decided))
    max_chains = max(table.shapes.max_chains, 1)
    once = _found_once(table, left)
    return SegmentArrays(
        checks=_finished_checks(given, decided, walk.place),
        filter_check=table.filter_check.astype(np.uint32),
        filter_subscription=table.filter_subscription.astype(np.uint32),
        deleted_version=np.full(len(expires), NOT_DELETED, np.uint32),
        created_version=np.empty(0, np.uint32),
        expires=expires.astype(np.int64),
        set_start=table.set_start.astype(np.uint32),
        set_items=given.set_items.astype(np.uint32),
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
        path=left.path,
        selectivity=left.selectivity,
        state=np.array(
            [0, expires.min(initial=NEVER_EXPIRES), max_chains, once, len(sample)], np.int64
        ),
        region_column=walk.column,
        region_direct=walk.direct,
        signatures=together.arrays,
        postings=together.with_discs(posted),
        regions=walk.walked,
        trees=trees,
        intervals=intervals,
        vocabulary=words,
        shapes=walk.shapes,
    )


@cache
def empty_segment() -> SegmentArrays:
    """A segment of no subscriptions."""
    return build(FilterTable(ColumnRegistry()).arrays(), np.empty(0, np.int64))


def unbounded_lanes(columns: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Which filters of each block ask for no box, as bits, by the columns that they ask for."""
    lanes = np.zeros((-(-len(columns) // WIDTH), WIDTH), bool)
    lanes.reshape(-1)[: len(columns)] = columns < 0
    return np.packbits(lanes, axis=1, bitorder="little").view("<u2").astype(np.uint16).reshape(-1)


def number_words(
    table: TableArrays,
) -> tuple[NumberedFilters, vocabulary.Vocabulary, NDArray[np.integer]]:
    """The filters of a table with numbers of words for strings; the words; of each string its."""
    words, ids = vocabulary.build(table.text, table.string_start)
    checks = table.checks
    textual = np.flatnonzero(ITEM_OF[checks["kind"]] == STRING_ITEM)
    if len(textual):
        checks = checks.copy()
        checks["item"][textual] = ids[checks["item"][textual]]
    count = len(table.filter_subscription)
    numbered = NumberedFilters(
        checks=checks,
        owner=np.repeat(np.arange(count), np.diff(table.filter_check)),
        filters=count,
        set_items=_sorted_sets(ids[table.set_items], table.set_start),
        set_start=table.set_start,
        shapes=table.shapes.arrays,
    )
    return numbered, words, ids


def _finished_checks(
    given: NumberedFilters, decided: NDArray[np.int64], place: NDArray[np.uint32]
) -> NDArray[np.void]:
    """The checks of each filter, the cheapest first, those that finding it decides marked and last.

    place : where each shape of the table lies now.
    """
    is_decided = np.zeros(len(given.checks), bool)
    is_decided[decided] = True
    key = (2 * given.owner + is_decided) * len(ITEM_OF) + given.checks["kind"]
    order = np.argsort(key, kind="stable")
    checks = given.checks[order]
    checks["flags"][is_decided[order]] |= check_evaluation.DECIDED
    geometric = ITEM_OF[checks["kind"]] == SHAPE_ITEM
    checks["item"][geometric] = place[checks["item"][geometric]]
    return checks


def _found_once(table: TableArrays, left: Plan) -> bool:
    """Whether no event can find a subscription twice."""
    paths = np.isin(
        left.path, (AccessPath.SIGNATURE, AccessPath.EQUALITY, AccessPath.SCAN, AccessPath.REGION)
    )
    alone = np.bincount(table.filter_subscription, minlength=1).max() < 2
    return bool(alone and paths.all() and not len(table.postings.form))


def _sorted_sets(items: NDArray[np.uint32], start: NDArray[np.int64]) -> NDArray[np.uint32]:
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return items[np.lexsort((items, owner))]


def _trees(checks: NDArray[np.void], left: Plan) -> tuple[NDArray[np.uint32], RTreeArrays]:
    """The trees of boxes that an event must meet, and the geometry column of each."""
    found = left.filters_on(AccessPath.BOX)
    own = left.check[found]
    columns, tree = np.unique(checks["column"][own], return_inverse=True)
    split, beyond = left.places.wrapped_boxes_of(own)
    boxes = np.concatenate((left.places.boxes[own], beyond))
    tree = np.concatenate((tree, tree[split])).astype(np.int64)
    filters = np.concatenate((found, found[split])).astype(np.uint32)
    trees = rtree.build(boxes, tree, filters, len(columns))
    return columns.astype(np.uint32), trees


def _intervals(
    checks: NDArray[np.void], left: Plan
) -> tuple[NDArray[np.uint8], NDArray[np.uint32], RTreeArrays]:
    """The trees of intervals; what each is of, and the column."""
    found = left.filters_on(AccessPath.INTERVAL)
    own = left.check[found]
    kinds, tree = np.unique(
        left.source[own] << 32 | checks["column"][own].astype(np.int64), return_inverse=True
    )
    low, high = left.intervals[own].T
    level = np.zeros(len(own))
    trees = rtree.build(
        np.column_stack((low, level, high, level)),
        tree.astype(np.int64),
        found.astype(np.uint32),
        len(kinds),
    )
    return (kinds >> 32).astype(np.uint8), (kinds & 0xFFFFFFFF).astype(np.uint32), trees


class _Regions(NamedTuple):
    """Filters found by the walk over areas."""

    walked: RegionArrays
    column: NDArray[np.uint32]  # of each tree
    direct: NDArray[np.uint8]
    shapes: ShapeArrays  # all of them, in the order of the walk
    place: NDArray[np.uint32]  # where each shape of the table has gone
    decided: NDArray[np.int64]


def _regions(given: NumberedFilters, left: Plan, table: TableArrays) -> _Regions:
    found = left.filters_on(AccessPath.REGION)
    decided = left.check[found]
    own = given.checks[decided]
    alone = (np.bincount(given.owner, minlength=given.filters) == 1)[found]
    kinds, tree = np.unique(own["column"].astype(np.int64) * 2 + alone, return_inverse=True)
    full = np.where(own["flags"] & check_evaluation.NEGATED, 0xFF, 0).astype(np.uint8)
    laid = region_index.build(
        region_index.RegionRows(
            tree.astype(np.int64),
            np.where(alone, table.filter_subscription[found], found).astype(np.uint32),
            own["item"],
            own["areas_mask"] ^ full,
            own["lines_mask"] ^ full,
        ),
        given.shapes,
        len(kinds),
    )
    # An event visits neighbours in the tree together, so their shapes lie together.
    used = np.concatenate((laid.entries["shape"], laid.large["shape"])).astype(np.int64)
    others = np.ones(len(table.shapes), bool)
    others[used] = False
    order = np.concatenate((used, np.flatnonzero(others)))
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order))
    shapes = Shapes.gather([(given.shapes, order)]).arrays
    return _Regions(
        walked=region_index.with_reordered_shapes(laid, place, shapes),
        column=(kinds >> 1).astype(np.uint32),
        direct=(kinds & 1).astype(np.uint8),
        shapes=shapes,
        place=place,
        decided=decided,
    )


def _equality_postings(
    given: NumberedFilters, left: Plan
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    """The values under which filters are posted, and the filters under each."""
    filters = left.filters_on(AccessPath.EQUALITY)
    own = given.checks[left.check[filters]]
    set_start = given.set_start
    member = own["kind"] == check_evaluation.MEMBER
    sets = own["item"][member].astype(np.int64)
    sizes = set_start[sets + 1] - set_start[sets]
    items = given.set_items[ranges(set_start[sets], sizes)].astype(np.uint64)
    strings = _keys(segment_search.STRINGS, np.repeat(own["column"][member], sizes), items)
    boolean = own["kind"] == check_evaluation.BOOLEAN
    truth = own["flags"][boolean] & check_evaluation.ALLOWS_TRUE > 0
    absent = own["kind"] == check_evaluation.NULL
    keys = np.concatenate(
        (
            strings,
            _keys(segment_search.TRUTHS, own["column"][boolean], truth),
            _keys(segment_search.ABSENCES, own["column"][absent], np.ones(absent.sum())),
        )
    )
    owners = np.concatenate((np.repeat(filters[member], sizes), filters[boolean], filters[absent]))
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    start = np.append(first, len(order)).astype(np.uint32)
    return distinct, start, owners[order].astype(np.uint32)


def _keys(space: int, columns: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint64]:
    """See `segment_search.equality_key`."""
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


def merge_to_table(parts: Sequence[tuple[SegmentArrays, NDArray[np.int64]]]) -> TableArrays:
    """The filters of the given subscriptions of each segment, numbered on in order."""
    pieces = [_Piece(arrays, rows) for arrays, rows in parts]
    subscriptions = checks = shapes = sets = items = strings = text = 0
    out_checks, out_ends, out_owner, out_sets, out_items, out_text, out_strings = (
        [], [np.zeros(1, np.int64)], [], [np.zeros(1, np.int64)], [], [], [np.zeros(1, np.int64)],
    )  # fmt: skip
    geometries: list[tuple[ShapeArrays, NDArray[np.int64]]] = []
    posted: list[PostingRows] = []
    for piece in pieces:
        rows = piece.checks
        rows["item"][piece.geometric] += shapes
        rows["item"][piece.with_sets] += sets
        rows["item"][piece.textual] += strings
        out_checks.append(rows)
        out_ends.append(piece.filter_ends + checks)
        out_owner.append(piece.filter_subscription + subscriptions)
        out_sets.append(piece.set_ends + items)
        out_items.append(piece.set_items + strings)
        out_text.append(piece.text)
        out_strings.append(piece.string_ends + text)
        posted.append(
            piece.postings._replace(
                owner=piece.postings.owner + subscriptions, tokens=piece.postings.tokens + strings
            )
        )
        geometries.append((piece.arrays.shapes, piece.shape_rows))
        subscriptions += piece.subscriptions
        checks += len(rows)
        shapes += len(piece.shape_rows)
        sets += len(piece.set_ends)
        items += len(piece.set_items)
        strings += len(piece.string_ends)
        text += len(piece.text)
    return TableArrays(
        np.concatenate(out_checks),
        np.concatenate(out_ends),
        np.concatenate(out_owner),
        np.concatenate(out_sets),
        np.concatenate(out_items),
        np.concatenate(out_text),
        np.concatenate(out_strings),
        Shapes.gather(geometries),
        keyword_postings.concatenate(posted),
    )


class _Piece:
    """What is kept of one segment, numbered from 0."""

    def __init__(self, arrays: SegmentArrays, rows: NDArray[np.int64]) -> None:
        self.arrays = arrays
        self.subscriptions = len(rows)
        number = np.full(len(arrays.deleted_version), -1, np.int64)
        number[rows] = np.arange(len(rows))
        owner = number[arrays.filter_subscription]
        kept = np.flatnonzero(owner >= 0)
        # Filters of one subscription stay together and in order; so do a filter's checks.
        kept = kept[np.argsort(owner[kept], kind="stable")]
        self.filter_subscription = owner[kept]
        ends = arrays.filter_check.astype(np.int64)
        sizes = ends[kept + 1] - ends[kept]
        self.filter_ends = np.cumsum(sizes)
        self.checks = arrays.checks[ranges(ends[kept], sizes)].copy()
        self.checks["flags"] &= 0xFF & ~check_evaluation.DECIDED
        refers_to = check_evaluation.ITEM_OF[self.checks["kind"]]
        self.geometric = refers_to == check_evaluation.SHAPE_ITEM
        self.textual = refers_to == check_evaluation.STRING_ITEM
        owned = np.where(
            refers_to == check_evaluation.TWO_SETS_ITEM, 2, refers_to == check_evaluation.SET_ITEM
        )
        self.with_sets = owned > 0
        self.shape_rows = self.checks["item"][self.geometric].astype(np.int64)
        self.checks["item"][self.geometric] = np.arange(len(self.shape_rows))
        self._keep_posts(number)
        self._keep_sets(owned[self.with_sets])
        self._keep_strings()

    def _keep_posts(self, number: NDArray[np.int64]) -> None:
        words = len(self.arrays.postings.token_lists) - 2
        self.postings = keyword_postings.renumber_owners(
            keyword_postings.direct_rows_of(self.arrays.postings, words), number
        )

    def _keep_sets(self, owned: NDArray[np.int64]) -> None:
        first = self.checks["item"][self.with_sets].astype(np.int64)
        self.checks["item"][self.with_sets] = np.cumsum(owned) - owned
        chosen = ranges(first, owned)
        start = self.arrays.set_start.astype(np.int64)
        sizes = start[chosen + 1] - start[chosen]
        self.set_ends = np.cumsum(sizes)
        self.set_items = self.arrays.set_items[ranges(start[chosen], sizes)].astype(np.int64)

    def _keep_strings(self) -> None:
        own = self.checks["item"][self.textual].astype(np.int64)
        parts = (self.set_items, own, self.postings.tokens)
        used, number = np.unique(np.concatenate(parts), return_inverse=True)
        self.set_items, own, tokens = np.split(number, np.cumsum([len(p) for p in parts[:-1]]))
        self.checks["item"][self.textual] = own
        self.postings = self.postings._replace(tokens=tokens)
        start = self.arrays.vocabulary.start.astype(np.int64)
        sizes = start[used + 1] - start[used]
        self.string_ends = np.cumsum(sizes)
        self.text = self.arrays.vocabulary.bytes[ranges(start[used], sizes)]
