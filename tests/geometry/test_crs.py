"""CRS declarations, read without PROJ, compared with what PROJ says; and transformations."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost.errors import FencepostError, ModelError
from fencepost.geometry.crs import (
    LON_LAT,
    NEAR_WGS84_CODES,
    WGS84_CODES,
    Crs,
    Transformation,
    parse_crs,
    srid_of,
    srids_of_column,
)
from fencepost.geometry.readers.any_format import read_geometries

SWISS = pyproj.CRS(2056)
WITHOUT_ID = {key: value for key, value in SWISS.to_json_dict().items() if key != "id"}
LON_LAT_WITHOUT_ID = {
    key: value for key, value in pyproj.CRS("OGC:CRS84").to_json_dict().items() if key != "id"
}
COMPOUND = pyproj.CRS("EPSG:9518")  # WGS 84 and a height

# By declaration: the code, the kind, and whether it is longitude and latitude.
DECLARATIONS: dict[str, tuple[Any, str | None, str | None, bool]] = {
    "a code": ("EPSG:2056", "EPSG:2056", None, False),
    "a code in lower case": ("epsg:4326", "EPSG:4326", "geographic", True),
    "CRS84": ("OGC:CRS84", "OGC:CRS84", "geographic", True),
    "CRS84 alone": ("CRS84", "OGC:CRS84", "geographic", True),
    "a URN": ("urn:ogc:def:crs:EPSG::2056", "EPSG:2056", None, False),
    "a URN with a version": ("urn:ogc:def:crs:OGC:1.3:CRS84", "OGC:CRS84", "geographic", True),
    "a URL": ("http://www.opengis.net/def/crs/EPSG/0/4326", "EPSG:4326", "geographic", True),
    "an SRID of Parquet": ("srid:4326", "EPSG:4326", "geographic", True),
    "an SRID": (3857, "EPSG:3857", None, False),
    "an SRID as text": ("3857", "EPSG:3857", None, False),
    "PROJJSON": (SWISS.to_json_dict(), "EPSG:2056", "projected", False),
    "PROJJSON as text": (SWISS.to_json(), "EPSG:2056", "projected", False),
    "PROJJSON as bytes": (SWISS.to_json().encode(), "EPSG:2056", "projected", False),
    "a CRS of pyproj": (SWISS, "EPSG:2056", "projected", False),
    "PROJJSON without an id": (WITHOUT_ID, None, "projected", False),
    "longitude and latitude without an id": (LON_LAT_WITHOUT_ID, None, "geographic", True),
    "a compound CRS": (
        COMPOUND,
        None,
        "geographic",
        True,
    ),
    "WKT 2": (SWISS.to_wkt(), "EPSG:2056", "projected", False),
    "WKT 2 in lines": (SWISS.to_wkt(pretty=True), "EPSG:2056", "projected", False),
    "WKT 1": (pyproj.CRS(4326).to_wkt("WKT1_GDAL"), "EPSG:4326", "geographic", True),
    "WKT of Esri": (pyproj.CRS(4326).to_wkt("WKT1_ESRI"), None, "geographic", True),
    "projected WKT of Esri": (SWISS.to_wkt("WKT1_ESRI"), None, "projected", False),
    "NAD27": ("EPSG:4267", "EPSG:4267", None, False),
    "NAD27 in PROJJSON": (pyproj.CRS(4267), "EPSG:4267", "geographic", False),
    "NAD27 in WKT of Esri": (pyproj.CRS(4267).to_wkt("WKT1_ESRI"), None, "geographic", False),
    "a PROJ string": ("+proj=longlat +datum=WGS84 +type=crs", None, None, True),
    "a projected PROJ string": ("+proj=utm +zone=32 +datum=WGS84 +type=crs", None, None, False),
}


def crs_of(declared: object) -> Crs:
    crs = parse_crs(declared)
    assert crs is not None
    return crs


@pytest.mark.parametrize("case", DECLARATIONS)
def test_a_declaration_is_read(case: str) -> None:
    declared, code, kind, is_lon_lat = DECLARATIONS[case]
    crs = crs_of(declared)
    assert (crs.code, crs.kind, crs.is_lon_lat()) == (code, kind, is_lon_lat)
    assert crs_of(crs.definition) == crs  # as an index saves it


@pytest.mark.parametrize("declared", [None, "", 0, "srid:0", "0"])
def test_no_declaration(declared: object) -> None:
    assert parse_crs(declared) is None


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("{", r"the CRS cannot be read as JSON: .*; give a code such as \"EPSG:2056\", or PROJ"),
        ({"name": "x"}, r"a CRS cannot be read from \{'name': 'x'\}; give a code such as"),
        (2.5, r"a CRS cannot be read from 2.5; give a code such as"),
    ],
)
def test_a_declaration_that_cannot_be_read(declared: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse_crs(declared)


@pytest.mark.parametrize("declared", ["no such thing", "OTHER[]"])
def test_a_declaration_that_proj_does_not_know(declared: str) -> None:
    with pytest.raises(ModelError, match=r"PROJ does not know the CRS .*; give a code such as"):
        crs_of(declared).is_lon_lat()


@pytest.mark.parametrize("code", sorted(WGS84_CODES | NEAR_WGS84_CODES))
def test_longitude_and_latitude_are_those_of_wgs84(code: str) -> None:
    """Within two metres, on an ellipsoid that differs by 0.1 mm at most."""
    crs = pyproj.CRS(code)
    ellipsoid, area = crs.ellipsoid, crs.area_of_use
    assert crs.is_geographic
    assert ellipsoid is not None
    assert area is not None
    assert {axis.unit_name for axis in crs.axis_info[:2]} == {"degree"}
    assert crs.prime_meridian is not None
    assert crs.prime_meridian.longitude == 0
    wgs84 = pyproj.CRS("OGC:CRS84").ellipsoid
    assert wgs84 is not None
    assert ellipsoid.semi_major_metre == wgs84.semi_major_metre
    assert abs(ellipsoid.semi_minor_metre - wgs84.semi_minor_metre) < 1.1e-4
    if code in WGS84_CODES:
        assert ellipsoid.semi_minor_metre == wgs84.semi_minor_metre
    lon, lat = np.meshgrid([area.west, (area.west + area.east) / 2], [area.south, area.north])
    to_wgs84 = pyproj.Transformer.from_crs(crs, "OGC:CRS84", always_xy=True)
    moved = to_wgs84.transform(lon.ravel(), lat.ravel())
    off = pyproj.Geod(ellps="WGS84").inv(lon.ravel(), lat.ravel(), *moved)[2]
    assert np.abs(off).max() < 2.0


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        ("EPSG:2056", SWISS, True),
        ("EPSG:2056", WITHOUT_ID, True),
        (WITHOUT_ID, SWISS.to_wkt(), True),
        ("EPSG:2056", "EPSG:21781", False),
        ("EPSG:4326", "OGC:CRS84", True),
        ("EPSG:4326", "EPSG:4258", True),
        ("EPSG:4326", "EPSG:4267", False),
        ("EPSG:3857", "ESRI:102100", True),
        ("EPSG:2056", LON_LAT_WITHOUT_ID, False),
    ],
)
def test_equality(one: object, other: object, are_equal: bool) -> None:
    assert crs_of(one).equals(crs_of(other)) == are_equal
    assert crs_of(other).equals(crs_of(one)) == are_equal


@pytest.fixture
def no_pyproj(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> object:
        return None if name == "pyproj" else find_spec(name)

    monkeypatch.setattr("fencepost.extras.find_spec", find)


@pytest.mark.usefixtures("no_pyproj")
def test_codes_and_ids_need_no_proj() -> None:
    assert not crs_of("EPSG:2056").is_lon_lat()
    assert crs_of(LON_LAT_WITHOUT_ID).is_lon_lat()
    assert not crs_of(WITHOUT_ID).is_lon_lat()
    assert crs_of(SWISS.to_wkt()).equals(crs_of("EPSG:2056"))
    assert not crs_of("EPSG:2056").equals(crs_of("EPSG:21781"))


@pytest.mark.usefixtures("no_pyproj")
def test_what_needs_proj_says_what_to_install() -> None:
    unknown = crs_of("+proj=longlat +datum=potsdam")
    with pytest.raises(FencepostError) as error:
        unknown.is_lon_lat()
    assert str(error.value) == (
        "comparing the CRS '+proj=longlat +datum=potsdam' needs pyproj; install it with: "
        "pip install 'fencepost[crs]'"
    )
    with pytest.raises(FencepostError, match=r"comparing the CRS .* with .* needs pyproj; inst"):
        crs_of(WITHOUT_ID).equals(crs_of("EPSG:21781"))
    with pytest.raises(FencepostError) as error:
        Transformation(crs_of("EPSG:2056"), LON_LAT)(read_geometries(["POINT (1 1)"]))
    assert str(error.value) == (
        "crs='transform' needs pyproj; install it with: pip install 'fencepost[crs]'"
    )


# -------------------------------------------------------------------------------------------- SRIDs


@given(
    st.lists(
        st.tuples(st.sampled_from([None, 0, 1, 4326, 2056, 2**31 - 1]), st.booleans()), max_size=9
    )
)
def test_srids_of_a_column_are_those_of_its_values(rows: list[tuple[int | None, bool]]) -> None:
    values = [
        shapely.to_wkb(
            shapely.set_srid(shapely.Point(1, 2), srid or 0),
            include_srid=srid is not None,
            byte_order=int(is_little),
        )
        for srid, is_little in rows
    ]
    wanted = {shapely.get_srid(shapely.from_wkb(value)) for value in values} - {0}
    assert {srid_of(value) for value in values} - {0} == wanted
    ends = np.cumsum([0, *map(len, values)])
    assert srids_of_column(np.frombuffer(b"".join(values), np.uint8), ends) - {0} == wanted


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x01\x01\0\0\x20", None, "x", b"\x01" * 9])
def test_values_without_an_srid(value: object) -> None:
    assert srid_of(value) == 0
    data = value if isinstance(value, bytes) else b""
    assert srids_of_column(np.frombuffer(data, np.uint8), np.array([0, len(data)])) == set()


# ----------------------------------------------------------------------------------- transformation

SHAPES = [
    "POINT (2600000 1200000)",
    "LINESTRING (2600000 1200000, 2610000 1210000)",
    "POLYGON ((2600000 1200000, 2610000 1200000, 2610000 1210000, 2600000 1200000), "
    "(2605000 1201000, 2606000 1202000, 2606000 1201000, 2605000 1201000))",
    "MULTIPOLYGON (((2600000 1200000, 2610000 1200000, 2610000 1210000, 2600000 1200000)), "
    "((2700000 1200000, 2710000 1200000, 2710000 1210000, 2700000 1200000)))",
]


def test_all_vertices_are_transformed() -> None:
    raw = read_geometries([*SHAPES, "POINT (", None])
    moved = Transformation(crs_of(SWISS), LON_LAT)(raw)
    to_lon_lat = pyproj.Transformer.from_crs(2056, 4326)  # latitude before longitude
    wanted = [to_lon_lat.transform(x, y) for x, y in zip(raw.x, raw.y, strict=True)]
    assert np.allclose(np.column_stack((moved.y, moved.x)), wanted, rtol=0, atol=1e-12)
    for name in ("chain_start", "chain_part", "shape_chain", "dimension"):
        assert np.array_equal(getattr(moved, name), getattr(raw, name))
    assert moved.problems == raw.problems
    back = Transformation(LON_LAT, crs_of(SWISS))(moved)
    assert np.allclose((back.x, back.y), (raw.x, raw.y), rtol=0, atol=1e-2)


def test_a_point_that_cannot_be_transformed_is_a_problem_of_its_row() -> None:
    polar = crs_of("EPSG:3857")
    geometries = ["POINT (8 47)", "LINESTRING (0 0, 8 95)", "POINT (1 1)"]
    moved = Transformation(LON_LAT, polar)(read_geometries(geometries))
    assert [(problem.row, problem.reason) for problem in moved.problems] == [
        (1, "the point (8, 95) cannot be transformed from OGC:CRS84 to EPSG:3857")
    ]
    assert moved.dimension.tolist() == [0, -1, 0]


def test_projjson_of_a_compound_crs_is_that_of_its_horizontal_part() -> None:
    assert json.loads(crs_of(COMPOUND).definition)["type"] == "CompoundCRS"
