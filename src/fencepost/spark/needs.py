"""What events must have to match any subscription of a segment: by it they are sent to parts.

A filter *needs* a place if it has a box that the event's geometry must meet, else words (one of
which must be in a list or text), else strings (one of which an attribute must be), else nothing:
then every event may match it. What a segment needs is what any of its filters does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from fencepost.index.columns import Columns, Storage
from fencepost.index.places import places_of
from fencepost.index.posts import PostRows, ranges, rows_of
from fencepost.index.table import TableArrays
from fencepost.kernels import checking
from fencepost.kernels.shapes import ShapeArrays
from fencepost.language.ast import Array, Geometry, Items, Spatial, String
from fencepost.match.segments import SegmentReader
from fencepost.plan.checks import Filter, ListCheck, MemberCheck, RelateCheck, Term

Ints = NDArray[np.int64]

PLACE, WORD, STRING, NOTHING = range(4)
_MOST_BOXES = 256  # of a segment
_STRING_ITEM = b"s"  # with which the key of a string in a list begins

SCHEMA = pa.schema(
    [
        ("kind", pa.uint8()),
        ("column", pa.int64()),
        *((name, pa.float64()) for name in ("x0", "y0", "x1", "y1")),
        ("key", pa.string()),
    ]
)


class Needs(NamedTuple):
    """The needs of filters, one a row: a box, or one of the words or strings of some keys."""

    subscription: Ints
    kind: NDArray[np.uint8]
    column: Ints  # among the geometries, lists or strings
    boxes: NDArray[np.float64]  # (n, 4)
    key_row: Ints  # whose each key is
    keys: Ints  # numbers of words of the vocabulary


class Asked(NamedTuple):
    """What subscriptions ask for, as a segment has it, or a table that becomes one."""

    subscriptions: int
    checks: NDArray[np.void]
    filter_check: NDArray[Any]
    filter_subscription: NDArray[Any]
    set_start: NDArray[Any]
    set_items: NDArray[Any]
    shapes: ShapeArrays
    posts: PostRows
    text: NDArray[np.uint8]  # string k is text[string_start[k]:string_start[k + 1]]
    string_start: Ints

    @classmethod
    def by(cls, segment: SegmentReader) -> Asked:
        """What those of a segment ask for."""
        own = segment.arrays
        return cls(
            len(segment), own.checks, own.filter_check, own.filter_subscription, own.set_start,
            own.set_items, own.shapes, rows_of(own.posts, len(own.posts.token_lists) - 2),
            own.vocabulary.bytes, own.vocabulary.start,
        )  # fmt: skip

    @classmethod
    def by_table(cls, table: TableArrays, subscriptions: int) -> Asked:
        """What those of a table ask for."""
        return cls(
            subscriptions, table.checks, table.filter_check, table.filter_subscription,
            table.set_start, table.set_items, table.shapes.arrays, table.posts, table.text,
            table.string_start,
        )  # fmt: skip

    def string(self, number: int) -> bytes:
        """One of the strings."""
        return self.text[self.string_start[number] : self.string_start[number + 1]].tobytes()


def needs_of(asked: Asked) -> Needs:
    """What each filter needs."""
    checked = _of_checks(asked)
    posted = _of_posts(asked.posts)
    posted = posted._replace(key_row=posted.key_row + len(checked.kind))
    pairs: list[tuple[Any, Any]] = list(zip(checked, posted, strict=True))
    return Needs(*(np.concatenate(pair) for pair in pairs))


def _of_posts(posted: PostRows) -> Needs:
    """Filters that are posts and have no checks."""
    has_box = np.isfinite(posted.boxes).all(axis=1)
    has_word = ~has_box & (np.diff(posted.token_start) > 0)
    columns = np.array(
        [(form.geometry_column, form.list_column) for form in posted.forms], np.int64
    ).reshape(-1, 2)[posted.form]
    rows = np.flatnonzero(has_word)
    return Needs(
        posted.owner,
        np.where(has_box, PLACE, np.where(has_word, WORD, NOTHING)).astype(np.uint8),
        np.where(has_box, columns[:, 0], columns[:, 1]),
        posted.boxes,
        rows,
        _rarest(posted.tokens, posted.token_start[rows], posted.token_start[rows + 1]),
    )


def _of_checks(asked: Asked) -> Needs:
    checks, filters = asked.checks, len(asked.filter_subscription)
    first = asked.filter_check.astype(np.int64)
    owner = np.repeat(np.arange(filters), first[1:] - first[:-1])
    positive = checks["flags"] & checking.NEGATED == 0
    kind = np.full(filters, NOTHING, np.uint8)
    found = np.zeros(filters, np.int64)  # the check that is needed

    # Later ones overrule earlier ones: strings, words, places; among places the smallest is last.
    own = np.flatnonzero(positive & (checks["kind"] == checking.MEMBER))
    kind[owner[own]], found[owner[own]] = STRING, own
    own = np.flatnonzero(positive & (checks["kind"] == checking.LIST))
    own = own[_needs_words(asked, own)]
    kind[owner[own]], found[owner[own]] = WORD, own
    places = places_of(checks, asked.shapes)
    boxes = places.joined()
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no place
        extent = boxes[:, 2] - boxes[:, 0] + boxes[:, 3] - boxes[:, 1]
    own = np.flatnonzero(places.to_meet() & np.isfinite(extent))
    own = own[np.argsort(-extent[own], kind="stable")]
    kind[owner[own]], found[owner[own]] = PLACE, own

    rows, keys = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for need, own_keys in ((STRING, _members), (WORD, _words)):
        own = np.flatnonzero(kind == need)
        place, key = own_keys(asked, found[own])
        rows.append(own[place])
        keys.append(key)
    return Needs(
        asked.filter_subscription.astype(np.int64),
        kind,
        checks["column"][found].astype(np.int64) if len(checks) else found,
        boxes[found] if len(checks) else np.zeros((filters, 4)),
        np.concatenate(rows),
        np.concatenate(keys),
    )


def _needs_words(asked: Asked, own: Ints) -> NDArray[np.bool_]:
    """Whether list checks are true only of events that have a word of theirs.

    A check has the set of what a list must have and, after it, that of a text.
    """
    checks = asked.checks[own]
    sizes = np.diff(asked.set_start.astype(np.int64))
    item = checks["item"].astype(np.int64)
    texts = checks["flags"] & checking.TOKENS > 0
    needed = np.isin(checks["function"], (checking.CONTAINS, checking.OVERLAPS))
    result: NDArray[np.bool_] = needed & (sizes[item] > 0) & (~texts | (sizes[item + 1] > 0))
    return result


def _members(asked: Asked, own: Ints) -> tuple[Ints, Ints]:
    """The strings of checks, and which check's each is."""
    start, item = asked.set_start.astype(np.int64), asked.checks["item"][own].astype(np.int64)
    sizes = start[item + 1] - start[item]
    keys = asked.set_items.astype(np.int64)[ranges(start[item], sizes)]
    return np.repeat(np.arange(len(own)), sizes), keys


