"""Where many subscriptions can match, by what a matcher's view says that they require: none is made
an object of.

For those of the usual forms: one filter that wants the position to meet a box, and other attributes
to be given strings. All others are read one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.cql2.ast import Property
from fencepost.engine import ColumnRegistry
from fencepost.engine.matcher import Matcher
from fencepost.engine.requirements import PLACE, STRING, Requirements, column_of
from fencepost.engine.subscriptions import parse_expiry
from fencepost.filters.checks import Column, ColumnKind

Ints = NDArray[np.int64]


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
    for segment, rows, required in view.requirements():
        own, equals = _usual(required, view.columns, position, changing)
        chosen = required.subscription[required.filter[own]]
        living = np.zeros(len(segment), bool)
        living[rows] = segment.expires[rows] == parse_expiry(None)
        usual = living[chosen]
        chosen = chosen[usual]
        if len(chosen):
            ids = segment.column("id").take(pa.array(chosen))
            equals = {name: values.filter(pa.array(usual)) for name, values in equals.items()}
            found.append(Usual(ids, required.boxes[own[usual]], equals))
        rest = np.setdiff1d(rows, chosen, assume_unique=True)
        others += [segment.id_of(row) for row in rest.tolist()]
    return found, others


def _usual(
    required: Requirements, columns: ColumnRegistry, position: str, changing: frozenset[str]
) -> tuple[Ints, dict[str, pa.Array]]:
    """The requirements of the position of subscriptions of the usual forms; the strings of each."""
    column = columns.number_of(Column(ColumnKind.GEOMETRY, Property(position)))
    filters = len(required.subscription)
    placed = (required.kind == PLACE) & ~required.is_split
    placed &= required.column == (-1 if column is None else column)
    names = _plain_strings(required, columns, position)
    strings, keys = _single_strings(required, np.array(list(names), np.int64))
    good = np.bincount(required.subscription, minlength=required.subscriptions) == 1
    good = good[required.subscription]
    good &= np.bincount(required.filter[placed], minlength=filters) == 1
    usual = placed.copy()
    usual[strings] = True
    good[required.filter[~usual]] = False
    pairs = np.sort(required.filter[strings] << 32 | required.column[strings])
    good[pairs[1:][pairs[1:] == pairs[:-1]] >> 32] = False  # two strings of one attribute
    own = np.flatnonzero(placed & good[required.filter])
    number = np.full(filters, -1)
    number[required.filter[own]] = np.arange(len(own))
    equals = {}
    for k, name in names.items():
        mine = (required.column[strings] == k) & (number[required.filter[strings]] >= 0)
        if name not in changing and mine.any():
            rows = number[required.filter[strings[mine]]]
            equals[name] = _strings(required, keys[mine], rows, len(own))
    return own, equals


def _plain_strings(
    required: Requirements, columns: ColumnRegistry, position: str
) -> dict[int, str]:
    """By column of strings the attribute that it is, if it is no more and another than this."""
    found = {}
    for number in np.unique(required.column[required.kind == STRING]).tolist():
        source = column_of(columns, STRING, number).source
        if isinstance(source, Property) and source.name != position:
            found[number] = source.name
    return found


def _single_strings(required: Requirements, columns: Ints) -> tuple[Ints, Ints]:
    """The requirements of one string in one of some columns, and the number of each one's."""
    rows = np.flatnonzero((required.kind == STRING) & np.isin(required.column, columns))
    place, keys = required.keys(rows)
    single = np.bincount(place, minlength=len(rows)) == 1
    return rows[place[single[place]]], keys[single[place]]


def _strings(required: Requirements, keys: Ints, rows: Ints, count: int) -> pa.Array:
    """Some strings, each in its row; null in the others."""
    distinct, place = np.unique(keys, return_inverse=True)
    words = [required.text_of(STRING, key) for key in distinct.tolist()]
    indices = np.full(count, -1)
    indices[rows] = place
    return pa.array(words, pa.string()).take(pa.array(indices, mask=indices < 0))
