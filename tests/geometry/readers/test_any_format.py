"""Every format of a geometry gives the same arrays; every bad geometry gives a problem."""

from __future__ import annotations

import json
import struct
from collections import UserDict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import geoarrow.pyarrow as ga
import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from shapely import from_wkt
from shapely.geometry import mapping

from fencepost.errors import ModelError
from fencepost.geometry.readers.any_format import RawShapes, read_geometries, read_geometry

POINT = from_wkt("POINT (1 2)")
POINTS = from_wkt("MULTIPOINT (3 1, 2 5, 3 1)")
LINE = from_wkt("LINESTRING (0 0, 3 1, 4 4)")
LINES = from_wkt("MULTILINESTRING ((0 0, 1 1), (5 5, 6 5, 7 8))")
AREA = from_wkt("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))")
HOLED = from_wkt("POLYGON ((0 0, 9 0, 9 9, 0 0), (4 1, 5 1, 5 2, 4 1), (7 1, 8 1, 8 2, 7 1))")
AREAS = shapely.MultiPolygon([shapely.box(20, 20, 21, 21), HOLED, shapely.box(30, 0, 31, 1)])
RING = from_wkt("LINEARRING (0 0, 1 0, 1 1, 0 0)")

KINDS = {"point": POINT, "multipoint": POINTS, "linestring": LINE, "multilinestring": LINES}
KINDS |= {"polygon": HOLED, "multipolygon": AREAS}
OTHERS = {
    "point": from_wkt("POINT (-4 8)"),
    "multipoint": from_wkt("MULTIPOINT (7 7)"),
    "linestring": from_wkt("LINESTRING (9 9, 8 8)"),
    "multilinestring": from_wkt("MULTILINESTRING ((2 0, 1 4))"),
    "polygon": shapely.box(0, 0, 1, 1),
    "multipolygon": shapely.MultiPolygon([shapely.box(3, 3, 4, 4)]),
}
ALL = [POINT, POINTS, LINE, LINES, AREA, HOLED, AREAS]

ARRAYS = ("x", "y", "chain_start", "chain_part", "shape_chain", "dimension")


# --------------------------------------------------------------------------------- the reference


def expected(geometries: Sequence[Any]) -> RawShapes:
    """Return the arrays, built chain by chain from Shapely's objects; None is a bad row."""
    chains: list[list[tuple[float, float]]] = []
    parts: list[int] = []
    shape_chain, dimension = [0], []
    for geometry in geometries:
        for part, chain in chains_of(geometry):
            chains.append([(x, y) for x, y, *_ in chain])
            parts.append(part)
        shape_chain.append(len(chains))
        dimension.append(-1 if geometry is None else shapely.get_dimensions(geometry))
    xy = np.array([xy for chain in chains for xy in chain], float).reshape(-1, 2)
    return RawShapes(
        xy[:, 0],
        xy[:, 1],
        np.cumsum([0, *map(len, chains)]),
        np.array(parts, np.int64),
        np.array(shape_chain),
        np.array(dimension, np.int8),
        (),
    )


def chains_of(geometry: Any) -> Iterator[tuple[int, Any]]:
    match getattr(geometry, "geom_type", None):
        case "Point" | "LineString" | "LinearRing":
            yield 0, geometry.coords
        case "MultiPoint":
            yield 0, [point.coords[0] for point in geometry.geoms]
        case "MultiLineString":
            yield from ((n, line.coords) for n, line in enumerate(geometry.geoms))
        case "Polygon":
            yield from ((0, ring.coords) for ring in (geometry.exterior, *geometry.interiors))
        case "MultiPolygon":
            for n, part in enumerate(geometry.geoms):
                yield from ((n, ring) for _, ring in chains_of(part))


def check(shapes: RawShapes, geometries: Sequence[Any]) -> None:
    """Assert that shapes are these geometries; rows of None must have a problem."""
    same(shapes, expected(geometries))
    assert [p.row for p in shapes.problems] == [n for n, g in enumerate(geometries) if g is None]
    sound(shapes)


def same(shapes: RawShapes, other: RawShapes) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(shapes, name), getattr(other, name), err_msg=name)


def sound(shapes: RawShapes) -> None:
    """Assert the invariants of a result: types, memory, ranges, a problem for each bad row."""
    types = (np.float64, np.float64, np.int64, np.int64, np.int64, np.int8)
    for name, kind in zip(ARRAYS, types, strict=True):
        array = getattr(shapes, name)
        assert array.dtype == kind
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned
    assert np.isfinite(shapes.x).all()
    assert np.isfinite(shapes.y).all()
    assert not np.signbit(shapes.x[shapes.x == 0]).any()
    assert not np.signbit(shapes.y[shapes.y == 0]).any()
    assert shapes.shape_chain[0] == shapes.chain_start[0] == 0
    assert shapes.shape_chain[-1] == len(shapes.chain_part) == len(shapes.chain_start) - 1
    assert shapes.chain_start[-1] == len(shapes.x) == len(shapes.y)
    assert (np.diff(shapes.chain_start) > 0).all()
    bad = np.flatnonzero(shapes.dimension == -1)
    np.testing.assert_array_equal(np.diff(shapes.shape_chain) == 0, shapes.dimension == -1)
    assert [problem.row for problem in shapes.problems] == bad.tolist()
    for problem in shapes.problems:
        assert len(problem.reason) < 400
        problem.reason.encode()


def reason(value: object) -> str:
    """Return why a value is refused; assert the same reason as a row between good rows."""
    alone = read_geometry(value)
    sound(alone)
    assert alone.dimension.tolist() == [-1]
    among = read_geometries([POINT, value, HOLED])
    check(among, [POINT, None, HOLED])
    assert among.problems[0].reason == alone.problems[0].reason
    return alone.problems[0].reason


# ----------------------------------------------------------------------- formats of one geometry


class Interface:
    def __init__(self, content: object) -> None:
        self.__geo_interface__ = content


def feature(geometry: object) -> dict[str, object]:
    return {"type": "Feature", "properties": {"geometry": 1}, "geometry": geometry}


def plain(geometry: Any) -> Any:
    return json.loads(json.dumps(mapping(geometry)))


