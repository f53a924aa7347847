"""Zones: where a point makes a spatial condition true, from outside and from within.

A zone is a set Z of points of which two bounds are known.

- Outer bound: the closure of Z lies in the union of the `outer` shapes, and in that of `boxes`.
- Inner bound: `inner(x, y)` is None, or a shape that holds (x, y) and lies in the interior of Z.

So a point outside of all outer shapes is surely not in Z, and a point of an inner shape surely is,
whether or not the border of Z belongs to it: one zone serves `S_DWITHIN` and `S_CLOSER`. The bounds
hold for `client.is_in` as it computes in doubles, not only on paper: outer shapes are larger, and
inner ones smaller, by more than is rounded there. Each class says what its Z is, and why its shapes
bound it.

Distances are used by the triangle inequality: the distances of two points from a geometry, from the
nearest point of it or from the farthest, differ by no more than the two are apart.

On the ellipsoid a metre is so many degrees, more or less, within the latitudes that a distance can
reach: the least and the most bound a disc by two ellipses. A path between two points is at least as
long as the least makes it, and the line between them in lon/lat at most as long as the most does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.cql2.ast import NearFunction, SpatialFunction
from fencepost.filters.distances import measure_distance
from fencepost.filters.spatial_relations import evaluate_spatial
from fencepost.geometry.prepared_shapes import Shapes, is_convex
from fencepost.geometry.space import Space
from fencepost.kernels.geodesic.geodesics import (
    ECCENTRICITY_SQUARED,
    MIN_CURVATURE_RADIUS_M,
    SEMI_MAJOR_M,
    expand_boxes,
)
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls
from fencepost.kernels.geometry.planar_distance import centroid
from fencepost.saferegion.client_rule import Shape, is_in

Box = tuple[float, float, float, float]
Hole = tuple[Shape, Box]

_ROUNDING = 1e-12  # of lengths; doubles here lose a thousandth of it
_ROUNDING_WGS84 = 1e-9  # of metres, with
_MICROMETRE = 1e-6
_SMALLEST = 1e-140  # the square of what is shorter is not what it should be
_LARGEST = 1e140
_MOST_PLANES = 12  # any of a hull's edges bound it
_STEEPEST = math.radians(89.0)


class Zone(ABC):
    """A set Z of points, from outside and from within.

    Attributes
    ----------
    boxes : tuple of boxes
        One, or two across the antimeridian: an outer bound.
    outer : tuple of shapes
        An outer bound that is no larger than the boxes, but for rounding.
    """

    boxes: tuple[Box, ...]
    outer: tuple[Shape, ...]

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        """The outer shapes, each with its box."""
        return tuple((shape, box_of(shape)) for shape in self.outer)

    @cached_property
    def size(self) -> float:
        """The area of its boxes."""
        return sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in self.boxes)

    @abstractmethod
    def inner(self, x: float, y: float) -> Shape | None:
        """A shape in the interior of Z that has the point in it, if one is known."""

    def misses(self, x: float, y: float) -> bool:
        """Whether a point is outside of all outer shapes, and so surely not in Z."""
        return not any(is_in(shape, x, y) for shape in self.outer)


class GeometryZone(Zone):
    """Z is a geometry: of an area its interior, with or without the border.

    Outer: planes that bound the convex hull, which holds the geometry; or its box.

    Inner, of areas only: a convex polygon drawn in by more than rounding; in any other area a disc
    round the point whose radius is less than the distance to all rings. A disc that meets no ring
    is on one side of them, and its middle is in the interior.
    """

    def __init__(self, geometry: BaseGeometry) -> None:
        self._geometry = geometry
        self._shapes: Shapes | None = None
        box = bounds(geometry)
        self.boxes = (box,)
        self.outer = (_hull(geometry, box, 0.0),)

    def inner(self, x: float, y: float) -> Shape | None:
        if self._geometry.geom_type not in ("Polygon", "MultiPolygon"):
            return None
        if self._shapes is None:
            self._shapes = Shapes.read_one(self._geometry)
        point = shapely.Point(x, y)
        if not evaluate_spatial(SpatialFunction.S_WITHIN, Shapes.read_one(point), self._shapes):
            return None
        found = _convex(self._geometry)
        if found is None:
            edge = shapely.MultiLineString([part.coords for part in _rings(self._geometry)])
            room = _planar_distance(point, edge)
            slack = _ROUNDING * max(map(abs, (*bounds(edge), x, y)))
            found = _disc(x, y, room - slack)
        return found if found is not None and is_in(found, x, y) else None


class PointZone(Zone):
    """Z is a disc in the plane, whose middle is within an error of the point (x, y).

    Outer: the disc round (x, y) of the distance and the error. Inner: that of the distance less the
    error. Both hold by the triangle inequality, and Z lies between them.

    Where the square of the radius cannot be computed in full, the outer bound is the box.
    """

    def __init__(self, x: float, y: float, distance: float, error: float = 0.0) -> None:
        most = _outwards(distance + error)
        self.boxes = ((x - most, y - most, x + most, y + most),)
        self.boxes = (widened(self.boxes[0]),)
        self.outer = (
            ("round", x, y, 1.0, 1.0, most * most)
            if _SMALLEST < most < _LARGEST
            else ("box", *self.boxes[0]),
        )
        self._inner = _disc(x, y, distance - error)

    def inner(self, x: float, y: float) -> Shape | None:
        return self._inner if self._inner is not None and is_in(self._inner, x, y) else None


class EllipsoidPointZone(Zone):
    """Z is what is within so many metres of a point in lon/lat.

    All latitudes on a path of that length are between `lowest` and `highest`, in absolute value. A
    degree of longitude is shortest at the highest, a degree of latitude at the lowest.

    Outer: the ellipse of the least metres a degree. A path to a point outside of it is longer than
    the distance. Near a pole or the antimeridian, where a path may go round: the boxes.

    Inner: the ellipse of the most metres a degree. The line in lon/lat to a point in it is no
    longer than the distance, and the shortest path is no longer than that line.
    """

    def __init__(self, lon: float, lat: float, metres: float) -> None:
        most = metres * (1.0 + _ROUNDING_WGS84) + _MICROMETRE
        least = metres * (1.0 - _ROUNDING_WGS84) - _MICROMETRE
        self.boxes = _reached((lon, lat, lon, lat), most)
        self.outer = tuple(("box", *box) for box in self.boxes)
        self._inner: Shape | None = None
        arc = most / MIN_CURVATURE_RADIUS_M * (1.0 + _ROUNDING) + _ROUNDING
        own = math.radians(abs(lat))
        highest, lowest = own + arc, max(own - arc, 0.0)
        if highest > _STEEPEST or len(self.boxes) > 1:
            return
        east, north = _metres_east(highest), _metres_north(lowest)
        self.outer = (("round", lon, lat, _less(east), _less(north), _more(most * most)),)
        if least > 0.0:
            east, north = _metres_east(lowest), _metres_north(highest)
            self._inner = ("round", lon, lat, _more(east), _more(north), _less(least * least))

    def inner(self, x: float, y: float) -> Shape | None:
        return self._inner if self._inner is not None and is_in(self._inner, x, y) else None


class NearZone(Zone):
    """Z is what is within a distance of a geometry that is no point: of it, or of all of it.

    Outer: planes that bound the convex hull, moved outwards by the distance. What is near all of a
    geometry is near it, so that bounds both; in lon/lat, boxes of what the distance reaches.

    Inner: a disc round the point, of what its own distance from the geometry leaves of the
    distance: by the triangle inequality, either kind of distance grows by no more than its radius.
    """

    def __init__(
        self, function: NearFunction, geometry: BaseGeometry, distance: float, space: Space
    ) -> None:
        self._function = function
        self._geometry = geometry
        self._distance = distance
        self._space = space
        self._shapes: Shapes | None = None
        if space is Space.WGS84:
            self.boxes = _reached(bounds(geometry), distance + _MICROMETRE)
            self.outer = tuple(("box", *box) for box in self.boxes)
            return
        most = _outwards(distance)
        x0, y0, x1, y1 = bounds(geometry)
        box = widened((x0 - most, y0 - most, x1 + most, y1 + most))
        self.boxes = (box,)
        self.outer = (_hull(geometry, box, most),)

    def inner(self, x: float, y: float) -> Shape | None:
        if self._shapes is None:
            self._shapes = Shapes.read_one(self._geometry)
        point = Shapes.read_one(shapely.Point(x, y))
        away = measure_distance(self._space, self._function, point, self._shapes)
        if self._space is Space.WGS84:
            room = self._distance - away * (1.0 + _ROUNDING_WGS84) - _MICROMETRE
            return EllipsoidPointZone(x, y, room).inner(x, y) if room > 0.0 else None
        x0, y0, x1, y1 = bounds(self._geometry)
        slack = _ROUNDING * max(map(abs, (x0, y0, x1, y1, x, y)))
        return _disc(x, y, self._distance - away * (1.0 + _ROUNDING) - slack)


class CentroidZone(Zone):
    """Z is what is within so many metres of the centroid of a geometry in lon/lat.

    Outer: what the distance reaches from the box of the geometry, in which its centroid is. There
    is no inner bound, as the centroid is not computed.
    """

    def __init__(self, geometry: BaseGeometry, metres: float) -> None:
        self.boxes = _reached(bounds(geometry), metres + _MICROMETRE)
        self.outer = tuple(("box", *box) for box in self.boxes)

    def inner(self, x: float, y: float) -> Shape | None:
        return None


def near_zone(
    function: NearFunction, geometry: BaseGeometry, distance: float, space: Space
) -> Zone:
    """Where a point is within a distance of a geometry or, for S_SAMEPLACE, of its centroid, for
    S_ALLWITHIN of all of it.
    """
    if geometry.geom_type == "Point":
        if space is Space.WGS84:
            return EllipsoidPointZone(geometry.x, geometry.y, distance)
        return PointZone(geometry.x, geometry.y, distance)
    if function is not NearFunction.S_SAMEPLACE:
        return NearZone(function, geometry, distance, space)
    if space is Space.WGS84:
        return CentroidZone(geometry, distance)
    x, y, error = centroid(Shapes.read_one(geometry).arrays, 0)
    return PointZone(float(x), float(y), distance, float(error))


def bounds(geometry: BaseGeometry) -> Box:
    """The box of a geometry."""
    x0, y0, x1, y1 = geometry.bounds
    return float(x0), float(y0), float(x1), float(y1)


def boxes_meet(one: Box, other: Box) -> bool:
    """Whether two closed boxes have a point in common."""
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def box_of(shape: Shape) -> Box:
    """A box that holds a shape."""
    if shape[0] != "round":
        return shape[1], shape[2], shape[3], shape[4]
    _, x, y, scale_x, scale_y, limit = shape
    reach = _outwards(math.sqrt(limit))
    across, along = reach / scale_x, reach / scale_y
    return widened((x - across, y - along, x + across, y + along))


def _outwards(length: float) -> float:
    return length * (1.0 + _ROUNDING)


def widened(box: Box) -> Box:
    """A box with a little more on each side: it has an area, and rounding cut nothing off."""
    x0, y0, x1, y1 = box
    down, up = -math.inf, math.inf
    return (
        math.nextafter(x0, down),
        math.nextafter(y0, down),
        math.nextafter(x1, up),
        math.nextafter(y1, up),
    )


def _less(value: float) -> float:
    """A little less, in few digits, since it is written in every message."""
    return float(f"{value * (1.0 - 1e-6):.8g}")


def _more(value: float) -> float:
    return float(f"{value * (1.0 + 1e-6):.8g}")


def _disc(x: float, y: float, radius: float) -> Shape | None:
    """A disc a little smaller than that; None where nothing is left of it."""
    least = radius * (1.0 - _ROUNDING)
    return ("round", x, y, 1.0, 1.0, least * least) if _SMALLEST < least < _LARGEST else None


def _planar_distance(point: shapely.Point, edge: BaseGeometry) -> float:
    both = Shapes.read_one(point), Shapes.read_one(edge)
    return measure_distance(Space.PLANAR, NearFunction.S_DWITHIN, *both) * (1.0 - _ROUNDING)


def _reached(box: Box, metres: float) -> tuple[Box, ...]:
    found = expand_boxes(np.array([box]), np.array([metres]))[0]
    first, second = tuple(found[0].tolist()), tuple(found[1].tolist())
    return (first, second) if math.isfinite(second[0]) else (first,)


def _metres_north(latitude: float) -> float:
    """Metres a degree of latitude has; the more, the nearer to a pole."""
    squared = 1.0 - ECCENTRICITY_SQUARED * math.sin(latitude) ** 2
    return math.radians(
        SEMI_MAJOR_M * (1.0 - ECCENTRICITY_SQUARED) / (squared * math.sqrt(squared))
    )


def _metres_east(latitude: float) -> float:
    """Metres a degree of longitude has; the fewer, the nearer to a pole."""
    return math.radians(
        SEMI_MAJOR_M
        * math.cos(latitude)
        / math.sqrt(1.0 - ECCENTRICITY_SQUARED * math.sin(latitude) ** 2)
    )


def _rings(geometry: BaseGeometry) -> list[BaseGeometry]:
    parts = geometry.geoms if geometry.geom_type == "MultiPolygon" else [geometry]
    return [ring for part in parts for ring in (part.exterior, *part.interiors)]


def _hull(geometry: BaseGeometry, box: Box, distance: float) -> Shape:
    """Planes that bound a geometry's convex hull, grown by a distance; or a box."""
    size = box[2] - box[0] + box[3] - box[1]
    if not _SMALLEST < size < _LARGEST:
        return ("box", *box)
    points = np.unique(shapely.get_coordinates(geometry), axis=0)
    hull = build_hulls(Hulls(points[:, 0].copy(), points[:, 1].copy(), np.array([0, len(points)])))
    planes = _planes(hull.x, hull.y, box)
    if planes is None or (len(planes) <= 4 and _along_axes(planes)):
        return ("box", *box)
    if len(planes) > _MOST_PLANES:
        planes = planes[np.linspace(0, len(planes), _MOST_PLANES, endpoint=False).astype(int)]
    planes[:, 2] += distance + size * _ROUNDING
    return ("planes", *box, *planes.ravel().tolist())


