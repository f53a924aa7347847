"""What events must have to match subscriptions: for routing, and for safe regions.

Each condition of a filter is a row here. Most are *requirements*, without which no event satisfies
the filter:

    PLACE     its geometry must meet a box
    WORD      a list or text must have one of some words
    STRING    an attribute must be one of some strings
    NOTHING   a condition of any other kind, which may be true of every event

A filter without rows is true of every event.
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
_STRING_ITEM = b"s"  # with which the key of a string in a list begins


class _Asked(NamedTuple):
    """What subscriptions ask for, as a segment has it, or a table that becomes one."""

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
        How many there are.
    subscription : array
        Of each filter.
    filter : array
        Of each row.
    kind : array
        `PLACE`, `WORD`, `STRING` or `NOTHING`.
    column : array
        See `column_of`.
    boxes : (n, 4) array
        Those of places.
    is_split : array
        Which boxes hold two, one on each side of the antimeridian.
    """

    subscriptions: int
    subscription: Ints
    filter: Ints
    kind: NDArray[np.uint8]
    column: Ints
    boxes: NDArray[np.float64]
    is_split: Mask
    _asked: _Asked
    _post: Ints  # of each row behind the checks

    def keys(self, rows: Ints) -> tuple[Ints, Ints]:
        """The words or strings of some rows: the place of each one's row in `rows`, and numbers.

        Of a condition that needs several words, the rarest one.
        """
        asked, kind = self._asked, self.kind[rows]
        is_post = rows >= len(asked.checks)
        found = []
        for chosen, set_keys in ((kind == STRING, _strings), ((kind == WORD) & ~is_post, _words)):
            places = np.flatnonzero(chosen)
            own, keys = set_keys(asked, rows[places])
            found.append((places[own], keys))
        posted = np.flatnonzero((kind == WORD) & is_post)
        own = self._post[rows[posted] - len(asked.checks)]
        start = asked.postings.token_start
        found.append((posted, _rarest(asked.postings.tokens, start[own], start[own + 1])))
        places, keys = (np.concatenate(part) for part in zip(*found, strict=True))
        return places, keys

    def bytes_of(self, key: int) -> bytes:
        """What a number stands for."""
        own = self._asked
        return own.text[own.string_start[key] : own.string_start[key + 1]].tobytes()

    def text_of(self, kind: int, key: int) -> str | None:
        """A word or string; None where it is none that can be written, or a number in a list."""
        given = self.bytes_of(key)
        if kind == WORD and given[:1] != _STRING_ITEM:
            return None
        try:
            return (given[1:] if kind == WORD else given).decode()
        except UnicodeDecodeError:
            return None


def column_of(columns: ColumnRegistry, kind: int, number: int) -> Column:
    """The column of events that a requirement of a kind is about."""
    return columns.of(_STORAGES[kind])[number]


def requirements_of_segment(segment: SegmentReader) -> Requirements:
    """What the subscriptions of a segment require."""
    own = segment.arrays
    asked = _Asked(
        own.checks,
        own.filter_check,
        own.set_start.astype(np.int64),
        own.set_items.astype(np.int64),
        direct_rows_of(own.postings, len(own.postings.token_lists) - 2),
        own.vocabulary.bytes,
        own.vocabulary.start,
    )
    return _requirements(asked, len(segment), own.filter_subscription, own.shapes)


def requirements_of_table(table: TableArrays, subscriptions: int) -> Requirements:
    """What the subscriptions of a table of filters require."""
    asked = _Asked(
        table.checks,
        table.filter_check,
        table.set_start,
        table.set_items,
        table.postings,
        table.text,
        table.string_start,
    )
    return _requirements(asked, subscriptions, table.filter_subscription, table.shapes.arrays)


def requirements_of_rows(
    columns: ColumnRegistry, table: object, bad: BadRows
) -> tuple[Ints, Requirements]:
    """What subscriptions require that are given as to `Matcher.subscribe_many`, and their rows.

    The columns grow by those that they ask for. An id may come twice.
    """
    asked = FilterTable(columns)
    rows: list[int] = []
    for number, subscription in compile_rows(columns.space, table, bad):
        asked.add(len(rows), subscription.compiled)
        rows.append(number)
    return np.array(rows, np.int64), requirements_of_table(asked.arrays(), len(rows))


def requirements_of_columns(columns: ColumnRegistry, **given: Any) -> Requirements:
    """What subscriptions require that are given as to `Matcher.subscribe_columns`.

    The columns grow by those that they ask for, unless there is an error.
    """
    grown = columns.copy()
    made = ColumnSubscriptions(grown, **given, report_step=ignore_step)
    found = requirements_of_table(made.table(), len(made.ids))
    columns.register_all(grown)
    return found