def as_wkt(geometry: Any) -> str:
    """Write WKT exactly; Shapely's writer rounds to 16 digits."""

    def text(item: Any) -> str:
        if isinstance(item[0], float):
            return " ".join(map(repr, item))
        return "(" + ", ".join(map(text, item)) + ")"

    content = mapping(geometry)
    coordinates = text(content["coordinates"])
    return f"{content['type'].upper()} {coordinates if '(' in coordinates else f'({coordinates})'}"


def as_xdr(geometry: Any) -> bytes:
    data: bytes = shapely.to_wkb(geometry, byte_order=0)
    return data


def as_ewkb(geometry: Any) -> bytes:
    data: bytes = shapely.to_wkb(shapely.set_srid(geometry, 4326), include_srid=True)
    return data


FORMS: dict[str, Callable[[Any], object]] = {
    "shapely": lambda g: g,
    "wkt": as_wkt,
    "lower case wkt": lambda g: as_wkt(g).lower(),
    "wkb": shapely.to_wkb,
    "big-endian wkb": as_xdr,
    "ewkb with srid": as_ewkb,
    "bytearray": lambda g: bytearray(g.wkb),
    "memoryview": lambda g: memoryview(g.wkb),
    "geojson of lists": plain,
    "geojson of tuples": mapping,
    "a mapping that is no dict": lambda g: UserDict(plain(g)),
    "feature": lambda g: feature(plain(g)),
    "interface": lambda g: Interface(plain(g)),
    "interface of a feature": lambda g: Interface(feature(plain(g))),
    "feature of an interface": feature,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("geometry", ALL, ids=lambda g: g.geom_type)
def test_one_geometry_in_any_format(form: str, geometry: Any) -> None:
    check(read_geometry(FORMS[form](geometry)), [geometry])
    check(read_geometries([FORMS[form](geometry)]), [geometry])


@pytest.mark.parametrize("value", [RING, RING.wkt, mapping(RING)], ids=["shapely", "wkt", "json"])
def test_a_linear_ring_is_a_line(value: object) -> None:
    check(read_geometry(value), [RING])


@pytest.mark.parametrize(
    "wkt",
    [
        "POINT Z (1 2 7)",
        "POINT M (1 2 7)",
        "POINT ZM (1 2 7 8)",
        "POLYGON Z ((0 0 5, 1 0 5, 1 1 5, 0 0 nan))",
        "MULTILINESTRING Z ((0 0 1, 1 1 1), (2 2 1, 3 3 1))",
    ],
)
def test_z_and_m_are_ignored(wkt: str) -> None:
    geometry = from_wkt(wkt)
    flat = shapely.force_2d(geometry)
    iso = shapely.to_wkb(geometry, flavor="iso")
    for value in (geometry, wkt, geometry.wkb, iso, mapping(geometry)):
        check(read_geometry(value), [flat])
    check(read_geometries(geopandas.GeoSeries([geometry])), [flat])


def test_negative_zero_becomes_zero() -> None:
    point = shapely.Point(-0.0, -0.0)
    boxes = read_geometries(np.array([[-0.0, -0.0, 1, 1]]))
    for value in (point, point.wkt, point.wkb, mapping(point), shapely.MultiPoint([point])):
        sound(read_geometry(value))
        sound(read_geometries([value]))
    line = {"type": "LineString", "coordinates": [[-0.0, 1], [2, -0.0]]}
    sound(read_geometry(line))
    sound(boxes)


def test_geojson_rings_stay_open() -> None:
    ring = [[0, 0], [1, 0], [1, 1]]
    shapes = read_geometry({"type": "Polygon", "coordinates": [ring]})
    assert shapes.x.tolist() == [0, 1, 1]
    sound(shapes)


@pytest.mark.parametrize(
    "position",
    [
        [1, 2],
        (1.0, 2),
        [1, 2, 3, 4, "more"],
        np.array([1.0, 2.0]),
        [np.float32(1), np.int64(2)],
        [Decimal("1.0"), Fraction(2, 1)],
    ],
    ids=str,
)
def test_positions_of_any_numbers(position: object) -> None:
    check(read_geometry({"type": "Point", "coordinates": position}), [POINT])


def test_coordinates_may_be_arrays() -> None:
    rings = [np.array(HOLED.exterior.coords), *(np.array(r.coords) for r in HOLED.interiors)]
    check(read_geometry({"type": "Polygon", "coordinates": rings}), [HOLED])


def test_large_finite_coordinates_are_kept() -> None:
    line = from_wkt("LINESTRING (1.7e308 1.7e308, 1.6e308 1.7e308)")  # their sum is infinite
    for form in FORMS.values():
        check(read_geometry(form(line)), [line])


# -------------------------------------------------------------------- formats of many geometries


MIXED = [None, *ALL, None, *reversed(ALL)]


def objects(values: Sequence[object]) -> NDArray[np.object_]:
    return np.fromiter(values, object, len(values))


@pytest.mark.parametrize(
    "container",
    [list, tuple, iter, objects, pd.Series, geopandas.GeoSeries, geopandas.array.from_shapely],
    ids=["list", "tuple", "iterator", "numpy", "pandas", "geoseries", "geometry array"],
)
def test_containers(container: Callable[[Any], object]) -> None:
    check(read_geometries(container(MIXED)), MIXED)
    check(read_geometries(container([])), [])


def test_a_mixed_batch() -> None:
    rows: list[object] = []
    truth: list[Any] = []
    for number, form in enumerate(FORMS.values()):
        rows += [form(geometry) for geometry in ALL]
        truth += ALL
        rows.insert(number * 3, [None, 5, "POINT (", b"x", {"type": "Point"}][number % 5])
        truth.insert(number * 3, None)
    check(read_geometries(rows), truth)
    check(read_geometries(pd.Series(rows, index=range(7, len(rows) + 7))), truth)


def test_pandas_columns() -> None:
    text = [as_wkt(g) if g is not None else None for g in MIXED]
    wkb = [g.wkb if g is not None else None for g in MIXED]
    check(read_geometries(pd.Series(text, dtype="string")), MIXED)
    check(read_geometries(pd.Series(text, dtype="category")), MIXED)
    check(read_geometries(pd.Series(wkb, dtype=pd.ArrowDtype(pa.binary()))), MIXED)
    check(read_geometries(pd.Series([pd.NA, float("nan"), pd.NaT, POINT])), [None] * 3 + [POINT])
    check(read_geometries(geopandas.GeoSeries(MIXED)[3:9]), MIXED[3:9])


def test_numpy_text() -> None:
    check(read_geometries(np.array([POINT.wkt, HOLED.wkt])), [POINT, HOLED])


def test_strided_object_arrays() -> None:
    check(read_geometries(objects(MIXED)[::-2]), MIXED[::-2])


def test_boxes() -> None:
    nan, inf = np.nan, np.inf
    bounds = np.array(
        [
            [0, 1, 2, 3],
            [2, 0, 1, 1],
            [0, 0, 0, 1],
            [0, 5, 1, 5],
            [nan, 0, 1, 1],
            [0, 0, 1, inf],
            [-1, -1, -0.5, 0],
        ]
    )
    shapes = read_geometries(bounds)
    sound(shapes)
    assert shapes.dimension.tolist() == [2, -1, -1, -1, -1, -1, 2]
    assert shapes.x[:5].tolist() == [0, 2, 2, 0, 0]
    assert shapes.y[:5].tolist() == [1, 1, 3, 3, 1]
    rings = shapely.linearrings(shapes.x.reshape(2, 5), shapes.y.reshape(2, 5))
    assert shapely.is_ccw(rings).all()
    assert [str(p)[:30] for p in shapes.problems] == [
        "the box has no area: xmin is n",
        "the box has no area: xmin is n",
        "the box has no area: ymin is n",
        "xmin of the box is nan; saw xm",
        "ymax of the box is inf; saw xm",
    ]
    assert "antimeridian" in shapes.problems[0].reason
    sound(read_geometries(np.empty((0, 4))))
    same(read_geometries(np.array([[0, 1, 2, 3]])), read_geometries(bounds[:1]))
    same(read_geometries(bounds[:1].astype(np.float32)), read_geometries(bounds[:1]))
    same(read_geometries(np.asfortranarray(bounds[:1])), read_geometries(bounds[:1]))


def test_masked_boxes_are_refused() -> None:
    shapes = read_geometries(np.ma.masked_equal(np.array([[0, 0, 1, 1], [0, 0, 9, 1]]), 9))
    assert shapes.dimension.tolist() == [2, -1]


@pytest.mark.parametrize(
    "values",
    [
        5,
        None,
        "POINT (0 0)",
        b"",
        POINT,
        AREAS,
        mapping(POINT),
        np.zeros((3, 3)),
        np.zeros(4),
        np.array(5.0),
        np.array([[POINT], [POINT]]),
        np.array([b"x"]),
        np.zeros((2, 4), bool),
        geopandas.GeoDataFrame(geometry=[POINT]),
        pd.DataFrame({"a": [1]}),
        pa.table({"a": [1]}),
        pa.record_batch({"a": [1]}),
        pa.array([1, 2]),
        pa.array([[1, 2]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_column_of_geometries(values: object) -> None:
    with pytest.raises(ModelError, match=r"give|list"):
        read_geometries(values)


# ----------------------------------------------------------------------------------------- Arrow


class Exported:
    """Exports an array by the PyCapsule protocol."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.array.__arrow_c_array__()


class Streamed:
    """Exports a chunked array by the PyCapsule protocol."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.column = column

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.column.__arrow_c_stream__()


def wkb_of(geometries: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    return pa.array([None if g is None else g.wkb for g in geometries], kind or pa.binary())


def native(name: str, geometries: Sequence[Any], layout: str) -> pa.Array:
    """Return a GeoArrow column with separated or interleaved coordinates, or with large lists."""
    coordinates = ga.CoordType.SEPARATED if layout == "separated" else ga.CoordType.INTERLEAVED
    kind = getattr(ga, name)().with_coord_type(coordinates)
    array = ga.as_geoarrow(ga.wkb().wrap_array(wkb_of(geometries)), type=kind)
    assert array.type.extension_name == f"geoarrow.{name}"
    return array


def enlarged(kind: pa.DataType) -> pa.DataType:
    return pa.large_list(enlarged(kind.value_type)) if pa.types.is_list(kind) else kind


def named(storage: pa.Array, name: str) -> pa.Array:
    """Return an extension array of a type that is not registered."""

    class Anonymous(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(storage.type, name)

        def __arrow_ext_serialize__(self) -> bytes:
            return b"{}"

    return pa.ExtensionArray.from_storage(Anonymous(), storage)


def sliced_and_chunked(array: pa.Array, truth: Sequence[Any]) -> None:
    """Read a column whole, in slices, in chunks, and by both parts of the protocol."""
    check(read_geometries(array), truth)
    for begin, length in ((1, 2), (2, 3), (3, 0), (len(truth) - 1, 1)):
        check(read_geometries(array.slice(begin, length)), truth[begin : begin + length])
        part = Exported(array.slice(begin, length))
        check(read_geometries(part), truth[begin : begin + length])
    chunks = pa.chunked_array([array[3:], array[:0], array[1:4]])
    check(read_geometries(chunks), [*truth[3:], *truth[1:4]])
    check(read_geometries(chunks[:0]), [])
    check(read_geometries(pa.chunked_array([], array.type)), [])
    for read in (lambda: Exported(array), lambda: Streamed(pa.chunked_array([array]))):
        check(read_geometries(read()), truth)
    check(read_geometries(Streamed(chunks)), [*truth[3:], *truth[1:4]])


@pytest.mark.parametrize("layout", ["separated", "interleaved"])
@pytest.mark.parametrize("name", KINDS)
def test_native_geoarrow(name: str, layout: str) -> None:
    a, b = KINDS[name], OTHERS[name]
    truth = [a, b, None, a, a, None, b]
    array = native(name, truth, layout)
    sliced_and_chunked(array, truth)
    with ga_unregistered():
        for begin in (0, 2):
            check(read_geometries(Exported(array[begin:])), truth[begin:])
            check(read_geometries(Streamed(pa.chunked_array([array[begin:]]))), truth[begin:])
    large = array.storage.cast(enlarged(array.storage.type))
    with ga_unregistered():  # GeoArrow's types do not support large lists
        sliced_and_chunked(named(large, f"geoarrow.{name}"), truth)


@pytest.mark.parametrize("name", KINDS)
def test_geoseries_to_arrow(name: str) -> None:
    truth = [KINDS[name], None, OTHERS[name]]
    series = geopandas.GeoSeries(truth)
    for encoding in ("wkb", "geoarrow"):
        for interleaved in (True, False):
            column = series.to_arrow(geometry_encoding=encoding, interleaved=interleaved)
            check(read_geometries(column), truth)
            with ga_unregistered():
                check(read_geometries(column), truth)


def ga_unregistered() -> Any:
    from geoarrow.types.type_pyarrow import unregistered_extension_types

    return unregistered_extension_types()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_arrow_wkb(kind: pa.DataType) -> None:
    sliced_and_chunked(wkb_of(MIXED, kind), MIXED)
    sliced_and_chunked(named(wkb_of(MIXED, kind), "geoarrow.wkb"), MIXED)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_arrow_wkt(kind: pa.DataType) -> None:
    array = pa.array([None if g is None else as_wkt(g) for g in MIXED], pa.string()).cast(kind)
    sliced_and_chunked(array, MIXED)
    sliced_and_chunked(named(array, "geoarrow.wkt"), MIXED)


def test_arrow_dictionary_and_nulls() -> None:
    check(read_geometries(wkb_of(MIXED).dictionary_encode()), MIXED)
    check(read_geometries(pa.nulls(2)), [None, None])
    broken = pa.array([POINT.wkt.encode(), b"POINT (\xff 0)"]).view(pa.string())
    check(read_geometries(broken), [POINT, None])


def test_z_and_m_of_geoarrow_are_ignored() -> None:
    geometry = from_wkt("LINESTRING ZM (0 0 7 1, 3 1 7 1, 4 4 7 1)")
    for interleaved in (True, False):
        kind = ga.linestring().with_dimensions(ga.Dimensions.XYZM)
        layout = ga.CoordType.INTERLEAVED if interleaved else ga.CoordType.SEPARATED
        wkb = pa.array([shapely.to_wkb(geometry, flavor="iso", output_dimension=4)])
        array = ga.as_geoarrow(ga.wkb().wrap_array(wkb), type=kind.with_coord_type(layout))
        check(read_geometries(array), [LINE])


def test_bare_arrow_lists() -> None:
    def bare(name: str, layout: str) -> pa.Array:
        return native(name, [KINDS[name], None, OTHERS[name]], layout).storage

    for layout in ("separated", "interleaved"):
        for name in ("point", "multipolygon"):
            truth = [KINDS[name], None, OTHERS[name]]
            check(read_geometries(bare(name, layout)), truth)
            check(read_geometries(Exported(bare(name, layout))), truth)
        for name in ("linestring", "multipoint", "polygon", "multilinestring"):
            with pytest.raises(ModelError, match=r"without a GeoArrow extension name.*geoarrow"):
                read_geometries(bare(name, layout))
            with pytest.raises(ModelError, match=r"without a GeoArrow extension name.*geoarrow"):
                read_geometries(Exported(bare(name, layout)))
    with pytest.raises(ModelError, match="boxes or points"):
        read_geometries(pa.array([[0.0, 0, 1, 1]], pa.list_(pa.float64(), 4)))


@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("geoarrow.geometrycollection", wkb_of([POINT])),
        ("arrow.other", wkb_of([POINT])),
        ("geoarrow.wkb", pa.array(["POINT (0 0)"])),
        ("geoarrow.wkt", wkb_of([POINT])),
        ("geoarrow.polygon", wkb_of([POINT])),
        ("geoarrow.polygon", pa.array([[[[[0.0, 0.0]]]]])),
        ("geoarrow.point", pa.array([[0, 0]], pa.list_(pa.int32(), 2))),
        ("geoarrow.point", pa.array([[0.0]], pa.list_(pa.float64(), 1))),
        ("geoarrow.point", pa.array([{"x": 0.0, "z": 0.0}])),
        ("geoarrow.box", pa.array([{"xmin": 0.0, "ymin": 0.0, "xmax": 1.0}])),
    ],
)
def test_arrow_names_that_do_not_fit(name: str, storage: pa.Array) -> None:
    with pytest.raises(ModelError, match=r"give|write"):
        read_geometries(named(storage, name))
    with pytest.raises(ModelError, match=r"give|write"):
        read_geometries(Exported(named(storage, name)))


def test_geoarrow_boxes() -> None:
    rows = [
        {"xmin": 0.0, "ymin": 1.0, "zmin": 5.0, "xmax": 2.0, "ymax": 3.0, "zmax": 6.0},
        None,
        {"xmin": 3.0, "ymin": 1.0, "zmin": 5.0, "xmax": 2.0, "ymax": 3.0, "zmax": 6.0},
        {"xmin": 4.0, "ymin": 1.0, "zmin": 5.0, "xmax": 5.0, "ymax": 3.0, "zmax": 6.0},
        {"xmin": None, "ymin": 1.0, "zmin": 5.0, "xmax": 5.0, "ymax": 3.0, "zmax": 6.0},
    ]
    storage = pa.array(rows)
    boxes = np.array([[0, 1, 2, 3], [4, 1, 5, 3]])
    for column in (
        storage,
        named(storage, "geoarrow.box"),
        Exported(named(storage, "geoarrow.box")),
    ):
        shapes = read_geometries(column)
        sound(shapes)
        assert shapes.dimension.tolist() == [2, -1, -1, 2, -1]
        np.testing.assert_array_equal(shapes.x, read_geometries(boxes).x)
        np.testing.assert_array_equal(shapes.y, read_geometries(boxes).y)
    assert read_geometries(storage[3:4]).x.tolist() == [4, 5, 5, 4, 4]


def test_null_rows_of_arrow_may_own_points() -> None:
    points = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12.0)), 2)
    offsets = pa.array([0, 2, 4, 6], pa.int32())
    lines = pa.ListArray.from_arrays(offsets, points, mask=pa.array([False, True, False]))
    truth = [shapely.LineString([(0, 1), (2, 3)]), None, shapely.LineString([(8, 9), (10, 11)])]
    column = named(lines, "geoarrow.linestring")
    check(read_geometries(column), truth)
    check(read_geometries(column[1:]), truth[1:])


def test_children_of_arrow_lists_may_be_slices() -> None:
    points = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(20.0)), 2)[2:8]
    lines = pa.ListArray.from_arrays(pa.array([1, 3, 4, 6], pa.int32()), points)[1:]
    areas = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), lines)
    shapes = read_geometries(named(areas[1:], "geoarrow.polygon"))
    assert shapes.x.tolist() == [12, 14]
    assert shapes.y.tolist() == [13, 15]
    sound(shapes)


