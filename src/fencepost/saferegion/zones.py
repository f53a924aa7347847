"""`Zone`: a set of points in which a spatial condition holds, bounded from outside and from inside.

A zone is a set Z of points with two bounds:

- Outer bound: the union of the `outer` shapes contains the closure of Z, and so do the `boxes`.
- Inner bound: `inner(x, y)` is None, or a shape that contains (x, y) and lies in the interior of Z.

So a point outside of all outer shapes is certainly not in Z, and a point of an inner shape
certainly is. Neither depends on whether Z contains its boundary, so `S_DWITHIN` and `S_CLOSER` have
the same zone. The bounds hold for `client_rule.shape_contains` as computed in doubles: outer shapes
are enlarged, and inner shapes shrunk, by more than the rounding error. The docstring of each class
defines its Z and says why its shapes bound it.

Bounds of distances follow from the triangle inequality: the distances of two points from a
geometry, to its nearest or to its farthest point, differ by at most the distance of the points.

On the ellipsoid, the length of a degree in metres varies with the latitude. Within the latitudes
that a distance can reach, it has a minimum and a maximum. A path between two points is at least as
long as the lon/lat line between them, measured with the minimum. The lon/lat line itself is at most
as long as its measure with the maximum. So a disc lies between two ellipses in lon/lat.
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
from fencepost.saferegion.client_rule import Shape, shape_contains

Box = tuple[float, float, float, float]
Hole = tuple[Shape, Box]

_ROUNDING = 1e-12  # relative margin of lengths, 1,000 times the rounding error here
_ROUNDING_WGS84 = 1e-9  # relative margin of metres on the ellipsoid
_MICROMETRE = 1e-6  # absolute margin of metres on the ellipsoid
_SMALLEST = 1e-140  # squares of shorter lengths lose digits
_LARGEST = 1e140  # squares of longer lengths may overflow
_MAX_PLANES = 12  # any subset of the half-planes of a hull's edges contains the hull
_MAX_LATITUDE = math.radians(89.0)  # of ellipses as bounds of discs


class Zone(ABC):
    """A set Z of points with an outer and an inner bound; the module's docstring defines both.

    Attributes
    ----------
    boxes : tuple of boxes
        An outer bound: one box, or two across the antimeridian.
    outer : tuple of shapes
        An outer bound that is, up to rounding, no larger than the boxes.
    """

    boxes: tuple[Box, ...]
    outer: tuple[Shape, ...]

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        """The outer shapes, each with its bounding box."""
        return tuple((shape, box_of(shape)) for shape in self.outer)

    @cached_property
    def box_area(self) -> float:
        """The total area of the boxes."""
        return sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in self.boxes)

    @abstractmethod
    def inner(self, x: float, y: float) -> Shape | None:
        """Return a shape in the interior of Z that contains the point; None if none is known."""

    def excludes(self, x: float, y: float) -> bool:
        """Return whether a point is outside of all outer shapes, so certainly not in Z."""
        return not any(shape_contains(shape, x, y) for shape in self.outer)


class GeometryZone(Zone):
    """Z is a geometry; of an area, its interior with or without its boundary.

    Outer bound: half-planes along edges of the convex hull, or the bounding box. The hull contains
    the geometry, and each half-plane contains the hull.

    Inner bound, for areas only: a convex polygon is shrunk by more than the rounding error. In
    another area, it is a disc around the point with a radius below the distance to all rings. Such
    a disc meets no ring, so it lies in the interior, as its centre does.
    """

    def __init__(self, geometry: BaseGeometry) -> None:
        self._geometry = geometry
        self._shapes: Shapes | None = None
        box = bounds(geometry)
        self.boxes = (box,)
        self.outer = (_hull_shape(geometry, box, 0.0),)

    def inner(self, x: float, y: float) -> Shape | None:
        if self._geometry.geom_type not in ("Polygon", "MultiPolygon"):
            return None
        if self._shapes is None:
            self._shapes = Shapes.read_one(self._geometry)
        point = shapely.Point(x, y)
        if not evaluate_spatial(SpatialFunction.S_WITHIN, Shapes.read_one(point), self._shapes):
            return None
        shape = _convex_interior(self._geometry)
        if shape is None:
            rings = shapely.MultiLineString([ring.coords for ring in _rings(self._geometry)])
            distance = _distance_below(point, rings)
            slack = _ROUNDING * max(map(abs, (*bounds(rings), x, y)))
            shape = _disc(x, y, distance - slack)
        return shape if shape is not None and shape_contains(shape, x, y) else None


class PointZone(Zone):
    """Z is a disc in the plane; its centre is at most `error` away from (x, y).

    Outer bound: the disc around (x, y) with the distance plus the error as radius. Inner bound: the
    disc with the distance minus the error. By the triangle inequality, the outer disc contains Z,
    and the interior of Z contains the inner disc, which is slightly shrunk.

    If the square of the radius is too small or too large for doubles, the outer bound is the box,
    and there is no inner bound.
    """

    def __init__(self, x: float, y: float, distance: float, error: float = 0.0) -> None:
        outer_radius = _enlarged(distance + error)
        self.boxes = ((x - outer_radius, y - outer_radius, x + outer_radius, y + outer_radius),)
        self.boxes = (widened(self.boxes[0]),)
        self.outer = (
            ("round", x, y, 1.0, 1.0, outer_radius * outer_radius)
            if _SMALLEST < outer_radius < _LARGEST
            else ("box", *self.boxes[0]),
        )
        self._inner = _disc(x, y, distance - error)

    def inner(self, x: float, y: float) -> Shape | None:
        return (
            self._inner if self._inner is not None and shape_contains(self._inner, x, y) else None
        )


class EllipsoidPointZone(Zone):
    """Z is the set of points within a distance in metres of a point in lon/lat.

    The absolute latitudes on a path of that length lie between `lowest` and `highest`. In this
    range, a degree of longitude is shortest at `highest`, and a degree of latitude is shortest at
    `lowest`.

    Outer bound: the ellipse for the minimum metres of a degree. Every path to a point outside of it
    is longer than the distance. Near a pole or the antimeridian, which a path may cross, the boxes
    are the outer bound, and there is no inner bound.

    Inner bound: the ellipse for the maximum metres of a degree. The lon/lat line to a point in it
    is at most as long as the distance, and the shortest path is at most as long as that line.
    """

    def __init__(self, lon: float, lat: float, metres: float) -> None:
        max_metres = metres * (1.0 + _ROUNDING_WGS84) + _MICROMETRE
        min_metres = metres * (1.0 - _ROUNDING_WGS84) - _MICROMETRE
        self.boxes = _expanded_boxes((lon, lat, lon, lat), max_metres)
        self.outer = tuple(("box", *box) for box in self.boxes)
        self._inner: Shape | None = None
        arc = max_metres / MIN_CURVATURE_RADIUS_M * (1.0 + _ROUNDING) + _ROUNDING
        centre = math.radians(abs(lat))
        highest, lowest = centre + arc, max(centre - arc, 0.0)
        if highest > _MAX_LATITUDE or len(self.boxes) > 1:
            return
        east, north = _metres_east(highest), _metres_north(lowest)
        self.outer = (
            (
                "round",
                lon,
                lat,
                _rounded_down(east),
                _rounded_down(north),
                _rounded_up(max_metres * max_metres),
            ),
        )
        if min_metres > 0.0:
            east, north = _metres_east(lowest), _metres_north(highest)
            self._inner = (
                "round",
                lon,
                lat,
                _rounded_up(east),
                _rounded_up(north),
                _rounded_down(min_metres * min_metres),
            )

    def inner(self, x: float, y: float) -> Shape | None:
        return (
            self._inner if self._inner is not None and shape_contains(self._inner, x, y) else None
        )


class NearZone(Zone):
    """Z is the set of points within a distance of a geometry other than a point.

    The distance is that to the nearest point of the geometry or, for S_ALLWITHIN, to the farthest.

    Outer bound: half-planes along edges of the convex hull, moved outwards by the distance, or the
    bounding box, grown by the distance; in lon/lat, boxes of the points within the distance of the
    bounding box. Each contains all points within the distance of the nearest point of the geometry,
    because the hull and the box contain the geometry. The points within the distance of the
    farthest point are among them.

    Inner bound: a disc around the point. Its radius is the distance of the zone minus the distance
    of the point from the geometry. By the triangle inequality, either kind of distance grows by at
    most the radius within the disc. In lon/lat, the shape is the inner bound of such a disc.
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
            self.boxes = _expanded_boxes(bounds(geometry), distance + _MICROMETRE)
            self.outer = tuple(("box", *box) for box in self.boxes)
            return
        enlarged = _enlarged(distance)
        x0, y0, x1, y1 = bounds(geometry)
        box = widened((x0 - enlarged, y0 - enlarged, x1 + enlarged, y1 + enlarged))
        self.boxes = (box,)
        self.outer = (_hull_shape(geometry, box, enlarged),)

    def inner(self, x: float, y: float) -> Shape | None:
        if self._shapes is None:
            self._shapes = Shapes.read_one(self._geometry)
        point = Shapes.read_one(shapely.Point(x, y))
        distance = measure_distance(self._space, self._function, point, self._shapes)
        if self._space is Space.WGS84:
            room = self._distance - distance * (1.0 + _ROUNDING_WGS84) - _MICROMETRE
            return EllipsoidPointZone(x, y, room).inner(x, y) if room > 0.0 else None
        x0, y0, x1, y1 = bounds(self._geometry)
        slack = _ROUNDING * max(map(abs, (x0, y0, x1, y1, x, y)))
        return _disc(x, y, self._distance - distance * (1.0 + _ROUNDING) - slack)


