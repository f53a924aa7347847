"""Geometry columns of tables: encodings named by metadata, and plain structs and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import geoarrow.pyarrow as ga
import numpy as np
import pyarrow as pa
import pytest
import shapely

from fencepost import Matcher
from fencepost.engine import match_pairs, scores_of_pairs
from fencepost.errors import GeometryError, ModelError

KINDS = ("point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon")
INDEXES = ("auto", "reference", "sff", "cr-tree", "rt", "rt+", "rt++")
BOXES = [(0.0, 0.0, 3.0, 3.0), (2.0, 2.0, 7.5, 5.0), (6.0, 0.0, 9.0, 9.0), (0.0, 7.0, 1.0, 8.0)]


def some(kind: str, count: int, seed: int) -> list[Any]:
    """Return geometries of one kind, on quarters; every fifth is null."""
    random = np.random.default_rng(seed)
    geometries: list[Any] = []
    for number in range(count):
        x, y = random.integers(0, 36, 2) / 4
        wide, high = random.integers(1, 8, 2) / 4
        box = shapely.box(x, y, x + wide, y + high)
        line = shapely.LineString([(x, y), (x + wide, y + high), (x + wide + 1, y)])
        hole = shapely.box(x + wide / 4, y + high / 4, x + wide / 2, y + high / 2)
        geometries.append(
            {
                "point": shapely.Point(x, y),
                "linestring": line,
                "polygon": box.difference(hole),
                "multipoint": shapely.MultiPoint([(x, y), (x + wide, y)]),
                "multilinestring": shapely.MultiLineString([line, [(y, x), (y + 1, x)]]),
                "multipolygon": shapely.MultiPolygon([box, shapely.box(x + 10, y, x + 11, y + 1)]),
            }[kind]
            if number % 5 != 4
            else None
        )
    return geometries


def stored(kind: str, geometries: Sequence[Any], layout: str) -> pa.Array:
    """Return the storage of a GeoArrow column: lists and structs without a name."""
    coordinates = ga.CoordType.SEPARATED if layout == "separated" else ga.CoordType.INTERLEAVED
    wkb = ga.wkb().wrap_array(pa.array([g and g.wkb for g in geometries], pa.binary()))
    array = ga.as_geoarrow(wkb, type=getattr(ga, kind)().with_coord_type(coordinates)).storage
    return array.cast(_single(array.type)) if layout == "float32" else array


def _single(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_single(kind.value_type)))
    return pa.list_(pa.float32(), kind.list_size)


def table_of(column: Any, name: str | None = None, **others: Any) -> pa.Table:
    """Return a table with the geometry `g`; `name` is its encoding in the metadata, if any."""
    metadata = None if name is None else {"ARROW:extension:name": name}
    field = pa.field("g", column.type, metadata=metadata)
    return pa.table([column, *others.values()], schema=pa.schema([field, *pa.table(others).schema]))


def boxed(index: Any = "auto") -> Matcher:
    matcher = Matcher(index=index, space="planar")
    for number, (west, south, east, north) in enumerate(BOXES):
        box = f"BBOX({west}, {south}, {east}, {north})"
        matcher.subscribe(f"box {number}", f"S_INTERSECTS(g, {box})")
    matcher.subscribe("missing", "g IS NULL")
    return matcher


def by_shapely(geometries: Sequence[Any]) -> set[tuple[int, str]]:
    matches = {(row, "missing") for row, g in enumerate(geometries) if g is None}
    for number, bounds in enumerate(BOXES):
        hits = shapely.intersects(np.array(geometries, object), shapely.box(*bounds))
        matches |= {(int(row), f"box {number}") for row in np.flatnonzero(hits)}
    return matches


def pairs(matcher: Matcher, table: Any) -> set[tuple[int, str]]:
    matches = matcher.match_batch(table, sort=True).to_pydict()
    return set(zip(matches["event"], matches["subscription"], strict=True))


@pytest.mark.parametrize("layout", ["separated", "interleaved", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_metadata_of_a_field_names_an_encoding(kind: str, layout: str) -> None:
    geometries = some(kind, 40, len(kind))
    truth = by_shapely(geometries)
    assert len({id for _, id in truth}) > 3
    table = table_of(stored(kind, geometries, layout), f"geoarrow.{kind}")
    matcher = boxed()
    assert pairs(matcher, table) == truth
    assert pairs(matcher, table.combine_chunks().to_batches()[0]) == truth
    chunked = pa.concat_tables([table[:7], table[7:7], table[7:9], table[9:]])
    assert pairs(matcher, chunked) == truth
    assert pairs(matcher, table[11:23]) == by_shapely(geometries[11:23])
    assert pairs(matcher, table[:0]) == set()
    assert pairs(matcher, table.schema.empty_table()) == set()


@pytest.mark.parametrize("index", INDEXES)
def test_every_index_reads_geometry_columns(index: str) -> None:
    matcher = boxed(index)
    for kind in ("point", "multilinestring", "polygon"):
        geometries = some(kind, 20, 5)
        table = table_of(stored(kind, geometries, "separated"), f"geoarrow.{kind}")
        assert pairs(matcher, table) == by_shapely(geometries)
    points = some("point", 20, 6)
    for layout in ("separated", "interleaved"):
        assert pairs(matcher, table_of(stored("point", points, layout))) == by_shapely(points)


@pytest.mark.parametrize("index", ["auto", "reference"])
def test_two_geometries_of_an_event(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("meet", "S_INTERSECTS(g, h)")
    matcher.subscribe("near", "S_DWITHIN(g, h, 1)")
    lines, points = some("linestring", 60, 1), some("point", 60, 1)
    g, h = np.array(lines, object), np.array(points, object)
    truth = {(int(row), "meet") for row in np.flatnonzero(shapely.intersects(g, h))}
    truth |= {(int(row), "near") for row in np.flatnonzero(shapely.dwithin(g, h, 1))}
    assert len({id for _, id in truth}) == 2
    plain = stored("linestring", lines, "separated")
    places = stored("point", points, "interleaved")
    assert pairs(matcher, table_of(plain, "geoarrow.linestring", h=places)) == truth
    assert pairs(matcher, table_of(ga.linestring().wrap_array(plain), h=places)) == truth


def test_wkb_and_wkt_by_name() -> None:
    geometries = [*some("polygon", 6, 3), *some("point", 6, 4)]
    wkb = pa.array([g and g.wkb for g in geometries], pa.binary())
    wkt = pa.array([g and g.wkt for g in geometries], pa.string())
    for column, name in (
        (wkb, "geoarrow.wkb"),
        (wkb.cast(pa.large_binary()), "ogc.wkb"),
        (wkb.cast(pa.binary_view()), "geoarrow.wkb"),
        (wkb.dictionary_encode(), "geoarrow.wkb"),
        (wkt, "geoarrow.wkt"),
        (wkt, "somebody.else"),
    ):
        assert pairs(boxed(), table_of(column, name)) == by_shapely(geometries), name


def test_structs_of_x_and_y_are_points() -> None:
    rows = [{"x": 1.0, "y": 2.0}, None, {"x": 7.0, "y": 3.0}, {"x": None, "y": 1.0}]
    truth = {(0, "box 0"), (1, "missing"), (2, "box 1"), (2, "box 2")}
    fields = {"x": pa.float64(), "y": pa.float64()}
    for kind in (fields, {**fields, "z": pa.float64()}, {**fields, "x": pa.float32()}):
        column = pa.array(rows, pa.struct(list(kind.items())))
        encoded = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 3]), column)
        for array in (column, encoded):
            assert pairs(boxed(), pa.table({"g": array})) == truth
    swapped = pa.array(rows, pa.struct([("y", pa.float64()), ("x", pa.float64())]))
    assert pairs(boxed(), pa.table({"g": swapped})) == truth


def test_structs_of_four_bounds_are_boxes() -> None:
    bounds = ("xmin", "ymin", "xmax", "ymax")
    rows = [dict(zip(bounds, box, strict=True)) for box in BOXES]
    truth = by_shapely([shapely.box(*box) for box in BOXES])
    assert pairs(boxed(), pa.table({"g": pa.array(rows)})) == truth


@pytest.mark.parametrize(
    ("column", "name", "reason"),
    [
        (pa.array([{"x": 1, "y": 2}]), None, "of type double"),
        (pa.array([{"x": 1.0, "y": 2.0, "name": "a"}]), None, "a struct of x and y"),
        (pa.array([[{"x": 1.0, "y": 2.0}]]), None, "geoarrow.linestring or geoarrow.multipoint"),
        (pa.array([[0.0, 0, 1, 1]], pa.list_(pa.float64(), 4)), None, "boxes or points"),
        (pa.array([{"x": 1.0, "y": 2.0}]), "geoarrow.polygon", "cannot be stored"),
        (pa.array(["POINT (0 0)"]), "geoarrow.wkb", "cannot be stored|holds no geometry"),
        (pa.array([b""]), "geoarrow.geometrycollection", "holds no geometry that can be used"),
    ],
)
def test_ambiguous_columns_are_errors(column: pa.Array, name: str | None, reason: str) -> None:
    table = table_of(column, name)
    with pytest.raises(ModelError, match=f"the column 'g' cannot be used: .*({reason})"):
        boxed().match_batch(table, sort=True)
    other = Matcher(space="planar")
    other.subscribe("missing", "g IS NULL")
    assert len(other.match_batch(table, sort=True)) == 0  # no subscription reads a geometry


@pytest.mark.parametrize("index", ["auto", "reference"])
def test_other_columns_are_no_geometries(index: str) -> None:
    words = pa.array([["a", "b"], ["c"]])
    vectors = pa.array([[0.0] * 8, [1.0] * 8], pa.list_(pa.float32(), 8))
    features = pa.array([{"type": "Point", "coordinates": [1.0, 1.0]}, None])
    assert pairs(boxed(index), pa.table({"g": words})) == set()
    assert pairs(boxed(index), pa.table({"g": vectors})) == set()
    assert pairs(boxed(index), pa.table({"g": features})) == {(0, "box 0"), (1, "missing")}


def test_a_column_of_pairs_is_a_list_for_list_conditions() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("both", "A_CONTAINS(g, (1.5, 2.5))")
    column = pa.array([[1.5, 2.5], [1.5, 0.0]], pa.list_(pa.float64(), 2))
    assert pairs(matcher, pa.table({"g": column})) == {(0, "both")}


def test_scores_read_geometry_columns() -> None:
    points = some("point", 12, 9)
    matcher = boxed()
    wkb = pa.table({"g": pa.array([g and g.wkb for g in points], pa.binary())})
    snapshot = matcher.view().snapshot()
    from_wkb = match_pairs(matcher, snapshot, wkb)
    plain = pa.table({"g": stored("point", points, "separated")})
    scores = scores_of_pairs(matcher, snapshot, from_wkb)
    assert scores.max() > 0
    from_structs = match_pairs(matcher, snapshot, plain)
    np.testing.assert_array_equal(scores_of_pairs(matcher, snapshot, from_structs), scores)


# ----------------------------------------------------------------------------------- subscriptions


@pytest.mark.parametrize("kind", KINDS)
def test_regions_of_subscriptions_named_by_metadata(kind: str) -> None:
    regions = [g for g in some(kind, 30, 8) if g is not None]
    events = [g for g in some("polygon", 20, 7) if g is not None]
    ids = [f"{number:02}" for number in range(len(regions))]
    truth = {
        (row, ids[number])
        for row, event in enumerate(events)
        for number in np.flatnonzero(shapely.intersects(np.array(regions, object), event)).tolist()
    }
    assert truth
    wkb = pa.table({"g": pa.array([g.wkb for g in events], pa.binary())})
    for layout in ("separated", "interleaved", "float32"):
        table = table_of(stored(kind, regions, layout), f"geoarrow.{kind}")
        for geometries in (table, table.to_batches()[0]):
            matcher = Matcher(space="planar")
            matcher.subscribe_columns(ids, regions={"g": (geometries, "S_INTERSECTS")})
            assert pairs(matcher, wkb) == truth


def test_a_bare_column_of_regions_must_be_unambiguous() -> None:
    matcher = Matcher(space="planar")
    lines = stored("linestring", some("linestring", 3, 0), "separated")
    with pytest.raises(ModelError, match="give it with its table"):
        matcher.subscribe_columns(["a", "b", "c"], regions={"g": (lines, "S_INTERSECTS")})
    points = stored("point", some("point", 5, 0), "separated")
    with pytest.raises(GeometryError, match="row 4"):  # the null one
        matcher.subscribe_columns(list("abcde"), within={"g": (points, 1.0)})
    matcher.subscribe_columns(list("abcd"), within={"g": (points[:4], 1.0)})
    assert len(matcher) == 4