def test_a_table_with_columns_x_and_y_is_no_column() -> None:
    table = pa.table({"x": [0.0], "y": [1.0], "name": ["a"]})
    with pytest.raises(ModelError, match="give one column"):
        read_geometries(table)


def test_bad_rows_of_native_arrow() -> None:
    nan = float("nan")
    square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    rows: list[Any] = [
        [[square]],
        [],
        [[square], []],
        [[square], None],
        [[square, []]],
        [[square, None]],
        [[[*square[:2], [nan, 5.0]]]],
        [[[*square[:2], None]]],
        [[[*square[:2], [0.0, None]]]],
        [[square]],
    ]
    point = pa.list_(pa.float64(), 2)
    storage = pa.array(rows, pa.list_(pa.list_(pa.list_(point))))
    shapes = read_geometries(storage)
    area = shapely.Polygon(square)
    check(shapes, [area, *[None] * 8, area])
    check(read_geometries(storage[2:]), [*[None] * 7, area])
    assert [problem.reason.split(";")[0] for problem in shapes.problems] == [
        "the geometry is empty",
        "a part is empty",
        "a part is null",
        "ring 1 of part 0 is empty",
        "a part is null",
        "point 2 of ring 0 of part 0 has x = nan",
        "point 2 of ring 0 of part 0 has x = nan and y = nan",
        "point 2 of ring 0 of part 0 has y = nan",
    ]


