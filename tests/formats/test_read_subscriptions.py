"""Subscriptions from every format, and rows that cannot be used."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.engine import Matcher
from fencepost.errors import FencepostError
from fencepost.formats import DeadLetter, read_subscriptions, subscribe_file

INSIDE = "S_INTERSECTS(area, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))"
ROWS: list[dict[str, Any]] = [
    {"id": "storm", "expression": INSIDE, "subscriber": "anna", "expires": None},
    {
        "id": "calm",
        "expression": "wind < 3",
        "subscriber": None,
        "expires": "2100-01-01T00:00:00Z",
    },
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["id", "expression", "subscriber", "expires"])
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".ndjson":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".geojson":
        made = [{"type": "Feature", "geometry": None, "properties": row} for row in rows]
        path.write_text(json.dumps({"type": "FeatureCollection", "features": made}))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def read(path: Path) -> tuple[list[dict[str, Any]], list[DeadLetter]]:
    letters: list[DeadLetter] = []
    rows = [row.values for rows, _ in read_subscriptions(path, letters.append) for row in rows]
    return rows, letters


def subscribed(path: Path) -> tuple[Matcher, list[DeadLetter]]:
    letters: list[DeadLetter] = []
    matcher = Matcher(space="planar")
    file = read_subscriptions(path, letters.append)
    count = subscribe_file(matcher, file, letters.append, lambda done: None)
    assert count == len(matcher)
    return matcher, letters


@pytest.mark.parametrize("ending", ["csv", "ndjson", "geojson", "parquet"])
class TestEveryFormat:
    def test_rows(self, tmp_path: Path, ending: str) -> None:
        rows, letters = read(write(tmp_path / f"subscriptions.{ending}", ROWS))
        assert rows == ROWS
        assert letters == []

    def test_into_a_matcher(self, tmp_path: Path, ending: str) -> None:
        matcher, letters = subscribed(write(tmp_path / f"subscriptions.{ending}", ROWS))
        assert letters == []
        assert matcher.match({"area": "POINT (1 1)", "wind": 1}) == ["calm", "storm"]

    def test_a_repeated_id_and_an_invalid_expression(self, tmp_path: Path, ending: str) -> None:
        bad = {**ROWS[1], "expression": "wind >"}
        rows = [{**bad, "id": "broken"}, ROWS[0], ROWS[1], ROWS[0]]
        matcher, letters = subscribed(write(tmp_path / f"subscriptions.{ending}", rows))
        assert matcher.ids() == ["calm", "storm"]
        assert [letter.row for letter in letters] == [0, 3]

    def test_missing_file(self, tmp_path: Path, ending: str) -> None:
        with pytest.raises(FencepostError, match="there is no file"):
            read(tmp_path / f"x.{ending}")


class TestIds:
    def test_whole_numbers_become_text(self, tmp_path: Path) -> None:
        rows = [{"id": 7, "expression": "a = 1", "subscriber": 8}]
        for ending in ("ndjson", "parquet"):
            matcher, letters = subscribed(write(tmp_path / f"subscriptions.{ending}", rows))
            assert not letters
            assert matcher.ids() == ["7"]
            assert matcher.match_subscribers({"a": 1}) == ["8"]

    def test_the_id_of_a_feature_comes_first(self, tmp_path: Path) -> None:
        path = tmp_path / "subscriptions.geojson"
        feature = {"type": "Feature", "id": "own", "properties": {"id": "p", "expression": "a=1"}}
        path.write_text(json.dumps(feature))
        assert read(path)[0][0]["id"] == "own"

    @pytest.mark.parametrize("id", [None, "", True, 1.5, [1], {"a": 1}, "\ud800"])
    def test_an_invalid_id(self, tmp_path: Path, id: object) -> None:
        path = tmp_path / "subscriptions.ndjson"
        path.write_text(json.dumps({"id": id, "expression": "a = 1"}))
        matcher, letters = subscribed(path)
        assert len(matcher) == 0
        assert "id" in letters[0].reason

    def test_an_id_twice_in_two_batches(self, tmp_path: Path) -> None:
        rows = [{"id": f"s{n % 10_050}", "expression": f"a = {n}"} for n in range(10_100)]
        matcher, letters = subscribed(write(tmp_path / "subscriptions.ndjson", rows))
        assert len(matcher) == 10_050
        assert [letter.row for letter in letters] == list(range(10_050, 10_100))
        assert letters[0].line == 10_051
        assert "earlier" in letters[0].reason


class TestExpressions:
    @pytest.mark.parametrize(
        "expression",
        [
            "x" * 10_000_000,
            "(" * 10_000,
            "(" * 10_000 + "a = 1" + ")" * 10_000,
            {"op": "and", "args": [1]},
            "a = '\ud800'",
            "a = ",
            "",
            None,
            7,
            "S_INTERSECTS(area, POLYGON((0 0, 4 4, 4 0, 0 4, 0 0)))",
            "S_INTERSECTS(area, POLYGON EMPTY)",
            "S_INTERSECTS(area, POLYGON((0 0, 4 4)))",
            "S_INTERSECTS(area, POINT(NaN 1))",
        ],
        ids=lambda e: repr(e)[:40].replace("\\", ""),
    )
    def test_an_invalid_expression_is_set_aside(self, tmp_path: Path, expression: object) -> None:
        path = tmp_path / "subscriptions.ndjson"
        row = {"id": "bad", "expression": expression}
        path.write_text(json.dumps(row) + "\n" + json.dumps(ROWS[0]) + "\n")
        matcher, letters = subscribed(path)
        assert matcher.ids() == ["storm"]
        assert [(letter.row, letter.line) for letter in letters] == [(0, 1)]
        assert len(letters[0].reason) < 1_000
        assert len(letters[0].raw) < 300

    def test_json(self, tmp_path: Path) -> None:
        expression = {"op": ">", "args": [{"property": "wind"}, 3]}
        path = tmp_path / "subscriptions.ndjson"
        path.write_text(json.dumps({"id": "a", "expression": expression}))
        assert subscribed(path)[0].match({"wind": 4}) == ["a"]

    @pytest.mark.parametrize("expires", ["soon", 7, True, [1]])
    def test_expires_that_is_no_time(self, tmp_path: Path, expires: object) -> None:
        path = tmp_path / "subscriptions.ndjson"
        path.write_text(json.dumps({"id": "a", "expression": "a = 1", "expires": expires}))
        assert "expires" in subscribed(path)[1][0].reason

    def test_expires_as_a_timestamp(self, tmp_path: Path) -> None:
        path = tmp_path / "subscriptions.parquet"
        times = pa.array([4_102_444_800_000_000_001], pa.timestamp("ns", "UTC"))
        pq.write_table(pa.table({"id": ["a"], "expression": ["a = 1"], "expires": times}), path)
        matcher, letters = subscribed(path)
        assert (matcher.ids(), letters) == (["a"], [])


class TestCsv:
    def test_an_expression_without_quotes(self, tmp_path: Path) -> None:
        path = tmp_path / "s.csv"
        path.write_text("id,expression\na,S_DWITHIN(p, POINT(1 2), 3)\n\nb,c = 1\n")
        rows, letters = read(path)
        assert [row["id"] for row in rows] == ["b"]
        assert (letters[0].row, letters[0].line) == (0, 2)
        assert "quotes" in letters[0].reason

    def test_quotes_newlines_marks_and_other_columns(self, tmp_path: Path) -> None:
        path = tmp_path / "s.csv"
        path.write_bytes(b'\xef\xbb\xbfID , note,Expression\r\na,x,"b = \'""\'\r\nAND c = 1"\r\n')
        rows, letters = read(path)
        assert letters == []
        assert rows[0]["id"] == "a"
        assert rows[0]["expression"] == "b = '\"'\r\nAND c = 1"

    def test_a_quote_that_is_not_closed(self, tmp_path: Path) -> None:
        path = tmp_path / "s.csv"
        path.write_text('id,expression\na,b = 1\nc,"d = 2\ne,f = 3\n')
        rows, letters = read(path)
        assert [row["id"] for row in rows] == ["a"]
        assert letters[0].reason == "unexpected end of data"

    def test_bytes_that_are_not_utf8(self, tmp_path: Path) -> None:
        path = tmp_path / "s.csv"
        path.write_bytes(b"id,expression\n\xff,a = 1\nb,a = 2\n")
        rows, letters = read(path)
        assert [row["id"] for row in rows] == ["b"]
        assert "UTF-8" in letters[0].reason

    def test_a_very_long_line(self, tmp_path: Path) -> None:
        path = tmp_path / "s.csv"
        path.write_text("id,expression\na," + "x" * (70 << 20) + "\nb,a = 2\n")
        rows, letters = read(path)
        assert [row["id"] for row in rows] == ["b"]
        assert "bytes" in letters[0].reason
        assert letters[0].line == 2

    def test_a_header_that_is_too_long(self, tmp_path: Path) -> None:
        path = tmp_path / "s.csv"
        with path.open("wb") as file:
            file.truncate((64 << 20) + 1)  # bytes of 0 that take no space on the disk
        with pytest.raises(FencepostError, match=r"s\.csv begins with a line of more than"):
            read(path)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("a,b\n", "no column id and no expression"),
            ("id\n", "no column expression"),
        ],
    )
    def test_an_invalid_header(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "s.csv"
        path.write_text(text)
        with pytest.raises(FencepostError, match=message):
            read(path)


def test_parquet_without_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"id": ["a"]}), path)
    with pytest.raises(FencepostError, match="no column expression; it has: id"):
        read(path)


def test_parquet_with_features(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    features = [
        {"type": "Feature", "id": id, "geometry": None, "properties": properties}
        for id, properties in [
            ("own", {"id": "p", "expression": "a = 1", "subscriber": "me"}),
            (None, {"id": "q", "expression": "a = 2", "subscriber": None}),
        ]
    ]
    pq.write_table(pa.Table.from_pylist(features), path)
    rows, letters = read(path)
    assert [(row["id"], row["expression"], row["subscriber"]) for row in rows] == [
        ("own", "a = 1", "me"),
        ("q", "a = 2", None),
    ]
    assert letters == []


def test_parquet_with_text_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    texts = pa.array([b"a > 1", b"a = '\xff'", b"a > 2"]).view(pa.string())
    pq.write_table(pa.table({"id": ["a", "b", "c"], "expression": texts}), path)
    letters: list[DeadLetter] = []
    ((rows, done),) = read_subscriptions(path, letters.append)
    assert [(row.row, row.values["id"]) for row in rows] == [(0, "a"), (2, "c")]
    assert done == 3
    assert [(letter.row, letter.raw) for letter in letters] == [
        (1, 'id: "b", expression: "a = \'\ufffd\'"')
    ]
    with pytest.raises(FencepostError, match="row 1: the column 'expression' is not UTF-8"):
        list(read_subscriptions(path))


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    path = write(tmp_path / "s.parquet", ROWS)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FencepostError, match="cannot be read as Parquet"):
        read(path)
