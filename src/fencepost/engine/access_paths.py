"""By which of its checks each filter is found.

A filter must be found by every event that satisfies it, and by few others. Each check that can
find it has a *share*: of all events, how many are expected to pass (`selectivity.py`). The smallest
share wins, but for two things: a relation to an area is decided by finding it, while a filter with
a geometry that is found otherwise has that still to be compared; and words, which carry the box
with them, come first. Strings can be taken together, and with a box: their shares are multiplied
then.
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

GEOMETRY_COST_FACTOR = 4.0  # how much more it costs to look at a candidate that has a geometry


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
    check_selectivity : array
        Of each check: of the events, how many are expected to pass it; 1 where nothing is known.
    """

    path: NDArray[np.uint8]
    check: Ints
    selectivity: NDArray[np.float32]
    places: BoundingBoxes
    place: Ints
    intervals: Floats
    source: Ints
    check_selectivity: Floats

    def filters_on(self, path: AccessPath) -> Ints:
        """The filters under a path."""
        return np.flatnonzero(self.path == path)

    def costs(self) -> Floats:
        """What each filter costs: its share, and more where a geometry is still to be compared."""
        to_compare = (self.place >= 0) & (self.path > AccessPath.BOX)
        costs: Floats = self.selectivity.astype(np.float64) * np.where(
            to_compare, GEOMETRY_COST_FACTOR, 1.0
        )
        return costs

    def reassign(self, path: AccessPath, filters: Ints, shares: NDArray[np.float32]) -> Plan:
        """The plan with some filters found by another path."""
        paths, checks, all_shares = self.path.copy(), self.check.copy(), self.selectivity.copy()
        paths[filters], checks[filters], all_shares[filters] = path, -1, shares
        return replace(self, path=paths, check=checks, selectivity=all_shares)


def plan(
    checks: NDArray[np.void],
    owner: Ints,
    filters: int,
    shapes: ShapeArrays,
    set_items: NDArray[np.uint32],
    set_start: Ints,
    words: Vocabulary,
    sample: EventSample,
) -> Plan:
    """The path of each of so many filters; `owner` is the filter of each check."""
    found = bounding_boxes_of(checks, shapes)
    known = CheckEstimates(checks, owner, found, set_items, set_start, words, sample)
    for estimate in dict.fromkeys(kind.estimate for kind in KINDS if kind.estimate is not None):
        estimate(known)
    selectivity, path = known.selectivity, known.path
    spatial = np.flatnonzero(found.kinds != NOTHING)
    place = np.full(filters, -1, np.int64)
    order = spatial[np.argsort(-selectivity[spatial], kind="stable")]
    place[owner[order]] = order  # the smallest is written last, and stays
    usable = np.flatnonzero(path < AccessPath.SCAN)
    cost = selectivity[usable] * np.where(
        (place[owner[usable]] >= 0) & (path[usable] > AccessPath.BOX), GEOMETRY_COST_FACTOR, 1.0
    )
    order = usable[np.argsort(-cost, kind="stable")]
    check = np.full(filters, -1, np.int64)
    check[owner[order]] = order
    # Where there is none, -1, the last.
    return Plan(
        np.append(path, AccessPath.SCAN)[check].astype(np.uint8),
        check,
        np.append(selectivity, 1.0)[check].astype(np.float32),
        found,
        place,
        known.intervals,
        known.source,
        selectivity,
    )
