"""The planner: `plan` chooses the check by which events find each filter.

Every event that satisfies a filter must find it, and few other events should. Of the checks that
have an access path, the check with the lowest cost wins. The cost is the estimated selectivity of
the check (`selectivity.py`). It is higher by `GEOMETRY_COST_FACTOR` if the check is not spatial but
the filter has a geometry, because every candidate's geometry must then be compared.

Afterwards, `postings/posting_passes.py` moves filters to two more paths. Filters that need words
move to WORDS, whose postings also test a box. Filters with several strings, or with strings and a
box, move to SIGNATURE if that costs less; their selectivities are multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.bounding_boxes import BoundingBoxes, bounding_boxes_of
from fencepost.engine.columns.check_kinds import KINDS
from fencepost.engine.event_sampler import EventSample
from fencepost.engine.selectivity import AccessPath, CheckEstimates, Floats, Ints
from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.index.posting_arrays import NOTHING
from fencepost.kernels.text.vocabulary import Vocabulary

GEOMETRY_COST_FACTOR = 4.0  # cost of a candidate whose geometry must be compared


@dataclass(frozen=True, slots=True)
class Plan:
    """The access path of each filter, and what is known of each check.

    Attributes
    ----------
    path : (filters,) uint8 array
        `AccessPath` of each filter.
    check : (filters,) array
        Check by which each filter is found, or -1.
    selectivity : (filters,) float32 array
        Estimated fraction of the events that find each filter.
    bounding_boxes : BoundingBoxes
        Boxes that an event must meet for each check to be true.
    box_check : (filters,) array
        Check of each filter that has the most selective box, or -1.
    intervals : (checks, 2) array
        Bounds of the number, or of the key of the string, that each check requires.
    source : (checks,) array
        What the interval of each check bounds: `NUMBERS`, `PREFIXES` or `SUFFIXES` of
        `kernels.match.segment_search`, or -1.
    check_selectivity : (checks,) array
        Estimated fraction of the events that pass each check; 1 if unknown.
    """

    path: NDArray[np.uint8]
    check: Ints
    selectivity: NDArray[np.float32]
    bounding_boxes: BoundingBoxes
    box_check: Ints
    intervals: Floats
    source: Ints
    check_selectivity: Floats

    def filters_on(self, path: AccessPath) -> Ints:
        """Return the filters under a path."""
        return np.flatnonzero(self.path == path)

    def costs(self) -> Floats:
        """Return the cost of each filter, which is higher if a geometry must be compared."""
        has_geometry_left = (self.box_check >= 0) & (self.path > AccessPath.BOX)
        costs: Floats = self.selectivity.astype(np.float64) * np.where(
            has_geometry_left, GEOMETRY_COST_FACTOR, 1.0
        )
        return costs

    def reassign(self, path: AccessPath, filters: Ints, selectivities: NDArray[np.float32]) -> Plan:
        """Return a copy of the plan in which some filters have another path."""
        new_path, new_check, new_selectivity = (
            self.path.copy(),
            self.check.copy(),
            self.selectivity.copy(),
        )
        new_path[filters], new_check[filters], new_selectivity[filters] = path, -1, selectivities
        return replace(self, path=new_path, check=new_check, selectivity=new_selectivity)


def plan(
    checks: NDArray[np.void],
    owner: Ints,
    filter_count: int,
    shapes: ShapeArrays,
    set_items: NDArray[np.uint32],
    set_start: Ints,
    words: Vocabulary,
    sample: EventSample,
) -> Plan:
    """Plan filters for events like those of a sample; `owner` is the filter of each check."""
    boxes = bounding_boxes_of(checks, shapes)
    estimates = CheckEstimates(checks, owner, boxes, set_items, set_start, words, sample)
    for estimate in dict.fromkeys(kind.estimate for kind in KINDS if kind.estimate is not None):
        estimate(estimates)
    selectivity, path = estimates.selectivity, estimates.path
    spatial = np.flatnonzero(boxes.kinds != NOTHING)
    box_check = np.full(filter_count, -1, np.int64)
    order = spatial[np.argsort(-selectivity[spatial], kind="stable")]
    box_check[owner[order]] = (
        order  # of several checks, the last one written stays: the most selective
    )
    usable = np.flatnonzero(path < AccessPath.SCAN)
    cost = selectivity[usable] * np.where(
        (box_check[owner[usable]] >= 0) & (path[usable] > AccessPath.BOX), GEOMETRY_COST_FACTOR, 1.0
    )
    order = usable[np.argsort(-cost, kind="stable")]
    check = np.full(filter_count, -1, np.int64)
    check[owner[order]] = order
    # Filters without a usable check have the check -1, which picks the values appended here.
    return Plan(
        np.append(path, AccessPath.SCAN)[check].astype(np.uint8),
        check,
        np.append(selectivity, 1.0)[check].astype(np.float32),
        boxes,
        box_check,
        estimates.intervals,
        estimates.source,
        selectivity,
    )
