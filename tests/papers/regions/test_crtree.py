"""The CR-tree against brute force, and its Table 2 against the printed table."""

from __future__ import annotations

import random

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from fencepost import relate
from fencepost.engine import relations
from fencepost.errors import IndexingError, ModelError
from fencepost.geometry import RELATIONS, Relation, Shapes
from fencepost.papers.regions import relations_sampled
from fencepost.papers.regions.algorithm1 import are_simple
from fencepost.papers.regions.crtree import CRTree, Split
from fencepost.papers.regions.crtree_search import CANDIDATES, TABLE_2, box_relation
from fencepost.papers.regions.guttman import MIN_ENTRIES, ROOT
from tests.geometry_families import FAMILIES

D, M, O, E, I, Ct, Cv, cB = RELATIONS  # noqa: E741 (the paper's letters)
PRINTED_TABLE_2 = {
    D: {D, M, O, I, cB, Ct, Cv},
    M: {M, O, E, I, cB, Ct, Cv},
    O: {O, E, I, cB, Ct, Cv},
    I: {I},
    Ct: {Ct},
    cB: {cB, E},
    Cv: {Cv, E},
    E: {E},
}
L_SHAPE = shapely.Polygon([(0, 0), (9, 0), (9, 3), (3, 3), (3, 9), (0, 9)])
AT_ITS_REENTRANT_CORNER = shapely.box(1, 1, 3, 3)
CORNERS = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(8, 8, 9, 9)])
OTHER_CORNERS = shapely.MultiPolygon([shapely.box(0, 8, 1, 9), shapely.box(8, 0, 9, 1)])


def _pool(seed: int, count: int = 150) -> list[BaseGeometry]:
    """Regions on a lattice: shared edges and vertices, holes, several parts."""
    rng = random.Random(seed)
    by_wkt: dict[str, BaseGeometry] = {}
    while len(by_wkt) < count:
        for family in ("lattice", "tilings", "rewritten"):
            for region in FAMILIES[family](rng):
                if shapely.get_dimensions(region) == 2:
                    by_wkt[region.wkt] = region
    return [*list(by_wkt.values())[:count], L_SHAPE, CORNERS, OTHER_CORNERS]


def _messages(seed: int) -> list[BaseGeometry]:
    places = [shapely.Point(1, 1), shapely.Point(-5, 2), shapely.MultiPoint([(0, 0), (3, 2)])]
    lines = [shapely.LineString([(0, 0), (3, 3)]), shapely.LineString([(1, -2), (1, 7)])]
    return [
        *_pool(seed, 25),
        *places,
        *lines,
        shapely.box(-9, -9, 19, 19),
        shapely.box(50, 50, 51, 51),
    ]


def _relation_of_boxes(a: BaseGeometry, b: BaseGeometry) -> Relation:
    return relate(shapely.box(*a.bounds), shapely.box(*b.bounds))


# --------------------------------------------------------------------------------------- Table 2


@pytest.mark.parametrize(
    ("a", "b", "relation"),
    [
        (AT_ITS_REENTRANT_CORNER, L_SHAPE, Relation.COVERED_BY),
        (L_SHAPE, AT_ITS_REENTRANT_CORNER, Relation.COVERS),
        (CORNERS, OTHER_CORNERS, Relation.DISJOINT),
    ],
    ids=["covered-by", "covers", "disjoint"],
)
def test_erratum_1_the_printed_table_loses_a_match(
    a: BaseGeometry, b: BaseGeometry, relation: Relation
) -> None:
    boxes = _relation_of_boxes(a, b)
    assert relate(a, b) is relation
    assert boxes not in PRINTED_TABLE_2[relation]
    assert int(CANDIDATES[boxes.code]) & relation.bit
    tree = CRTree()
    number = tree.add(b, relation.bit)
    assert tree.match(a).tolist() == [number]


def test_the_table_differs_from_the_printed_one_only_there() -> None:
    more = {
        relation: {RELATIONS[code] for code in TABLE_2[relation.code]} - PRINTED_TABLE_2[relation]
        for relation in RELATIONS
    }
    assert more == {D: {E}, M: set(), O: set(), E: set(), I: set(), Ct: set(), Cv: {Ct}, cB: {I}}
    for relation in RELATIONS:
        assert PRINTED_TABLE_2[relation] <= {RELATIONS[code] for code in TABLE_2[relation.code]}


