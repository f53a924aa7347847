"""Reads where many subscriptions can match from a matcher's segments, without an object for each.

This works for simple subscriptions: one filter that requires the position to meet a box, and other
attributes to equal strings. Other subscriptions must be read one by one.
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


class SimpleSubscriptions(NamedTuple):
    """Simple subscriptions, as columns.

    The filter of each is false outside of its box, so the box is an outer bound.
    """

    ids: pa.Array
    boxes: NDArray[np.float64]  # (n, 4): outer bounds of the points where each can match
    equals: dict[str, pa.Array]  # by attribute: the string that it must equal, or null


def empty_matcher_like(matcher: Matcher) -> Matcher:
    """Return an empty matcher with the same space, stop words and clock."""
    return Matcher(matcher.space, stop_words=matcher.stop_words, clock=matcher.view().clock)


def split_simple(
    matcher: Matcher, position: str, changing: frozenset[str]
) -> tuple[list[SimpleSubscriptions], list[str]]:
    """Return the simple subscriptions of a matcher that never expire, and the ids of all others.

    changing : attributes whose conditions are taken to be true.
    """
    simple: list[SimpleSubscriptions] = []
    other_ids: list[str] = []
    view = matcher.view()
    for segment, rows, required in view.requirements():
        placed_rows, equals = _simple_requirements(required, view.columns, position, changing)
        chosen = required.subscription[required.filter[placed_rows]]
        never_expires = np.zeros(len(segment), bool)
        never_expires[rows] = segment.expires[rows] == parse_expiry(None)
        kept = never_expires[chosen]
        chosen = chosen[kept]
        if len(chosen):
            ids = segment.column("id").take(pa.array(chosen))
            equals = {name: values.filter(pa.array(kept)) for name, values in equals.items()}
            simple.append(SimpleSubscriptions(ids, required.boxes[placed_rows[kept]], equals))
        rest = np.setdiff1d(rows, chosen, assume_unique=True)
        other_ids += [segment.id_of(row) for row in rest.tolist()]
    return simple, other_ids


def _simple_requirements(
    required: Requirements, columns: ColumnRegistry, position: str, changing: frozenset[str]
) -> tuple[Ints, dict[str, pa.Array]]:
    """Return the position requirement of each simple subscription, and the strings it requires."""
    column = columns.number_of(Column(ColumnKind.GEOMETRY, Property(position)))
    filters = len(required.subscription)
    placed = (required.kind == PLACE) & ~required.is_split
    placed &= required.column == (-1 if column is None else column)
    names = _plain_strings(required, columns, position)
    strings, keys = _single_strings(required, np.array(list(names), np.int64))
    is_good = np.bincount(required.subscription, minlength=required.subscriptions) == 1
    is_good = is_good[required.subscription]
    is_good &= np.bincount(required.filter[placed], minlength=filters) == 1
    is_simple = placed.copy()
    is_simple[strings] = True
    is_good[required.filter[~is_simple]] = False
    pairs = np.sort(required.filter[strings] << 32 | required.column[strings])
    is_good[pairs[1:][pairs[1:] == pairs[:-1]] >> 32] = False  # two strings for one attribute
    placed_rows = np.flatnonzero(placed & is_good[required.filter])
    number = np.full(filters, -1)
    number[required.filter[placed_rows]] = np.arange(len(placed_rows))
    equals = {}
    for k, name in names.items():
        in_column = (required.column[strings] == k) & (number[required.filter[strings]] >= 0)
        if name not in changing and in_column.any():
            rows = number[required.filter[strings[in_column]]]
            equals[name] = _strings(required, keys[in_column], rows, len(placed_rows))
    return placed_rows, equals


def _plain_strings(
    required: Requirements, columns: ColumnRegistry, position: str
) -> dict[int, str]:
    """Return the columns of strings that are an attribute other than the position."""
    names = {}
    for number in np.unique(required.column[required.kind == STRING]).tolist():
        source = column_of(columns, STRING, number).source
        if isinstance(source, Property) and source.name != position:
            names[number] = source.name
    return names


def _single_strings(required: Requirements, columns: Ints) -> tuple[Ints, Ints]:
    """Return the requirements of exactly one string in some columns, and the key of each string."""
    rows = np.flatnonzero((required.kind == STRING) & np.isin(required.column, columns))
    owner, keys = required.keys(rows)
    single = np.bincount(owner, minlength=len(rows)) == 1
    return rows[owner[single[owner]]], keys[single[owner]]


def _strings(required: Requirements, keys: Ints, rows: Ints, count: int) -> pa.Array:
    """Return an array of strings in some rows, with null in all other rows."""
    distinct, number = np.unique(keys, return_inverse=True)
    words = [required.text_of(STRING, key) for key in distinct.tolist()]
    indices = np.full(count, -1)
    indices[rows] = number
    return pa.array(words, pa.string()).take(pa.array(indices, mask=indices < 0))
