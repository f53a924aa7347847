"""Tables in, tables out: events joined with the subscriptions that they match."""

from __future__ import annotations

from typing import Any

import geopandas
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
import shapely

import fencepost as fp

ZONES = {
    "west": "S_INTERSECTS(geometry, BBOX(0, 0, 5, 9))",
    "south": "S_INTERSECTS(geometry, BBOX(0, 0, 9, 4)) AND kind = 'taxi'",
}
COLUMNS: dict[str, Any] = {
    "lon": [1.0, 8.0, 9.0, np.nan],
    "lat": [2.0, 3.0, 9.0, 1.0],
    "kind": ["taxi", "taxi", "bus", "taxi"],
}
JOINED = [(1.0, "taxi", "south"), (1.0, "taxi", "west"), (8.0, "taxi", "south")]


@pytest.fixture
def matcher() -> fp.Matcher:
    matcher = fp.Matcher(space="planar")
    for id, expression in ZONES.items():
        matcher.subscribe(id, expression)
    return matcher


def rows_of(table: pa.Table) -> list[tuple[float, str, str]]:
    return [(row["lon"], row["kind"], row["subscription"]) for row in table.to_pylist()]


def test_pandas_keeps_its_index(matcher: fp.Matcher) -> None:
    frame = pd.DataFrame(COLUMNS, index=["a", "b", "c", "d"])
    joined = matcher.match_frame(frame, x="lon", y="lat")
    assert type(joined) is pd.DataFrame
    assert joined.index.tolist() == ["a", "a", "b"]
    assert rows_of(pa.Table.from_pandas(joined)) == JOINED
    assert "subscription" not in frame


def test_geopandas_stays_geopandas(matcher: fp.Matcher) -> None:
    points = shapely.points([1.0, 8.0], [2.0, 3.0])
    frame = geopandas.GeoDataFrame({"kind": ["taxi", "taxi"]}, geometry=points)
    joined = matcher.match_frame(frame)
    assert isinstance(joined, geopandas.GeoDataFrame)
    assert joined.index.tolist() == [0, 0, 1]
    assert joined["subscription"].tolist() == ["south", "west", "south"]
    assert joined.geometry.iloc[2].equals(points[1])


def test_arrow(matcher: fp.Matcher) -> None:
    table = pa.table(COLUMNS)
    for frame in (table, table.to_batches()[0]):
        joined = matcher.match_frame(frame, x="lon", y="lat")
        assert isinstance(joined, pa.Table)
        assert rows_of(joined) == JOINED


def test_polars(matcher: fp.Matcher) -> None:
    joined = matcher.match_frame(polars.DataFrame(COLUMNS), x="lon", y="lat")
    assert isinstance(joined, polars.DataFrame)
    assert rows_of(joined.to_arrow()) == JOINED
    empty = matcher.match_frame(polars.DataFrame(COLUMNS).head(0), x="lon", y="lat")
    assert empty.columns == [*COLUMNS, "subscription"]


def test_an_arrow_stream(matcher: fp.Matcher) -> None:
    stream = pa.RecordBatchReader.from_batches(
        pa.table(COLUMNS).schema, pa.table(COLUMNS).to_batches()
    )
    assert rows_of(matcher.match_frame(stream, x="lon", y="lat")) == JOINED


def test_points_are_those_of_wkt(matcher: fp.Matcher) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.uniform(-1, 10, 500), "y": rng.uniform(-1, 10, 500)})
    frame["kind"] = "taxi"
    wkt = frame.assign(
        geometry=[f"POINT ({x!r} {y!r})" for x, y in zip(frame.x, frame.y, strict=True)]
    )
    joined = matcher.match_frame(frame, x="x", y="y")
    expected = matcher.match_frame(wkt).drop(columns="geometry")
    assert len(joined) > 100
    pd.testing.assert_frame_equal(joined, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": "lon"}, "x and y must be given together"),
        ({"x": "long", "y": "lat"}, "the table has no column 'long'; did you mean 'lon'?"),
        ({"x": "lon", "y": "kind"}, "the column 'kind' must have numbers; saw 'taxi'"),
        ({"x": "lon", "y": "lat", "column": "kind"}, "the table has a column 'kind'; name another"),
    ],
)
def test_mistakes(matcher: fp.Matcher, arguments: Any, message: str) -> None:
    with pytest.raises(fp.ModelError) as error:
        matcher.match_frame(pd.DataFrame(COLUMNS), **arguments)
    assert str(error.value).startswith(message)


def test_a_list_is_no_table(matcher: fp.Matcher) -> None:
    with pytest.raises(fp.ModelError, match="a list is no table of columns"):
        matcher.match_frame([{"kind": "taxi"}])