def test_damaged_arrow_offsets() -> None:
    offsets = pa.py_buffer(np.array([0, 900, 2], np.int32))
    points = pa.array([[0.0, 0.0], [1.0, 1.0]], pa.list_(pa.float64(), 2))
    lines = pa.Array.from_buffers(pa.list_(points.type), 2, [None, offsets], children=[points])
    with pytest.raises(ModelError, match="damaged"):
        read_geometries(named(lines, "geoarrow.linestring"))


# ------------------------------------------------------------------------------------- bad values


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def collection(*geometries: object) -> dict[str, object]:
    return {"type": "GeometryCollection", "geometries": [*geometries]}


def geojson(kind: object, coordinates: object) -> dict[str, object]:
    return {"type": kind, "coordinates": coordinates}


class Hostile(UserDict[str, object]):
    def get(self, *_: object) -> Any:
        raise RecursionError("boo")


class NoInterface:
    @property
    def __geo_interface__(self) -> object:
        raise OSError("gone")

    def __repr__(self) -> str:
        raise OSError("gone")


CYCLE: list[Any] = []
CYCLE.append(CYCLE)

BAD_GEOJSON: list[tuple[object, str]] = [
    (None, "the value is null"),
    (float("nan"), "the value is null"),
    (5, "of type int is no geometry; saw 5; give"),
    (True, "of type bool is no geometry"),
    ([0.0, 0.0, 1.0, 1.0], "of type list is no geometry; saw [0.0, 0.0, 1.0, 1.0]; give"),
    (np.zeros(2), "of type ndarray is no geometry"),
    (object, "of type type is no geometry"),
    (10**5000, "of type int is no geometry"),
    (deep(100_000), "of type list is no geometry; saw [[[[...]]]]"),
    (Interface(5), "__geo_interface__ of a Interface is no mapping; saw 5"),
    (NoInterface(), "cannot be read: OSError('gone'); saw <NoInterface"),
    (Hostile(), "cannot be read: RecursionError('boo')"),
    ({}, 'the mapping has no "type"; saw {}'),
    (geojson("Circle", [0, 0]), "there is no GeoJSON geometry type 'Circle'"),
    (geojson("point", [0, 0]), "there is no GeoJSON geometry type 'point'"),
    (geojson(["Point"], [0, 0]), "there is no GeoJSON geometry type ['Point']"),
    (geojson(5, [0, 0]), "there is no GeoJSON geometry type 5"),
    (collection(), "the geometry is empty"),
    (collection(geojson("Point", []), collection()), "the geometry is empty"),
    ({"type": "GeometryCollection"}, 'the GeometryCollection has no "geometries"'),
    ({"type": "GeometryCollection", "geometries": 5}, '"geometries" is a list of geometries'),
    (collection(mapping(POINT), None), "member 1 of the collection: there is no geometry"),
    (collection(collection(mapping(POINT)), geojson("Point", [1])), "member 1 of the collection"),
    (collection(feature(mapping(POINT))), "member 0 of the collection is a Feature"),
    (reduce(lambda inner, _: collection(inner), range(33), mapping(POINT)), "nest more than 32"),
    ({"type": "FeatureCollection", "features": []}, "one by one"),
    (feature(None), "the Feature has no geometry"),
    ({"type": "Feature"}, "the Feature has no geometry"),
    (feature(feature(mapping(POINT))), "there is no GeoJSON geometry type 'Feature'"),
    (feature(5), "of type int is no geometry; saw 5"),
    ({"type": "Point"}, 'the Point has no "coordinates"'),
    (geojson("Polygon", None), 'the Polygon has no "coordinates"'),
    (geojson("Point", []), "the geometry is empty"),
    (geojson("Point", [1]), "point 0 has 1 coordinates, not 2; saw [1]"),
    (geojson("Point", 5), "nested wrongly: point 0 must be a position [x, y]; saw 5"),
    (geojson("Point", "01"), "nested wrongly: point 0 must be a position [x, y]; saw '01'"),
    (geojson("Point", {0: 1, 1: 2}), "nested wrongly"),
    (geojson("Point", ["1", 2]), "x of point 0 is no number but a str; saw '1'"),
    (geojson("Point", [1, True]), "y of point 0 is no number but a bool; saw True"),
    (geojson("Point", [np.bool_(True), 1]), "x of point 0 is no number but a bool"),
    (geojson("Point", [1, None]), "y of point 0 is no number but a NoneType"),
    (geojson("Point", [1, 2j]), "y of point 0 is no number but a complex"),
    (geojson("Point", [[1, 2]]), "point 0 has 1 coordinates"),
    (geojson("Point", [[1, 2], [3, 4]]), "x of point 0 is no number but a list; saw [1, 2]"),
    (geojson("Point", [10**400, 0]), "x of point 0 is too large for a coordinate; saw 1000"),
    (geojson("Point", [0, -(10**5000)]), "y of point 0 is too large for a coordinate"),
    (geojson("Point", [Decimal("sNaN"), 0]), "cannot be read: ValueError"),
    (geojson("Point", [float("inf"), 0]), "point 0 has x = inf; saw (inf, 0.0); give finite"),
    (geojson("Point", deep(100_000)), "point 0 has 1 coordinates"),
    (geojson("MultiPoint", [[0, 0], [1, float("nan")]]), "point 1 has y = nan; saw (1.0, nan)"),
    (geojson("MultiPoint", []), "the geometry is empty"),
    (geojson("MultiPoint", [[0, 0], []]), "point 1 has 0 coordinates"),
    (geojson("LineString", [0, 0]), "nested wrongly: point 0 of line 0 must be a position"),
    (geojson("LineString", []), "the geometry is empty"),
    (geojson("LineString", [[0, 0], "ab"]), "point 1 of line 0 must be a position [x, y]"),
    (geojson("MultiLineString", [[[0, 0], [1, 1]], []]), "line 1 is empty"),
    (geojson("MultiLineString", [[[0, 0]], 7]), "a line is a list of positions; saw 7"),
    (geojson("Polygon", []), "the geometry is empty"),
    (geojson("Polygon", [[]]), "ring 0 of part 0 is empty"),
    (geojson("Polygon", [[[0, 0], [1, 0], [1]]]), "point 2 of ring 0 of part 0 has 1 coord"),
    (geojson("Polygon", [[0, 0], [1, 0], [1, 1]]), "point 0 of ring 0 of part 0 must be a pos"),
    (geojson("Polygon", [[[0, 0], [1, 0], [1, 1]], [[0, 0], [0, "a"]]]), "y of point 1 of ring 1"),
    (geojson("Polygon", [[[[0, 0], [1, 0]]]]), "x of point 0 of ring 0 of part 0 is no number"),
    (geojson("Polygon", CYCLE), "saw [[[[...]]]]; give [x, y]"),
    (geojson("Polygon", deep(100_000)), "point 0 of ring 0 of part 0 has 1 coordinates"),
    (geojson("Polygon", "POLYGON"), "a Polygon is a list of rings; saw 'POLYGON'"),
    (geojson("Polygon", b"abc"), "a Polygon is a list of rings"),
    (geojson("MultiPolygon", []), "the geometry is empty"),
    (geojson("MultiPolygon", [[]]), "ring 0 of part 0 is empty"),
    (geojson("MultiPolygon", [[[[0, 0], [1, 0]]], [[[0, 0], [2, float("-inf")]]]]), "part 1 has y"),
    (geojson("MultiPolygon", [5]), "a polygon is a list of rings; saw 5"),
]