def _planes(x: np.ndarray, y: np.ndarray, box: Box) -> np.ndarray | None:
    """The planes left of a convex ring's edges, counterclockwise, from the corner of a box."""
    if len(x) < 3:
        return None
    along, up = np.roll(x, -1) - x, np.roll(y, -1) - y
    length = np.hypot(along, up)
    if not (length > _SMALLEST).all():
        return None
    a, b = up / length, -along / length
    return np.column_stack((a, b, a * (x - box[0]) + b * (y - box[1])))


def _along_axes(planes: np.ndarray) -> bool:
    return bool((planes[:, :2] == 0.0).any(axis=1).all())


def _convex(geometry: BaseGeometry) -> Shape | None:
    """A convex polygon, a little smaller; None where it is not convex."""
    if geometry.geom_type != "Polygon" or len(geometry.interiors):
        return None
    ring = list(geometry.exterior.coords)[:-1]
    if len(ring) > 4 * _MOST_PLANES or not is_convex([list(point[:2]) for point in ring]):
        return None
    box = bounds(geometry)
    size = box[2] - box[0] + box[3] - box[1]
    if not _SMALLEST < size < _LARGEST:
        return None
    points = np.array(ring)[:, :2]
    hull = build_hulls(Hulls(points[:, 0].copy(), points[:, 1].copy(), np.array([0, len(points)])))
    planes = _planes(hull.x, hull.y, box)
    if planes is None:
        return None
    planes[:, 2] -= size * _ROUNDING
    return ("planes", *box, *planes.ravel().tolist())