def _words(asked: Asked, own: Ints) -> tuple[Ints, Ints]:
    """The words of checks of which an event has one: the rarest, where it must have all."""
    checks, start = asked.checks[own], asked.set_start.astype(np.int64)
    items = asked.set_items.astype(np.int64)
    texts = checks["flags"] & checking.TOKENS > 0
    rows, keys = [], []
    for which in (0, 1):  # of lists, of texts
        number = checks["item"].astype(np.int64) + which
        chosen = texts if which else np.ones(len(own), bool)
        every = np.flatnonzero(chosen & (checks["function"] == checking.OVERLAPS))
        sizes = start[number[every] + 1] - start[number[every]]
        one = np.flatnonzero(chosen & (checks["function"] == checking.CONTAINS))
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


def summary(segment: SegmentReader) -> pa.Table:
    """What an event must have one of to match anything in a segment; boxes are put together."""
    asked = Asked.by(segment)
    needs = needs_of(asked)
    rows = []
    for column in np.unique(needs.column[needs.kind == PLACE]).tolist():
        own = needs.boxes[(needs.kind == PLACE) & (needs.column == column)]
        rows += [_row(PLACE, column, box) for box in _together(own).tolist()]
    given = np.column_stack((needs.kind[needs.key_row], needs.column[needs.key_row], needs.keys))
    for kind, column, key in np.unique(given, axis=0).tolist():
        text = _text(asked, kind, key)
        if text is None:
            return _table([_row(NOTHING)])
        rows.append(_row(kind, column, key=text))
    return _table([_row(NOTHING)] if (needs.kind == NOTHING).any() else rows)


def _text(asked: Asked, kind: int, key: int) -> str | None:
    """A key as a string; None where it is none that can be written, or a number in a list."""
    given = asked.string(key)
    if kind == WORD and given[:1] != _STRING_ITEM:
        return None
    try:
        return (given[1:] if kind == WORD else given).decode()
    except UnicodeDecodeError:
        return None


def _row(
    kind: int, column: int = 0, box: tuple[float, ...] = (0.0,) * 4, key: str = ""
) -> tuple[object, ...]:
    return kind, column, *box, key


def _table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    return pa.table([list(column) for column in columns], schema=SCHEMA)


def _together(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most `_MOST_BOXES` boxes that cover these, and a little more; neighbours are together."""
    runs = [boxes]
    while len(runs) < min(_MOST_BOXES, len(boxes)):
        runs = [half for run in runs for half in _halves(run)]
    found = np.array([(*run[:, :2].min(axis=0), *run[:, 2:].max(axis=0)) for run in runs])
    # So none is without area.
    return np.column_stack(
        (np.nextafter(found[:, :2], -np.inf), np.nextafter(found[:, 2:], np.inf))
    )


def _halves(boxes: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    if len(boxes) < 2:
        return [boxes]
    middle = boxes[:, :2] / 4 + boxes[:, 2:] / 4  # of which no difference is infinite
    axis = int(np.argmax(np.ptp(middle, axis=0)))
    order = np.argpartition(middle[:, axis], len(boxes) // 2)
    return [boxes[order[: len(boxes) // 2]], boxes[order[len(boxes) // 2 :]]]


def filters_of(needed: pa.Table, columns: Columns) -> tuple[Filter, ...]:
    """Conditions that an event satisfies if it has one of the needs, and perhaps if not."""
    found: list[Filter] = []
    for row in needed.to_pylist():
        kind, number = row["kind"], row["column"]
        if kind == PLACE:
            column = columns.of(Storage.GEOMETRY)[number]
            box = shapely.box(row["x0"], row["y0"], row["x1"], row["y1"])
            found.append((Term(RelateCheck(column, Spatial.S_INTERSECTS, Geometry(box)), False),))
        elif kind == WORD:
            column = columns.of(Storage.LIST)[number]
            items = Items((String(row["key"]),))
            check = ListCheck(column, Array.A_CONTAINS, items, columns.tokeniser)
            found.append((Term(check, False),))
        elif kind == STRING:
            column = columns.of(Storage.STRING)[number]
            found.append((Term(MemberCheck(column, (row["key"],)), False),))
        else:
            return ((),)
    return tuple(found)
