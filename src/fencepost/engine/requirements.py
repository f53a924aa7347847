"""`Requirements`: what events must have to match subscriptions, for routing and safe regions.

Each condition of a filter is a row. Its kind says what an event must have to satisfy the filter:

    PLACE     a geometry that meets a box
    WORD      a list or text with at least one of some words
    STRING    an attribute that is one of some strings
    NOTHING   nothing that is known: any event may satisfy the condition

Every event satisfies a filter without rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.bounding_boxes import bounding_boxes_of
from fencepost.engine.bulk_loading import ColumnSubscriptions
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.filter_table import FilterTable, TableArrays
from fencepost.engine.postings.keyword_postings import (
    PostingRows,
    direct_rows_of,
    ignore_step,
    ranges,
)
from fencepost.engine.segment import SegmentReader
from fencepost.engine.subscriptions import BadRows, compile_rows
from fencepost.filters.checks import Column
from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.match import check_evaluation

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PLACE, WORD, STRING, NOTHING = range(4)
_STORAGES = {PLACE: Storage.GEOMETRY, WORD: Storage.LIST, STRING: Storage.STRING}
_STRING_ITEM = b"s"  # first byte of the key of a string in a list


class _Conditions(NamedTuple):
    """The checks and postings of a segment, or of a table of filters that becomes one."""

    checks: NDArray[np.void]
    filter_check: NDArray[Any]
    set_start: Ints
    set_items: Ints
    postings: PostingRows
    text: NDArray[np.uint8]  # string k is text[string_start[k]:string_start[k + 1]]
    string_start: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Requirements:
    """The conditions of subscriptions, one a row.

    Attributes
    ----------
    subscriptions : int
        Number of subscriptions.
    subscription : (filters,) array
        Subscription of each filter.
    filter : (n,) array
        Filter of each row.
    kind : (n,) array
        `PLACE`, `WORD`, `STRING` or `NOTHING`.
    column : (n,) array
        Column that each row is about; see `column_of`.
    boxes : (n, 4) array
        Boxes of the rows of kind `PLACE`.
    is_split : (n,) array
        Whether the box of a row is the hull of two boxes, one on each side of the antimeridian.
    """

    subscriptions: int
    subscription: Ints
    filter: Ints
    kind: NDArray[np.uint8]
    column: Ints
    boxes: NDArray[np.float64]
    is_split: Mask
    _conditions: _Conditions
    _posting: Ints  # posting of each row; the rows of checks come first and are left out

    def keys(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the words or strings of some rows: positions in `rows`, and keys.

        A row that requires several words at once has only the rarest one here.
        """
        conditions, kind = self._conditions, self.kind[rows]
        is_posting = rows >= len(conditions.checks)
        parts = []
        for selected, keys_of_checks in (
            (kind == STRING, _strings),
            ((kind == WORD) & ~is_posting, _words),
        ):
            positions = np.flatnonzero(selected)
            check, keys = keys_of_checks(conditions, rows[positions])
            parts.append((positions[check], keys))
        posted = np.flatnonzero((kind == WORD) & is_posting)
        posting = self._posting[rows[posted] - len(conditions.checks)]
        start = conditions.postings.token_start
        rarest = _rarest(conditions.postings.tokens, start[posting], start[posting + 1])
        parts.append((posted, rarest))
        positions, keys = (np.concatenate(part) for part in zip(*parts, strict=True))
        return positions, keys

    def bytes_of(self, key: int) -> bytes:
        """Return the word or string of a key, encoded as in a vocabulary."""
        start = self._conditions.string_start
        return self._conditions.text[start[key] : start[key + 1]].tobytes()

    def text_of(self, kind: int, key: int) -> str | None:
        """Return the word or string of a key; None if it is not UTF-8, or a number in a list."""
        encoded = self.bytes_of(key)
        if kind == WORD and encoded[:1] != _STRING_ITEM:
            return None
        try:
            return (encoded[1:] if kind == WORD else encoded).decode()
        except UnicodeDecodeError:
            return None