@pytest.mark.parametrize(("value", "part"), BAD_GEOJSON, ids=[part for _, part in BAD_GEOJSON])
def test_bad_geojson(value: object, part: str) -> None:
    assert part in reason(value)


BAD_SHAPELY: list[tuple[str, str]] = [
    ("POINT EMPTY", "the geometry is empty"),
    ("MULTIPOINT EMPTY", "the geometry is empty"),
    ("LINESTRING EMPTY", "the geometry is empty"),
    ("POLYGON EMPTY", "the geometry is empty"),
    ("MULTIPOLYGON EMPTY", "the geometry is empty"),
    ("POLYGON (EMPTY, EMPTY)", "the geometry is empty"),
    ("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), (EMPTY, EMPTY))", "ring 0 of part 1 is empty"),
    ("GEOMETRYCOLLECTION EMPTY", "the geometry is empty"),
    ("GEOMETRYCOLLECTION (POINT EMPTY, GEOMETRYCOLLECTION EMPTY)", "the geometry is empty"),
    ("GEOMETRYCOLLECTION (POINT (0 0), LINESTRING (0 0, nan 1))", "member 1 of the collection: po"),
    ("GEOMETRYCOLLECTION (POINT (0 0), MULTIPOINT (EMPTY, (0 0)))", "one of the points is empty"),
    ("MULTIPOINT (EMPTY, (0 0))", "one of the points is empty"),
    ("MULTILINESTRING ((0 0, 1 1), EMPTY)", "line 1 is empty"),
    ("POLYGON ((0 0, 1 0, 1 1, 0 0), EMPTY)", "ring 1 of part 0 is empty"),
    ("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), EMPTY)", "ring 0 of part 1 is empty"),
    ("POINT (nan 1)", "point 0 has x = nan; saw (nan, 1.0)"),
    ("POINT (1 -inf)", "point 0 has y = -inf"),
    ("LINESTRING (0 0, 1 1, inf nan)", "point 2 of line 0 has x = inf and y = nan"),
    ("MULTILINESTRING ((0 0, 1 1), (2 2, 3 nan))", "point 1 of line 1 has y = nan"),
    (
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((0 0, 9 0, 9 9, 0 0), (1 1, 2 inf, 2 2, 1 1)))",
        "point 1 of ring 1 of part 1 has y = inf",
    ),
]


