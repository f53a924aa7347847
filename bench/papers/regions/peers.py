"""Shapely as a peer: what a careful user would write to match a message with constraints.

There are two methods, since neither is always faster; comparisons take the faster one.

`TreeForEachRelation` has an STRtree for each relation, and queries it with the prepared message by
the GEOS predicate that decides the relation, or comes nearest to it:

- disjoint: all regions that do not intersect; meets: touches; overlaps: overlaps;
- contains: contains_properly; covers: boxes within, not contained properly, then covers;
- inside, covered-by: regions whose box contains the message's, found by a corner of it, then
  contains_properly and covers of the region, prepared once for all messages;
- equals: regions with the same box, found in a dictionary, then equals.

`BoundaryFirst` cuts the message's boundary into short pieces and queries one tree for the boxes
that they touch. All other regions lie apart from the boundary, so one point of a region tells
whether it lies in the message. Touched regions are decided by predicates as above.

Both return the numbers of all constraints that hold, ascending.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from bench.papers.regions.workloads import Workload
from fencepost.geometry.relation import RELATIONS
from fencepost.testing import Geometries

Rows = NDArray[np.int64]
_PIECES = 128  # the approximate number of pieces of a message's boundary
_DISJOINT, _MEETS, _OVERLAPS, _EQUALS, _INSIDE, _CONTAINS, _COVERS, _COVERED_BY = range(
    len(RELATIONS)
)


class Peer(Protocol):
    """A method that matches with Shapely."""

    name: ClassVar[str]

    def __init__(self, workload: Workload) -> None: ...

    def match(self, message: BaseGeometry) -> Rows:
        """Return the constraints that a message satisfies."""


def _where(rows: Rows, holds: Any) -> Rows:
    kept: Rows = rows[holds]
    return kept


class _Bucket:
    """The constraints of one relation: their numbers, regions and boxes, and a tree."""

    def __init__(self, rows: Rows, regions: Geometries) -> None:
        self.rows = rows
        self.regions = regions[rows]
        self.boxes = shapely.bounds(self.regions)
        self.tree = shapely.STRtree(self.regions)

    def boxes_within(self, message: BaseGeometry) -> Rows:
        x0, y0, x1, y1 = message.bounds
        candidates: Rows = self.tree.query(message)
        box = self.boxes[candidates].T
        return _where(candidates, (box[0] >= x0) & (box[1] >= y0) & (box[2] <= x1) & (box[3] <= y1))

    def boxes_around(self, message: BaseGeometry) -> Rows:
        x0, y0, x1, y1 = message.bounds
        candidates: Rows = self.tree.query(shapely.points(x0, y0))
        box = self.boxes[candidates].T
        return _where(candidates, (box[0] <= x0) & (box[1] <= y0) & (box[2] >= x1) & (box[3] >= y1))


class _Shared:
    """Equals, inside and covered-by, which both methods decide in the same way."""

    def __init__(self, workload: Workload) -> None:
        self.buckets = [
            _Bucket(np.flatnonzero(workload.relations == code), workload.regions)
            for code in range(len(RELATIONS))
        ]
        shapely.prepare(self.buckets[_INSIDE].regions)
        shapely.prepare(self.buckets[_COVERED_BY].regions)
        self.of_box: dict[tuple[float, ...], list[int]] = {}
        for row, box in enumerate(self.buckets[_EQUALS].boxes.tolist()):
            self.of_box.setdefault(tuple(box), []).append(row)

    def equal(self, message: BaseGeometry) -> Rows:
        bucket = self.buckets[_EQUALS]
        same = np.array(self.of_box.get(message.bounds, []), np.int64)
        return bucket.rows[_where(same, shapely.equals(message, bucket.regions[same]))]

    def inside(self, message: BaseGeometry) -> Rows:
        bucket = self.buckets[_INSIDE]
        around = bucket.boxes_around(message)
        holds = shapely.contains_properly(bucket.regions[around], message)
        return bucket.rows[_where(around, holds)]

    def covered_by(self, message: BaseGeometry) -> Rows:
        bucket = self.buckets[_COVERED_BY]
        around = bucket.boxes_around(message)
        around = around[~shapely.contains_properly(bucket.regions[around], message)]
        around = around[shapely.covers(bucket.regions[around], message)]
        return bucket.rows[_unequal(bucket, around, message)]


def _unequal(bucket: _Bucket, candidates: Rows, message: BaseGeometry) -> Rows:
    """Return the candidates that do not equal the message."""
    is_equal = (bucket.boxes[candidates] == message.bounds).all(axis=1)
    if is_equal.any():
        is_equal[is_equal] = shapely.equals(message, bucket.regions[candidates[is_equal]])
    return _where(candidates, ~is_equal)


class TreeForEachRelation:
    """A tree for each relation, and prepared predicates."""

    name: ClassVar[str] = "Shapely, tree a relation"

    def __init__(self, workload: Workload) -> None:
        self._shared = _Shared(workload)

    def match(self, message: BaseGeometry) -> Rows:
        """Return the constraints that a message satisfies; prepares the message."""
        shapely.prepare(message)
        matches = [
            self._disjoint(message),
            self._query(_MEETS, message, "touches"),
            self._query(_OVERLAPS, message, "overlaps"),
            self._query(_CONTAINS, message, "contains_properly"),
            self._covered(message),
            self._shared.equal(message),
            self._shared.inside(message),
            self._shared.covered_by(message),
        ]
        shapely.destroy_prepared(message)
        return np.sort(np.concatenate(matches))

    def _query(self, relation: int, message: BaseGeometry, predicate: str) -> Rows:
        bucket = self._shared.buckets[relation]
        return _where(bucket.rows, bucket.tree.query(message, predicate))

    def _disjoint(self, message: BaseGeometry) -> Rows:
        bucket = self._shared.buckets[_DISJOINT]
        apart = np.ones(len(bucket.rows), bool)
        apart[bucket.tree.query(message, "intersects")] = False
        return bucket.rows[apart]

    def _covered(self, message: BaseGeometry) -> Rows:
        bucket = self._shared.buckets[_COVERS]
        within = bucket.boxes_within(message)
        within = within[~shapely.contains_properly(message, bucket.regions[within])]
        within = within[shapely.covers(message, bucket.regions[within])]
        return bucket.rows[_unequal(bucket, within, message)]


class BoundaryFirst:
    """One tree, which is queried first for the boxes that the message's boundary touches."""

    name: ClassVar[str] = "Shapely, boundary first"

    def __init__(self, workload: Workload) -> None:
        self._shared = _Shared(workload)
        relations = workload.relations
        decided = np.isin(relations, (_DISJOINT, _MEETS, _OVERLAPS, _CONTAINS, _COVERS))
        self._near_boundary = _Bucket(np.flatnonzero(decided), workload.regions)
        placed = np.isin(relations, (_DISJOINT, _CONTAINS))
        self._placed = _Bucket(np.flatnonzero(placed), workload.regions)
        first = shapely.get_point(shapely.get_exterior_ring(workload.regions), 0)
        self._point = shapely.get_coordinates(first)
        self._regions = workload.regions
        self._relations = relations
        self._disjoint = relations == _DISJOINT

    def match(self, message: BaseGeometry) -> Rows:
        """Return the constraints that a message satisfies; prepares the message."""
        shapely.prepare(message)
        touched = self._touched(message)
        inside = self._untouched_inside(message, touched)
        holds = self._disjoint.copy()
        holds[inside] = self._relations[inside] == _CONTAINS
        for relation, predicate in (
            (_DISJOINT, shapely.disjoint),
            (_MEETS, shapely.touches),
            (_OVERLAPS, shapely.overlaps),
            (_CONTAINS, shapely.contains_properly),
        ):
            rows = touched[self._relations[touched] == relation]
            holds[rows] = predicate(message, self._regions[rows])
        holds[self._covered(message, touched)] = True
        for rows in (
            self._shared.equal(message),
            self._shared.inside(message),
            self._shared.covered_by(message),
        ):
            holds[rows] = True
        shapely.destroy_prepared(message)
        return np.flatnonzero(holds)

    def _touched(self, message: BaseGeometry) -> Rows:
        """Return the constraints whose box touches that of a piece of the message's boundary."""
        ring = shapely.segmentize(message, message.length / _PIECES)
        points = shapely.get_coordinates(ring)
        low = np.minimum(points[:-1], points[1:])
        high = np.maximum(points[:-1], points[1:])
        # The ends of a piece are rounded and may lie beside the boundary, so its box is widened.
        slack = 1e-12 * np.abs(points).max()
        pieces = shapely.box(*(low - slack).T, *(high + slack).T)
        bucket = self._near_boundary
        hit = np.zeros(len(bucket.rows), bool)
        hit[bucket.tree.query(pieces)[1]] = True
        return bucket.rows[hit]

    def _untouched_inside(self, message: BaseGeometry, touched: Rows) -> Rows:
        bucket = self._placed
        near = bucket.rows[bucket.tree.query(message)]
        is_touched = np.zeros(len(self._relations), bool)
        is_touched[touched] = True
        free = near[~is_touched[near]]
        return _where(free, shapely.contains_xy(message, *self._point[free].T))

    def _covered(self, message: BaseGeometry, touched: Rows) -> Rows:
        rows = touched[self._relations[touched] == _COVERS]
        x0, y0, x1, y1 = message.bounds
        box = shapely.bounds(self._regions[rows]).T
        rows = rows[(box[0] >= x0) & (box[1] >= y0) & (box[2] <= x1) & (box[3] <= y1)]
        rows = rows[~shapely.contains_properly(message, self._regions[rows])]
        rows = rows[shapely.covers(message, self._regions[rows])]
        is_equal = (shapely.bounds(self._regions[rows]) == message.bounds).all(axis=1)
        is_equal[is_equal] = shapely.equals(message, self._regions[rows[is_equal]])
        return _where(rows, ~is_equal)


PEERS: tuple[type[Peer], ...] = (TreeForEachRelation, BoundaryFirst)