def column_of(columns: ColumnRegistry, kind: int, number: int) -> Column:
    """Return the column of events that requirements of a kind refer to by a number."""
    return columns.of(_STORAGES[kind])[number]


def requirements_of_segment(segment: SegmentReader) -> Requirements:
    """Return the requirements of the subscriptions of a segment."""
    arrays = segment.arrays
    conditions = _Conditions(
        arrays.checks,
        arrays.filter_check,
        arrays.set_start.astype(np.int64),
        arrays.set_items.astype(np.int64),
        direct_rows_of(arrays.postings, len(arrays.postings.token_lists) - 2),
        arrays.vocabulary.bytes,
        arrays.vocabulary.start,
    )
    return _requirements(conditions, len(segment), arrays.filter_subscription, arrays.shapes)


def requirements_of_table(table: TableArrays, subscriptions: int) -> Requirements:
    """Return the requirements of the subscriptions of a table of filters."""
    conditions = _Conditions(
        table.checks,
        table.filter_check,
        table.set_start,
        table.set_items,
        table.postings,
        table.text,
        table.string_start,
    )
    return _requirements(conditions, subscriptions, table.filter_subscription, table.shapes.arrays)


def requirements_of_rows(
    columns: ColumnRegistry, table: object, bad: BadRows
) -> tuple[Ints, Requirements]:
    """Return the row numbers and the requirements of a table's subscriptions.

    The table is as in `Matcher.subscribe_many`, but ids may repeat. Adds the columns of the
    subscriptions to `columns`.
    """
    filters = FilterTable(columns)
    rows: list[int] = []
    for number, subscription in compile_rows(columns.space, table, bad):
        filters.add(len(rows), subscription.compiled)
        rows.append(number)
    return np.array(rows, np.int64), requirements_of_table(filters.arrays(), len(rows))


def requirements_of_columns(columns: ColumnRegistry, **arguments: Any) -> Requirements:
    """Return the requirements of subscriptions, given as to `Matcher.subscribe_columns`.

    Adds the columns of the subscriptions to `columns`, unless there is an error.
    """
    grown = columns.copy()
    subscriptions = ColumnSubscriptions(grown, **arguments, report_step=ignore_step)
    requirements = requirements_of_table(subscriptions.table(), len(subscriptions.ids))
    columns.register_all(grown)
    return requirements


def _requirements(
    conditions: _Conditions, subscriptions: int, owners: NDArray[Any], shapes: ShapeArrays
) -> Requirements:
    checks, postings, filters = conditions.checks, conditions.postings, len(owners)
    kind, boxes, is_split = _check_requirements(conditions, shapes)
    has_box = np.flatnonzero(np.isfinite(postings.boxes).all(axis=1))
    has_word = np.flatnonzero(np.diff(postings.token_start) > 0)
    posting = np.concatenate((has_box, has_word))
    columns = np.array(
        [(group.geometry_column, group.list_column) for group in postings.groups], np.int64
    ).reshape(-1, 2)[postings.group]
    # A posting is a filter of its own, without checks; these filters follow those with checks.
    return Requirements(
        subscriptions,
        np.concatenate((owners.astype(np.int64), postings.owner)),
        np.concatenate(
            (np.repeat(np.arange(filters), np.diff(conditions.filter_check)), filters + posting)
        ),
        np.concatenate(
            (kind, np.repeat(np.array([PLACE, WORD], np.uint8), [len(has_box), len(has_word)]))
        ),
        np.concatenate(
            (checks["column"].astype(np.int64), columns[has_box, 0], columns[has_word, 1])
        ),
        np.concatenate((boxes, postings.boxes[posting])),
        np.concatenate((is_split, np.zeros(len(posting), bool))),
        conditions,
        posting,
    )