class CentroidZone(Zone):
    """Z is the set of points within a distance in metres of the centroid of a geometry in lon/lat.

    Outer bound: boxes of the points within the distance of the bounding box, which contains the
    centroid. There is no inner bound, because the centroid is not computed.
    """

    def __init__(self, geometry: BaseGeometry, metres: float) -> None:
        self.boxes = _expanded_boxes(bounds(geometry), metres + _MICROMETRE)
        self.outer = tuple(("box", *box) for box in self.boxes)

    def inner(self, x: float, y: float) -> Shape | None:
        return None


def near_zone(
    function: NearFunction, geometry: BaseGeometry, distance: float, space: Space
) -> Zone:
    """Return the zone of the points within a distance of a geometry.

    The distance is that of the centroids for S_SAMEPLACE, of the farthest point of the geometry for
    S_ALLWITHIN, and of the nearest point otherwise.
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
    """Return the bounding box of a geometry."""
    x0, y0, x1, y1 = geometry.bounds
    return float(x0), float(y0), float(x1), float(y1)


def boxes_meet(a: Box, b: Box) -> bool:
    """Return whether two closed boxes have a point in common."""
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def box_of(shape: Shape) -> Box:
    """Return a box that contains a shape."""
    if shape[0] != "round":
        return shape[1], shape[2], shape[3], shape[4]
    _, x, y, scale_x, scale_y, limit = shape
    reach = _enlarged(math.sqrt(limit))
    half_width, half_height = reach / scale_x, reach / scale_y
    return widened((x - half_width, y - half_height, x + half_width, y + half_height))


def _enlarged(length: float) -> float:
    return length * (1.0 + _ROUNDING)


def widened(box: Box) -> Box:
    """Return a box grown by one double on each side.

    It has an area, and it contains the unrounded box if the box was rounded to the nearest doubles.
    """
    x0, y0, x1, y1 = box
    down, up = -math.inf, math.inf
    return (
        math.nextafter(x0, down),
        math.nextafter(y0, down),
        math.nextafter(x1, up),
        math.nextafter(y1, up),
    )


def _rounded_down(value: float) -> float:
    """Return a slightly smaller value with few digits, because messages contain it."""
    return float(f"{value * (1.0 - 1e-6):.8g}")


def _rounded_up(value: float) -> float:
    """Return a slightly larger value with few digits, because messages contain it."""
    return float(f"{value * (1.0 + 1e-6):.8g}")


def _disc(x: float, y: float, radius: float) -> Shape | None:
    """Return a disc slightly smaller than the radius; None if doubles cannot hold its square."""
    shrunk = radius * (1.0 - _ROUNDING)
    return ("round", x, y, 1.0, 1.0, shrunk * shrunk) if _SMALLEST < shrunk < _LARGEST else None


def _distance_below(point: shapely.Point, geometry: BaseGeometry) -> float:
    """Return a lower bound of the distance between a point and a geometry in the plane."""
    shapes = Shapes.read_one(point), Shapes.read_one(geometry)
    return measure_distance(Space.PLANAR, NearFunction.S_DWITHIN, *shapes) * (1.0 - _ROUNDING)


def _expanded_boxes(box: Box, metres: float) -> tuple[Box, ...]:
    """Return one or two boxes that contain the points within a distance of a box."""
    boxes = expand_boxes(np.array([box]), np.array([metres]))[0]
    first, second = tuple(boxes[0].tolist()), tuple(boxes[1].tolist())
    return (first, second) if math.isfinite(second[0]) else (first,)


def _metres_north(latitude: float) -> float:
    """Return the metres of a degree of latitude, which increase towards the poles."""
    squared = 1.0 - ECCENTRICITY_SQUARED * math.sin(latitude) ** 2
    return math.radians(
        SEMI_MAJOR_M * (1.0 - ECCENTRICITY_SQUARED) / (squared * math.sqrt(squared))
    )


def _metres_east(latitude: float) -> float:
    """Return the metres of a degree of longitude, which decrease towards the poles."""
    return math.radians(
        SEMI_MAJOR_M
        * math.cos(latitude)
        / math.sqrt(1.0 - ECCENTRICITY_SQUARED * math.sin(latitude) ** 2)
    )


def _rings(geometry: BaseGeometry) -> list[BaseGeometry]:
    parts = geometry.geoms if geometry.geom_type == "MultiPolygon" else [geometry]
    return [ring for part in parts for ring in (part.exterior, *part.interiors)]


def _hull_shape(geometry: BaseGeometry, box: Box, distance: float) -> Shape:
    """Return half-planes that contain a convex hull grown by a distance, or its box."""
    size = box[2] - box[0] + box[3] - box[1]
    if not _SMALLEST < size < _LARGEST:
        return ("box", *box)
    points = np.unique(shapely.get_coordinates(geometry), axis=0)
    hull = build_hulls(Hulls(points[:, 0].copy(), points[:, 1].copy(), np.array([0, len(points)])))
    planes = _planes(hull.x, hull.y, box)
    if planes is None or (len(planes) <= 4 and _is_box(planes)):
        return ("box", *box)
    if len(planes) > _MAX_PLANES:
        planes = planes[np.linspace(0, len(planes), _MAX_PLANES, endpoint=False).astype(int)]
    planes[:, 2] += distance + size * _ROUNDING
    return ("planes", *box, *planes.ravel().tolist())


def _planes(x: np.ndarray, y: np.ndarray, box: Box) -> np.ndarray | None:
    """Return the half-planes left of the edges of a convex counterclockwise ring.

    A row has a, b and c of a (x - x0) + b (y - y0) <= c, where x0, y0 is the corner of the box.
    Returns None if the ring is degenerate.
    """
    if len(x) < 3:
        return None
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    length = np.hypot(dx, dy)
    if not (length > _SMALLEST).all():
        return None
    a, b = dy / length, -dx / length
    return np.column_stack((a, b, a * (x - box[0]) + b * (y - box[1])))


def _is_box(planes: np.ndarray) -> bool:
    """Return whether all half-planes are parallel to the axes."""
    return bool((planes[:, :2] == 0.0).any(axis=1).all())


def _convex_interior(geometry: BaseGeometry) -> Shape | None:
    """Return a convex polygon, slightly shrunk, as a shape; None if it is not convex."""
    if geometry.geom_type != "Polygon" or len(geometry.interiors):
        return None
    ring = list(geometry.exterior.coords)[:-1]
    if len(ring) > 4 * _MAX_PLANES or not is_convex([list(point[:2]) for point in ring]):
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
