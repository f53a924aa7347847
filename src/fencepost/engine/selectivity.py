"""How many of the events are expected to pass a check: its *share*.

Without events to look at, they are expected to be where subscriptions are: strings as often as
filters ask for them, numbers and places as densely as the middles of intervals and boxes lie. A
sample of the events that went by, where there is one, corrects that.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.bounding_boxes import BoundingBoxes
from fencepost.engine.event_sampler import EventSample, prefix_key
from fencepost.engine.postings.keyword_postings import ranges
from fencepost.kernels.index.check_boxes import WITH_AREA
from fencepost.kernels.index.posting_arrays import NOTHING
from fencepost.kernels.match import check_evaluation, segment_search
from fencepost.kernels.text.like import ANY_CHARACTER, ANY_RUN
from fencepost.kernels.text.vocabulary import Vocabulary

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MAX_SET_SIZE = 1024  # strings of one check; more are many places to change for one filter
_SAMPLE = 2**14
_CELLS = 64  # of a density, a side


class AccessPath(IntEnum):
    """How a filter is found."""

    WORDS = 0
    REGION = 1  # a relation to an area
    BOX = 2  # contact with, or nearness to, some other geometry
    EQUALITY = 3
    INTERVAL = 4
    SCAN = 5
    SIGNATURE = 6  # several strings, or strings and a place


class CheckEstimates:
    """Checks, and what is known of each: by which path it can find its filter, and its share.

    Attributes
    ----------
    path, share : array
        Of each check; SCAN, and 1 where nothing is known.
    places : Places
    intervals : (checks, 2) array
        Between which places a number, or a string, must be.
    source : array
        Of each check: the intervals' source, or -1.
    """

    def __init__(
        self,
        checks: NDArray[np.void],
        owner: Ints,
        places: BoundingBoxes,
        set_items: NDArray[np.uint32],
        set_start: Ints,
        words: Vocabulary,
        sample: EventSample,
    ) -> None:
        self.checks = checks
        self.owner = owner
        self.places = places
        self.set_items = set_items
        self.set_start = set_start.astype(np.int64)
        self.words = words
        self.sample = sample
        self.path = np.full(len(checks), AccessPath.SCAN, np.int64)
        self.selectivity = np.ones(len(checks))
        self.intervals = np.zeros((len(checks), 2))
        self.source = np.full(len(checks), -1, np.int64)
        self._asked = (checks["flags"] & check_evaluation.NEGATED) == 0

    def asked(self, *kinds: int) -> Ints:
        """The checks of some kinds that must be true."""
        return np.flatnonzero(self._asked & np.isin(self.checks["kind"], kinds))

    def by_column(self, rows: Ints) -> list[Ints]:
        """Checks apart by the column that they ask about."""
        columns = self.checks["column"][rows]
        return [rows[columns == column] for column in np.unique(columns)]

    def learn(self, rows: Ints, shares: Callable[..., Floats], needed: NDArray[Any]) -> None:
        """Correct shares by the events of the sample, given what each check needs of them."""
        if len(self.sample):
            for own in self.by_column(rows):
                column = int(self.checks["column"][own[0]])
                self.selectivity[own] = shares(column, needed[own], self.selectivity[own])


# ------------------------------------------------------------------------------------------ places


def estimate_spatial_checks(known: CheckEstimates) -> None:
    """Of checks about geometries."""
    found = known.places
    rows = np.flatnonzero(found.kinds != NOTHING)
    areas = np.isin(found.kinds[rows], WITH_AREA)
    known.path[rows] = np.where(areas, AccessPath.REGION, AccessPath.BOX)
    for own in known.by_column(rows):
        density = _Density(found.boxes[own])
        known.selectivity[own] = density.selectivity(found.boxes[own])
        split, beyond = found.wrapped_boxes_of(own)
        both = known.selectivity[own[split]] + density.selectivity(beyond)
        known.selectivity[own[split]] = np.minimum(both, 1.0)
    if len(known.sample):
        known.learn(rows, known.sample.places, found.hulls())


class _Density:
    """How many of some boxes have their middle where; cells of equal numbers along each axis."""

    def __init__(self, boxes: Floats) -> None:
        whole = boxes[np.isfinite(boxes).all(axis=1)]
        step = -(-len(whole) // _SAMPLE) or 1
        middle = (whole[::step, :2] / 2 + whole[::step, 2:] / 2).T
        self._total = middle.shape[1]
        if not self._total:
            return
        steps = np.linspace(0.0, 1.0, _CELLS + 1)[1:-1]
        self._knots = [np.quantile(axis, steps, method="lower") for axis in middle]
        cells = [
            np.searchsorted(k, axis, "right") for k, axis in zip(self._knots, middle, strict=True)
        ]
        counts = np.zeros((_CELLS + 1, _CELLS + 1))
        np.add.at(counts, (cells[0] + 1, cells[1] + 1), 1.0)
        self._sums = counts.cumsum(axis=0).cumsum(axis=1)

    def selectivity(self, boxes: Floats) -> Floats:
        """The share of the middles that lie in cells that a box meets."""
        if not self._total:
            return np.ones(len(boxes))
        x0, y0, x1, y1 = (
            np.searchsorted(self._knots[k % 2], boxes[:, k], "right") + (k > 1) for k in range(4)
        )
        inside = self._sums[x1, y1] - self._sums[x0, y1] - self._sums[x1, y0] + self._sums[x0, y0]
        shares: Floats = np.maximum(inside, 1.0) / self._total
        return shares


# ------------------------------------------------------------------------- strings and truth values


def estimate_string_checks(known: CheckEstimates) -> None:
    """Of checks for one of a few strings."""
    items, start = known.set_items, known.set_start
    rows = known.asked(check_evaluation.MEMBER)
    rows = rows[np.diff(start)[known.checks["item"][rows]] <= _MAX_SET_SIZE]
    known.path[rows] = AccessPath.EQUALITY
    for own in known.by_column(rows):
        known.selectivity[own] = _string_shares(known.checks["item"][own], items, start)
    shares = partial(known.sample.strings, set_items=items, set_start=start, words=known.words)
    known.learn(rows, shares, known.checks["item"].astype(np.int64))


def _string_shares(
    sets: NDArray[np.uint32], set_items: NDArray[np.uint32], set_start: Ints
) -> Floats:
    """Of each set of strings: how often one of them is asked for, among all that are."""
    sets = sets.astype(np.int64)
    sizes = set_start[sets + 1] - set_start[sets]
    items = set_items[ranges(set_start[sets], sizes)]
    _, number, counts = np.unique(items, return_inverse=True, return_counts=True)
    ends = np.concatenate(([0], np.cumsum(counts[number])))
    stops = np.cumsum(sizes)
    shares: Floats = np.minimum((ends[stops] - ends[stops - sizes]) / max(len(items), 1), 1.0)
    return shares


def estimate_boolean_checks(known: CheckEstimates) -> None:
    """Of checks for one truth value, and for a missing attribute."""
    flags = known.checks["flags"]
    true, false = (
        flags & check_evaluation.ALLOWS_TRUE > 0,
        flags & check_evaluation.ALLOWS_FALSE > 0,
    )
    booleans, nulls = known.asked(check_evaluation.BOOLEAN), known.asked(check_evaluation.NULL)
    booleans = booleans[(true != false)[booleans]]
    for rows, shares in ((booleans, known.sample.truths), (nulls, known.sample.absences)):
        known.path[rows], known.selectivity[rows] = AccessPath.EQUALITY, 0.5
        known.learn(rows, shares, true | (known.checks["kind"] == check_evaluation.NULL))


# --------------------------------------------------------------------------------------- intervals


def estimate_interval_checks(known: CheckEstimates) -> None:
    """Of checks for a number, or the beginning or end of a string, between two bounds."""
    _find_ranges(known)
    _find_texts(known)
    rows = np.flatnonzero(known.source >= 0)
    known.path[rows] = AccessPath.INTERVAL
    learned = {
        segment_search.NUMBERS: known.sample.numbers,
        segment_search.PREFIXES: known.sample.beginnings,
        segment_search.SUFFIXES: known.sample.ends,
    }
    for source in np.unique(known.source[rows]).tolist():
        chosen = rows[known.source[rows] == source]
        for own in known.by_column(chosen):
            known.selectivity[own] = _interval_shares(known.intervals[own])
        known.learn(chosen, learned[source], known.intervals)


def _find_ranges(known: CheckEstimates) -> None:
    """The intervals of numbers; those of one filter for one number are taken together."""
    rows = known.asked(check_evaluation.RANGE)
    checks = known.checks[rows]
    known.source[rows] = segment_search.NUMBERS
    keys = known.owner[rows] << 32 | checks["column"].astype(np.int64)
    distinct, own = np.unique(keys, return_inverse=True)
    low, high = np.full(len(distinct), -np.inf), np.full(len(distinct), np.inf)
    np.maximum.at(low, own, checks["low"])
    np.minimum.at(high, own, checks["high"])
    known.intervals[rows] = np.column_stack((low[own], np.maximum(low, high)[own]))


def _find_texts(known: CheckEstimates) -> None:
    """The intervals of strings, by their first or last bytes."""
    start, text = known.words.start, known.words.bytes
    for check in known.asked(check_evaluation.ORDER, check_evaluation.LIKE).tolist():
        row = known.checks[check]
        item = int(row["item"])
        found = _text_interval(
            int(row["kind"]), int(row["flags"]), text[start[item] : start[item + 1]].tobytes()
        )
        if found is not None:
            known.source[check], *known.intervals[check] = found


def _text_interval(kind: int, flags: int, given: bytes) -> tuple[int, float, float] | None:
    """Where a string that passes stands by its first or last bytes, if they are bound."""
    if kind == check_evaluation.ORDER:
        place = prefix_key(given)
        less = flags & check_evaluation.LESS
        return (
            (segment_search.PREFIXES, -np.inf, place)
            if less
            else (segment_search.PREFIXES, place, np.inf)
        )
    wild = [k for k, byte in enumerate(given) if byte in (ANY_RUN, ANY_CHARACTER)]
    first, last = (given, b"") if not wild else (given[: wild[0]], given[wild[-1] + 1 :])
    if len(first) >= len(last):
        chosen, source = first, segment_search.PREFIXES
    else:
        chosen, source = last[::-1], segment_search.SUFFIXES
    if not chosen:
        return None
    return source, prefix_key(chosen), prefix_key(chosen, 0xFF)


def _interval_shares(intervals: Floats) -> Floats:
    """Of each interval: of the ends of all intervals, how many it holds."""
    ends = intervals[np.isfinite(intervals)]
    if not len(ends):
        return np.ones(len(intervals))
    ends = np.sort(ends[:: -(-len(ends) // _SAMPLE)])
    low = np.searchsorted(ends, intervals[:, 0], "left")
    high = np.searchsorted(ends, intervals[:, 1], "right")
    shares: Floats = np.maximum(high - low, 1) / len(ends)
    return shares
