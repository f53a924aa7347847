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


# --------------------------------------------------------------------------------------- scores


@pytest.fixture
def ranked() -> fp.Matcher:
    matcher = fp.Matcher(space="planar")
    for size in (4, 8, 16, 32):
        matcher.subscribe(size, f"S_INTERSECTS(geometry, BBOX(0, 0, {size}, {size}))")
    return matcher


def ranks(matcher: fp.Matcher, **limits: Any) -> list[tuple[int, str, float]]:
    events = zip(COLUMNS["lon"], COLUMNS["lat"], strict=True)
    return [
        (number, id, score)
        for number, (x, y) in enumerate(events)
        if not np.isnan(x)
        for id, score in matcher.rank({"geometry": f"POINT ({x} {y})"}, **limits)
    ]


LIMITS: list[dict[str, Any]] = [
    {"top_k": 2},
    {"top_k": 0},
    {"min_score": 0},
    {"min_score": 0.3},
    {"top_k": 1, "min_score": 0.2},
]


@pytest.mark.parametrize("index", ["auto", "reference"])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_scores_in_bulk_are_those_of_rank(
    ranked: fp.Matcher, index: Any, limits: dict[str, Any]
) -> None:
    matcher = fp.Matcher("planar", index)
    matcher.subscribe_many([{"id": id, "expression": ranked.expression(id)} for id in ranked.ids()])
    points = pa.table({"geometry": [f"POINT ({x} {y})" for x, y in zip(*XY, strict=True)]})
    matches = matcher.match_batch(points, **limits)
    assert [tuple(row.values()) for row in matches.to_pylist()] == ranks(ranked, **limits)


XY = (COLUMNS["lon"][:3], COLUMNS["lat"][:3])
FRAMES = {
    "arrow": pa.table,
    "pandas": pd.DataFrame,
    "polars": polars.DataFrame,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_a_column_of_scores(ranked: fp.Matcher, kind: str, limits: dict[str, Any]) -> None:
    frame = FRAMES[kind](COLUMNS)
    joined = ranked.match_frame(frame, x="lon", y="lat", score_column="rank", **limits)
    assert type(joined) is type(frame)
    table = pa.table(joined) if kind != "pandas" else pa.Table.from_pandas(joined)
    row_of = {lon: row for row, lon in enumerate(COLUMNS["lon"])}
    assert [
        (row_of[row["lon"]], row["subscription"], row["rank"]) for row in table.to_pylist()
    ] == ranks(ranked, **limits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_k": 1.5}, "top_k must be a whole number from 0 on, or None; saw 1.5"),
        ({"top_k": 1, "score_column": "kind"}, "the table has a column 'kind'; name another one w"),
        ({"top_k": 1, "score_column": "subscription"}, "the table has a column 'subscription'; na"),
    ],
)
def test_mistakes_with_scores(ranked: fp.Matcher, arguments: Any, message: str) -> None:
    with pytest.raises(fp.ModelError) as error:
        ranked.match_frame(pd.DataFrame(COLUMNS), **arguments)
    assert str(error.value).startswith(message)


# ------------------------------------------------------------------------------- Arrow's interface


def exported(source: Any, method: str) -> Any:
    """Return an object whose only method is one of Arrow's C interface."""
    return type(
        "Foreign", (), {method: lambda self, schema=None: getattr(source, method)(schema)}
    )()


STREAM, ARRAY = "__arrow_c_stream__", "__arrow_c_array__"


@pytest.mark.parametrize(
    "frame",
    [
        exported(pa.table(COLUMNS), STREAM),
        exported(pa.table(COLUMNS).to_batches()[0], ARRAY),
        exported(pa.array(pa.table(COLUMNS).to_pylist()), ARRAY),
        exported(polars.DataFrame(COLUMNS), STREAM),
    ],
    ids=["a stream", "a batch", "an array of structs", "a stream of polars"],
)
def test_tables_of_unknown_libraries(matcher: fp.Matcher, frame: Any) -> None:
    assert rows_of(matcher.match_frame(frame, x="lon", y="lat")) == JOINED


def test_other_libraries_as_events_and_fences(matcher: fp.Matcher) -> None:
    table = pa.table({"geometry": ["POINT (1 2)"], "kind": ["taxi"]})
    for foreign in (exported(table, STREAM), exported(table.to_batches()[0], ARRAY)):
        assert matcher.match_batch(foreign).column("subscription").to_pylist() == ["west", "south"]
    m = fp.Matcher()
    assert m.subscribe_frame(exported(table, STREAM)) == 1


@pytest.mark.parametrize("method", [STREAM, ARRAY])
def test_values_that_are_no_rows(matcher: fp.Matcher, method: str) -> None:
    numbers = pa.chunked_array([[1, 2]]) if method == STREAM else pa.array([1, 2])
    for read in (matcher.match_batch, matcher.match_frame, matcher.subscribe_frame):
        with pytest.raises(fp.ModelError) as error:
            read(exported(numbers, method))
        message = str(error.value)
        assert message.startswith("a Foreign is no table of events (")
        assert message.endswith(
            "; give an Arrow table, a DataFrame, a FeatureCollection or a list of events, each a "
            "mapping or a GeoJSON Feature"
        )


def test_subscriptions_of_a_polars_table() -> None:
    rows = polars.DataFrame({"id": ["a", "b"], "expression": ["n = 1", "n = 2"]})
    matcher = fp.Matcher()
    assert matcher.subscribe_many(rows) == 2
    assert matcher.match({"n": 2}) == ["b"]
