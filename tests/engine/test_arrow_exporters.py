"""Libraries that offer Arrow's C interface: DuckDB and nanoarrow, as events and as fences."""

from __future__ import annotations

from typing import Any

import duckdb
import nanoarrow
import pyarrow as pa
import pytest

import fencepost as fp

ROWS = "(VALUES (1.0, 2.0, 'taxi'), (8.0, 3.0, 'taxi'), (1.0, 3.0, 'bus')) AS t(lon, lat, kind)"
TABLE = pa.table({"lon": [1.0, 8.0, 1.0], "lat": [2.0, 3.0, 3.0], "kind": ["taxi", "taxi", "bus"]})

SOURCES: dict[str, Any] = {
    "a DuckDB relation": lambda: duckdb.sql(f"SELECT * FROM {ROWS}"),
    "a nanoarrow array": lambda: nanoarrow.Array(TABLE.to_batches()[0]),
    "a nanoarrow C array": lambda: nanoarrow.c_array(TABLE.to_batches()[0]),
    "a nanoarrow stream": lambda: nanoarrow.ArrayStream(TABLE),
}


@pytest.fixture
def matcher() -> fp.Matcher:
    m = fp.Matcher()
    m.subscribe("west", "S_INTERSECTS(geometry, BBOX(0, 0, 5, 9)) AND kind = 'taxi'")
    return m


@pytest.mark.parametrize("source", SOURCES)
def test_events(matcher: fp.Matcher, source: str) -> None:
    joined = matcher.match_frame(SOURCES[source](), x="lon", y="lat")
    assert isinstance(joined, pa.Table)
    assert [(float(row["lon"]), row["subscription"]) for row in joined.to_pylist()] == [
        (1.0, "west")
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_fences(source: str) -> None:
    m = fp.Matcher()
    near: Any = {"relation": "S_DWITHIN", "distance": 10, "x": "lon", "y": "lat"}
    assert m.subscribe_frame(SOURCES[source](), **near) == 3
    assert m.match({"geometry": "POINT (8 3)"}) == ["1"]


def test_duckdb_reads_the_results(matcher: fp.Matcher) -> None:
    joined = matcher.match_frame(duckdb.sql(f"SELECT * FROM {ROWS}"), x="lon", y="lat")
    counts = "SELECT subscription, count(*) FROM joined GROUP BY ALL"
    result = duckdb.sql(counts)
    assert result is not None
    assert result.fetchall() == [("west", 1)]
    assert len(joined) == 1


def test_integer_ids_of_duckdb() -> None:
    m = fp.Matcher()
    m.subscribe_frame(duckdb.sql("SELECT 7 AS id, 'POINT (1 1)' AS geometry"))
    assert m.ids() == ["7"]