@pytest.mark.parametrize("seed", range(3))
def test_the_table_allows_every_relation_that_occurs(seed: int) -> None:
    regions = _pool(seed, 60)
    shapes = Shapes.read_all(regions)
    for message in _messages(seed + 10):
        codes = relations(Shapes.read_one(message), shapes)
        for region, code in zip(regions, codes.tolist(), strict=True):
            boxes = box_relation(*message.bounds, *region.bounds)
            assert int(CANDIDATES[boxes]) >> code & 1, (message.wkt, region.wkt)


def test_boxes_are_related_as_regions_are() -> None:
    rng = random.Random(4)
    for _ in range(400):
        a, b = _random_box(rng), _random_box(rng)
        assert box_relation(*a.bounds, *b.bounds) == relate(a, b).code


def _random_box(rng: random.Random) -> BaseGeometry:
    (x0, x1), (y0, y1) = (sorted(rng.sample(range(5), 2)) for _ in range(2))
    return shapely.box(x0, y0, x1, y1)


# ------------------------------------------------------------------------------------------ tree


def check_structure(tree: CRTree) -> None:
    """Check that boxes are tight, nodes full enough, leaves on one level, and counts right."""
    arrays = tree.tree

    def below(node: int, is_root: bool) -> tuple[NDArray[np.float64], int, int]:
        size, level = int(arrays.size[node]), int(arrays.level[node])
        assert size <= tree.fanout
        assert is_root or size >= arrays.state[MIN_ENTRIES]
        disjoint = members = 0
        for k in range(size):
            child = int(arrays.child[node, k])
            if level == 0:
                assert arrays.leaf_of[child] == node
                assert bool(arrays.matches_disjoint[child]) == (k < arrays.disjoint_count[node])
                disjoint += int(arrays.matches_disjoint[child])
                members += 1
            else:
                assert int(arrays.level[child]) == level - 1
                assert int(arrays.parent[child]) == node
                box, inner, count = below(child, False)
                assert np.array_equal(box, arrays.boxes[node, :, k])
                disjoint += inner
                members += count
        assert disjoint == arrays.disjoint_count[node]
        boxes = arrays.boxes[node, :, :size]
        box_around = np.concatenate(
            (boxes[:2].min(1, initial=np.inf), boxes[2:].max(1, initial=-np.inf))
        )
        return box_around, disjoint, members

    assert below(int(arrays.state[ROOT]), True)[2] == len(tree)


