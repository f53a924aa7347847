"""Where many subscriptions can match, read from a matcher's segments: none is made an object of.

For those of the usual forms: one filter that wants the position in contact with a geometry, in it
or within a distance, and other attributes to be given strings. All others are read one by one.

This is the one module of the package that looks into a matcher: at its segments, its columns and
its clock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.index.columns import Columns, Storage
from fencepost.index.places import places_of
from fencepost.index.segment import NEVER
from fencepost.kernels import checking
from fencepost.kernels.matching import SegmentArrays
from fencepost.language.ast import Property, Spatial
from fencepost.match.matcher import Matcher
from fencepost.match.segments import SegmentReader
from fencepost.plan.checks import Column, Kind
from fencepost.plan.relate import CODE

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_CONTACT = [CODE[Spatial.S_INTERSECTS], CODE[Spatial.S_WITHIN]]


class Usual(NamedTuple):
    """Subscriptions of the usual forms."""

    ids: pa.Array
    boxes: NDArray[np.float64]  # (n, 4), outside of which each matches nothing
    equals: dict[str, pa.Array]  # by attribute: the string that it must be; null where any will do


def matcher_like(matcher: Matcher) -> Matcher:
    """One without subscriptions, of the same space, stop words and clock."""
    return Matcher(matcher.space, stop_words=matcher.stop_words, clock=matcher.view().clock)


def usual_of(
    matcher: Matcher, position: str, changing: frozenset[str]
) -> tuple[list[Usual], list[str]]:
    """The subscriptions that have one of the usual forms, and no end; the ids of the others.

    changing : attributes of which conditions are taken to be true.
    """
    found: list[Usual] = []
    others: list[str] = []
    view = matcher.view()
    for segment, rows in view.living():
        chosen, boxes, equals = _usual(segment, rows, view.columns, position, changing)
        if len(chosen):
            found.append(Usual(segment.column("id").take(pa.array(chosen)), boxes, equals))
        rest = np.setdiff1d(rows, chosen, assume_unique=True)
        others += [segment.id_of(row) for row in rest.tolist()]
    return found, others


def _usual(
    segment: SegmentReader, rows: Ints, columns: Columns, position: str, changing: frozenset[str]
) -> tuple[Ints, NDArray[np.float64], dict[str, pa.Array]]:
    arrays = segment.arrays
    names = _plain_strings(columns, position)
    column = columns.number_of(Column(Kind.GEOMETRY, Property(position)))
    checks = arrays.checks
    filters = len(arrays.filter_subscription)
    start = arrays.filter_check.astype(np.int64)
    owner = np.repeat(np.arange(filters), start[1:] - start[:-1])
    places = places_of(checks, arrays.shapes)
    placed = _wants_a_place(checks, column) & places.to_meet()
    worded = _wants_a_string(arrays, np.array([name is not None for name in names], bool))
    good = np.bincount(owner[placed], minlength=filters) == 1
    good &= np.bincount(owner[~(placed | worded)], minlength=filters) == 0
    words = np.flatnonzero(worded)
    good[_twice(owner[words], checks["column"][words], filters)] = False
    good &= _is_whole(segment, rows, arrays)[arrays.filter_subscription]
    # There is one of each filter that is left, in the order of the filters.
    own = np.flatnonzero(placed & good[owner])
    finite: Mask = np.logical_and.reduce(np.isfinite(places.boxes[own]), axis=1)
    finite[places.beyond_of(own)[0]] = False  # two boxes
    own = own[finite]
    chosen = owner[own]
    number = np.full(filters, -1)
    number[chosen] = np.arange(len(chosen))
    equals = {}
    for k in np.unique(checks["column"][words]).tolist():
        name = names[k]
        if name is not None and name not in changing:
            asked = words[checks["column"][words] == k]
            asked = asked[number[owner[asked]] >= 0]
            equals[name] = _strings(arrays, asked, number[owner[asked]], len(chosen))
    found = arrays.filter_subscription[chosen].astype(np.int64)
    return found, places.boxes[own], equals


def _plain_strings(columns: Columns, position: str) -> list[str | None]:
    """By column of strings the attribute that it is, if it is no more and another than this."""
    found: list[str | None] = []
    for column in columns.of(Storage.STRING):
        source = column.source
        plain = isinstance(source, Property) and source.name != position
        found.append(source.name if plain and isinstance(source, Property) else None)
    return found


def _wants_a_place(checks: NDArray[np.void], column: int | None) -> Mask:
    """Checks of the position for contact, for being in a geometry, or for a distance."""
    if column is None:
        return np.zeros(len(checks), bool)
    kind = checks["kind"]
    found: Mask = (kind == checking.RELATE) & np.isin(checks["function"], _CONTACT)
    found |= kind == checking.NEAR
    found &= checks["column"] == column
    return found


def _wants_a_string(arrays: SegmentArrays, plain: Mask) -> Mask:
    checks = arrays.checks
    found: Mask = checks["kind"] == checking.MEMBER
    found &= checks["flags"] & checking.NEGATED == 0
    asked = np.flatnonzero(found)
    sizes = np.diff(arrays.set_start.astype(np.int64))[checks["item"][asked]]
    found[asked] = (sizes == 1) & plain[checks["column"][asked]]
    return found


def _twice(owner: Ints, column: NDArray[np.integer], filters: int) -> Mask:
    """The filters that ask for two strings of one attribute."""
    pairs = np.sort(owner << 32 | column.astype(np.int64))
    found = np.zeros(filters, bool)
    found[pairs[1:][pairs[1:] == pairs[:-1]] >> 32] = True
    return found


def _is_whole(shelf: SegmentReader, rows: Ints, arrays: SegmentArrays) -> Mask:
    """Which subscriptions have one filter, and no entries of their own beside it."""
    size = len(shelf)
    found = np.zeros(size, bool)
    found[rows] = shelf.expires[rows] == NEVER
    found &= np.bincount(arrays.filter_subscription, minlength=size)[:size] == 1
    found[rows] &= shelf.entries_of(rows)[1] == 0
    return found


def _strings(arrays: SegmentArrays, checks: Ints, rows: Ints, count: int) -> pa.Array:
    """The only strings of some checks, each in its row; null in the others."""
    items = arrays.set_items[arrays.set_start[arrays.checks["item"][checks]]]
    distinct, place = np.unique(items, return_inverse=True)
    start, text = arrays.vocabulary.start, arrays.vocabulary.bytes
    words = [bytes(text[start[k] : start[k + 1]]).decode("utf-8") for k in distinct.tolist()]
    indices = np.full(count, -1)
    indices[rows] = place
    return pa.array(words, pa.string()).take(pa.array(indices, mask=indices < 0))