@pytest.mark.parametrize(("wkt", "part"), BAD_SHAPELY)
def test_bad_shapely_wkt_and_wkb(wkt: str, part: str) -> None:
    with np.errstate(all="ignore"):
        geometry = from_wkt(wkt)
        wkb = geometry.wkb
    assert part in reason(geometry)
    assert part in reason(wkt)
    assert part in reason(wkb)


BAD_WKT: list[tuple[str, str]] = [
    ("", "the text is no WKT; saw ''"),
    ("hello", "the text is no WKT; saw 'hello'; write it as in"),
    ("POINT", "the WKT cannot be read"),
    ("POINT (0 0", "the WKT cannot be read"),
    ("POINT (0 0) and more", "the WKT cannot be read"),
    ("POINT (a b)", "the WKT cannot be read"),
    ("POINT (1e400 0)", "point 0 has x = inf"),
    ("POINTLESS (0 0)", "the text is no WKT"),
    ("POLYGON ((0 0, 1 0, 1 1))", "closed"),
    ("POINT (0 0)\0", "the text is no WKT"),
    ("POINT (\ud800 0)", r"the text is no WKT; saw 'POINT (\ud800 0)'"),
    ("\udfff", "the text is no WKT"),
    ("POINT (٣ 0)", "the text is no WKT"),
    ("SRID=4326;POINT (0 0)", "leave the SRID out"),
    ("CIRCULARSTRING (0 0, 1 1, 2 0)", "curves and surfaces are not supported"),
    ("CURVEPOLYGON ((0 0, 1 0, 1 1, 0 0))", "curves and surfaces are not supported"),
    ("MULTISURFACE (((0 0, 1 0, 1 1, 0 0)))", "curves and surfaces are not supported"),
    (POINT.wkb_hex, "bytes.fromhex"),
    ("GEOMETRYCOLLECTION (" * 200_000, "nest more than 32 deep"),
    ("GEOMETRYCOLLECTION (" * 33 + "POINT (0 0)" + ")" * 33, "nest more than 32 deep"),
    ("GEOMETRYCOLLECTION (POINT (0 0)", "the WKT cannot be read"),
    ("GEOMETRYCOLLECTION (CIRCULARSTRING (0 0, 1 1, 2 0))", "curves and surfaces are not"),
    ("GEOMETRYCOLLECTION (GEOMETRYCOLLECTION (MULTISURFACE (((0 0, 1 1, 2 0, 0 0)))))", "curves"),
    ("MULTISURFACE (" * 200_000, "curves and surfaces"),
    ("MULTIPOLYGON " + "(" * 200_000, "the WKT cannot be read"),
    ("POINT (" + "9" * 100_000, "the WKT cannot be read"),
]


