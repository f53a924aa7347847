"""Points in their simplest forms are read as by the readers of all formats."""

from __future__ import annotations

import random
import struct
from math import copysign, inf, isfinite, nan

import pytest
import shapely

from fencepost.geometry import Shapes
from fencepost.geometry.readers.single_geometry import parse_point


def numeral(rng: random.Random) -> str:
    sign = rng.choice(("", "-"))
    match rng.randrange(4):
        case 0:
            return repr(rng.uniform(-1e3, 1e3))
        case 1:
            whole, rest = (rng.randrange(10 ** rng.randrange(1, 30)) for _ in range(2))
            return f"{sign}{whole}.{rest:030d}"
        case 2:
            return f"{sign}{rng.randrange(10**17)}e{rng.randrange(-320, 280)}"
    return f"{sign}{rng.getrandbits(55) * 2 + 1}E-{rng.randrange(30)}"  # ties between doubles


def test_points_of_wkt_are_those_of_shapely() -> None:
    rng = random.Random("points")
    for _ in range(2_000):
        text = f"POINT{rng.choice(('', ' '))}({numeral(rng)} {numeral(rng)})"
        point = shapely.from_wkt(text)
        assert parse_point(text) == (point.x, point.y), text
        assert parse_point(point.wkb) == parse_point(point) == (point.x, point.y)


@pytest.mark.parametrize(
    "value",
    [
        "POINT EMPTY",
        "POINT Z (1 2 3)",
        "POINT (1 2 3)",
        "POINT (1 2) ",
        "POINT (1 2)\n",
        "POINT (1_0 2)",
        "POINT (١ 2)",
        "POINT (nan 2)",
        "POINT (inf 2)",
        "MULTIPOINT (1 2)",
        "LINESTRING (1 2, 3 4)",
        shapely.Point(1, 2, 3).wkb,
        shapely.MultiPoint([(1, 2)]).wkb,
        struct.pack(">BIdd", 0, 1, 1.0, 2.0),
        struct.pack("<BIdd", 1, 0x20000001, 1.0, 2.0),
        b"POINT (10.125 20.125)",
        {"type": "Point", "coordinates": [1, 2]},
        None,
    ],
)
def test_other_geometries_are_left_to_the_readers(value: object) -> None:
    assert parse_point(value) is None


def test_coordinates_need_not_be_finite() -> None:
    for x, y in ((nan, nan), (inf, 1.0), (1.0, -inf)):
        point = parse_point(struct.pack("<BIdd", 1, 1, x, y))
        assert point is not None
        assert not (isfinite(point[0]) and isfinite(point[1]))
    assert parse_point("POINT (1e999 2)") == (inf, 2.0)
    assert Shapes.read_one("POINT (1 2)").arrays.x.tolist() == [1.0]


def test_points_alone_are_laid_out_like_points_among_other_shapes() -> None:
    rng = random.Random("layout")
    points = [shapely.Point(rng.uniform(-9, 9), rng.choice((0.0, -0.0, 3.5))) for _ in range(50)]
    alone = Shapes.read(points).arrays
    beside = Shapes.read([*points, shapely.LineString([(0, 0), (1, 1)])]).arrays
    count = len(points)
    for name in ("x", "y", "chains", "shapes"):
        array_alone, array_beside = getattr(alone, name), getattr(beside, name)
        assert array_alone.dtype == array_beside.dtype
        assert array_alone[:count].tolist() == array_beside[:count].tolist()
    assert alone.chains["start"][count] == alone.shapes["chain"][count] == count
    assert alone.shapes["dimension"][count] == -1
    assert not len(alone.nodes)
    assert all(copysign(1.0, y) > 0 for y in alone.y.tolist() if y == 0)
