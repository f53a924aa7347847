"""`fencepost spark match` on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from fencepost.cli.entry_point import app

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in [1] {a, b}*"  # not a glob pattern
    folder.mkdir()
    subscriptions = [
        {"id": "near", "expression": "S_INTERSECTS(place, BBOX(0, 0, 2, 2))", "subscriber": "a"},
        {"id": "loud", "expression": "n > 5", "subscriber": None},
        {"id": "bad", "expression": "n >", "subscriber": None},
    ]
    events = [
        {"name": "one", "place": "POINT (1 1)", "n": 9},
        {"name": "two", "place": "POINT (5 5)", "n": 1},
    ]
    pq.write_table(pa.Table.from_pylist(subscriptions), folder / "s.parquet")
    (folder / "e.ndjson").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def run(*arguments: object) -> Any:
    return runner.invoke(app, ["spark", "match", *map(str, arguments)])


def test_match_writes_matches_of_files(files: Path) -> None:
    given = ("--subscriptions", files / "s.parquet", "--events", files / "e.ndjson")
    out, index = files / "matches", files / "index"
    result = run(*given, "--out", out, "--index", index, "--column", "name")
    assert result.exit_code == 3, result.output
    assert "2 subscriptions in 1 parts" in result.output
    assert "1 subscriptions could not be used" in result.output
    rows = pq.read_table(out).to_pylist()
    assert sorted((row["name"], row["subscription"], row["subscriber"]) for row in rows) == [
        ("one", "loud", "loud"),
        ("one", "near", "a"),
    ]
    again = run("--index", index, "--events", files / "e.ndjson", "--out", out)
    assert again.exit_code == 1
    assert "give --replace" in again.output
    replaced = run(
        *("--index", index, "--events", files / "e.ndjson", "--out", out, "--replace", "--json"),
        *("--how", "partitioned"),
    )
    assert replaced.exit_code == 0, replaced.output
    assert json.loads(replaced.stdout)["match"]["matches"] == 2


def test_missing_options_and_files(files: Path) -> None:
    events = ("--events", files / "e.ndjson", "--out", files / "matches")
    assert run(*events).exit_code == 2
    assert "give --subscriptions, or an --index" in run(*events).output
    missing = run(*events, "--subscriptions", files / "none.parquet")
    assert missing.exit_code == 1
    assert "there is no file or folder" in missing.output


def test_features_match_as_with_match(tmp_path: Path) -> None:
    points = [(1, 1, 9), (5, 5, 1), (0, 2, 7)]
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [x, y]},
            "properties": {"name": f"e{row}", "n": n},
        }
        for row, (x, y, n) in enumerate(points)
    ]
    area = {"type": "Polygon", "coordinates": [[[0, 0], [6, 0], [6, 6], [0, 0]]]}
    features.append({**features[1], "geometry": area, "properties": {"name": "e3", "n": 8}})
    (tmp_path / "e.ndjson").write_text("".join(json.dumps(feature) + "\n" for feature in features))
    subscriptions = [
        {"id": "near", "expression": "S_INTERSECTS(geometry, BBOX(0, 0, 2, 2))"},
        {"id": "loud", "expression": "n > 5"},
    ]
    pq.write_table(pa.Table.from_pylist(subscriptions), tmp_path / "s.parquet")
    given = ("--subscriptions", str(tmp_path / "s.parquet"))
    single = runner.invoke(app, ["match", str(tmp_path / "e.ndjson"), *given])
    expected = [
        (f"e{row['event']}", row["subscription"])
        for row in map(json.loads, single.stdout.splitlines())
    ]
    out = tmp_path / "out"
    result = run(*given, "--events", tmp_path / "e.ndjson", "--out", out, "--column", "name")
    assert result.exit_code == 0, result.output
    rows = pq.read_table(out).to_pylist()
    assert sorted((row["name"], row["subscription"]) for row in rows) == sorted(expected)
    assert len(expected) == 6