@pytest.mark.parametrize(("value", "part"), BAD_WKT, ids=[text[:30] for text, _ in BAD_WKT])
def test_bad_wkt(value: str, part: str) -> None:
    assert part in reason(value)


def nested_wkb(kind: int, levels: int, order: str = "<") -> bytes:
    def level(members: int) -> bytes:
        return struct.pack(order + "BII", order == "<", kind, members)

    return level(1) * levels + level(0)


def hidden_bomb() -> bytes:
    """Return a multi-polygon whose second part opens 100,000 multi-polygons."""
    square = shapely.box(0, 0, 1, 1).wkb
    return b"".join([struct.pack("<BII", 1, 6, 2), square, nested_wkb(6, 100_000)])


BAD_WKB: list[tuple[bytes, str]] = [
    (b"", "the bytes are no WKB: it is too short; saw b''"),
    (b"\x01\x01", "it is too short"),
    (b"\x01\x01\0\0\0", "the WKB cannot be read"),
    (POINT.wkb[:-1], "the WKB cannot be read"),
    (HOLED.wkb[:-5], "the WKB cannot be read"),
    (b"\x05" + POINT.wkb[1:], "byte order is neither 0 nor 1 but 5"),
    (b"POINT (0 0)", "byte order is neither 0 nor 1 but 80"),
    (POINT.wkb_hex.encode(), "bytes.fromhex"),
    (struct.pack("<BII", 1, 0, 0), "there is no geometry type 0"),
    (struct.pack("<BII", 1, 99, 0), "there is no geometry type 99"),
    (struct.pack("<BII", 1, 7, 0), "the geometry is empty"),
    (struct.pack("<BII", 1, 1007, 0), "the geometry is empty"),
    (struct.pack("<BIII", 1, 0x20000007, 4326, 0), "the geometry is empty"),
    (struct.pack("<BII", 1, 0x20000007, 4326), "it ends too early"),
    (struct.pack("<BII", 1, 7, 2) + POINT.wkb, "it ends too early"),
    (struct.pack("<BII", 1, 7, 1) + HOLED.wkb[:-5], "it ends too early"),
    (struct.pack("<BII", 1, 7, 1) + b"\x05" + POINT.wkb[1:], "neither 0 nor 1 but 5"),
    (struct.pack("<BIIBII", 1, 7, 1, 1, 8, 0), "curves and surfaces"),
    (struct.pack("<BII", 1, 7, 1) + hidden_bomb(), "has a part of another type"),
    (nested_wkb(7, 32), "nest more than 32 deep"),
    (struct.pack("<BII", 1, 8, 0), "curves and surfaces"),
    (struct.pack("<BII", 1, 12, 0), "curves and surfaces"),
    (struct.pack("<BII", 1, 2, 0xFFFFFFFF), "the WKB cannot be read"),
    (struct.pack("<BII", 1, 3, 0xFFFFFFFF), "the WKB cannot be read"),
    (struct.pack("<BII", 1, 6, 0xFFFFFFFF) + b"\x01" * 9000, "the bytes are no WKB"),
    (struct.pack("<BII", 1, 5, 0xFFFFFFFF) + LINE.wkb * 90, "the WKB cannot be read"),
    (nested_wkb(7, 100_000), "nest more than 32 deep"),
    (nested_wkb(6, 100_000), "has a part of another type"),
    (nested_wkb(5, 100_000, ">"), "has a part of another type"),
    (nested_wkb(4, 100_000), "has a part of another type"),
    (nested_wkb(6, 100), "has a part of another type"),
    (hidden_bomb(), "has a part of another type"),
]


@pytest.mark.parametrize(("value", "part"), BAD_WKB, ids=[str(n) for n in range(len(BAD_WKB))])
def test_bad_wkb(value: bytes, part: str) -> None:
    assert part in reason(value)
    shapes = read_geometries(pa.array([value, None, HOLED.wkb]))
    check(shapes, [None, None, HOLED])
    assert part in shapes.problems[0].reason