def _requirements(
    asked: _Asked, subscriptions: int, owners: NDArray[Any], shapes: ShapeArrays
) -> Requirements:
    checks, postings, filters = asked.checks, asked.postings, len(owners)
    kind, boxes, is_split = _of_checks(asked, shapes)
    has_box = np.flatnonzero(np.isfinite(postings.boxes).all(axis=1))
    has_word = np.flatnonzero(np.diff(postings.token_start) > 0)
    post = np.concatenate((has_box, has_word))
    columns = np.array(
        [(group.geometry_column, group.list_column) for group in postings.groups], np.int64
    ).reshape(-1, 2)[postings.group]
    # A post is a filter without checks.
    return Requirements(
        subscriptions,
        np.concatenate((owners.astype(np.int64), postings.owner)),
        np.concatenate(
            (np.repeat(np.arange(filters), np.diff(asked.filter_check)), filters + post)
        ),
        np.concatenate(
            (kind, np.repeat(np.array([PLACE, WORD], np.uint8), [len(has_box), len(has_word)]))
        ),
        np.concatenate(
            (checks["column"].astype(np.int64), columns[has_box, 0], columns[has_word, 1])
        ),
        np.concatenate((boxes, postings.boxes[post])),
        np.concatenate((is_split, np.zeros(len(post), bool))),
        asked,
        post,
    )


def _of_checks(
    asked: _Asked, shapes: ShapeArrays
) -> tuple[NDArray[np.uint8], NDArray[np.float64], Mask]:
    """The kind and the box of each check, and whether that holds two."""
    checks = asked.checks
    positive = checks["flags"] & check_evaluation.NEGATED == 0
    kind = np.full(len(checks), NOTHING, np.uint8)
    kind[positive & (checks["kind"] == check_evaluation.MEMBER)] = STRING
    lists = np.flatnonzero(positive & (checks["kind"] == check_evaluation.LIST))
    kind[lists[_needs_words(asked, lists)]] = WORD
    places = bounding_boxes_of(checks, shapes)
    boxes = places.hulls()
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no place
        extent = boxes[:, 2] - boxes[:, 0] + boxes[:, 3] - boxes[:, 1]
    kind[places.must_meet_box() & np.isfinite(extent)] = PLACE
    is_split = np.zeros(len(checks), bool)
    is_split[places.split] = True
    return kind, boxes, is_split


def _needs_words(asked: _Asked, own: Ints) -> Mask:
    """Whether list checks are true only of events that have a word of theirs.

    A check has the set of what a list must have and, after it, that of a text.
    """
    checks = asked.checks[own]
    sizes = np.diff(asked.set_start)
    item = checks["item"].astype(np.int64)
    texts = checks["flags"] & check_evaluation.TOKENS > 0
    needed = np.isin(checks["function"], (check_evaluation.CONTAINS, check_evaluation.OVERLAPS))
    result: Mask = needed & (sizes[item] > 0) & (~texts | (sizes[item + 1] > 0))
    return result


def _strings(asked: _Asked, own: Ints) -> tuple[Ints, Ints]:
    """The strings of checks, and which check's each is."""
    start, item = asked.set_start, asked.checks["item"][own].astype(np.int64)
    sizes = start[item + 1] - start[item]
    return np.repeat(np.arange(len(own)), sizes), asked.set_items[ranges(start[item], sizes)]


def _words(asked: _Asked, own: Ints) -> tuple[Ints, Ints]:
    """The words of checks of which an event has one: the rarest, where it must have all."""
    checks, start, items = asked.checks[own], asked.set_start, asked.set_items
    texts = checks["flags"] & check_evaluation.TOKENS > 0
    rows, keys = [], []
    for which in (0, 1):  # of lists, of texts
        number = checks["item"].astype(np.int64) + which
        chosen = texts if which else np.ones(len(own), bool)
        every = np.flatnonzero(chosen & (checks["function"] == check_evaluation.OVERLAPS))
        sizes = start[number[every] + 1] - start[number[every]]
        one = np.flatnonzero(chosen & (checks["function"] == check_evaluation.CONTAINS))
        rows += [np.repeat(every, sizes), one]
        keys += [
            items[ranges(start[number[every]], sizes)],
            _rarest(items, start[number[one]], start[number[one] + 1]),
        ]
    return np.concatenate(rows), np.concatenate(keys)


def _rarest(items: Ints, low: Ints, high: Ints) -> Ints:
    """Of each range of items that one which is the rarest among all items."""
    count = np.bincount(items, minlength=1)
    place = ranges(low, high - low)
    owner = np.repeat(np.arange(len(low)), high - low)
    order = np.lexsort((count[items[place]], owner))
    first = np.searchsorted(owner[order], np.arange(len(low)))
    found: Ints = items[place[order[first]]]
    return found
