"""`CheckEstimates`: the access path and the estimated selectivity of each check.

The selectivity of a check is the fraction of the events that pass it. Without a sample of events,
events are assumed to be distributed like subscriptions: a string occurs as often as filters name
it, and numbers and positions lie as densely as the ends of intervals and the centres of boxes. A
sample, if there is one, corrects these estimates.
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

_MAX_SET_SIZE = 1024  # strings of a check; more would need too many postings for one filter
_MAX_SAMPLED_VALUES = 2**14  # centres of boxes, or ends of intervals, from which densities follow
_CELLS_PER_AXIS = 64  # of a density


class AccessPath(IntEnum):
    """How events find a filter."""

    WORDS = 0
    REGION = 1  # a relation to an area
    BOX = 2  # contact with a geometry that is no area, or nearness to a geometry
    EQUALITY = 3
    INTERVAL = 4
    SCAN = 5
    SIGNATURE = 6  # several strings, or strings and a box


class CheckEstimates:
    """Checks, with the access path and the selectivity of each as far as they are known.

    Attributes
    ----------
    path : (checks,) array
        `AccessPath` by which each check can find its filter; SCAN if by none.
    selectivity : (checks,) array
        Estimated selectivity of each check; 1 if unknown.
    boxes : BoundingBoxes
        Boxes that an event must meet for each check to be true.
    intervals : (checks, 2) array
        Bounds of the number, or of the key of the string, that each check requires.
    source : (checks,) array
        What the interval of each check bounds: `NUMBERS`, `PREFIXES` or `SUFFIXES` of
        `kernels.match.segment_search`, or -1.
    """

    def __init__(
        self,
        checks: NDArray[np.void],
        owner: Ints,
        boxes: BoundingBoxes,
        set_items: NDArray[np.uint32],
        set_start: Ints,
        words: Vocabulary,
        sample: EventSample,
    ) -> None:
        self.checks = checks
        self.owner = owner
        self.boxes = boxes
        self.set_items = set_items
        self.set_start = set_start.astype(np.int64)
        self.words = words
        self.sample = sample
        self.path = np.full(len(checks), AccessPath.SCAN, np.int64)
        self.selectivity = np.ones(len(checks))
        self.intervals = np.zeros((len(checks), 2))
        self.source = np.full(len(checks), -1, np.int64)
        self._is_positive = (checks["flags"] & check_evaluation.NEGATED) == 0

    def positive_checks(self, *kinds: int) -> Ints:
        """Return the checks of some kinds that are not negated."""
        return np.flatnonzero(self._is_positive & np.isin(self.checks["kind"], kinds))

    def by_column(self, rows: Ints) -> list[Ints]:
        """Group checks by the column that they read."""
        columns = self.checks["column"][rows]
        return [rows[columns == column] for column in np.unique(columns)]

    def apply_sample(
        self, rows: Ints, estimate: Callable[..., Floats], requirements: NDArray[Any]
    ) -> None:
        """Correct the selectivity of some checks by the sample, if there is one.

        Parameters
        ----------
        rows : array
            Checks to correct.
        estimate : callable
            Method of `EventSample`.
        requirements : (checks, ...) array
            What each check requires, in the form that `estimate` takes.
        """
        if len(self.sample):
            for group in self.by_column(rows):
                column = int(self.checks["column"][group[0]])
                self.selectivity[group] = estimate(
                    column, requirements[group], self.selectivity[group]
                )


# -------------------------------------------------------------------------------------- geometries


def estimate_spatial_checks(estimates: CheckEstimates) -> None:
    """Estimate the checks that compare a geometry."""
    boxes = estimates.boxes
    rows = np.flatnonzero(boxes.kinds != NOTHING)
    has_area = np.isin(boxes.kinds[rows], WITH_AREA)
    estimates.path[rows] = np.where(has_area, AccessPath.REGION, AccessPath.BOX)
    for group in estimates.by_column(rows):
        density = _Density(boxes.boxes[group])
        estimates.selectivity[group] = density.selectivity(boxes.boxes[group])
        split, beyond = boxes.wrapped_boxes_of(group)
        both = estimates.selectivity[group[split]] + density.selectivity(beyond)
        estimates.selectivity[group[split]] = np.minimum(both, 1.0)
    if len(estimates.sample):
        estimates.apply_sample(rows, estimates.sample.estimate_boxes, boxes.hulls())


class _Density:
    """Density of the centres of boxes: counts in a grid whose lines are quantiles of each axis."""

    def __init__(self, boxes: Floats) -> None:
        finite = boxes[np.isfinite(boxes).all(axis=1)]
        step = -(-len(finite) // _MAX_SAMPLED_VALUES) or 1
        centres = (finite[::step, :2] / 2 + finite[::step, 2:] / 2).T
        self._total = centres.shape[1]
        if not self._total:
            return
        steps = np.linspace(0.0, 1.0, _CELLS_PER_AXIS + 1)[1:-1]
        self._lines = [np.quantile(axis, steps, method="lower") for axis in centres]
        cells = [
            np.searchsorted(lines, axis, "right")
            for lines, axis in zip(self._lines, centres, strict=True)
        ]
        counts = np.zeros((_CELLS_PER_AXIS + 1, _CELLS_PER_AXIS + 1))
        np.add.at(counts, (cells[0] + 1, cells[1] + 1), 1.0)
        self._sums = counts.cumsum(axis=0).cumsum(axis=1)

    def selectivity(self, boxes: Floats) -> Floats:
        """Return the fraction of the centres in cells that each box meets."""
        if not self._total:
            return np.ones(len(boxes))
        x0, y0, x1, y1 = (
            np.searchsorted(self._lines[k % 2], boxes[:, k], "right") + (k > 1) for k in range(4)
        )
        inside = self._sums[x1, y1] - self._sums[x0, y1] - self._sums[x1, y0] + self._sums[x0, y0]
        fractions: Floats = np.maximum(inside, 1.0) / self._total
        return fractions


# ---------------------------------------------------------------------------- strings and booleans


def estimate_string_checks(estimates: CheckEstimates) -> None:
    """Estimate the checks that an attribute is one of some strings."""
    items, start = estimates.set_items, estimates.set_start
    rows = estimates.positive_checks(check_evaluation.MEMBER)
    rows = rows[np.diff(start)[estimates.checks["item"][rows]] <= _MAX_SET_SIZE]
    estimates.path[rows] = AccessPath.EQUALITY
    for group in estimates.by_column(rows):
        estimates.selectivity[group] = _set_selectivity(
            estimates.checks["item"][group], items, start
        )
    estimate = partial(
        estimates.sample.estimate_strings,
        set_items=items,
        set_start=start,
        words=estimates.words,
    )
    estimates.apply_sample(rows, estimate, estimates.checks["item"].astype(np.int64))


def _set_selectivity(
    sets: NDArray[np.uint32], set_items: NDArray[np.uint32], set_start: Ints
) -> Floats:
    """Return how often the strings of each set occur in all sets, as a fraction."""
    sets = sets.astype(np.int64)
    sizes = set_start[sets + 1] - set_start[sets]
    items = set_items[ranges(set_start[sets], sizes)]
    _, inverse, counts = np.unique(items, return_inverse=True, return_counts=True)
    ends = np.concatenate(([0], np.cumsum(counts[inverse])))
    stops = np.cumsum(sizes)
    fractions: Floats = np.minimum((ends[stops] - ends[stops - sizes]) / max(len(items), 1), 1.0)
    return fractions


def estimate_boolean_checks(estimates: CheckEstimates) -> None:
    """Estimate the checks that an attribute is true, is false, or is null."""
    flags = estimates.checks["flags"]
    allows_true, allows_false = (
        flags & check_evaluation.ALLOWS_TRUE > 0,
        flags & check_evaluation.ALLOWS_FALSE > 0,
    )
    booleans = estimates.positive_checks(check_evaluation.BOOLEAN)
    nulls = estimates.positive_checks(check_evaluation.NULL)
    booleans = booleans[(allows_true != allows_false)[booleans]]
    requires_one = allows_true | (estimates.checks["kind"] == check_evaluation.NULL)
    sample = estimates.sample
    for rows, estimate in (
        (booleans, sample.estimate_booleans),
        (nulls, sample.estimate_nulls),
    ):
        estimates.path[rows], estimates.selectivity[rows] = AccessPath.EQUALITY, 0.5
        estimates.apply_sample(rows, estimate, requires_one)


# --------------------------------------------------------------------------------------- intervals


def estimate_interval_checks(estimates: CheckEstimates) -> None:
    """Estimate the checks that a number, or the start or end of a string, is in an interval."""
    _set_number_intervals(estimates)
    _set_text_intervals(estimates)
    rows = np.flatnonzero(estimates.source >= 0)
    estimates.path[rows] = AccessPath.INTERVAL
    estimate_of_source = {
        segment_search.NUMBERS: estimates.sample.estimate_numbers,
        segment_search.PREFIXES: estimates.sample.estimate_prefixes,
        segment_search.SUFFIXES: estimates.sample.estimate_suffixes,
    }
    for source in np.unique(estimates.source[rows]).tolist():
        rows_of_source = rows[estimates.source[rows] == source]
        for group in estimates.by_column(rows_of_source):
            estimates.selectivity[group] = _interval_selectivity(estimates.intervals[group])
        estimates.apply_sample(rows_of_source, estimate_of_source[source], estimates.intervals)


def _set_number_intervals(estimates: CheckEstimates) -> None:
    """Set the intervals of number checks.

    Checks of one filter on one column share the intersection of their intervals.
    """
    rows = estimates.positive_checks(check_evaluation.RANGE)
    checks = estimates.checks[rows]
    estimates.source[rows] = segment_search.NUMBERS
    keys = estimates.owner[rows] << 32 | checks["column"].astype(np.int64)
    distinct, inverse = np.unique(keys, return_inverse=True)
    low, high = np.full(len(distinct), -np.inf), np.full(len(distinct), np.inf)
    np.maximum.at(low, inverse, checks["low"])
    np.minimum.at(high, inverse, checks["high"])
    estimates.intervals[rows] = np.column_stack((low[inverse], np.maximum(low, high)[inverse]))


def _set_text_intervals(estimates: CheckEstimates) -> None:
    """Set the intervals of string checks, which bound the first or last bytes of the string."""
    start, text = estimates.words.start, estimates.words.bytes
    for check in estimates.positive_checks(check_evaluation.ORDER, check_evaluation.LIKE).tolist():
        row = estimates.checks[check]
        item = int(row["item"])
        interval = _text_interval(
            int(row["kind"]), int(row["flags"]), text[start[item] : start[item + 1]].tobytes()
        )
        if interval is not None:
            estimates.source[check], *estimates.intervals[check] = interval


def _text_interval(kind: int, flags: int, operand: bytes) -> tuple[int, float, float] | None:
    """Return the source and the bounds of a string check's interval; None if it has none.

    operand : the string to compare with, or the LIKE pattern.
    """
    if kind == check_evaluation.ORDER:
        key = prefix_key(operand)
        less = flags & check_evaluation.LESS
        return (
            (segment_search.PREFIXES, -np.inf, key)
            if less
            else (segment_search.PREFIXES, key, np.inf)
        )
    wildcards = [k for k, byte in enumerate(operand) if byte in (ANY_RUN, ANY_CHARACTER)]
    prefix, suffix = operand, b""
    if wildcards:
        prefix, suffix = operand[: wildcards[0]], operand[wildcards[-1] + 1 :]
    if len(prefix) >= len(suffix):
        text, source = prefix, segment_search.PREFIXES
    else:
        text, source = suffix[::-1], segment_search.SUFFIXES
    if not text:
        return None
    return source, prefix_key(text), prefix_key(text, 0xFF)


def _interval_selectivity(intervals: Floats) -> Floats:
    """Return the fraction of all intervals' ends that each interval holds."""
    ends = intervals[np.isfinite(intervals)]
    if not len(ends):
        return np.ones(len(intervals))
    ends = np.sort(ends[:: -(-len(ends) // _MAX_SAMPLED_VALUES)])
    low = np.searchsorted(ends, intervals[:, 0], "left")
    high = np.searchsorted(ends, intervals[:, 1], "right")
    fractions: Floats = np.maximum(high - low, 1) / len(ends)
    return fractions
