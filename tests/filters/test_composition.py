"""The composition table against sampled triples, for areas, lines and points."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from fencepost.engine import relations
from fencepost.filters.spatial_relations import ALL_RELATIONS, compose, compose_mask
from fencepost.geometry import RELATIONS, Relation, Shapes

KINDS = ("areas", "lines", "points")


def areas(rng: np.random.Generator, count: int) -> list[shapely.Geometry]:
    """Return boxes, boxes with holes, triangles and unions of boxes on a small lattice."""
    boxes: list[shapely.Geometry] = []
    while len(boxes) < count:
        x, y = rng.integers(0, 4, 2)
        w, h = rng.choice((1, 2, 3, 5, 7), 2)
        area: shapely.Geometry = shapely.box(x, y, x + w, y + h)
        kind = rng.integers(4)
        if kind == 1 and w > 2 and h > 2:
            area = area.difference(shapely.box(x + 1, y + 1, x + w - 1, y + h - 1))
        elif kind == 2:
            u, v = rng.integers(0, 6, 2)
            area = area.union(shapely.box(u, v, u + 1, v + 1))
        elif kind == 3:
            area = shapely.Polygon([(x, y), (x + w, y), (x, y + h)])
        if area.is_valid and area.geom_type in ("Polygon", "MultiPolygon"):
            boxes.append(area)
    return boxes


def geometries(rng: np.random.Generator, kind: str, count: int) -> list[shapely.Geometry]:
    if kind == "areas":
        return areas(rng, count)
    if kind == "points":
        return [
            shapely.MultiPoint(rng.integers(0, 10, (rng.integers(1, 4), 2)) / 2)
            for _ in range(count)
        ]
    lines: list[shapely.Geometry] = []
    while len(lines) < count:
        line = shapely.LineString(rng.integers(0, 10, (rng.integers(2, 4), 2)) / 2)
        if line.is_valid and line.length > 0:
            lines.append(line)
    return lines


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_triples_obey_the_table(kind: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    count = 40_000
    pool_x = np.array(geometries(rng, kind, 400), object)
    pool = np.array(areas(rng, 400), object)
    x, b, c = (p[rng.integers(len(p), size=count)] for p in (pool_x, pool, pool))
    xs, bs, cs = Shapes.read_all(x), Shapes.read_all(b), Shapes.read_all(c)
    first, second, third = relations(xs, bs), relations(bs, cs), relations(xs, cs)
    seen: dict[tuple[int, int], int] = {}
    for r, s, t in zip(first.tolist(), second.tolist(), third.tolist(), strict=True):
        seen[r, s] = seen.get((r, s), 0) | 1 << t
    wrong = [
        (RELATIONS[r].value, RELATIONS[s].value)
        for (r, s), mask in seen.items()
        if mask & ~compose(RELATIONS[r], RELATIONS[s])
    ]
    assert wrong == []
    assert len(seen) > 20


def test_the_table_is_not_looser_than_needed() -> None:
    """Every entry of the table occurs among sampled areas."""
    rng = np.random.default_rng(9)
    nested = [shapely.box(k, k, 11 - k, 11 - k) for k in range(6)] * 8
    pool = np.array(areas(rng, 500) + nested, object)
    missing = {(r, s): compose(r, s) for r in RELATIONS for s in RELATIONS}
    for _ in range(20):
        x, b, c = (pool[rng.integers(len(pool), size=60_000)] for _ in range(3))
        xs, bs, cs = Shapes.read_all(x), Shapes.read_all(b), Shapes.read_all(c)
        first, second, third = relations(xs, bs), relations(bs, cs), relations(xs, cs)
        triples = np.unique(np.stack((first, second, third)), axis=1)
        for r, s, t in triples.T.tolist():
            missing[RELATIONS[r], RELATIONS[s]] &= ~(1 << t)
        if not any(missing.values()):
            break
    left = {
        (r.value, s.value): [t.value for t in RELATIONS if bits & t.bit]
        for (r, s), bits in missing.items()
        if bits
    }
    assert left == {}


def test_converse() -> None:
    """compose(s^, r^) is the converse of compose(r, s)."""
    for r in RELATIONS:
        for s in RELATIONS:
            turned = compose(s.converse, r.converse)
            expected = sum(t.converse.bit for t in RELATIONS if compose(r, s) & t.bit)
            assert turned == expected


def test_reachable() -> None:
    assert compose_mask(ALL_RELATIONS, Relation.EQUALS) == ALL_RELATIONS
    assert compose_mask(0, Relation.DISJOINT) == 0
    assert compose_mask(Relation.INSIDE.bit | Relation.COVERED_BY.bit, Relation.DISJOINT) == (
        Relation.DISJOINT.bit
    )