def _check_requirements(
    conditions: _Conditions, shapes: ShapeArrays
) -> tuple[NDArray[np.uint8], NDArray[np.float64], Mask]:
    """Return the kind and the box of each check, and whether the box is the hull of two."""
    checks = conditions.checks
    positive = checks["flags"] & check_evaluation.NEGATED == 0
    kind = np.full(len(checks), NOTHING, np.uint8)
    kind[positive & (checks["kind"] == check_evaluation.MEMBER)] = STRING
    lists = np.flatnonzero(positive & (checks["kind"] == check_evaluation.LIST))
    kind[lists[_requires_words(conditions, lists)]] = WORD
    bounding_boxes = bounding_boxes_of(checks, shapes)
    boxes = bounding_boxes.hulls()
    with np.errstate(over="ignore", invalid="ignore"):  # an unbounded box requires nothing
        extent = boxes[:, 2] - boxes[:, 0] + boxes[:, 3] - boxes[:, 1]
    kind[bounding_boxes.must_meet_box() & np.isfinite(extent)] = PLACE
    is_split = np.zeros(len(checks), bool)
    is_split[bounding_boxes.split] = True
    return kind, boxes, is_split


def _requires_words(conditions: _Conditions, rows: Ints) -> Mask:
    """Return whether only events with a word of a list check can satisfy it.

    A check refers to two consecutive sets: the items for a list, and the words for a text.
    """
    checks = conditions.checks[rows]
    sizes = np.diff(conditions.set_start)
    item = checks["item"].astype(np.int64)
    accepts_text = checks["flags"] & check_evaluation.TOKENS > 0
    is_positive = np.isin(
        checks["function"], (check_evaluation.CONTAINS, check_evaluation.OVERLAPS)
    )
    result: Mask = is_positive & (sizes[item] > 0) & (~accepts_text | (sizes[item + 1] > 0))
    return result


def _strings(conditions: _Conditions, rows: Ints) -> tuple[Ints, Ints]:
    """Return the strings of checks: positions in `rows`, and keys."""
    start, item = conditions.set_start, conditions.checks["item"][rows].astype(np.int64)
    sizes = start[item + 1] - start[item]
    return np.repeat(np.arange(len(rows)), sizes), conditions.set_items[ranges(start[item], sizes)]


def _words(conditions: _Conditions, rows: Ints) -> tuple[Ints, Ints]:
    """Return words of list checks, one of which an event must have: positions in `rows`, and keys.

    A check that requires all of its words has only the rarest word here.
    """
    checks, start, items = conditions.checks[rows], conditions.set_start, conditions.set_items
    accepts_text = checks["flags"] & check_evaluation.TOKENS > 0
    positions, keys = [], []
    for is_text in (0, 1):  # the set for lists, and the set for texts
        set_number = checks["item"].astype(np.int64) + is_text
        selected = accepts_text if is_text else np.ones(len(rows), bool)
        any_of = np.flatnonzero(selected & (checks["function"] == check_evaluation.OVERLAPS))
        sizes = start[set_number[any_of] + 1] - start[set_number[any_of]]
        all_of = np.flatnonzero(selected & (checks["function"] == check_evaluation.CONTAINS))
        positions += [np.repeat(any_of, sizes), all_of]
        keys += [
            items[ranges(start[set_number[any_of]], sizes)],
            _rarest(items, start[set_number[all_of]], start[set_number[all_of] + 1]),
        ]
    return np.concatenate(positions), np.concatenate(keys)


def _rarest(items: Ints, low: Ints, high: Ints) -> Ints:
    """Return for each range of items the item that is the rarest among all items."""
    count = np.bincount(items, minlength=1)
    index = ranges(low, high - low)
    owner = np.repeat(np.arange(len(low)), high - low)
    order = np.lexsort((count[items[index]], owner))
    first = np.searchsorted(owner[order], np.arange(len(low)))
    rarest: Ints = items[index[order[first]]]
    return rarest
