"""`relate`, `relate_one_to_many` and `relate_pairs`: results, forms of input, and errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import geoarrow.pyarrow as ga
import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from shapely.geometry import mapping

import fencepost as fp
from fencepost.geometry import Shapes
from tests.geometry_families import pairs

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
BOWTIE = "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"
BOWTIE_PROBLEM = "a ring touches or crosses itself at (1, 1)"

RELATIONS = [
    ("POLYGON ((5 5, 6 5, 6 6, 5 5))", "disjoint"),
    ("POLYGON ((4 0, 6 0, 6 4, 4 4, 4 0))", "meets"),
    ("POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))", "overlaps"),
    ("POLYGON ((4 4, 4 2, 4 0, 0 0, 0 4, 4 4))", "equals"),
    ("POLYGON ((-1 -1, 9 -1, 9 9, -1 9, -1 -1))", "inside"),
    ("POLYGON ((1 1, 2 1, 2 2, 1 1))", "contains"),
    ("POLYGON ((0 0, 2 1, 1 2, 0 0))", "covers"),
    ("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))", "covered-by"),
]
OTHERS = [text for text, _ in RELATIONS]
EXPECTED = [value for _, value in RELATIONS]


def names(codes: Any) -> list[str]:
    assert codes.dtype == np.uint8
    return [fp.Relation.from_code(code).value for code in codes]


# ---------------------------------------------------------------------------------------- results


@pytest.mark.parametrize(("other", "expected"), RELATIONS)
def test_each_relation(other: str, expected: str) -> None:
    relation = fp.relate(SQUARE, other)
    assert relation is fp.Relation(expected)
    assert fp.relate(other, SQUARE) is relation.converse


def test_batches_return_the_same_relations() -> None:
    assert names(fp.relate_one_to_many(SQUARE, OTHERS)) == EXPECTED
    assert names(fp.relate_pairs([SQUARE] * 8, OTHERS)) == EXPECTED
    converses = [fp.Relation(value).converse.value for value in EXPECTED]
    assert names(fp.relate_pairs(OTHERS, [SQUARE] * 8)) == converses


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("POINT (4 1)", SQUARE, "meets"),
        ("POINT (4 4)", SQUARE, "meets"),
        ("POINT (2 2)", SQUARE, "inside"),
        ("POINT (1 2)", "POINT (1 2)", "equals"),
        ("MULTIPOINT (0 0, 2 2)", SQUARE, "covered-by"),
        ("LINESTRING (0 0, 4 0)", SQUARE, "meets"),
        ("LINESTRING (0 0, 4 4)", SQUARE, "covered-by"),
        ("LINESTRING (-9 1, 9 1)", SQUARE, "overlaps"),
        ("LINESTRING (0 0, 2 2)", "LINESTRING (0 2, 2 0)", "overlaps"),
        ("LINESTRING (0 0, 1 0)", "LINESTRING (1 0, 2 0)", "meets"),
        ("POINT Z (2 2 9)", "POLYGON Z ((0 0 1, 4 0 2, 4 4 3, 0 0 1))", "meets"),
        ("POINT (-0.0 0.0)", "POINT (0.0 -0.0)", "equals"),
    ],
)
def test_kinds_of_geometries(a: str, b: str, expected: str) -> None:
    assert fp.relate(a, b).value == expected


def test_the_last_bit_decides() -> None:
    edge = math.nextafter(4.0, 5.0)
    assert fp.relate(SQUARE, shapely.box(4.0, 0, 5, 1)) is fp.Relation.MEETS
    assert fp.relate(SQUARE, shapely.box(edge, 0, 5, 1)) is fp.Relation.DISJOINT
    assert fp.relate(SQUARE, shapely.box(0, 0, edge, 4)) is fp.Relation.COVERED_BY
    # 0.1 + 0.2 is not 0.3.
    line = shapely.LineString([(0, 0), (0.3, 0.3)])
    assert fp.relate(shapely.Point(0.1 + 0.2, 0.3), line) is fp.Relation.DISJOINT
    assert fp.relate(shapely.Point(0.1, 0.1), line) is fp.Relation.INSIDE


@pytest.mark.parametrize("family", ["lattice", "nested", "lines", "holes", "magnitudes"])
def test_batches_equal_single_calls(family: str) -> None:
    sample = pairs(family, 3000, 60)
    firsts, seconds = [a for a, _ in sample], [b for _, b in sample]
    singles = [fp.relate(a, b).code for a, b in sample]
    assert fp.relate_pairs(firsts, seconds).tolist() == singles
    for a in firsts[:5]:
        row = [fp.relate(a, b).code for b in seconds]
        assert fp.relate_one_to_many(a, seconds).tolist() == row


# --------------------------------------------------------------------------------- forms of input


class Interface:
    def __init__(self, content: object) -> None:
        self.__geo_interface__ = content


SHAPE = shapely.from_wkt(SQUARE)
ONE: dict[str, object] = {
    "WKT": SQUARE,
    "Shapely": SHAPE,
    "WKB": shapely.to_wkb(SHAPE),
    "EWKB": shapely.to_wkb(shapely.set_srid(SHAPE, 4326), include_srid=True),
    "bytearray": bytearray(shapely.to_wkb(SHAPE)),
    "memoryview": memoryview(shapely.to_wkb(SHAPE)),
    "GeoJSON": mapping(SHAPE),
    "GeoJSON from text": json.loads(json.dumps(mapping(SHAPE))),
    "Feature": {"type": "Feature", "properties": {}, "geometry": mapping(SHAPE)},
    "interface": Interface(mapping(SHAPE)),
    "unclosed": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4]]]},
}


@pytest.mark.parametrize("form", ONE)
def test_one_geometry_in_any_form(form: str) -> None:
    assert fp.relate(ONE[form], SQUARE) is fp.Relation.EQUALS
    assert fp.relate(SQUARE, ONE[form]) is fp.Relation.EQUALS
    assert names(fp.relate_one_to_many(ONE[form], OTHERS)) == EXPECTED
    assert names(fp.relate_one_to_many(SQUARE, [ONE[form]])) == ["equals"]


SHAPELY = [shapely.from_wkt(text) for text in OTHERS]
MANY: dict[str, Callable[[], object]] = {
    "list": lambda: OTHERS,
    "tuple": lambda: tuple(SHAPELY),
    "iterator": lambda: iter(OTHERS),
    "mixed": lambda: [*OTHERS[:3], *SHAPELY[3:6], *shapely.to_wkb(SHAPELY[6:])],
    "object array": lambda: np.array(SHAPELY),
    "Series": lambda: pd.Series(OTHERS),
    "GeoSeries": lambda: geopandas.GeoSeries(SHAPELY),
    "Arrow WKB": lambda: pa.array(shapely.to_wkb(SHAPELY)),
    "Arrow WKT": lambda: pa.array(OTHERS),
    "Arrow chunks": lambda: pa.chunked_array([OTHERS[:5], OTHERS[5:]]),
    "GeoArrow": lambda: ga.as_geoarrow(OTHERS),
    "Shapes": lambda: Shapes.read_all(OTHERS),
}


@pytest.mark.parametrize("form", MANY)
def test_many_geometries_in_any_form(form: str) -> None:
    assert names(fp.relate_one_to_many(SQUARE, MANY[form]())) == EXPECTED
    assert names(fp.relate_pairs([SQUARE] * 8, MANY[form]())) == EXPECTED
    assert names(fp.relate_pairs(MANY[form](), MANY[form]())) == ["equals"] * 8


def test_boxes() -> None:
    boxes = np.array([[5, 5, 6, 6], [4, 0, 5, 4], [0, 0, 4, 4], [1, 1, 2, 2], [0, 0, 1, 1]])
    before = boxes.copy()
    codes = fp.relate_one_to_many(SQUARE, boxes)
    assert names(codes) == ["disjoint", "meets", "equals", "contains", "covers"]
    np.testing.assert_array_equal(boxes, before)


def test_empty_and_single_batches() -> None:
    empties: list[object] = [[], np.empty((0, 4)), Shapes.read_all([])]
    for empty in empties:
        assert names(fp.relate_one_to_many(SQUARE, empty)) == []
        assert names(fp.relate_pairs(empty, [])) == []
        assert names(fp.relate_pairs([], empty)) == []
    assert names(fp.relate_pairs([SQUARE], [SQUARE])) == ["equals"]


def test_shapes_can_be_reused() -> None:
    sample = pairs("holes", 3001, 100)
    shapes = Shapes.read_all([a for a, _ in sample])
    before = [array.tobytes() for array in shapes.arrays]
    first = fp.relate_pairs(shapes, [b for _, b in sample])
    assert fp.relate_pairs(shapes, [b for _, b in sample]).tolist() == first.tolist()
    assert [array.tobytes() for array in shapes.arrays] == before


def test_threads_do_not_disturb_each_other() -> None:
    sample = pairs("tilings", 3002, 400)
    first, second = Shapes.read_all([a for a, _ in sample]), Shapes.read_all([b for _, b in sample])
    expected = fp.relate_pairs(first, second).tolist()
    with ThreadPoolExecutor(4) as pool:
        for codes in pool.map(lambda _: fp.relate_pairs(first, second), range(16)):
            assert codes.tolist() == expected


# ------------------------------------------------------------------------------------------ errors


def test_one_bad_geometry_is_named_without_a_row() -> None:
    calls: list[Callable[[], object]] = [
        lambda: fp.relate(BOWTIE, SQUARE),
        lambda: fp.relate(SQUARE, BOWTIE),
        lambda: fp.relate_one_to_many(BOWTIE, [SQUARE]),
    ]
    for call in calls:
        with pytest.raises(fp.GeometryError) as caught:
            call()
        assert str(caught.value) == BOWTIE_PROBLEM
        (problem,) = caught.value.problems
        assert problem == fp.GeometryProblem(0, "a ring touches or crosses itself", (1.0, 1.0))


def test_bad_rows_are_named_in_order() -> None:
    many = [SQUARE, BOWTIE, "POINT (0 0)", "POINT EMPTY", None, "POLYGON ((0 0,"]
    calls: list[Callable[[], object]] = [
        lambda: fp.relate_one_to_many(SQUARE, many),
        lambda: fp.relate_pairs(many, [SQUARE] * 6),
        lambda: fp.relate_pairs([SQUARE] * 6, many),
    ]
    for call in calls:
        with pytest.raises(fp.GeometryError) as caught:
            call()
        assert [problem.row for problem in caught.value.problems] == [1, 3, 4, 5]
        message = str(caught.value)
        assert message.startswith(f"row 1: {BOWTIE_PROBLEM}; row 3: the geometry is empty")
        assert "more" not in message.rsplit("; ", maxsplit=1)[-1]


def test_a_single_bad_row_of_many_still_has_its_row() -> None:
    with pytest.raises(fp.GeometryError, match=r"^row 0: a ring touches or crosses itself at"):
        fp.relate_one_to_many(SQUARE, [BOWTIE])


@pytest.mark.parametrize(("count", "end"), [(10, "row 9: "), (11, "and 1 more"), (500, "490 more")])
def test_long_lists_of_bad_rows_are_cut(count: int, end: str) -> None:
    with pytest.raises(fp.GeometryError) as caught:
        fp.relate_one_to_many(SQUARE, [BOWTIE] * count)
    assert len(caught.value.problems) == count
    message = str(caught.value)
    assert message.count("row ") == 10
    assert end in message.rsplit("; ", maxsplit=1)[-1]


@pytest.mark.parametrize(
    ("value", "message_part"),
    [
        ("POINT EMPTY", "empty"),
        ("GEOMETRYCOLLECTION (POINT EMPTY)", "empty"),
        ("POINT (nan 0)", "finite"),
        ("no geometry", "no geometry"),
        (b"\x00\x01", ""),
        (None, "null"),
        (17, "17"),
        ({"type": "Polygon"}, "coordinates"),
        ("LINESTRING (1 1, 1 1)", "too few distinct points"),
        (BOWTIE, "touches or crosses itself at (1, 1)"),
    ],
)
def test_unusable_geometries(value: object, message_part: str) -> None:
    for a, b in ((value, SQUARE), (SQUARE, value)):
        with pytest.raises(fp.GeometryError) as caught:
            fp.relate(a, b)
        assert message_part in str(caught.value)
        assert "row" not in str(caught.value).split(";")[0]


def test_coordinates_are_shown_to_the_last_bit() -> None:
    x = 0.1 + 0.2
    ring = f"POLYGON ((0 0, {x!r} 0, {x!r} 1, 1 2, {x!r} 0, 0 -1, 0 0))"
    with pytest.raises(fp.GeometryError) as caught:
        fp.relate(ring, SQUARE)
    ((_, place),) = [(problem.row, problem.place) for problem in caught.value.problems]
    assert place == (x, 0.0)
    assert "at (0.30000000000000004, 0)" in str(caught.value)


def test_sides_of_unequal_length_are_refused() -> None:
    for a, b in (([SQUARE], [SQUARE] * 2), ([SQUARE] * 3, [SQUARE] * 2), ([], [SQUARE])):
        with pytest.raises(fp.ModelError, match=f"saw {len(a)} and {len(b)}$"):
            fp.relate_pairs(a, b)


@pytest.mark.parametrize("value", [SQUARE, SHAPE, shapely.to_wkb(SHAPE), mapping(SHAPE), 5, None])
def test_one_geometry_is_not_many(value: object) -> None:
    with pytest.raises(fp.ModelError):
        fp.relate_one_to_many(SQUARE, value)
    with pytest.raises(fp.ModelError):
        fp.relate_pairs(value, [SQUARE])


def test_errors_have_one_root() -> None:
    with pytest.raises(fp.FencepostError):
        fp.relate(BOWTIE, SQUARE)
    assert issubclass(fp.GeometryError, fp.ModelError)


@pytest.mark.parametrize("bad", [BOWTIE, "POLYGON ((0 0, 1 0, 2 0, 0 0))", "POINT EMPTY", None])
def test_shapes_with_bad_rows_never_get_a_made_up_relation(bad: object) -> None:
    """Ready-made shapes are not checked again, so a bad row is refused or is disjoint."""
    shapes = Shapes.read([SQUARE, bad, "LINESTRING (0 0, 1 1)"])
    for other in (SQUARE, "LINESTRING (-1 1, 3 1)", "MULTIPOINT (0 0, 1 1, 2 2)"):
        calls: list[Callable[[], object]] = [
            partial(fp.relate_one_to_many, other, shapes),
            partial(fp.relate_pairs, shapes, [other] * 3),
            partial(fp.relate_pairs, [other] * 3, shapes),
        ]
        for call in calls:
            try:
                codes = call()
            except fp.GeometryError:
                continue
            assert names(codes)[1] == "disjoint"
