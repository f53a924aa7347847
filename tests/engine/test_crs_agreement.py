"""The CRS of events and of subscriptions: right, refused with the fix, or transformed."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geoarrow.pyarrow as ga
import geopandas
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp

PLACES = geopandas.GeoDataFrame(
    {"id": ["bern", "thun"]},
    geometry=geopandas.points_from_xy([7.44, 7.63], [46.95, 46.76]),
    crs=4326,
)
NEAR_BERN = "S_DWITHIN(geometry, POINT(7.44 46.95), 10)"
SWISS_BERN = shapely.from_wkb(PLACES.to_crs(2056).geometry.to_wkb()[0])


def ewkb(frame: geopandas.GeoDataFrame) -> list[bytes]:
    srid = frame.crs.to_epsg()
    values = shapely.set_srid(np.array(frame.geometry), srid)
    return list(shapely.to_wkb(values, include_srid=True))


def geoparquet(frame: geopandas.GeoDataFrame) -> pa.Table:
    file = io.BytesIO()
    frame.to_parquet(file)
    return pq.read_table(file)


def with_metadata(frame: geopandas.GeoDataFrame) -> pa.Table:
    """A column of WKB whose field, not its type, names the CRS."""
    metadata = {
        "ARROW:extension:name": "geoarrow.wkb",
        "ARROW:extension:metadata": json.dumps({"crs": f"EPSG:{frame.crs.to_epsg()}"}),
    }
    field = pa.field("geometry", pa.binary(), metadata=metadata)
    return pa.table([pa.array(list(frame.geometry.to_wkb()))], schema=pa.schema([field]))


class Stream:
    """A table of another library, of which only the Arrow stream is known."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def collection(frame: geopandas.GeoDataFrame) -> dict[str, Any]:
    name = f"urn:ogc:def:crs:EPSG::{frame.crs.to_epsg()}"
    crs = {"type": "name", "properties": {"name": name}}
    return {**json.loads(frame.to_json(to_wgs84=False)), "crs": crs}


# By form: a table that declares its CRS.
FORMS: dict[str, Callable[[geopandas.GeoDataFrame], Any]] = {
    "GeoDataFrame": lambda frame: frame,
    "GeoParquet": geoparquet,
    "GeoArrow, WKB": lambda frame: pa.table(frame.to_arrow()),
    "GeoArrow, points": lambda frame: pa.table(frame.to_arrow(geometry_encoding="geoarrow")),
    "record batch": lambda frame: pa.table(frame.to_arrow()).to_batches()[0],
    "metadata of the field": with_metadata,
    "Arrow stream": lambda frame: Stream(with_metadata(frame)),
    "EWKB": lambda frame: pa.table({"geometry": ewkb(frame)}),
    "EWKB in views": lambda frame: pa.table({"geometry": pa.array(ewkb(frame), pa.binary_view())}),
    "EWKB in a dictionary": lambda frame: pa.table(
        {"geometry": pa.array(ewkb(frame)).dictionary_encode()}
    ),
    "EWKB in mappings": lambda frame: [{"geometry": value} for value in ewkb(frame)],
    "EWKB in polars": lambda frame: polars.DataFrame({"geometry": ewkb(frame)}),
    "FeatureCollection": collection,
}


def matcher_of(
    space: Any = "wgs84", expression: str = NEAR_BERN, index: Any = "auto"
) -> fp.Matcher:
    matcher = fp.Matcher(space, index)
    matcher.subscribe("bern", expression)
    return matcher


def rows(matches: pa.Table) -> list[int]:
    return list(matches.column("event").to_pylist())


def name_of(form: str, code: str, name: str) -> str:
    has_name = form in ("GeoDataFrame", "GeoParquet", "GeoArrow, WKB", "GeoArrow, points")
    return f"{code} ({name})" if has_name or form == "record batch" else code


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("code", [4326, 4258, 4979])
def test_longitude_and_latitude_are_right(form: str, code: int) -> None:
    frame = PLACES.set_crs(code, allow_override=True)
    assert rows(matcher_of().match_batch(FORMS[form](frame))) == [0]


