"""What a careful user of Shapely would write to match a message against constraints on regions.

Two ways, since neither wins everywhere; a comparison with Shapely takes the faster one.

`TreeForEachRelation` keeps an STRtree for each relation and asks it the GEOS predicate that
decides the relation, or comes nearest to it, of the prepared message:

- disjoint: all but those that intersect; meets: touches; overlaps: overlaps;
- contains: contains_properly; covers: boxes within, not contained properly, then covers;
- inside, covered-by: regions whose box holds the message's, found by one corner of it, then
  contains_properly and covers of the region, prepared once for all messages;
- equals: regions of the same box, found in a dictionary, then equals.

`BoundaryFirst` cuts the message's boundary into short pieces and asks one tree which boxes they
touch. Every other region is apart from the boundary, so one of its points tells whether it lies in
the message. What is touched is decided by predicates as above.

Both answer with the numbers of all constraints that hold, in ascending order.
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
_PIECES = 128  # of a message's boundary, about
_DISJOINT, _MEETS, _OVERLAPS, _EQUALS, _INSIDE, _CONTAINS, _COVERS, _COVERED_BY = range(
    len(RELATIONS)
)


class Peer(Protocol):
    """A way to match with Shapely."""

    name: ClassVar[str]

    def __init__(self, workload: Workload) -> None: ...

    def match(self, message: BaseGeometry) -> Rows:
        """The constraints that a message satisfies."""


def _where(rows: Rows, holds: Any) -> Rows:
    kept: Rows = rows[holds]
    return kept


class _Bucket:
    """The constraints of one relation: their numbers, regions, boxes, and a tree."""

    def __init__(self, rows: Rows, regions: Geometries) -> None:
        self.rows = rows
        self.regions = regions[rows]
        self.boxes = shapely.bounds(self.regions)
        self.tree = shapely.STRtree(self.regions)

    def boxes_within(self, message: BaseGeometry) -> Rows:
        x0, y0, x1, y1 = message.bounds
        found: Rows = self.tree.query(message)
        box = self.boxes[found].T
        return _where(found, (box[0] >= x0) & (box[1] >= y0) & (box[2] <= x1) & (box[3] <= y1))

    def boxes_around(self, message: BaseGeometry) -> Rows:
        x0, y0, x1, y1 = message.bounds
        found: Rows = self.tree.query(shapely.points(x0, y0))
        box = self.boxes[found].T
        return _where(found, (box[0] <= x0) & (box[1] <= y0) & (box[2] >= x1) & (box[3] >= y1))


class _Shared:
    """Equals, inside and covered-by, which both ways decide alike."""

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


def _unequal(bucket: _Bucket, found: Rows, message: BaseGeometry) -> Rows:
    """Those of the regions found that do not equal the message."""
    alike = (bucket.boxes[found] == message.bounds).all(axis=1)
    if alike.any():
        alike[alike] = shapely.equals(message, bucket.regions[found[alike]])
    return _where(found, ~alike)


class TreeForEachRelation:
    """A tree for each relation, and prepared predicates."""

    name: ClassVar[str] = "Shapely, tree a relation"

    def __init__(self, workload: Workload) -> None:
        self._shared = _Shared(workload)

    def match(self, message: BaseGeometry) -> Rows:
        """The constraints that a message satisfies; it is prepared here."""
        shapely.prepare(message)
        found = [
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
        return np.sort(np.concatenate(found))

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
    """One tree, asked first what the message's boundary touches."""

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
        """The constraints that a message satisfies; it is prepared here."""
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
        """The constraints whose box touches that of a piece of the message's boundary."""
        ring = shapely.segmentize(message, message.length / _PIECES)
        points = shapely.get_coordinates(ring)
        low = np.minimum(points[:-1], points[1:])
        high = np.maximum(points[:-1], points[1:])
        # A piece's ends are rounded, so it may lie beside the boundary: its box is a bit wider.
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
        alike = (shapely.bounds(self._regions[rows]) == message.bounds).all(axis=1)
        alike[alike] = shapely.equals(message, self._regions[rows[alike]])
        return _where(rows, ~alike)


PEERS: tuple[type[Peer], ...] = (TreeForEachRelation, BoundaryFirst)
