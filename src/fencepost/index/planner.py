"""By which of its checks each filter is found.

A filter must be found by every event that satisfies it, and by few others. Each check that can
find it has a *share*: of all events, how many are expected to pass. Without events to look at,
they are expected to be where subscriptions are: strings as often as filters ask for them,
numbers and places as densely as the middles of intervals and boxes lie. A sample of the events that
went by, where there is one, corrects that. The smallest share wins,
but for two things: a relation to an area is decided by finding it, while a filter with a geometry
that is found otherwise has that still to be compared; and words, which carry the box with them,
come first. Strings can be taken together, and with a box: their shares are multiplied then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.index.places import Places, places_of
from fencepost.index.posts import ranges
from fencepost.index.seen import Sample
from fencepost.index.table import place_of
from fencepost.kernels import checking, matching
from fencepost.kernels.like import ANY_RUN, ONE
from fencepost.kernels.places import AREA, RECTANGLE
from fencepost.kernels.shapes import ShapeArrays
from fencepost.kernels.vocabulary import Vocabulary

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_POSTINGS = 1024  # strings of one check; more are many places to change for one filter
TO_COMPARE = 4.0  # how much more it costs to look at a candidate that has a geometry
_SAMPLE = 2**14
_CELLS = 64  # of a density, a side


class Path(IntEnum):
    """How a filter is found."""

    WORDS = 0
    REGION = 1  # a relation to an area
    PLACE = 2  # contact with, or nearness to, some other geometry
    EQUALITY = 3
    INTERVAL = 4
    SCAN = 5
    COMBINED = 6  # several strings, or strings and a place


@dataclass(frozen=True, slots=True)
class Plan:
    """What finds each filter.

    Attributes
    ----------
    path : uint8 array
        Of each filter.
    check : array
        Of each filter, the check that finds it, or -1.
    share : float32 array
        Of each filter: of the events, how many are expected to find it.
    places : Places
        Where an event must be for each check to be true.
    place : array
        Of each filter, the check with the smallest box, or -1.
    intervals : (checks, 2) array
        Between which places a number, or a string, must be.
    source : array
        Of each check: the intervals' source, or -1.
    shares : array
        Of each check: of the events, how many are expected to pass it; 1 where nothing is known.
    """

    path: NDArray[np.uint8]
    check: Ints
    share: NDArray[np.float32]
    places: Places
    place: Ints
    intervals: Floats
    source: Ints
    shares: Floats

    def found_by(self, path: Path) -> Ints:
        """The filters under a path."""
        return np.flatnonzero(self.path == path)

    def costs(self) -> Floats:
        """What each filter costs: its share, and more where a geometry is still to be compared."""
        to_compare = (self.place >= 0) & (self.path > Path.PLACE)
        costs: Floats = self.share.astype(np.float64) * np.where(to_compare, TO_COMPARE, 1.0)
        return costs

    def put_under(self, path: Path, filters: Ints, shares: NDArray[np.float32]) -> Plan:
        """The plan with some filters found by another path."""
        paths, checks, all_shares = self.path.copy(), self.check.copy(), self.share.copy()
        paths[filters], checks[filters], all_shares[filters] = path, -1, shares
        return replace(self, path=paths, check=checks, share=all_shares)


def plan(
    checks: NDArray[np.void],
    owner: Ints,
    filters: int,
    shapes: ShapeArrays,
    set_items: NDArray[np.uint32],
    set_start: Ints,
    words: Vocabulary,
    sample: Sample,
) -> Plan:
    """The path of each of so many filters; `owner` is the filter of each check."""
    asked = (checks["flags"] & checking.NEGATED) == 0
    found = places_of(checks, shapes)
    spatial = np.flatnonzero(found.kinds)
    intervals, source = _intervals(checks, owner, asked, words)
    share = np.ones(len(checks))
    path = np.full(len(checks), Path.SCAN, np.int64)
    for rows in _by_column(checks, spatial):
        density = _Density(found.boxes[rows])
        share[rows] = density.share(found.boxes[rows])
        split, beyond = found.beyond_of(rows)
        share[rows[split]] = np.minimum(share[rows[split]] + density.share(beyond), 1.0)
    areas = (found.kinds[spatial] == AREA) | (found.kinds[spatial] == RECTANGLE)
    path[spatial] = np.where(areas, Path.REGION, Path.PLACE)
    members = np.flatnonzero(asked & (checks["kind"] == checking.MEMBER))
    members = members[np.diff(set_start)[checks["item"][members]] <= _MOST_POSTINGS]
    for rows in _by_column(checks, members):
        share[rows] = _string_shares(checks["item"][rows], set_items, set_start)
    flags = checks["flags"]
    either = (flags & checking.ALLOWS_TRUE > 0) != (flags & checking.ALLOWS_FALSE > 0)
    halves = np.flatnonzero(
        asked
        & ((checks["kind"] == checking.NULL) | ((checks["kind"] == checking.BOOLEAN) & either))
    )
    share[halves] = 0.5
    path[members] = path[halves] = Path.EQUALITY
    ranged = np.flatnonzero(source >= 0)
    path[ranged] = Path.INTERVAL
    for own in np.unique(source[ranged]):
        for rows in _by_column(checks, ranged[source[ranged] == own]):
            share[rows] = _interval_shares(intervals[rows])
    if len(sample):
        kind = checks["kind"][halves]
        wanted = (flags & checking.ALLOWS_TRUE > 0) | (checks["kind"] == checking.NULL)
        strings = partial(
            sample.strings, set_items=set_items, set_start=set_start.astype(np.int64), words=words
        )
        ranges_of = source[ranged]
        learned: tuple[tuple[Ints, Callable[..., Floats], NDArray[Any]], ...] = (
            (spatial, sample.places, found.joined()),
            (members, strings, checks["item"].astype(np.int64)),
            (halves[kind == checking.BOOLEAN], sample.truths, wanted),
            (halves[kind == checking.NULL], sample.absences, wanted),
            (ranged[ranges_of == matching.NUMBERS], sample.numbers, intervals),
            (ranged[ranges_of == matching.BEGINNINGS], sample.beginnings, intervals),
            (ranged[ranges_of == matching.ENDS], sample.ends, intervals),
        )
        for rows, shares, needed in learned:
            for own in _by_column(checks, rows):
                column = int(checks["column"][own[0]])
                share[own] = shares(column, needed[own], share[own])
    place = np.full(filters, -1, np.int64)
    order = spatial[np.argsort(-share[spatial], kind="stable")]
    place[owner[order]] = order  # the smallest is written last, and stays
    usable = np.flatnonzero(path < Path.SCAN)
    cost = share[usable] * np.where(
        (place[owner[usable]] >= 0) & (path[usable] > Path.PLACE), TO_COMPARE, 1.0
    )
    order = usable[np.argsort(-cost, kind="stable")]
    check = np.full(filters, -1, np.int64)
    check[owner[order]] = order
    # Where there is none, -1, the last.
    return Plan(
        np.append(path, Path.SCAN)[check].astype(np.uint8),
        check,
        np.append(share, 1.0)[check].astype(np.float32),
        found,
        place,
        intervals,
        source,
        share,
    )


def _by_column(checks: NDArray[np.void], rows: Ints) -> list[Ints]:
    """Checks apart by the column that they ask about."""
    columns = checks["column"][rows]
    return [rows[columns == column] for column in np.unique(columns)]


# ------------------------------------------------------------------------------------------ places


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

    def share(self, boxes: Floats) -> Floats:
        """The share of the middles that lie in cells that a box meets."""
        if not self._total:
            return np.ones(len(boxes))
        x0, y0, x1, y1 = (
            np.searchsorted(self._knots[k % 2], boxes[:, k], "right") + (k > 1) for k in range(4)
        )
        inside = self._sums[x1, y1] - self._sums[x0, y1] - self._sums[x1, y0] + self._sums[x0, y0]
        shares: Floats = np.maximum(inside, 1.0) / self._total
        return shares


# ----------------------------------------------------------------------------------------- strings


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


# --------------------------------------------------------------------------------------- intervals


def _intervals(
    checks: NDArray[np.void], owner: Ints, asked: Bools, words: Vocabulary
) -> tuple[Floats, Ints]:
    """The interval in which each check needs a number or string, and of what kind it is.

    Those of one filter for one number are taken together.
    """
    intervals = np.zeros((len(checks), 2))
    source = np.full(len(checks), -1, np.int64)
    ranged = np.flatnonzero(asked & (checks["kind"] == checking.RANGE))
    intervals[ranged, 0] = checks["low"][ranged]
    intervals[ranged, 1] = checks["high"][ranged]
    source[ranged] = matching.NUMBERS
    keys = owner[ranged] << 32 | checks["column"][ranged].astype(np.int64)
    distinct, own = np.unique(keys, return_inverse=True)
    low, high = np.full(len(distinct), -np.inf), np.full(len(distinct), np.inf)
    np.maximum.at(low, own, intervals[ranged, 0])
    np.minimum.at(high, own, intervals[ranged, 1])
    intervals[ranged] = np.column_stack((low[own], np.maximum(low, high)[own]))
    texts = np.flatnonzero(asked & np.isin(checks["kind"], (checking.ORDER, checking.LIKE)))
    start, text = words.start, words.bytes
    for check in texts.tolist():
        item = int(checks["item"][check])
        found = _text_interval(
            int(checks["kind"][check]),
            int(checks["flags"][check]),
            text[start[item] : start[item + 1]].tobytes(),
        )
        if found is not None:
            source[check], *intervals[check] = found
    return intervals, source


def _text_interval(kind: int, flags: int, given: bytes) -> tuple[int, float, float] | None:
    """Where a string that passes stands by its first or last bytes, if they are bound."""
    if kind == checking.ORDER:
        place = place_of(given)
        less = flags & checking.LESS
        return (
            (matching.BEGINNINGS, -np.inf, place) if less else (matching.BEGINNINGS, place, np.inf)
        )
    wild = [k for k, byte in enumerate(given) if byte in (ANY_RUN, ONE)]
    first, last = (given, b"") if not wild else (given[: wild[0]], given[wild[-1] + 1 :])
    if len(first) >= len(last):
        chosen, source = first, matching.BEGINNINGS
    else:
        chosen, source = last[::-1], matching.ENDS
    if not chosen:
        return None
    return source, place_of(chosen), place_of(chosen, 0xFF)


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
