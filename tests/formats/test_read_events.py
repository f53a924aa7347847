"""Events of every format, and the errors of broken files."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import geoarrow.pyarrow as geoarrow
import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from fencepost.cql2 import MAX_JSON_DEPTH
from fencepost.engine import Matcher
from fencepost.errors import FencepostError
from fencepost.formats import Batch, DeadLetter, Format, line_batches, read_events

FEATURES: list[dict[str, Any]] = [
    {
        "type": "Feature",
        "id": number,
        "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [x, 0], [x, x], [0, 0]]]},
        "properties": {"wind": 10 * number, "kind": "hail"},
    }
    for number, x in enumerate([1, 2, 3])
]
GEOMETRIES = [
    shapely.from_wkt(text)
    for text in (
        "POINT (1 2)",
        "LINESTRING (0 0, 1 1)",
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
        "MULTIPOINT (0 0, 1 1)",
        "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    )
]


def collected(path: Path | str, **options: Any) -> tuple[list[Batch], list[DeadLetter]]:
    letters: list[DeadLetter] = []
    return list(read_events(path, letters.append, **options)), letters


def events_of(batches: list[Batch]) -> list[dict[str, Any]]:
    return [batch.event(number) for batch in batches for number in range(len(batch))]


def reasons(letters: list[DeadLetter]) -> list[tuple[int, int | None]]:
    return [(letter.row, letter.line) for letter in letters]


class TestLines:
    @pytest.mark.parametrize("ending", ["ndjson", "jsonl", "geojsonl", "geojsons", "NDJSON"])
    def test_one_object_a_line(self, tmp_path: Path, ending: str) -> None:
        path = tmp_path / f"events.{ending}"
        path.write_text("".join(json.dumps(f) + "\n" for f in FEATURES))
        batches, letters = collected(path)
        assert events_of(batches) == FEATURES
        assert letters == []

    def test_byte_order_mark_record_separators_blank_lines_and_no_last_newline(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "events.geojsons"
        path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n\x1e{"a": 2}\n{"a": 3}')
        batches, letters = collected(path)
        assert events_of(batches) == [{"a": 1}, {"a": 2}, {"a": 3}]
        assert [batch.rows.tolist() for batch in batches] == [[0, 1, 2]]
        assert batches[0].lines is not None
        assert batches[0].lines.tolist() == [1, 4, 5]
        assert letters == []

    def test_a_bad_line_is_set_aside_and_keeps_its_number(self, tmp_path: Path) -> None:
        path = tmp_path / "events.ndjson"
        bad = [b"{", b"[1]", b"7", b'"x"', b"null", b"\xff{}", b"[" * 100_000]
        path.write_bytes(b'{"a": 1}\n' + b"\n".join(bad) + b'\n\n{"a": 2}\n')
        batches, letters = collected(path)
        assert events_of(batches) == [{"a": 1}, {"a": 2}]
        assert batches[0].rows.tolist() == [0, 8]
        assert reasons(letters) == [(k, k + 1) for k in range(1, 8)]
        assert all(len(letter.raw) <= 203 for letter in letters)
        assert "UTF-8" in letters[5].reason
        assert "deep" in letters[6].reason

    def test_a_line_that_nests_too_deep(self, tmp_path: Path) -> None:
        path = tmp_path / "events.ndjson"
        deep = '{"a": ' + "[" * 300 + "]" * 300 + "}"
        text = json.dumps({"a": "[" * 300})
        wide = json.dumps({"a": [[0, 0]] * 300})
        closed = [json.dumps({"s": end + "]" * 300})[:-1] for end in ("", '"', "\\", '\\"')]
        hidden = "\n".join(start + ', "a": ' + deep + "}" for start in closed)
        path.write_text(f"{deep}\n{text}\n{wide}\n{hidden}\n")
        batches, letters = collected(path)
        assert reasons(letters) == [(row, row + 1) for row in (0, 3, 4, 5, 6)]
        assert batches[0].rows.tolist() == [1, 2]

    def test_the_deepest_brackets_are_those_of_the_docs(self, tmp_path: Path) -> None:
        path = tmp_path / "events.ndjson"
        inner = [MAX_JSON_DEPTH - 1, MAX_JSON_DEPTH]  # in the brackets of the object
        path.write_text("".join('{"a": ' + "[" * n + "]" * n + "}\n" for n in inner))
        batches, letters = collected(path)
        assert batches[0].rows.tolist() == [0]
        assert f"more than {MAX_JSON_DEPTH} deep" in letters[0].reason
        docs = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
        assert f"brackets more than {MAX_JSON_DEPTH} deep" in docs.read_text(encoding="utf-8")

    def test_a_collection_on_a_line_is_refused_with_advice(self, tmp_path: Path) -> None:
        path = tmp_path / "events.ndjson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": FEATURES}))
        _, letters = collected(path)
        assert "--format geojson" in letters[0].reason

    def test_a_line_that_is_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "events.ndjson"
        long = json.dumps({"a": "x" * (line_batches.MAX_LINE_BYTES + 10)})
        path.write_text(f'{{"a": 1}}\n{long}\n{{"a": 2}}\n')
        batches, letters = collected(path)
        assert events_of(batches) == [{"a": 1}, {"a": 2}]
        assert [batch.rows.tolist() for batch in batches] == [[0, 2]]
        assert "bytes" in letters[0].reason

    def test_lines_across_chunks_are_joined(self) -> None:
        texts = [b"x" * n for n in (0, 1, 5, 1_000_000, 3, 300_000)]
        got = list(line_batches.line_batches(io.BytesIO(b"\n".join(texts))))
        assert [line.text for batch in got for line in batch.lines] == texts
        cut = [
            x for b in line_batches.line_batches(io.BytesIO(b"\n".join(texts)), 10) for x in b.lines
        ]
        assert [line.is_too_long for line in cut] == [False, False, False, True, False, True]
        assert [line.length for line in cut] == [len(text) for text in texts]

    def test_batches_hold_ten_thousand(self, tmp_path: Path) -> None:
        path = tmp_path / "events.ndjson"
        path.write_text('{"a": 1}\n' * 25_000)
        batches, _ = collected(path)
        assert [len(batch) for batch in batches] == [10_000, 10_000, 5_000]
        assert batches[-1].rows[-1] == 24_999
        assert batches[-1].done == path.stat().st_size

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stdin = io.TextIOWrapper(io.BytesIO(b'{"a": 1}\n{"a": 2}\n'))
        monkeypatch.setattr(sys, "stdin", stdin)
        batches, _ = collected("-")
        assert events_of(batches) == [{"a": 1}, {"a": 2}]

    def test_without_dead_letters_the_first_bad_row_raises(self, tmp_path: Path) -> None:
        path = tmp_path / "events.ndjson"
        path.write_text('{"a": 1}\nnonsense\n')
        with pytest.raises(FencepostError, match="line 2: it is no JSON"):
            list(read_events(path))


class TestGeoJson:
    def test_a_collection_with_members_around_the_features(self, tmp_path: Path) -> None:
        path = tmp_path / "events.geojson"
        before = '{"name": "x", "bbox": [1, 2], "type": "FeatureCollection", "features": '
        path.write_text(before + json.dumps(FEATURES, indent=1) + ', "crs": {"a": [1]}}\n')
        batches, letters = collected(path)
        assert events_of(batches) == FEATURES
        assert letters == []

    @pytest.mark.parametrize(
        ("text", "events"),
        [
            ('{"wind": 3}', [{"wind": 3}]),
            (json.dumps(FEATURES[0]), FEATURES[:1]),
            ('[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
            ("[]", []),
            ("{}", [{}]),
            ('{"type": "FeatureCollection", "features": [ ]}', []),
            ('\ufeff {"a": "\\ud800"}', [{"a": "\ud800"}]),
        ],
    )
    def test_other_json(self, tmp_path: Path, text: str, events: list[object]) -> None:
        path = tmp_path / "events.json"
        path.write_text(text)
        assert events_of(collected(path)[0]) == events

    def test_a_bad_feature_is_set_aside(self, tmp_path: Path) -> None:
        path = tmp_path / "events.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": [1, FEATURES[0]]}))
        batches, letters = collected(path)
        assert reasons(letters) == [(0, None)]
        assert batches[0].rows.tolist() == [1]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "no JSON"),
            (b"  ", "no JSON"),
            (b"hello", "no JSON"),
            (b'{"type": "FeatureCollection", "features": [{"a": 1}, {"a": 2', "after 1 rows"),
            (b'{"type": "FeatureCollection", "features": [{"a": 1}]', "after 1 rows"),
            (b'{"type": "FeatureCollection", "features": [{"a": 1},]}', "after 1 rows"),
            (b'{"a": 1}\n{"a": 2}\n', "--format ndjson"),
            (b'{"a": 1, "b"}', "no JSON"),
            (b"\xff\xfe{\x00", "not UTF-8 at byte 1"),
            (b"[" * 100_000, "deep"),
            (b"[" + b"9" * 5_000 + b"]", "digits"),
        ],
    )
    def test_a_broken_file(self, tmp_path: Path, content: bytes, message: str) -> None:
        path = tmp_path / "events.geojson"
        path.write_bytes(content)
        with pytest.raises(FencepostError, match=message):
            collected(path)


class TestParquet:
    def test_plain_columns(self, tmp_path: Path) -> None:
        path = tmp_path / "events.parquet"
        pq.write_table(pa.table({"id": [7, 8], "wind": [1.5, None]}), path)
        batches, _ = collected(path)
        assert events_of(batches) == [{"id": 7, "wind": 1.5}, {"id": 8, "wind": None}]

    def test_a_selection_of_columns(self, tmp_path: Path) -> None:
        path = tmp_path / "events.parquet"
        pq.write_table(pa.table({"id": [7, 8], "wind": [1.5, None]}), path)
        batches, _ = collected(path, columns={"wind", "other"})
        assert events_of(batches) == [{"wind": 1.5}, {"wind": None}]
        batches, _ = collected(path, columns=set())
        assert [len(batch) for batch in batches] == [2]

    @pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: str(g.geom_type))
    @pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
    def test_geoparquet(self, tmp_path: Path, geometry: Any, encoding: str) -> None:
        path = tmp_path / "events.parquet"
        frame = geopandas.GeoDataFrame({"wind": [3]}, geometry=[geometry]).rename_geometry("area")
        frame.to_parquet(path, geometry_encoding=encoding)
        file = read_events(path)
        assert file.geometry == "area"
        (batch,) = file
        value = batch.event(0)["area"]
        read = shapely.from_wkb(value) if encoding == "WKB" else shapely.geometry.shape(value)
        assert shapely.equals_exact(read, geometry)
        matcher = Matcher(space="planar")
        near = f"S_INTERSECTS(area, {geometry.wkt})"
        matcher.subscribe("near", near)
        # A relation of two attributes is evaluated in Python, row by row.
        matcher.subscribe("itself", "S_EQUALS(area, area)")
        matcher.subscribe("far", "S_INTERSECTS(area, POINT (99 99))")
        ids = matcher.match_batch(batch.events, sort=True).column("subscription").to_pylist()
        assert ids == ["itself", "near"]

    def test_registered_geoarrow_types_and_slices(self, tmp_path: Path) -> None:
        column = geoarrow.as_geoarrow(["LINESTRING (0 0, 1 1)", "LINESTRING (5 5, 6 6)"])
        path = tmp_path / "events.parquet"
        pq.write_table(pa.table({"way": column}), path)
        (batch,) = read_events(path)
        matcher = Matcher(space="planar")
        matcher.subscribe("near", "S_INTERSECTS(way, POINT (6 6))")
        part = batch.part(1, 2)
        assert part.rows.tolist() == [1]
        assert matcher.match_batch(part.events, sort=True).to_pylist() == [
            {"event": 0, "subscription": "near"}
        ]
        assert part.event(0) == {"way": {"type": "LineString", "coordinates": [[5, 5], [6, 6]]}}

    def test_null_geometries(self, tmp_path: Path) -> None:
        path = tmp_path / "events.parquet"
        frame = geopandas.GeoDataFrame({"a": [1, 2]}, geometry=[None, shapely.Point(1, 1)])
        frame.to_parquet(path, geometry_encoding="geoarrow")
        (batch,) = read_events(path)
        assert batch.event(0)["geometry"] is None

    def test_text_that_is_not_utf_8(self, tmp_path: Path) -> None:
        path = tmp_path / "events.parquet"
        names = pa.array([b"a", "Zürich".encode("latin-1"), None] * 8_000).view(pa.string())
        pq.write_table(pa.table({"name": names, "n": np.arange(24_000)}), path)
        batches, letters = collected(path)
        read = np.concatenate([batch.rows for batch in batches])
        assert read.tolist() == [row for row in range(24_000) if row % 3 != 1]
        assert [len(batch) for batch in batches] == [len(batch.events) for batch in batches]
        assert [letter.row for letter in letters] == list(range(1, 24_000, 3))
        assert letters[0].reason.startswith("the column 'name' is not UTF-8: byte 1 ")
        assert letters[0].raw == 'name: "Z\ufffdrich", n: 1'
        assert batches[-1].done == 24_000
        with pytest.raises(FencepostError, match="row 1: the column 'name' is not UTF-8"):
            list(read_events(path))
        (batch, *_) = read_events(path, columns={"n"})
        assert len(batch) == 10_000

    @pytest.mark.parametrize("kept", [0, 3, 100, -1, -9])
    def test_a_truncated_file(self, tmp_path: Path, kept: int) -> None:
        path = tmp_path / "events.parquet"
        pq.write_table(pa.table({"id": np.arange(1000)}), path)
        path.write_bytes(path.read_bytes()[:kept])
        with pytest.raises(FencepostError, match="cannot be read as Parquet"):
            collected(path)

    def test_a_page_that_is_damaged(self, tmp_path: Path) -> None:
        path = tmp_path / "events.parquet"
        pq.write_table(pa.table({"id": np.arange(100_000)}), path)
        content = bytearray(path.read_bytes())
        content[4:4000] = b"\xff" * 3996
        path.write_bytes(content)
        with pytest.raises(FencepostError, match="cannot be read as Parquet"):
            collected(path)

    @pytest.mark.parametrize("geo", [b"nonsense", b"{}", b"[1]", b'{"columns": {"a": 1}}'])
    def test_broken_geo_metadata(self, tmp_path: Path, geo: bytes) -> None:
        path = tmp_path / "events.parquet"
        pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({b"geo": geo}), path)
        with pytest.raises(FencepostError, match="`geo`"):
            collected(path)


class TestWholeFiles:
    @pytest.mark.parametrize("name", ["x.ndjson", "x.geojson", "x.parquet"])
    def test_a_missing_file(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(FencepostError, match="there is no file"):
            collected(tmp_path / name)

    @pytest.mark.parametrize("name", ["x.ndjson", "x.geojson", "x.parquet"])
    def test_a_folder(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).mkdir()
        with pytest.raises(FencepostError, match="is a folder"):
            collected(tmp_path / name)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("x.txt", "--format"),
            ("x", "--format"),
            ("x.ndjson.gz", "decompress"),
            ("x.csv", "has no column geometry"),
        ],
    )
    def test_an_unsupported_format(self, tmp_path: Path, name: str, message: str) -> None:
        (tmp_path / name).write_text("{}")
        with pytest.raises(FencepostError, match=message):
            collected(tmp_path / name)

    def test_a_format_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "events.txt"
        path.write_text('{"a": 1}\n{"a": 2}\n')
        assert len(events_of(collected(path, format=Format.NDJSON)[0])) == 2

    @pytest.mark.parametrize("content", [b"", b"\n\n"])
    def test_no_lines_are_no_events(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "events.ndjson"
        path.write_bytes(content)
        batches, letters = collected(path)
        assert events_of(batches) == []
        assert letters == []