@pytest.mark.parametrize("packed", [0, 200])
@pytest.mark.parametrize("split", ["quadratic", "rstar"])
@pytest.mark.parametrize(("fanout", "min_entries"), [(4, 2), (16, 6)])
def test_finds_what_brute_force_finds_as_constraints_come_and_go(
    split: Split, fanout: int, min_entries: int, packed: int
) -> None:
    regions = Shapes.read_all(_pool(7))
    messages = [Shapes.read_one(message) for message in _messages(8)]
    rng = random.Random(9)
    tree = CRTree(split=split, fanout=fanout, min_entries=min_entries)
    rows = np.array([rng.randrange(len(regions)) for _ in range(packed)], np.int64)
    masks = np.array([rng.randrange(256) for _ in range(packed)], np.int64)
    first = tree.add_many(Shapes.gather([(regions.arrays, rows)]), masks, packed=True)
    kept: dict[int, tuple[int, int]] = {
        number: (row, mask)
        for number, row, mask in zip(first.tolist(), rows.tolist(), masks.tolist(), strict=True)
    }
    check_structure(tree)
    growing = True
    for step in range(900):
        growing = True if not kept else False if len(kept) > 250 else growing
        if rng.random() < (0.8 if growing else 0.2):
            row = rng.randrange(len(regions))
            mask = rng.choice([*(r.bit for r in RELATIONS), 0, 255, 254, rng.randrange(256)])
            number = tree.add(regions.row(row), mask)
            assert number not in kept
            kept[number] = row, mask
        else:
            number = rng.choice(list(kept))
            tree.remove(number)
            del kept[number]
        if step % 10 == 0:
            message = rng.choice(messages)
            codes = relations(message, regions).tolist()
            matches = tree.search(message).tolist()
            assert len(matches) == len(set(matches))
            assert set(matches) == {n for n, (row, mask) in kept.items() if mask >> codes[row] & 1}
        if step % 100 == 0:
            check_structure(tree)
    for number in list(kept):
        tree.remove(number)
    check_structure(tree)
    assert len(tree) == 0
    assert tree.height == 1
    assert tree.search(messages[0]).tolist() == []


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("density", [None, 0.0, 4.0, 40.0])
def test_relates_exactly_or_by_algorithm_1(density: float | None, indexed: bool) -> None:
    regions = Shapes.read_all(_pool(11))
    rng = np.random.default_rng(12)
    masks = 1 << rng.integers(0, 8, len(regions))
    tree = CRTree(density=density, indexed=indexed)
    tree.add_many(regions, masks)
    simple = are_simple(regions)
    for message in _messages(13):
        shape = Shapes.read_one(message)
        codes = relations(shape, regions)
        if density is not None and are_simple(shape)[0]:
            rows = np.flatnonzero(simple)
            codes[rows] = relations_sampled(shape, Shapes.gather([(regions.arrays, rows)]), density)
        if indexed:  # Table 2 overrides Algorithm 1 where the latter errs
            bounds = [list(region) for region in _bounds(regions)]
            boxes = np.array([box_relation(*message.bounds, *box) for box in bounds])
            possible = CANDIDATES[boxes]
            expected = ((masks >> codes) & 1 == 1) & (possible & masks > 0)
            expected |= (possible & ~masks) == 0
        else:
            expected = (masks >> codes) & 1 == 1
        assert set(tree.search(shape).tolist()) == set(np.flatnonzero(expected).tolist())


def _bounds(shapes: Shapes) -> NDArray[np.float64]:
    records = shapes.arrays.shapes[:-1]
    return np.column_stack([records[name] for name in ("x0", "y0", "x1", "y1")])


def test_matches_disjoint_constraints_of_missed_nodes_without_a_visit() -> None:
    rng = np.random.default_rng(14)
    corners = rng.random((4000, 2)) * 1000
    tree = CRTree()
    tree.add_many(Shapes.read_all(np.column_stack((corners, corners + 2))), np.full(4000, D.bit))
    assert len(tree.match(shapely.box(-10, -10, -5, -5))) == 4000
    assert (tree.evaluated, tree.visited) == (0, 1)


@pytest.mark.parametrize(("fanout", "min_entries"), [(4, 2), (5, 2), (16, 6), (16, 8)])
def test_a_packed_tree_is_sound_whatever_its_size(fanout: int, min_entries: int) -> None:
    rng = np.random.default_rng(15)
    message = shapely.box(20, 20, 60, 70)
    for count in (0, 1, 2, fanout - 1, fanout, fanout + 1, 2 * fanout + 1, fanout**2 + 1, 1000):
        corners = rng.integers(0, 100, (count, 2))
        regions = Shapes.read_all(np.column_stack((corners, corners + rng.integers(1, 9, 2))))
        masks = rng.integers(0, 256, count)
        tree = CRTree(fanout=fanout, min_entries=min_entries)
        assert tree.add_many(regions, masks, packed=True).tolist() == list(range(count))
        check_structure(tree)
        expected = np.flatnonzero((masks >> relations(Shapes.read_one(message), regions)) & 1)
        assert sorted(tree.match(message).tolist()) == expected.tolist()
        # The tree has the least possible height.
        assert fanout ** (tree.height - 1) < max(count, 2)


def test_packing_finds_with_fewer_visits_than_insertion() -> None:
    rng = np.random.default_rng(16)
    corners = rng.random((4000, 2)) * 1000
    regions = Shapes.read_all(np.column_stack((corners, corners + 2)))
    masks = np.full(4000, O.bit)
    packed, grown = CRTree(), CRTree()
    packed.add_many(regions, masks, packed=True)
    grown.add_many(regions, masks)
    for x, y in (rng.random((30, 2)) * 900).tolist():
        message = shapely.box(x, y, x + 60, y + 60)
        assert set(packed.match(message).tolist()) == set(grown.match(message).tolist())
    assert packed.visited < grown.visited