@pytest.mark.parametrize("form", FORMS)
def test_a_projected_crs_is_refused(form: str) -> None:
    crs = name_of(form, "EPSG:2056", "CH1903+ / LV95")
    with pytest.raises(fp.ModelError) as error:
        matcher_of().match_batch(FORMS[form](PLACES.to_crs(2056)))
    assert str(error.value) == (
        f"the geometry \"geometry\" of the events has the CRS {crs}, but space='wgs84' needs "
        'longitude and latitude on WGS 84; transform it with crs="transform" (--crs transform), or '
        "use space='planar'"
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("code", [2056, 4267, 3857])
@pytest.mark.parametrize("index", ["auto", "reference"])
def test_it_is_transformed_on_request(form: str, code: int, index: str) -> None:
    matcher = matcher_of(index=index)
    table = FORMS[form](PLACES.to_crs(code))
    assert rows(matcher.match_batch(table, crs="transform")) == [0]
    assert matcher.stats()["unusable_geometries"] == {}


@pytest.mark.parametrize("form", FORMS)
def test_the_first_crs_of_a_planar_matcher_counts(form: str) -> None:
    matcher = matcher_of("planar", f"S_DWITHIN(geometry, {SWISS_BERN.wkt}, 10)")
    table = FORMS[form](PLACES.to_crs(2056))
    assert matcher.stats()["crs"] is None
    for _ in range(2):
        assert rows(matcher.match_batch(table)) == [0]
    first = name_of(form, "EPSG:2056", "CH1903+ / LV95")
    assert matcher.stats()["crs"] == first
    other = FORMS[form](PLACES.to_crs(21781))
    with pytest.raises(fp.ModelError) as error:
        matcher.match_batch(other)
    assert str(error.value) == (
        'the geometry "geometry" of the events has the CRS '
        f"{name_of(form, 'EPSG:21781', 'CH1903 / LV03')}, but other geometries of this matcher "
        f'have {first}; transform it with crs="transform" (--crs transform)'
    )
    assert rows(matcher.match_batch(other, crs="transform")) == [0]
    assert rows(matcher.match_batch(pa.table({"geometry": [SWISS_BERN.wkb]}))) == [0]


# By mistake: an action with a matcher of the space, and the whole message.
MISTAKES: dict[str, tuple[str, Callable[[fp.Matcher], object], str]] = {
    "another datum": (
        "wgs84",
        lambda m: m.match_batch(PLACES.to_crs(4267)),
        'the geometry "geometry" of the events has the CRS EPSG:4267 (NAD27), but '
        "space='wgs84' needs longitude and latitude on WGS 84; transform it with "
        'crs="transform" (--crs transform)',
    ),
    "a frame": (
        "wgs84",
        lambda m: m.match_frame(PLACES.to_crs(3857)),
        'the geometry "geometry" of the events has the CRS EPSG:3857 (WGS 84 / Pseudo-Mercator), '
        "but space='wgs84' needs longitude and latitude on WGS 84; transform it with "
        "crs=\"transform\" (--crs transform), or use space='planar'",
    ),
    "several SRIDs": (
        "wgs84",
        lambda m: m.match_batch(
            pa.table({"geometry": ewkb(PLACES) + ewkb(PLACES.to_crs(2056))}), crs="transform"
        ),
        "the column 'geometry' has geometries with several SRIDs (2056, 4326); give all of them in "
        "one CRS",
    ),
    "a single event": (
        "wgs84",
        lambda m: m.match({"geometry": ewkb(PLACES.to_crs(2056))[0]}),
        "a geometry of the event has the CRS EPSG:2056, but space='wgs84' needs longitude and "
        'latitude on WGS 84; transform it with crs="transform" (--crs transform), or use '
        "space='planar'",
    ),
    "geometries of subscriptions": (
        "wgs84",
        lambda m: m.subscribe_columns(
            ["a", "b"], regions={"area": (PLACES.to_crs(2056).geometry, "S_INTERSECTS")}
        ),
        "regions['area'] has the CRS EPSG:2056 (CH1903+ / LV95), but space='wgs84' needs longitude "
        'and latitude on WGS 84; transform it with crs="transform" (--crs transform), or use '
        "space='planar'",
    ),
    "a CRS that cannot be read": (
        "wgs84",
        lambda m: m.match_batch(
            pa.table(
                {"geometry": [b""]},
                schema=pa.schema(
                    [
                        pa.field(
                            "geometry",
                            pa.binary(),
                            metadata={
                                "ARROW:extension:name": "geoarrow.wkb",
                                "ARROW:extension:metadata": '{"crs": {"name": "x"}}',
                            },
                        )
                    ]
                ),
            )
        ),
        "the column 'geometry' cannot be used: a CRS cannot be read from {'name': 'x'}; give a "
        'code such as "EPSG:2056", or PROJJSON',
    ),
    "another word": (
        "wgs84",
        lambda m: m.match_batch([], crs="convert"),  # type: ignore[arg-type]
        "crs must be one of refuse, transform; saw 'convert'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused(mistake: str) -> None:
    space, act, message = MISTAKES[mistake]
    with pytest.raises(fp.FencepostError) as error:
        act(matcher_of(space))
    assert str(error.value) == message


def test_degrees_in_a_planar_matcher_are_a_warning_once() -> None:
    matcher = matcher_of("planar", "S_INTERSECTS(geometry, BBOX(7, 46, 8, 47))")
    with pytest.warns(fp.FencepostWarning) as caught:
        assert rows(matcher.match_batch(PLACES)) == [0, 1]
    assert [str(warning.message) for warning in caught] == [
        "the geometries have the CRS EPSG:4326 (WGS 84), which has degrees, so that distances are "
        "degrees, too, with space='planar'; use space='wgs84' for metres"
    ]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.match_batch(PLACES)


@pytest.mark.parametrize(
    "values",
    [
        PLACES.to_crs(2056).geometry,
        ga.with_crs(ga.as_wkb(PLACES.to_crs(2056).geometry.to_wkt().tolist()), "EPSG:2056"),
        with_metadata(PLACES.to_crs(2056)).select(["geometry"]),
        ewkb(PLACES.to_crs(2056)),
        pa.array(ewkb(PLACES.to_crs(2056))),
        np.array(ewkb(PLACES.to_crs(2056)), object),
        pd.Series(ewkb(PLACES.to_crs(2056))),
    ],
    ids=["GeoSeries", "GeoArrow", "table", "list", "Arrow", "NumPy", "pandas"],
)
def test_geometries_of_subscriptions_are_transformed(values: Any) -> None:
    matcher = fp.Matcher()
    within = {"geometry": (values, 10.0)}
    with pytest.raises(fp.ModelError, match=r"within\['geometry'\] has the CRS EPSG:2056"):
        matcher.subscribe_columns(["bern", "thun"], within=within)
    assert len(matcher) == 0
    matcher.subscribe_columns(["bern", "thun"], within=within, crs="transform")
    assert matcher.match_batch(PLACES).column("subscription").to_pylist() == ["bern", "thun"]


def test_a_transformed_geometry_that_is_invalid_is_refused() -> None:
    poles = geopandas.GeoSeries([shapely.Point(1e300, 1e300)], crs=32632)
    with pytest.raises(
        fp.ModelError, match=r"row 0: the point \(1\.\d+e\+300, .*\) cannot be transf"
    ):
        fp.Matcher().subscribe_columns(["a"], within={"g": (poles, 1)}, crs="transform")


def test_the_crs_of_fences_counts_for_events_and_is_saved(tmp_path: Path) -> None:
    matcher = fp.Matcher("planar")
    swiss = PLACES.to_crs(2056)
    matcher.subscribe_columns(["bern", "thun"], within={"geometry": (swiss.geometry, 10.0)})
    matcher.save(tmp_path / "index")
    for each in (matcher, fp.Matcher.open(tmp_path / "index")):
        assert each.stats()["crs"] == "EPSG:2056 (CH1903+ / LV95)"
        assert rows(each.match_batch(swiss)) == [0, 1]
        with pytest.raises(fp.ModelError, match=r"but other geometries of this matcher have EPSG"):
            each.match_batch(PLACES)
        assert rows(each.match_batch(PLACES, crs="transform")) == [0, 1]


def test_a_failed_call_leaves_the_crs_open() -> None:
    matcher = fp.Matcher("planar")
    with pytest.raises(fp.ModelError, match="must have one item for each of the 1 ids"):
        matcher.subscribe_columns(["a"], within={"geometry": (PLACES.to_crs(2056).geometry, 10)})
    assert matcher.stats()["crs"] is None


@pytest.mark.parametrize("declared", [None, "null in GeoParquet"])
def test_no_crs_is_that_of_the_matcher(declared: str | None) -> None:
    frame = geopandas.GeoDataFrame(geometry=[SWISS_BERN])
    table = frame if declared is None else geoparquet(frame)
    assert rows(
        matcher_of("planar", f"S_EQUALS(geometry, {SWISS_BERN.wkt})").match_batch(table)
    ) == [0]


def test_geoparquet_without_a_crs_is_longitude_and_latitude() -> None:
    table = geoparquet(PLACES)
    geo = json.loads(table.schema.metadata[b"geo"])
    del geo["columns"]["geometry"]["crs"]
    plain = pa.table({"geometry": list(PLACES.geometry.to_wkb())})
    table = plain.replace_schema_metadata({"geo": json.dumps(geo)})
    matcher = matcher_of("planar", "S_INTERSECTS(geometry, BBOX(7, 46, 8, 47))")
    with pytest.warns(fp.FencepostWarning, match="have the CRS OGC:CRS84, which has degrees"):
        matcher.match_batch(table)
    assert rows(matcher_of().match_batch(table)) == [0]


def test_a_column_that_no_subscription_compares_may_have_any_crs() -> None:
    frame = PLACES.copy()
    frame["swiss"] = PLACES.to_crs(2056).geometry
    assert rows(matcher_of().match_batch(frame)) == [0]


def test_points_that_cannot_be_transformed_are_unusable_geometries() -> None:
    frame = geopandas.GeoDataFrame(
        geometry=[shapely.Point(380_000, 5_200_000), shapely.Point(1e300, 1e300)], crs=32632
    )
    matcher = matcher_of()
    with pytest.warns(
        fp.FencepostWarning, match=r"1 of the 2 events .* row 1: the point .* cannot be"
    ):
        matcher.match_batch(frame, crs="transform")


def test_single_events_with_the_right_srid_match() -> None:
    for index in ("auto", "reference"):
        assert matcher_of(index=index).match({"geometry": ewkb(PLACES)[0]}) == ["bern"]


@given(st.lists(st.tuples(st.floats(6, 10), st.floats(46, 47.5)), min_size=1, max_size=20))
def test_transformed_events_match_like_those_in_longitude_and_latitude(
    points: list[tuple[float, float]],
) -> None:
    there = geopandas.GeoSeries([shapely.Point(p) for p in points], crs=4326)
    frame = geopandas.GeoDataFrame(geometry=there.to_crs(2056))
    back = geopandas.GeoDataFrame(geometry=frame.geometry.to_crs(4326))
    matcher = matcher_of(expression="S_DWITHIN(geometry, POINT(7.44 46.95), 60000)")
    assert matcher.match_batch(frame, crs="transform").equals(matcher.match_batch(back))


@pytest.mark.parametrize("form", FORMS)
def test_fences_of_a_table_are_refused_or_transformed(form: str) -> None:
    matcher = fp.Matcher()
    frame = FORMS[form](PLACES.to_crs(2056))
    fences: dict[str, Any] = {"relation": "S_DWITHIN", "distance": 10}
    with pytest.raises(fp.ModelError) as error:
        matcher.subscribe_frame(frame, **fences)
    assert str(error.value).startswith(
        'the geometry "geometry" of the fences has the CRS EPSG:2056'
    )
    assert len(matcher) == 0
    assert matcher.subscribe_frame(frame, crs="transform", **fences) == 2
    assert rows(matcher.match_batch(PLACES)) == [0, 1]


def test_the_best_matches_are_found_among_transformed_events() -> None:
    best = matcher_of().match_batch(PLACES.to_crs(2056), crs="transform", min_score=0)
    assert rows(best) == [0]
