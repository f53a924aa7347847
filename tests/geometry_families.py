"""Seeded families of valid geometries that are likely to be in contact.

A *scene* is a handful of geometries made from the same few coordinates, so that two of them often
share vertices or edges, or nearly do; `pairs` pairs them. Most families differ only in their pool
of coordinates. `draw_geometry` draws geometries of all kinds from a pool, and keeps those that the
reference finds valid. Validity is always decided exactly by the reference, never by GEOS or by the
kernels.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, islice, pairwise, product

import numpy as np
import pyarrow.parquet as pq
import shapely
from shapely import (
    GeometryCollection,
    LinearRing,
    LineString,
    MultiLineString,
    MultiPoint,
    MultiPolygon,
    Point,
    Polygon,
)
from shapely.geometry.base import BaseGeometry

from bench import data
from fencepost.reference import defect

XY = tuple[float, float]
Pair = tuple[BaseGeometry, BaseGeometry]
Scene = list[BaseGeometry]

CENSUS = data.folder() / "us_census_tracts_2019_500k.parquet"

LARGEST = 1.7976931348623157e308
MAGNITUDES = [
    *(5e-324, 1e-323, 2.2250738585072014e-308, 1e-300, 3e-300, 1e-160, 1e-20),
    *(0.1, 1.0, math.nextafter(1.0, 2.0), 3.0, 1e10, 1e17, 1e150, 1e300, 1.7e308, LARGEST),
]


def pairs(family: str, seed: int, count: int) -> list[Pair]:
    """Return `count` pairs of valid geometries, the same for the same arguments."""
    rng = random.Random(f"{family} {seed}")
    return list(islice(_iter_pairs(FAMILIES[family], rng), count))


def _iter_pairs(scene: Callable[[random.Random], Scene], rng: random.Random) -> Iterator[Pair]:
    while True:
        geometries = scene(rng)
        for a, b in combinations(geometries, 2):
            yield (a, b) if rng.random() < 0.5 else (b, a)
        if geometries:
            yield geometries[0], geometries[0]


def is_valid(geometry: BaseGeometry) -> bool:
    return defect(geometry) is None


# ---------------------------------------------------------------------------- drawing from a pool


def draw_geometry(rng: random.Random, pool: Sequence[XY]) -> BaseGeometry:
    """Draw a geometry of any kind with all vertices from the pool."""
    kinds: list[Callable[[random.Random, Sequence[XY]], BaseGeometry | None]] = [
        *(draw_points, draw_line, draw_lines, draw_boundary),
        *(
            draw_polygon,
            draw_polygon,
            draw_holed_polygon,
            draw_holed_polygon,
            draw_multipolygon,
            draw_multipolygon,
        ),
    ]
    while True:
        geometry = rng.choice(kinds)(rng, pool)
        if geometry is not None:
            return geometry


def draw_points(rng: random.Random, pool: Sequence[XY]) -> BaseGeometry:
    if rng.random() < 0.4:
        return Point(rng.choice(pool))
    return MultiPoint(rng.choices(pool, k=rng.randint(1, 4)))


def draw_line(rng: random.Random, pool: Sequence[XY]) -> LineString:
    """Draw a line, which may be closed, cross, touch or retrace itself, and repeat vertices."""
    while True:
        vertices = rng.choices(pool, k=rng.randint(2, 5))
        if rng.random() < 0.2:
            vertices.append(vertices[0])
        if len({*vertices}) > 1:
            return LineString(vertices)


def draw_lines(rng: random.Random, pool: Sequence[XY]) -> BaseGeometry:
    """Draw one or more lines, which often share ends."""
    lines = [list(draw_line(rng, pool).coords) for _ in range(rng.randint(1, 4))]
    hub = rng.choice(pool)
    for line in lines:
        if rng.random() < 0.5 and line[1] != hub:
            line[0] = hub
    return MultiLineString([line for line in lines if len({*line}) > 1] or lines[:1])


def draw_boundary(rng: random.Random, pool: Sequence[XY]) -> BaseGeometry | None:
    """Draw the boundary of a polygon, as a line."""
    polygon = draw_polygon(rng, pool)
    return polygon and LinearRing(polygon.exterior)


def draw_polygon(rng: random.Random, pool: Sequence[XY]) -> Polygon | None:
    for _ in range(6):
        vertices = rng.sample(pool, min(len(pool), rng.choice((3, 3, 4, 4, 5, 6))))
        if rng.random() < 0.5:
            # Sorted by angle around the centre, vertices nearly always make a simple ring.
            x = sum(x / len(vertices) for x, _ in vertices)
            y = sum(y / len(vertices) for _, y in vertices)
            vertices.sort(key=lambda xy: math.atan2(xy[1] / 2 - y / 2, xy[0] / 2 - x / 2))
        polygon = Polygon(vertices)
        if is_valid(polygon):
            return polygon
    return None


def draw_holed_polygon(rng: random.Random, pool: Sequence[XY]) -> Polygon | None:
    """Draw a polygon with holes; from so few coordinates, they often touch."""
    left, right = min(x for x, _ in pool), max(x for x, _ in pool)
    low, high = min(y for _, y in pool), max(y for _, y in pool)
    frame = Polygon([(left, low), (right, low), (right, high), (left, high)])
    shell = frame if rng.random() < 0.6 else draw_polygon(rng, pool)
    if shell is None or not is_valid(shell):
        return None
    holes: list[list[XY]] = []
    for _ in range(rng.choice((3, 5, 7))):
        hole = rng.sample(pool, rng.choice((3, 3, 4)))
        if len(holes) < 3 and is_valid(Polygon(shell.exterior, [*holes, hole])):
            holes.append(hole)
    return Polygon(shell.exterior, holes)


def draw_multipolygon(rng: random.Random, pool: Sequence[XY]) -> MultiPolygon | None:
    """Draw polygons that touch each other in points only, or not at all."""
    parts: list[Polygon] = []
    for _ in range(5):
        part = (draw_polygon if rng.random() < 0.8 else draw_holed_polygon)(rng, pool)
        if part is not None and len(parts) < 3 and is_valid(MultiPolygon([*parts, part])):
            parts.append(part)
    return MultiPolygon(parts) if parts else None


def relative(rng: random.Random, geometry: BaseGeometry) -> BaseGeometry:
    """Return a geometry made from another: a part, a ring, a filled hole, or some vertices."""
    part = rng.choice(shapely.get_parts(geometry))
    if not isinstance(part, Polygon):
        return part
    rings = [part.exterior, *part.interiors]
    ring = list(rng.choice(rings).coords)
    vertices = [xy for xy, following in pairwise(ring) if xy != following]
    start = rng.randrange(len(vertices) - 1)
    relatives: list[BaseGeometry] = [
        part.boundary,
        Polygon(part.exterior),
        Polygon(rng.choice(rings)),
        Polygon(rng.choice(rings)),
        Polygon(part.exterior, [hole for hole in part.interiors if rng.random() < 0.5]),
        LineString(vertices[start : start + rng.randint(2, 4)]),
        MultiPoint([rng.choice(vertices) for _ in range(3)]),
    ]
    return rng.choice(relatives)


def _scene_of(rng: random.Random, pool: Sequence[XY], size: int = 6) -> Scene:
    scene = [draw_geometry(rng, pool) for _ in range(size - 2)]
    return [*scene, relative(rng, rng.choice(scene)), relative(rng, rng.choice(scene))]


# ------------------------------------------------------------------------------- pools and scenes


def lattice(rng: random.Random) -> Scene:
    """Return geometries of every kind with a few integer coordinates."""
    size = rng.choice((3, 4, 4, 5, 7))
    return _scene_of(rng, [(float(x), float(y)) for x, y in product(range(size), repeat=2)])


def nested(rng: random.Random) -> Scene:
    """Return large geometries, and small ones inside them or at their boundary."""
    pool = [(float(x), float(y)) for x, y in product(range(4), repeat=2)]
    large = [
        draw_holed_polygon(rng, pool) or draw_geometry(rng, pool),
        draw_polygon(rng, pool),
        draw_geometry(rng, pool),
    ]
    corner = rng.randrange(10) / 4, rng.randrange(10) / 4
    small = [draw_geometry(rng, pool), draw_polygon(rng, pool), draw_holed_polygon(rng, pool)]
    small = [each and shapely.transform(each, lambda xy: xy / 4 + corner) for each in small]
    return [each for each in (*large, *small) if each is not None]


def lines(rng: random.Random) -> Scene:
    """Return mostly lines, on few points: they overlap, close and share ends (mod-2 rule)."""
    size = rng.choice((2, 3, 3, 4))
    pool = [(float(x), float(y)) for x, y in product(range(size), repeat=2)]
    scene: Scene = [draw_lines(rng, pool) for _ in range(3)]
    return [*scene, draw_line(rng, pool), draw_points(rng, pool), draw_geometry(rng, pool)]


def contacts(rng: random.Random) -> Scene:
    """Return geometries with vertices at the vertices of a polygon, and within its edges."""
    base = None
    while base is None:
        base = draw_polygon(rng, [(12.0 * x, 12.0 * y) for x, y in product(range(5), repeat=2)])
    vertices = list(base.exterior.coords)
    pool = vertices[:-1]
    for (ax, ay), (bx, by) in pairwise(vertices):
        for share in rng.sample((1 / 4, 1 / 2, 3 / 4, 1 / 3, 2 / 3), 2):
            # Exact, because all coordinates are multiples of 12.
            pool.append((ax + round(share * (bx - ax)), ay + round(share * (by - ay))))
    pool += [(12.0 * rng.randrange(5), 12.0 * rng.randrange(5)) for _ in range(3)]
    return [base, *_scene_of(rng, list(dict.fromkeys(pool)), 5)]


def near_collinear(rng: random.Random) -> Scene:
    """Return geometries of points that are on a few lines, or off them by their last bits."""
    step = rng.choice((0.1, 0.3, 1 / 3, 1e-3, 1e5 / 7))

    def corner() -> XY:
        return rng.randrange(8) * step, rng.randrange(8) * step

    pool = [corner() for _ in range(4)]
    for _ in range(9):
        (ax, ay), (bx, by) = rng.sample(pool, 2)
        share = rng.choice((0.5, 0.25, 0.1, rng.random(), 1.5))
        pool.append((_nudge(rng, ax + share * (bx - ax)), _nudge(rng, ay + share * (by - ay))))
    pool = list(dict.fromkeys(pool))
    return _scene_of(rng, pool) if len(pool) > 5 else lattice(rng)


def _nudge(rng: random.Random, value: float) -> float:
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        value = float(np.nextafter(value, rng.choice((-np.inf, np.inf))))
    return value


def needles(rng: random.Random) -> Scene:
    """Return slivers whose ends differ in their last bits, and that cross or overlap."""
    scale = rng.choice((1.0, 0.1, 1e-12, 1e6))
    ends = [(rng.uniform(-1, 1) * scale, rng.uniform(-1, 1) * scale) for _ in range(3)]
    (ax, ay), (bx, by), _ = ends
    ends += [((ax + bx) / 2, (ay + by) / 2), (2 * bx - ax, 2 * by - ay)]
    pool = list(ends)
    for x, y in ends:
        pool += [(_nudge(rng, x), _nudge(rng, y)) for _ in range(3)]
    return _scene_of(rng, list(dict.fromkeys(pool)))


def magnitudes(rng: random.Random) -> Scene:
    """Return geometries that mix coordinates from the smallest double to the largest."""
    sample = rng.sample(MAGNITUDES, 3)
    values = [0.0, *sample, *(-value for value in sample)]
    if rng.random() < 0.5:
        values += [math.nextafter(value, 0.0) for value in sample]
    pool = [(rng.choice(values), rng.choice(values)) for _ in range(12)]
    pool = list(dict.fromkeys(pool))
    return _scene_of(rng, pool) if len(pool) > 5 else magnitudes(rng)


def _triangles(rng: random.Random, size: int) -> list[Polygon]:
    """Return the squares of a lattice, each cut in two along a random diagonal."""
    triangles = []
    for x, y in product(range(size), repeat=2):
        p, q, r, s = (x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)
        halves = rng.choice((([p, q, r], [p, r, s]), ([q, r, s], [q, s, p])))
        triangles += [Polygon(half) for half in halves]
    return triangles


def tilings(rng: random.Random) -> Scene:
    """Return unions of triangles of a tiling: shared edges, touching holes, filled holes."""
    size = rng.choice((2, 2, 3))
    tiles = _triangles(rng, size)
    chosen = [tile for tile in tiles if rng.random() < 0.5] or tiles[:1]
    complement = [tile for tile in tiles if tile not in chosen] or tiles[:1]
    subset = [tile for tile in chosen if rng.random() < 0.7] or chosen[:1]
    unrelated = [tile for tile in tiles if rng.random() < 0.4] or tiles[-1:]
    scene = [shapely.union_all(union) for union in (chosen, complement, subset, unrelated)]
    return [*filter(is_valid, scene), relative(rng, scene[0]), relative(rng, scene[3])]


def warped(rng: random.Random) -> Scene:
    """Return tilings whose columns and rows are moved to arbitrary doubles."""
    return [geometry for geometry in _warp(rng, tilings(rng)) if is_valid(geometry)]


def _warp(rng: random.Random, scene: Scene) -> Scene:
    axes = np.array([sorted(_ticks(rng)), sorted(_ticks(rng))])

    def move(xy: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> object:
        index = xy.astype(int)
        return np.column_stack([axes[0][index[:, 0]], axes[1][index[:, 1]]])

    return [shapely.transform(geometry, move) for geometry in scene]


def _ticks(rng: random.Random) -> list[float]:
    kind = rng.randrange(4)
    if kind == 0:
        return [0.1 * k for k in range(4)]
    if kind == 1:
        middle = rng.choice((0.1, 1.0, 1e9, -7.3))
        return [middle + k * math.ulp(middle) for k in range(4)]
    if kind == 2:
        return [rng.choice((-1, 1)) * value for value in rng.sample(MAGNITUDES, 4)]
    return [rng.uniform(-100, 100) for _ in range(4)]


def rescaled(rng: random.Random) -> Scene:
    """Return scenes with integer coordinates, scaled towards the limits of doubles."""
    scene = rng.choice((lattice, lines, tilings, holes))(rng)
    x_scale, y_scale = 2.0 ** rng.randint(-1070, 1015), 2.0 ** rng.randint(-1070, 1015)
    if rng.random() < 0.5:
        y_scale = x_scale
    return [shapely.transform(each, lambda xy: xy * (x_scale, y_scale)) for each in scene]


def holes(rng: random.Random) -> Scene:
    """Return polygons with holes that meet in a point, and polygons that fill the holes."""
    frame = [(0.0, 0.0), (24.0, 0.0), (24.0, 24.0), (0.0, 24.0)]
    place = rng.choice(((12.0, 12.0), (0.0, 0.0), (12.0, 0.0), (24.0, 8.0), (8.0, 12.0)))
    if rng.random() < 0.3 and place == (12.0, 0.0):
        frame.insert(1, place)  # gives the shell a vertex there
    points = [(4.0 * x, 4.0 * y) for x, y in product(range(1, 6), repeat=2)]
    rays = [point for point in rng.sample(points, 6) if point != place]
    rays.sort(key=lambda xy: math.atan2(xy[1] - place[1], xy[0] - place[0]))
    fan = [[place, p, q] for p, q in zip(rays[::2], rays[1::2], strict=False)]
    fan += [rng.sample(points, 3) for _ in range(4)]
    kept: list[list[XY]] = []
    for hole in fan:
        if len(kept) < 4 and is_valid(Polygon(frame, [*kept, hole])):
            kept.append(hole)
    if not kept:
        return [Polygon(frame)]
    holed = Polygon(frame, kept)
    (ax, ay), (bx, by), (cx, cy) = kept[0]
    half = [(ax, ay), ((ax + bx) / 2, (ay + by) / 2), ((ax + cx) / 2, (ay + cy) / 2)]
    within = [((ax + bx) / 2, (ay + by) / 2), ((bx + cx) / 2, (by + cy) / 2), half[2]]
    plugs = MultiPolygon([Polygon(hole) for hole in kept])
    candidates: Scene = [
        plugs,
        Polygon(kept[0]),
        MultiPolygon([holed, Polygon(within)]),
        MultiPolygon([holed, Polygon(half)]),
        Polygon(kept[0], [within]),
        Polygon(frame, kept[1:]),
        Polygon(frame, [half, *kept[1:]]),
        Polygon(frame),
        MultiPolygon([Polygon(rays[:3]), Polygon([place, *rays[3:5]])]),
        LineString([place, *rays[:2]]),
        MultiPoint([place, rays[0]]),
        holed.boundary,
    ]
    valid = [each for each in rng.sample(candidates, 6) if is_valid(each)]
    return [holed, *valid[:4], draw_geometry(rng, [place, *points[:8], *frame[:2]])]


def rewritten(rng: random.Random) -> Scene:
    """Return equal point sets with different coordinates, and some nearly equal ones."""
    base = draw_geometry(rng, [(4.0 * x, 4.0 * y) for x, y in product(range(4), repeat=2)])
    again = [rewrite(rng, base) for _ in range(3)]
    return [base, *again, relative(rng, base), rewrite(rng, relative(rng, again[0]))]


def rewrite(rng: random.Random, geometry: BaseGeometry) -> BaseGeometry:
    """Return an equal geometry with other starts, directions, order, splits and extra vertices."""
    parts = list(shapely.get_parts(geometry))
    rng.shuffle(parts)
    if isinstance(parts[0], Polygon):
        polygons = []
        for part in parts:
            rings = [_rotate_ring(rng, list(ring.coords)) for ring in part.interiors]
            rng.shuffle(rings)
            polygons.append(Polygon(_rotate_ring(rng, list(part.exterior.coords)), rings))
        return MultiPolygon(polygons) if len(polygons) > 1 else polygons[0]
    if isinstance(parts[0], Point):
        return MultiPoint([*parts, rng.choice(parts)])
    pieces: list[list[XY]] = []
    for part in parts:
        vertices = _add_vertices(rng, list(part.coords))
        if rng.random() < 0.5:
            vertices.reverse()
        cut = rng.randrange(1, len(vertices))
        whole = [vertices[: cut + 1], vertices[cut:]]
        pieces += [piece for piece in whole if len({*piece}) > 1]
    return MultiLineString(pieces)


def _rotate_ring(rng: random.Random, ring: list[XY]) -> list[XY]:
    vertices = _add_vertices(rng, ring)[:-1]
    start = rng.randrange(len(vertices))
    vertices = vertices[start:] + vertices[:start]
    return vertices if rng.random() < 0.5 else vertices[::-1]


def _add_vertices(rng: random.Random, path: list[XY]) -> list[XY]:
    """Repeat vertices, and add some within edges (exact for multiples of 4)."""
    vertices = path[:1]
    for (ax, ay), (bx, by) in pairwise(path):
        if rng.random() < 0.3:
            vertices.append(((ax + bx) / 2, (ay + by) / 2))
        if rng.random() < 0.1:
            vertices.append((bx, by))
        vertices.append((bx, by))
    return vertices


def strips(rng: random.Random, min_vertices: int = 25, max_vertices: int = 70) -> Scene:
    """Return polygons of many vertices between zigzags, which share whole zigzags.

    Zigzags run from left to right at different heights, so that no two of them touch.
    """
    count = rng.randint(min_vertices, max_vertices)
    unit = rng.choice((1.0, 0.1))
    zigzags = [
        [(unit * x, unit * (20 * height + rng.randrange(12))) for x in range(count)]
        for height in range(4)
    ]

    def between(low: int, high: int) -> Polygon:
        return Polygon(zigzags[low] + zigzags[high][::-1])

    start = rng.randrange(1, count // 2)
    stop = rng.randrange(start + 4, count)
    raised = [(x, y + 3 * unit) for x, y in zigzags[1][start:stop]]
    ribbon = Polygon(zigzags[1][start:stop] + raised[::-1])
    nicked = zigzags[1].copy()
    nicked[stop - 1] = (nicked[stop - 1][0], nicked[stop - 1][1] + unit)
    candidates: Scene = [
        *(between(0, 1), between(1, 2), between(0, 2), between(2, 3), between(1, 3)),
        *(between(0, 1), ribbon, Polygon(between(0, 2).exterior, [ribbon.exterior])),
        Polygon(nicked + zigzags[2][::-1]),
        Polygon(zigzags[0][start:] + zigzags[1][start:][::-1]),
        MultiPolygon([between(0, 1), between(2, 3)]),
        LineString(zigzags[1]),
        LineString(zigzags[1][start:stop]),
        MultiPoint(zigzags[1][start:stop]),
    ]
    return rng.sample([each for each in candidates if each.geom_type != "Polygon"], 1) + rng.sample(
        candidates[:10], 3
    )


def long_strips(rng: random.Random) -> Scene:
    """Return `strips` whose edge trees have three levels."""
    return strips(rng, 100, 150)[1:3]


def collections(rng: random.Random) -> Scene:
    """Return collections of the geometries of another scene, beside some of these geometries.

    Members overlap and touch, are nested and empty, and may all be of one kind.
    """
    families = (lattice, nested, lines, contacts, near_collinear, needles, tilings, holes)
    scene = [_without_rings(geometry) for geometry in rng.choice(families)(rng)]
    made: Scene = []
    for _ in range(12):
        members = [rng.choice(scene) for _ in range(rng.choice((1, 2, 2, 3)))]
        if rng.random() < 0.3:
            members.append(rng.choice((Point(), Polygon(), GeometryCollection())))
        if rng.random() < 0.3:
            members = [GeometryCollection(members[:2]), *members[2:]]
        collection = GeometryCollection(members)
        if len(made) < 4 and is_valid(collection):
            made.append(collection)
    return [*made, *rng.sample(scene, min(2, len(scene)))]


def _without_rings(geometry: BaseGeometry) -> BaseGeometry:
    """Return a geometry as it is in well-known text, which has no linear rings."""
    return LineString(geometry.coords) if geometry.geom_type == "LinearRing" else geometry


FAMILIES: dict[str, Callable[[random.Random], Scene]] = {
    scene.__name__: scene
    for scene in (
        *(lattice, nested, lines, contacts, near_collinear, needles, magnitudes, tilings, warped),
        *(rescaled, holes, rewritten, strips, long_strips, collections),
    )
}


# ---------------------------------------------------------------------------------------- real data


@cache
def census_pairs(count: int, max_vertices: int = 45) -> list[Pair]:
    """Return neighbouring census tracts with few vertices; none without the data folder."""
    if not CENSUS.exists():
        return []
    column = pq.read_table(CENSUS, columns=["geometry"])["geometry"]
    tracts = shapely.from_wkb(column.slice(0, 6000).to_pylist())
    tracts = tracts[shapely.get_num_coordinates(tracts) <= max_vertices]
    first, second = shapely.STRtree(tracts).query(tracts, predicate="intersects")
    rows = np.flatnonzero(first < second)[:: max(1, int((first < second).sum()) // count)]
    return [(tracts[first[row]], tracts[second[row]]) for row in rows[:count]]


# --------------------------------------------------------------------------------- valid or not


def suspect(rng: random.Random) -> Polygon | MultiPolygon:
    """Return a polygon or multipolygon that is valid, or invalid in any of the possible ways."""
    size = rng.choice((3, 4, 5, 6))
    pool = [(float(x), float(y)) for x, y in product(range(size), repeat=2)]
    frame = [(0.0, 0.0), (size - 1.0, 0.0), (size - 1.0, size - 1.0), (0.0, size - 1.0)]

    def ring(max_vertices: int = 6) -> list[XY]:
        return rng.choices(pool, k=rng.randint(3, max_vertices))

    match rng.randrange(8):
        case 6:
            return (draw_holed_polygon if rng.random() < 0.5 else draw_multipolygon)(
                rng, pool
            ) or Polygon(frame)
        case 7:
            # A large ring, and a small ring that is usually inside it.
            large = draw_polygon(rng, pool) or Polygon(frame)
            corner = rng.randrange(4 * size - 8) / 4, rng.randrange(4 * size - 8) / 4
            small = shapely.transform(draw_polygon(rng, pool) or large, lambda xy: xy / 4 + corner)
            a, b = rng.sample([large, small], 2)
            around = [(-9.0, -9.0), (9.0, -9.0), (9.0, 9.0), (-9.0, 9.0)]
            return rng.choice(
                (
                    Polygon(a.exterior, [b.exterior]),
                    Polygon(around, [a.exterior, b.exterior]),
                    MultiPolygon([a, b]),
                    MultiPolygon([Polygon(around, [a.exterior]), b]),
                )
            )
        case 0:
            return Polygon(ring())
        case 1:
            return Polygon(frame, [ring(4) for _ in range(rng.randint(1, 3))])
        case 2:
            polygon = draw_holed_polygon(rng, pool) or Polygon(frame)
            return Polygon(polygon.exterior, [*polygon.interiors, ring(4)])
        case 3:
            # Triangles of a tiling as holes, which often touch each other.
            tiles = rng.sample(_triangles(rng, size - 1), rng.randint(1, 4))
            return Polygon(frame, [tile.exterior for tile in tiles])
        case 4:
            parts = draw_multipolygon(rng, pool)
            return MultiPolygon([*(parts.geoms if parts else ()), Polygon(ring(4))])
        case _:
            parts = [draw_polygon(rng, pool) or Polygon(frame) for _ in range(rng.randint(2, 3))]
            return MultiPolygon(parts)
