"""Seeded random geometries for tests, benchmarks and demonstrations; matchers of many segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry import MultiPolygon, Polygon

if TYPE_CHECKING:
    from fencepost.engine.matcher import Matcher

Geometries = NDArray[np.object_]


def star_coordinates(
    rng: np.random.Generator,
    vertices: int,
    centre: tuple[float, float] = (0.0, 0.0),
    radius: float = 1.0,
    roughness: float = 0.5,
) -> NDArray[np.float64]:
    """Return the vertices of a polygon that is star-shaped about its centre, counter-clockwise.

    roughness : by which part of the radius a vertex may fall short, from 0 (round) to below 1.
    """
    angles = np.sort(rng.random(vertices)) * 0.5 + np.arange(vertices)
    angles *= 2 * np.pi / vertices
    reach = radius * (1 - roughness * rng.random(vertices))
    return np.column_stack((centre[0] + reach * np.cos(angles), centre[1] + reach * np.sin(angles)))


def mixed_pairs(
    rng: np.random.Generator, count: int, vertices: int
) -> tuple[Geometries, Geometries]:
    """Return pairs of simple polygons whose boxes meet.

    Half of the pairs cross as a rule, a quarter are apart as a rule, a quarter are nested.
    """
    first, second = [], []
    for number in range(count):
        kind = number % 8
        a = star_coordinates(rng, vertices)
        heading = rng.random() * 2 * np.pi
        if kind < 4:  # near: the boundaries usually cross
            distance, radius = 0.3 + rng.random(), 0.7 + 0.6 * rng.random()
        elif kind < 6:  # diagonal neighbours: the boxes meet, the shapes seldom do
            heading = np.pi / 4 + (np.pi / 2) * rng.integers(4)
            distance, radius = 1.75 + 0.2 * rng.random(), 0.7
        else:  # nested, one way or the other
            distance, radius = 0.1 * rng.random(), 0.3
        b = star_coordinates(
            rng, vertices, (distance * np.cos(heading), distance * np.sin(heading)), radius
        )
        if kind == 7:
            a, b = b, a
        first.append(Polygon(a))
        second.append(Polygon(b))
    return np.array(first, object), np.array(second, object)


def chain_sharing_pairs(
    rng: np.random.Generator, count: int, vertices: int
) -> tuple[Geometries, Geometries]:
    """Return pairs of neighbours, like two countries that share a third of their boundaries."""
    first, second = [], []
    shared = vertices // 3
    for _ in range(count):
        steps = np.linspace(-1, 1, shared)
        border = np.column_stack((0.2 * (rng.random(shared) - 0.5), steps))
        arc = np.linspace(np.pi / 2, 3 * np.pi / 2, vertices - shared + 2)[1:-1]
        reach = 1.3 * (1 - 0.2 * rng.random((2, len(arc))))
        west = np.column_stack((reach[0] * np.cos(arc) - 0.2, reach[0] * np.sin(arc)))
        east = np.column_stack((-reach[1] * np.cos(arc) + 0.2, reach[1] * np.sin(arc)))
        first.append(Polygon(np.vstack((border, west))))
        second.append(Polygon(np.vstack((border, east))))
    return np.array(first, object), np.array(second, object)


def add_holes(rng: np.random.Generator, polygons: Geometries, holes: int) -> Geometries:
    """Return the polygons with small round holes; a polygon in which they do not fit has none."""
    result = []
    for polygon in polygons:
        centre = np.asarray(polygon.centroid.coords[0])
        room = polygon.exterior.distance(polygon.centroid)
        rings = []
        for number in range(holes):
            heading = 2 * np.pi * number / holes
            at = centre + 0.6 * room * np.array([np.cos(heading), np.sin(heading)])
            rings.append(star_coordinates(rng, 8, (at[0], at[1]), 0.3 * room / holes))
        holed = Polygon(polygon.exterior, rings)
        result.append(holed if holed.is_valid else polygon)
    return np.array(result, object)


def make_multipolygons(rng: np.random.Generator, polygons: Geometries, parts: int) -> Geometries:
    """Return multi-polygons: each polygon without its holes, and smaller copies beside it."""
    result = []
    for polygon in polygons:
        x0, y0, x1, _ = polygon.bounds
        row = [polygon]
        for number in range(1, parts):
            scale = 0.3 + 0.4 * rng.random()
            corner = (x0 + 1.1 * number * (x1 - x0), y0)
            moved = (shapely.get_coordinates(polygon) - (x0, y0)) * scale + corner
            row.append(Polygon(moved))
        result.append(MultiPolygon(row))
    return np.array(result, object)


def keep_segments_small(
    matcher: Matcher, *, max_memtable_rows: int | None = None, max_small_rows: int | None = None
) -> None:
    """Lower limits of a matcher, so that few subscriptions make many segments.

    Parameters
    ----------
    matcher
        A matcher without subscriptions.
    max_memtable_rows
        Number of subscriptions at which the memtable is flushed.
    max_small_rows
        Number of subscriptions up to which the newest segment absorbs a flushed memtable.
    """
    segments = matcher._segments
    segments.max_memtable_rows = (
        segments.max_memtable_rows if max_memtable_rows is None else max_memtable_rows
    )
    segments.max_small_rows = segments.max_small_rows if max_small_rows is None else max_small_rows