@pytest.mark.parametrize("byte_order", [0, 1])
@pytest.mark.parametrize(("flavor", "srid"), [("iso", 0), ("extended", 0), ("extended", 4326)])
@pytest.mark.parametrize("tag", ["", "Z", "M", "ZM"])
def test_long_multi_geometries_of_wkb(byte_order: int, flavor: str, srid: int, tag: str) -> None:
    def chain(first: int, length: int) -> str:
        corners = [first, *range(first + 1, first + length), first]
        return ", ".join(f"{n} {n % 7}" + " 3" * len(tag) for n in corners)

    lines = ", ".join(f"({chain(n, n % 5 + 3)})" for n in range(60))
    polygons = ", ".join(f"(({chain(n, n % 5 + 3)}), ({chain(n, 4)}))" for n in range(60))
    for wkt in (
        f"MULTIPOINT {tag} ({chain(0, 200)})",
        f"MULTILINESTRING {tag} ({lines})",
        f"MULTIPOLYGON {tag} ({polygons})",
    ):
        geometry = shapely.set_srid(from_wkt(wkt), srid)
        wkb = shapely.to_wkb(
            geometry,
            byte_order=byte_order,
            include_srid=bool(srid),
            flavor=flavor,
            output_dimension=4,
        )
        assert len(wkb) > 2048
        check(read_geometries([wkb, b"", wkb]), [geometry, None, geometry])
        check(read_geometry(wkb), [geometry])


def test_a_released_memoryview() -> None:
    view = memoryview(POINT.wkb)
    view.release()
    assert "too short" in reason(view)


def test_a_column_of_bad_rows_only() -> None:
    columns: list[list[object]] = [[None] * 3, [b""] * 3, [""] * 3, [{}] * 3, [None, {}, ""]]
    for rows in columns:
        check(read_geometries(rows), [None] * 3)


# ------------------------------------------------------------------------------------- properties

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
positions = st.tuples(numbers, numbers)
rings = st.lists(positions, min_size=3, max_size=5).map(lambda ring: [*ring, ring[0]])
lines = st.lists(positions, min_size=2, max_size=4)
polygons = st.lists(rings, min_size=1, max_size=3)
areas = polygons.map(lambda rings: shapely.Polygon(rings[0], rings[1:]))
of_kind: dict[str, st.SearchStrategy[Any]] = {
    "point": positions.map(shapely.Point),
    "multipoint": st.lists(positions, min_size=1, max_size=3).map(shapely.MultiPoint),
    "linestring": lines.map(shapely.LineString),
    "multilinestring": st.lists(lines, min_size=1, max_size=3).map(shapely.MultiLineString),
    "polygon": areas,
    "multipolygon": st.lists(areas, min_size=1, max_size=3).map(shapely.MultiPolygon),
}
geometries = st.one_of(*of_kind.values())


@given(geometries)
def test_all_formats_give_the_same_arrays(geometry: Any) -> None:
    wanted = read_geometry(geometry)
    check(wanted, [geometry])
    for form in FORMS.values():
        same(read_geometry(form(geometry)), wanted)
    same(read_geometries([form(geometry) for form in FORMS.values()][:1]), wanted)
    same(read_geometries(geopandas.GeoSeries([geometry])), wanted)
    same(read_geometries(wkb_of([geometry])), wanted)
    name = geometry.geom_type.lower()
    for layout in ("separated", "interleaved"):
        same(read_geometries(native(name, [geometry], layout)), wanted)


@given(st.lists(st.tuples(geometries | st.none(), st.sampled_from(sorted(FORMS))), max_size=8))
def test_mixed_formats_keep_their_rows(rows: list[tuple[Any, str]]) -> None:
    values = [None if g is None else FORMS[form](g) for g, form in rows]
    check(read_geometries(values), [g for g, _ in rows])


@given(st.data())
def test_native_columns_of_one_type(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(KINDS)))
    truth = data.draw(st.lists(of_kind[name] | st.none(), min_size=1, max_size=5))
    array = native(name, truth, data.draw(st.sampled_from(["separated", "interleaved"])))
    begin = data.draw(st.integers(0, len(truth)))
    end = data.draw(st.integers(begin, len(truth)))
    check(read_geometries(array[begin:end]), truth[begin:end])


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, float("nan"), float("inf"), 1.5, -0.0])
    | st.text(max_size=4)
    | st.binary(max_size=4)
)
garbage = st.recursive(
    scalars | numbers,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=25,
)
types = st.sampled_from(
    [g.geom_type for g in [*ALL, RING]] + ["Feature", "GeometryCollection", "FeatureCollection"]
)
likely = st.fixed_dictionaries(
    {"type": types | garbage},
    optional={"coordinates": garbage | lines | polygons | st.lists(polygons), "geometry": garbage},
)
bad_or_good = garbage | likely | likely.map(feature) | likely.map(Interface)


@given(bad_or_good)
def test_garbage_never_raises(value: object) -> None:
    sound(read_geometry(value))


@given(st.lists(bad_or_good | geometries, max_size=6))
def test_garbage_does_not_affect_other_rows(values: list[Any]) -> None:
    shapes = read_geometries(values)
    sound(shapes)
    assert len(shapes) == len(values)
    for row, value in enumerate(values):
        alone = read_geometry(value)
        chains = slice(*shapes.shape_chain[row : row + 2])
        assert shapes.dimension[row] == alone.dimension[0]
        np.testing.assert_array_equal(shapes.chain_part[chains], alone.chain_part)
        first, last = shapes.chain_start[shapes.shape_chain[row : row + 2]]
        np.testing.assert_array_equal(shapes.x[first:last], alone.x)
        np.testing.assert_array_equal(shapes.y[first:last], alone.y)


@given(st.sampled_from(ALL), st.data())
def test_damaged_wkb_never_raises(geometry: Any, data: st.DataObject) -> None:
    wkb = bytearray(geometry.wkb)
    for _ in range(data.draw(st.integers(1, 3))):
        wkb[data.draw(st.integers(0, len(wkb) - 1))] = data.draw(st.integers(0, 255))
    wkb = wkb[: data.draw(st.integers(0, len(wkb)))] if data.draw(st.booleans()) else wkb
    sound(read_geometry(wkb))
    sound(read_geometries([bytes(wkb), POINT.wkb]))


@given(st.sampled_from(ALL), st.data())
def test_damaged_wkt_never_raises(geometry: Any, data: st.DataObject) -> None:
    text = geometry.wkt
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 2)) :]
    sound(read_geometry(text))
    sound(read_geometries([text, POINT.wkt]))