def test_an_emptied_tree_can_be_packed_and_no_other() -> None:
    regions = Shapes.read_all([shapely.box(k, 0, k + 1, 1) for k in range(100)])
    masks = np.full(100, I.bit)
    tree = CRTree(fanout=4, min_entries=2)
    for number in tree.add_many(regions, masks).tolist():
        with pytest.raises(IndexingError, match="only an empty tree can be packed"):
            tree.add_many(regions, masks, packed=True)
        tree.remove(number)
    numbers = tree.add_many(regions, masks, packed=True)
    check_structure(tree)
    assert tree.match(shapely.box(7.2, 0.2, 7.4, 0.4)).tolist() == [numbers[7]]


def test_takes_masks_by_the_dimension_of_the_message() -> None:
    tree = CRTree()
    number = tree.add(shapely.box(0, 0, 4, 4), [I.bit, 0, O.bit])
    assert tree.match(shapely.Point(1, 1)).tolist() == [number]
    assert tree.match(shapely.LineString([(1, 1), (2, 2)])).tolist() == []
    assert tree.match(shapely.box(3, 3, 5, 5)).tolist() == [number]
    assert tree.match(shapely.box(1, 1, 2, 2)).tolist() == []


def test_forgets_the_regions_of_removed_constraints() -> None:
    tree = CRTree()
    for k in range(3000):
        number = tree.add(shapely.box(k, 0, k + 1, 1), I.bit)
        if k % 100:
            tree.remove(number)
    assert len(tree) == 30
    assert len(tree.shapes) < 200
    assert len(tree.match(shapely.box(100.2, 0.2, 100.4, 0.4))) == 1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("split", ["quadratic", "rstar"])
def test_many_equal_boxes_and_far_coordinates(split: Split, packed: bool) -> None:
    tree = CRTree(fanout=4, min_entries=2, split=split)
    far = [shapely.box(k * 1e307, -1.6e308, (k + 1) * 1e307, 1.6e308) for k in range(-9, 9)]
    near = [shapely.box(1e-300, 0, 2e-300, 1e-300)] * 60
    regions = [*far, *near, *far]
    if packed:
        masks = np.full(len(regions), E.bit)
        numbers = tree.add_many(Shapes.read_all(regions), masks, packed=True).tolist()
        check_structure(tree)
    else:
        numbers = [tree.add(region, E.bit) for region in regions]
    for k, region in enumerate(far):
        assert sorted(tree.match(region).tolist()) == [numbers[k], numbers[k - len(far)]]
    assert set(tree.match(near[0]).tolist()) == set(numbers[18:78])
    for number in numbers[:-1]:
        tree.remove(number)
    check_structure(tree)
    assert tree.match(far[-1]).tolist() == numbers[-1:]


def test_refuses_invalid_constraints_and_options() -> None:
    tree = CRTree()
    with pytest.raises(ModelError, match="polygon"):
        tree.add(shapely.Point(0, 0), 1)
    with pytest.raises(ModelError, match="0 to 255"):
        tree.add(shapely.box(0, 0, 1, 1), 256)
    with pytest.raises(ModelError, match="dimension"):
        tree.add(shapely.box(0, 0, 1, 1), [1, 0, 1])
    with pytest.raises(ModelError, match="shape"):
        tree.add_many(Shapes.read_all([shapely.box(0, 0, 1, 1)]), np.array([1, 2]))
    with pytest.raises(ModelError, match="row 1 is no usable"):
        tree.search(Shapes.read([shapely.box(0, 0, 1, 1), "POINT EMPTY"]), 1)
    with pytest.raises(IndexingError, match="no constraint 0"):
        tree.remove(0)
    with pytest.raises(IndexingError, match="split"):
        CRTree(split="linear")  # type: ignore[arg-type]
    with pytest.raises(IndexingError, match="min_entries must be 2 to 4"):
        CRTree(fanout=8, min_entries=5)
    with pytest.raises(ModelError, match="density"):
        CRTree(density=-1)
