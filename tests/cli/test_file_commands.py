"""The commands `index`, `match`, `explain` and `stats`: results, errors, exit codes."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

from fencepost import Matcher
from fencepost.cli import entry_point

runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})

SUBSCRIPTIONS = """\
id,expression,subscriber,expires
storm,"S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))) AND wind > 30",anna,
gale,wind > 20,,
gone,wind > 0,,2001-01-01T00:00:00Z
"""


def feature(id: object, x: float, wind: object, **properties: object) -> dict[str, Any]:
    return {
        "type": "Feature",
        "id": id,
        "geometry": {"type": "Point", "coordinates": [x, 1]},
        "properties": {"wind": wind, **properties},
    }


EVENTS = [feature("a", 1, 42, name="Zürich"), feature("b", 9, 25), feature("c", 1, 5)]
PAIRS = [(0, "a", "gale", "gale"), (0, "a", "storm", "anna"), (1, "b", "gale", "gale")]


def run(*arguments: object, input: str | bytes | None = None) -> Any:
    result = runner.invoke(entry_point.app, [str(a) for a in arguments], input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hail.csv").write_text(SUBSCRIPTIONS)
    Path("events.ndjson").write_text("".join(json.dumps(e) + "\n" for e in EVENTS))
    Path("events.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": EVENTS}))
    frame = geopandas.GeoDataFrame.from_features(EVENTS)
    frame.insert(0, "id", ["a", "b", "c"])
    frame.to_parquet("events.parquet")
    frame.to_parquet("native.parquet", geometry_encoding="geoarrow")
    pq.write_table(pa.Table.from_pylist(EVENTS), "features.parquet")


@pytest.fixture
def index() -> Path:
    assert run("index", "hail.csv", "--out", "hail.index").exit_code == 0
    return Path("hail.index")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def pairs(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [(int(r["event"]), r.get("event_id"), r["subscription"], r["subscriber"]) for r in rows]


class TestIndex:
    def test_text(self) -> None:
        result = run("index", "hail.csv", "--out", "hail.index")
        assert result.exit_code == 0
        assert result.stdout.startswith("3 subscriptions (1 expired already), ")
        assert result.stdout.endswith("written to hail.index\n")
        assert result.stderr == ""

    def test_json(self) -> None:
        answer = json.loads(run("index", "hail.csv", "--out", "hail.index", "--json").stdout)
        assert answer.pop("seconds") >= 0
        assert answer.pop("bytes") > 100
        assert answer == {
            "subscriptions": 3,
            "expired": 1,
            "dead_letters": 0,
            "folder": "hail.index",
        }

    def test_standard_input(self) -> None:
        row = json.dumps({"id": "a", "expression": "wind > 3"})
        assert run("index", "-", "-o", "one.index", input=row).exit_code == 0
        result = run("index", "-", "-o", "two.index", "--format", "csv", input=SUBSCRIPTIONS)
        assert result.exit_code == 0

    def test_an_index_is_replaced_only_with_replace(self, index: Path) -> None:
        refused = run("index", "hail.csv", "--out", index)
        assert refused.exit_code == 1
        assert "--replace" in refused.stderr
        assert run("index", "hail.csv", "--out", index, "--replace").exit_code == 0

    def test_another_folder_is_never_replaced(self) -> None:
        Path("mine").mkdir()
        Path("mine/letter.txt").write_text("dear")
        for options in ([], ["--replace"]):
            assert run("index", "hail.csv", "--out", "mine", *options).exit_code == 1
        assert run("index", "hail.csv", "--out", "hail.csv", "--replace").exit_code == 1
        assert Path("mine/letter.txt").read_text() == "dear"
        assert Path("hail.csv").read_text() == SUBSCRIPTIONS

    def test_3_if_rows_were_set_aside(self) -> None:
        Path("hail.csv").write_text(SUBSCRIPTIONS + "bad,wind >\nbad2,wind >,,\n")
        result = run("index", "hail.csv", "--out", "x.index")
        assert result.exit_code == 3
        assert result.stdout.startswith("3 subscriptions")
        messages = result.stderr.splitlines()
        assert messages[0].startswith("set aside: hail.csv, line 5: it has 2 fields")
        assert messages[1].startswith("set aside: hail.csv, line 6: ")
        assert "--dead-letters FILE" in messages[2]

    def test_0_if_dead_letters_are_kept(self) -> None:
        Path("hail.csv").write_text(SUBSCRIPTIONS + "bad,wind >,,\n")
        result = run("index", "hail.csv", "--out", "x.index", "--dead-letters", "bad.ndjson")
        assert result.exit_code == 0
        (letter,) = lines(Path("bad.ndjson").read_text())
        assert letter.pop("reason")
        assert letter == {"file": "hail.csv", "row": 3, "line": 5, "raw": "bad,wind >,,"}

    def test_1_if_strict_or_if_no_row_can_be_used(self) -> None:
        Path("hail.csv").write_text("id,expression\na,wind > 1\nbad,wind >\n")
        assert run("index", "hail.csv", "--out", "x.index", "--strict").exit_code == 1
        assert not Path("x.index").exists()
        Path("hail.csv").write_text("id,expression\nbad,wind >\n")
        result = run("index", "hail.csv", "--out", "x.index")
        assert result.exit_code == 1
        assert "none of the 1 subscriptions" in result.stderr
        assert not Path("x.index").exists()

    def test_verify_names_what_is_damaged(self, index: Path) -> None:
        intact = run("index", "--verify", index)
        assert intact.exit_code == 0
        assert intact.stdout.startswith("hail.index is intact: 3 files, ")
        answer = json.loads(run("index", "--verify", index, "--json").stdout)
        assert answer.pop("bytes") > 100
        assert answer == {"folder": "hail.index", "files": 3, "damaged": []}
        (arrays,) = index.glob("segment-*/arrays")
        content = bytearray(arrays.read_bytes())
        content[len(content) // 2] ^= 1
        arrays.write_bytes(content)
        (names,) = index.glob("segment-*/names.arrow")
        names.unlink()
        damaged = run("index", "--verify", index)
        assert damaged.exit_code == 1
        assert damaged.stdout.splitlines() == [
            f"{arrays} differs from its checksum",
            f"{names} is missing",
            "2 of 3 files are damaged; build the index again",
        ]
        result = run("index", "--verify", index, "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["damaged"] == [
            {"file": f"{arrays.parent.name}/arrays", "reason": "differs from its checksum"},
            {"file": f"{names.parent.name}/names.arrow", "reason": "is missing"},
        ]
        refused = run("index", "--verify", "nothing.index")
        assert refused.exit_code == 1
        assert "there is no index in nothing.index" in refused.stderr

    def test_dump_is_read_back(self, index: Path) -> None:
        dumped = run("index", "--dump", index)
        assert (dumped.exit_code, dumped.stderr) == (0, "")
        assert sorted(lines(dumped.stdout), key=lambda line: line["id"]) == [
            {"id": "gale", "subscriber": "gale", "expression": "wind > 20", "expires": None},
            {
                "id": "storm",
                "subscriber": "anna",
                "expression": "S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))) AND "
                "wind > 30",
                "expires": None,
            },
        ]
        assert run("index", "-", "--out", "again.index", input=dumped.stdout).exit_code == 0
        assert run("index", "--dump", "again.index").stdout == dumped.stdout
        matches = [
            run("match", "events.ndjson", "--index", folder).stdout
            for folder in (index, "again.index")
        ]
        assert matches[0] == matches[1] != ""

    def test_dump_says_which_options_the_index_was_built_with(self) -> None:
        Path("stop.txt").write_text("the\n")
        options = ["--space", "planar", "--stop-words", "stop.txt"]
        assert run("index", "hail.csv", "--out", "far.index", *options).exit_code == 0
        dumped = run("index", "--dump", "far.index")
        assert len(lines(dumped.stdout)) == 2
        assert "--space planar and --stop-words with the 1 stop words" in dumped.stderr

    def test_an_index_without_subscriptions(self) -> None:
        Path("none.csv").write_text("id,expression\n")
        assert run("index", "none.csv", "--out", "none.index").exit_code == 0
        result = run("match", "events.ndjson", "--index", "none.index", "--count")
        assert (result.exit_code, result.stdout) == (0, "0\n")


class TestMatch:
    @pytest.mark.parametrize(
        "name", ["ndjson", "geojson", "parquet", "native.parquet", "features.parquet"]
    )
    @pytest.mark.parametrize("threads", [1, 2])
    def test_every_input_format(self, index: Path, name: str, threads: int) -> None:
        file = name if "." in name else f"events.{name}"
        result = run("match", file, "--index", index, "--threads", threads)
        assert result.exit_code == 0
        assert pairs(lines(result.stdout)) == PAIRS
        assert result.stderr.startswith("3 events, 3 matches, 0 dead letters in ")

    def test_with_subscriptions_and_standard_input(self) -> None:
        text = Path("events.ndjson").read_text()
        result = run("match", "-", "--subscriptions", "hail.csv", input=text)
        assert pairs(lines(result.stdout)) == PAIRS

    def test_format(self, index: Path) -> None:
        text = Path("events.geojson").read_text()
        result = run("match", "-", "--index", index, "--format", "geojson", input=text)
        assert pairs(lines(result.stdout)) == PAIRS
        content = Path("events.parquet").read_bytes()
        result = run("match", "-", "--index", index, "--format", "parquet", input=content)
        assert pairs(lines(result.stdout)) == PAIRS

    @pytest.mark.parametrize(
        "events", ["events.ndjson", "events.parquet", "native.parquet", "features.parquet"]
    )
    def test_every_output_format(self, index: Path, events: str) -> None:
        for ending in ("ndjson", "csv", "parquet", "geoparquet", "geojson"):
            result = run("match", events, "--index", index, "--out", f"m.{ending}", "--json")
            assert result.exit_code == 0
            answer = json.loads(result.stdout)
            assert (answer["events"], answer["matches"], answer["out"]) == (3, 3, f"m.{ending}")
        assert pairs(lines(Path("m.ndjson").read_text())) == PAIRS
        with Path("m.csv").open(newline="") as file:
            assert pairs(list(csv.DictReader(file))) == PAIRS
        assert pairs(pq.read_table("m.parquet").to_pylist()) == PAIRS
        frame = geopandas.read_parquet("m.geoparquet")
        assert pairs(frame.drop(columns="geometry").to_dict("records")) == PAIRS
        assert frame.geometry.tolist() == [shapely.Point(x, 1) for x in (1, 1, 9)]
        collection = json.loads(Path("m.geojson").read_text())
        assert collection["features"] == [
            feature("a", 1, 42, name="Zürich", subscriptions=["gale", "storm"]),
            feature("b", 9, 25, subscriptions=["gale"])
            if events == "events.ndjson"
            else feature("b", 9, 25, name=None, subscriptions=["gale"]),
        ]
        again = run("match", "m.geojson", "--index", index)
        assert len(lines(again.stdout)) == 3

    @pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet", "geoparquet", "geojson"])
    def test_nothing_matches(self, index: Path, ending: str) -> None:
        Path("calm.ndjson").write_text('{"wind": 1}\n')
        out = Path(f"m.{ending}")
        assert run("match", "calm.ndjson", "--index", index, "--out", out).exit_code == 0
        if ending.endswith("parquet"):
            assert pq.read_table(out).num_rows == 0
        elif ending == "geojson":
            assert json.loads(out.read_text()) == {"type": "FeatureCollection", "features": []}
        else:
            assert len(out.read_text().splitlines()) == (ending == "csv")

    def test_count(self, index: Path) -> None:
        result = run("match", "events.ndjson", "--index", index, "--count")
        assert result.stdout == "3\n"
        result = run("match", "events.ndjson", "--index", index, "--count", "--json")
        assert json.loads(result.stdout)["matches"] == 3

    def test_the_summary_does_not_mix_with_the_matches(self, index: Path) -> None:
        result = run("match", "events.ndjson", "--index", index, "--json")
        assert pairs(lines(result.stdout)) == PAIRS
        assert json.loads(result.stderr)["matches"] == 3

    def test_dead_letters(self, index: Path) -> None:
        bad = ["nonsense", "[1]", '{"type": "Feature", "properties": [1]}']
        text = Path("events.ndjson").read_text()
        Path("events.ndjson").write_text("\n".join([*bad, text]))
        result = run("match", "events.ndjson", "--index", index)
        assert result.exit_code == 3
        assert [row["event"] for row in lines(result.stdout)] == [3, 3, 4]
        assert "3 events, 3 matches, 3 dead letters" in result.stderr
        assert result.stderr.count("set aside: events.ndjson, line ") == 3

        kept = run("match", "events.ndjson", "--index", index, "--dead-letters", "bad.ndjson")
        assert kept.exit_code == 0
        assert kept.stderr.endswith("3 rows set aside in bad.ndjson\n")
        letters = lines(Path("bad.ndjson").read_text())
        assert [letter["raw"] for letter in letters] == bad
        assert [(letter["row"], letter["line"]) for letter in letters] == [(0, 1), (1, 2), (2, 3)]

        strict = run("match", "events.ndjson", "--index", index, "--strict", "--out", "m.csv")
        assert strict.exit_code == 1
        assert strict.stderr.startswith("error: events.ndjson, line 1: ")
        assert not Path("m.csv").exists()
        assert [path.name for path in Path().glob(".m*")] == []

    def test_the_file_of_dead_letters_is_written_without_any(self, index: Path) -> None:
        run("match", "events.ndjson", "--index", index, "--dead-letters", "bad.ndjson")
        assert Path("bad.ndjson").read_text() == ""

    def test_events_that_are_strange_but_readable(self, index: Path) -> None:
        bow = {"type": "Polygon", "coordinates": [[[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]]}
        empty = {"type": "Polygon", "coordinates": []}
        strange = [
            {"id": "\ud800", "wind": 25, "note": "\ud800"},
            {"id": "nan", "wind": float("nan")},
            {"id": "inf", "wind": float("inf"), "x": float("nan")},
            {"id": "bow", "wind": 40, "geometry": bow},
            {"id": "empty", "wind": 40, "geometry": empty},
            {"id": [1], "wind": 10**400},
            {"wind": "42"},
            {},
        ]
        Path("strange.ndjson").write_text("".join(json.dumps(e) + "\n" for e in strange))
        result = run("match", "strange.ndjson", "--index", index)
        assert result.exit_code == 0
        actual = [(row.get("event_id"), row["subscription"]) for row in lines(result.stdout)]
        assert [id for id, _ in actual] == ["\ud800", "inf", "bow", "empty", None]
        assert {name for _, name in actual} == {"gale"}
        for ending in ("csv", "parquet", "geoparquet", "geojson"):
            done = run("match", "strange.ndjson", "--index", index, "--out", f"m.{ending}")
            assert done.exit_code == 0
        assert pq.read_table("m.parquet").num_rows == 5

        def refuse(name: str) -> None:
            raise AssertionError(name)

        written = json.loads(Path("m.geojson").read_text(), parse_constant=refuse)
        assert written["features"][1]["properties"]["wind"] is None

    def test_times_and_bytes_of_a_table_are_written(self, index: Path) -> None:
        far = pa.array([2**62], pa.timestamp("us"))
        table = pa.table({"wind": [25], "at": far, "raw": [b"\xff"], "n": [None]})
        pq.write_table(table, "odd.parquet")
        assert run("match", "odd.parquet", "--index", index, "--out", "m.geojson").exit_code == 0
        (only,) = json.loads(Path("m.geojson").read_text())["features"]
        assert only["geometry"] is None
        assert only["properties"]["raw"] == "/w=="
        assert "T" in only["properties"]["at"]

    def test_columns_of_views(self, index: Path) -> None:
        views = pa.table(
            {
                "id": pa.array(["a", None], pa.string_view()),
                "geometry": pa.array([shapely.Point(1, 1).wkb] * 2, pa.binary_view()),
                "wind": [42, 25],
            }
        )
        pq.write_table(views, "views.parquet")
        assert pq.read_schema("views.parquet").field("id").type == pa.string_view()
        for options in ([], ["--top-k", 5]):
            rows = lines(run("match", "views.parquet", "--index", index, *options).stdout)
            actual = sorted((r["event"], r.get("event_id"), r["subscription"]) for r in rows)
            assert actual == [(0, "a", "gale"), (0, "a", "storm"), (1, None, "gale")]
        assert run("match", "views.parquet", "--index", index, "-o", "m.geojson").exit_code == 0

    def test_many_matches_are_written_part_by_part(self, index: Path) -> None:
        Path("many.ndjson").write_text('{"wind": 25}\n' * 25_000)
        result = run("match", "many.ndjson", "--index", index, "--threads", 2)
        assert [row["event"] for row in lines(result.stdout)] == list(range(25_000))

    def test_bars_on_a_terminal_do_not_mix_with_the_output(
        self, index: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments = ["match", "events.ndjson", "--index", str(index)]
        terminal = {"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": None}
        result = runner.invoke(entry_point.app, arguments, env=terminal)
        assert pairs(lines(result.stdout)) == PAIRS
        assert "Matching" in result.stderr
        assert "3 events, 3 matches" in result.stderr


WORDS = """\
id,expression,subscriber
storm,"A_CONTAINS(text, ('storm'))",anna
both,"A_CONTAINS(text, ('the storm', 'hail'))",ben
harbour,"A_CONTAINS(text, ('storm')) AND S_INTERSECTS(geometry, BBOX(9.9, 53.5, 10, 53.6))",
late,wind > 20 AND at > TIMESTAMP('2020-01-01T00:00:00Z'),
"""
MESSAGES = [
    {"id": "a", "text": "Hail storm tonight", "geometry": "POINT (10 53.6)"},
    {"id": "b", "text": "storm", "wind": 25, "at": "2030-01-01T00:00:00Z"},
    {"id": "c", "text": "a calm day"},
    {"id": "d", "text": ["storm", "hail"], "geometry": "POINT (9.95 53.55)"},
    {"id": "e", "text": "The storm", "geometry": "nonsense"},
]


def best(events: list[Any], **limits: Any) -> list[tuple[object, ...]]:
    """Return the ranking of each event by `Matcher.rank`."""
    matcher = Matcher()
    for row in csv.DictReader(WORDS.splitlines()):
        matcher.subscribe(row["id"], row["expression"])
    return [
        (number, id, score)
        for number, event in enumerate(events)
        for id, score in matcher.rank(event, **limits)
    ]


def ranking(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [(int(r["event"]), r["subscription"], float(r["score"])) for r in rows]


class TestAttributesNotFound:
    """Subscriptions name `size` and events have `sizes`, and the file has other columns, too."""

    MESSAGE = (
        'no event of {} has the attribute "size", which subscriptions name; '
        'for "size", did you mean "sizes"?; events have '
    )

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> None:
        Path("sizes.csv").write_text("id,expression\na,size > 1\n")
        Path("sizes.ndjson").write_text('{"sizes": 3, "kind": "hail"}\n' * 3)
        pq.write_table(pa.table({"kind": ["hail"], "sizes": [3]}), "sizes.parquet")

    @pytest.mark.parametrize("file", ["sizes.ndjson", "sizes.parquet"])
    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_warning_names_them(self, file: str, threads: int) -> None:
        arguments = ["match", file, "--subscriptions", "sizes.csv", "--threads", threads, "--count"]
        result = run(*arguments)
        assert result.exit_code == 0
        assert result.stdout == "0\n"
        said = " ".join(result.stderr.splitlines())
        assert f"warning: {self.MESSAGE.format(file)}" in said
        summary = json.loads(run(*arguments, "--json").stdout)
        assert summary["attributes_not_found"] == ["size"]

    @pytest.mark.parametrize("file", ["sizes.ndjson", "sizes.parquet"])
    def test_strict_makes_it_an_error(self, file: str) -> None:
        result = run("match", file, "--subscriptions", "sizes.csv", "--strict")
        assert result.exit_code == 1
        assert f"error: {self.MESSAGE.format(file)}" in " ".join(result.stderr.splitlines())

    def test_a_name_that_a_later_event_has_is_found(self) -> None:
        lines = ['{"kind": "hail"}\n'] * 5_000 + ['{"size": 2}\n']
        Path("late.ndjson").write_text("".join(lines))
        result = run("match", "late.ndjson", "--subscriptions", "sizes.csv", "--json", "--count")
        assert json.loads(result.stdout)["attributes_not_found"] == []
        assert "warning" not in result.stderr


class TestRanking:
    @pytest.fixture(autouse=True)
    def _words(self) -> None:
        Path("words.csv").write_text(WORDS)
        Path("messages.ndjson").write_text("".join(json.dumps(e) + "\n" for e in MESSAGES))

    @pytest.mark.parametrize(
        "limits", [{"top_k": 1}, {"top_k": 2, "min_score": 0.2}, {"min_score": 0.0}]
    )
    @pytest.mark.parametrize("threads", [1, 2])
    def test_best_first_with_scores(self, limits: dict[str, float], threads: int) -> None:
        options = [o for k, v in limits.items() for o in (f"--{k.replace('_', '-')}", v)]
        match = ["match", "messages.ndjson", "--subscriptions", "words.csv", "--threads", threads]
        result = run(*match, *options)
        assert result.exit_code == 0
        expected = best(MESSAGES, **limits)
        assert ranking(lines(result.stdout)) == expected
        assert len(expected) > 3
        assert run(*match, *options, "--count").stdout == f"{len(expected)}\n"

    def test_the_example_of_the_documentation(self) -> None:
        Path("words.csv").write_text(
            "\n".join(WORDS.splitlines()[:-1]).replace("the storm", "storm")
        )
        options = ["--subscriptions", "words.csv", "--top-k", 9]
        rows = lines(run("match", "messages.ndjson", *options).stdout)
        assert rows[0] == {
            "event": 0,
            "event_id": "a",
            "subscription": "harbour",
            "subscriber": "harbour",
            "score": pytest.approx(0.348, abs=1e-3),
        }
        actual = [(r["subscription"], round(r["score"], 3)) for r in rows if r["event"] == 0]
        assert actual == [("harbour", 0.348), ("both", 0.258), ("storm", 0.098)]

    def test_every_output_format_has_the_scores(self) -> None:
        wanted = best(MESSAGES, top_k=2)
        match = ["match", "messages.ndjson", "--subscriptions", "words.csv", "--top-k", 2, "--out"]
        for ending in ("ndjson", "csv", "parquet", "geoparquet", "geojson"):
            assert run(*match, f"m.{ending}").exit_code == 0
        assert ranking(lines(Path("m.ndjson").read_text())) == wanted
        with Path("m.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["event", "event_id", "subscription", "subscriber", "score"]
        assert ranking(rows) == wanted
        assert ranking(pq.read_table("m.parquet").to_pylist()) == wanted
        table = pq.read_table("m.geoparquet")
        assert table.column_names[-2:] == ["score", "geometry"]
        assert ranking(table.to_pylist()) == wanted
        kept = [f["properties"] for f in json.loads(Path("m.geojson").read_text())["features"]]
        actual = [[*zip(f["subscriptions"], f["scores"], strict=True)] for f in kept]
        assert actual == [[w[1:] for w in wanted if w[0] == number] for number in (0, 1, 3, 4)]

    def test_tables(self) -> None:
        """Columns that scores do not depend on may hold values that Python cannot represent."""
        far = pa.array([2**62, None], pa.timestamp("us"))
        point = shapely.Point(10, 53.6)
        columns = {"text": ["Hail storm", "storm"], "wind": [25, 25], "at": far, "other": far}
        shapes = {"geometry": pa.array([point.wkb, None])}
        pq.write_table(pa.table({**columns, **shapes}), "far.parquet")
        events = [
            {"text": "Hail storm", "geometry": point, "wind": 25, "at": "2030-01-01T00:00:00Z"},
            {"text": "storm"},
        ]
        match = ["match", "far.parquet", "--subscriptions", "words.csv", "--min-score", 0]
        assert ranking(lines(run(*match).stdout)) == best(events)
        assert run(*match, "--out", "m.geojson").exit_code == 0
        frame = geopandas.GeoDataFrame({"text": ["hail storm"]}, geometry=[shapely.Point(10, 53.6)])
        frame.to_parquet("native.parquet", geometry_encoding="geoarrow")
        match[1] = "native.parquet"
        assert ranking(lines(run(*match).stdout)) == best(
            [{"text": "hail storm", "geometry": "POINT (10 53.6)"}]
        )

    def test_subscriptions_without_words_and_places(self) -> None:
        pq.write_table(pa.table({"wind": [25, 5]}), "wind.parquet")
        Path("wind.csv").write_text("id,expression\nb,wind > 20\na,wind > 20\n")
        match = ["match", "wind.parquet", "--subscriptions", "wind.csv", "--top-k", 1]
        assert ranking(lines(run(*match).stdout)) == [(0, "a", 0.0)]

    def test_random_events_and_an_index(self) -> None:
        rng = random.Random(11)
        names = [f"w{k}" for k in range(8)]
        rows = []
        for k in range(60):
            words = ", ".join(f"'{w}'" for w in rng.sample(names, rng.randint(1, 2)))
            x, y = rng.randint(0, 8), rng.randint(0, 8)
            where = f"S_INTERSECTS(geometry, BBOX({x}, {y}, {x + 3}, {y + 4}))"
            what = f"A_CONTAINS(text, ({words}))"
            text = rng.choice([what, where, f"{what} OR {where}", f"{what} AND {where}"])
            rows.append({"id": f"s{k}", "expression": text})
        Path("many.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))
        events = [
            {
                "text": " ".join(rng.sample(names, rng.randint(0, 5))),
                "geometry": f"POINT ({rng.randint(0, 10)} {rng.randint(0, 10)})",
            }
            for _ in range(300)
        ]
        Path("many-events.ndjson").write_text("".join(json.dumps(e) + "\n" for e in events))
        pq.write_table(pa.Table.from_pylist(events), "many.parquet")
        assert run("index", "many.ndjson", "--out", "many.index").exit_code == 0
        matcher = Matcher()
        matcher.subscribe_many(rows)
        wanted = [
            (number, id, score)
            for number, event in enumerate(events)
            for id, score in matcher.rank(event, 3, 0.3)
        ]
        assert len(wanted) > 300
        for file in ("many-events.ndjson", "many.parquet"):
            limits = ["--top-k", 3, "--min-score", 0.3]
            result = run("match", file, "--index", "many.index", *limits)
            assert ranking(lines(result.stdout)) == wanted


class TestStopWords:
    @pytest.fixture(autouse=True)
    def _stop_words(self) -> None:
        Path("words.csv").write_text(WORDS)
        Path("stop.txt").write_bytes(b"\xef\xbb\xbfThe\r\n\r\n--\r\nHAIL\r\n")
        Path("event.ndjson").write_text('{"text": "storm"}\n')

    def test_they_are_left_out_of_texts_and_keywords(self) -> None:
        match = ["match", "event.ndjson", "--subscriptions", "words.csv"]
        assert [row["subscription"] for row in lines(run(*match).stdout)] == ["storm"]
        rows = lines(run(*match, "--stop-words", "stop.txt").stdout)
        assert [row["subscription"] for row in rows] == ["both", "storm"]

    def test_an_index_keeps_its_spaces_stop_words(self) -> None:
        done = run("index", "words.csv", "--out", "words.index", "--stop-words", "stop.txt")
        assert done.exit_code == 0
        rows = lines(run("match", "event.ndjson", "--index", "words.index").stdout)
        assert [row["subscription"] for row in rows] == ["both", "storm"]
        assert json.loads(run("stats", "words.index", "--json").stdout)["stop_words"] == 2
        explain = ["explain", '{"text": "storm"}', "both"]
        assert run(*explain, "--index", "words.index").exit_code == 0
        words = ["--stop-words", "stop.txt"]
        assert run(*explain, "--subscriptions", "words.csv").exit_code == 4
        assert run(*explain, "--subscriptions", "words.csv", *words).exit_code == 0
        expression = ["--expression", "A_CONTAINS(text, ('the', 'storm'))"]
        assert run("explain", '{"text": "storm"}', *expression).exit_code == 4
        assert run("explain", '{"text": "storm"}', *expression, *words).exit_code == 0

    def test_simplification_depends_on_stop_words(self) -> None:
        text = "A_OVERLAPS(t, ('hail')) AND A_OVERLAPS(t, ('hail', 'cat'))"
        simplify = ["explain", "--simplify", "--expression", text, "--json"]
        assert json.loads(run(*simplify).stdout)["constraints"]["after"] == 1
        # With the stop word, the first condition is none on a text, so it does not imply the other.
        actual = json.loads(run(*simplify, "--stop-words", "stop.txt").stdout)
        assert actual["constraints"]["after"] == 2

    def test_without_a_word_in_it(self) -> None:
        Path("stop.txt").write_text("\n")
        match = ["match", "event.ndjson", "--subscriptions", "words.csv"]
        assert run(*match, "--stop-words", "stop.txt").stdout == run(*match).stdout

    def test_not_beside_an_index(self, index: Path) -> None:
        for command in (["match", "events.ndjson"], ["explain", "{}", "storm"]):
            result = run(*command, "--index", index, "--stop-words", "stop.txt")
            assert result.exit_code == 2
            assert "keeps the stop words" in result.stderr


class TestSpace:
    @pytest.fixture(autouse=True)
    def _near(self) -> None:
        Path("near.csv").write_text(
            'id,expression\nnear,"S_DWITHIN(geometry, POINT(-179.95 1), 12000)"\n'
            'bad,"S_DWITHIN(geometry, POINT(181 1), 12000)"\n'
        )
        rows = [feature("a", 179.95, 1), feature("b", 179.5, 1), feature("c", 180.5, 1)]
        Path("at.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def test_an_index_keeps_its_space(self) -> None:
        done = run("index", "near.csv", "--out", "near.index")
        assert done.exit_code == 3
        assert "line 3" in done.stderr
        assert "antimeridian" in done.stderr
        assert json.loads(run("stats", "near.index", "--json").stdout)["space"] == "wgs84"
        rows = lines(run("match", "at.ndjson", "--index", "near.index").stdout)
        assert [row["event_id"] for row in rows] == ["a"]
        actual = run("explain", "at.ndjson", "near", "--row", 1, "--index", "near.index", "--json")
        assert actual.exit_code == 4
        explained = json.loads(actual.stdout)["explanation"]["finding"]
        assert explained["unit"] == "m"
        assert explained["off_by"] == pytest.approx(explained["distance"] - 12000)

    def test_without_an_index(self) -> None:
        match = ["match", "at.ndjson", "--subscriptions", "near.csv"]
        rows = lines(run(*match).stdout)
        assert [row["event_id"] for row in rows] == ["a"]
        plane = ["--space", "planar"]
        assert len(lines(run(*match, *plane).stdout)) == 6  # in degrees, all are near both
        expression = ["--expression", "S_DWITHIN(geometry, POINT(-179.95 1), 12000)"]
        explain = ["explain", "at.ndjson", "--row", 1, *expression]
        assert run(*explain, *plane).exit_code == 0
        assert run(*explain).exit_code == 4
        [planned] = json.loads(run("explain", "--plan", *expression, "--json").stdout)["filters"]
        assert planned["path"] == "box"
        constant = ["explain", "--simplify", "-e", "S_DWITHIN(POINT(0 0), POINT(1 0), 5)", "--json"]
        assert json.loads(run(*constant, *plane).stdout)["never_matches"] is False
        assert json.loads(run(*constant).stdout)["never_matches"] is True

    def test_not_beside_an_index(self, index: Path) -> None:
        for command in (["match", "events.ndjson"], ["explain", "{}", "storm"]):
            for space in ("wgs84", "planar"):
                result = run(*command, "--index", index, "--space", space)
                assert result.exit_code == 2
                assert "keeps the space" in result.stderr


class TestRefusals:
    def test_2_for_wrong_usage(self, index: Path) -> None:
        usages: list[list[object]] = [
            ["match", "events.ndjson"],
            ["match", "events.ndjson", "--index", index, "--subscriptions", "hail.csv"],
            ["match", "events.ndjson", "--index", index, "--count", "--out", "x.csv"],
            ["match", "-", "--subscriptions", "-"],
            ["match", "events.ndjson", "--index", index, "--threads", 0],
            ["match", "events.ndjson", "--index", index, "--format", "xls"],
            ["match", "events.ndjson", "--index", index, "--top-k", 0],
            ["match", "events.ndjson", "--index", index, "--top-k", 1.5],
            ["match", "events.ndjson", "--index", index, "--min-score", "much"],
            ["match", "events.ndjson", "--index", index, "--min-score", 1.5],
            ["match", "events.ndjson", "--index", index, "--min-score", "nan"],
            ["index"],
            ["index", "hail.csv"],
            ["index", "hail.csv", "--out", "x.index", "--verify", index],
            ["index", "--verify", index, "--dump", index],
            ["index", "--verify", index, "--replace"],
            ["index", "--dump", index, "--out", "x.index"],
            ["index", "--dump", index, "--space", "wgs84"],
            ["explain", "{}"],
            ["explain", "{}", "storm", "--expression", "a = 1"],
            ["explain", "{}", "--index", index],
            ["explain", "--expression", "a = 1"],
            ["explain", "--simplify"],
            ["explain", "--simplify", "--index", index],
            ["explain", "--simplify", "{}", "storm", "--index", index],
            ["explain", "--simplify", "storm", "--expression", "a = 1"],
            ["explain", "--simplify", "storm", "--row", 0, "--index", index],
        ]
        for arguments in usages:
            assert run(*arguments).exit_code == 2, arguments

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["match", "nothing.ndjson", "--index", "hail.index"], "there is no file"),
            (["match", ".", "--index", "hail.index", "--format", "ndjson"], "is a folder"),
            (["match", "cut.parquet", "--index", "hail.index"], "cannot be read as Parquet"),
            (["match", "cut.geojson", "--index", "hail.index"], "is no JSON"),
            (["match", "events.ndjson", "--index", "hail.csv"], "index"),
            (["match", "events.ndjson", "--index", "nothing.index"], "there is no index"),
            (["match", "events.ndjson", "--index", "hail.index", "--out", "x.xls"], "endings"),
            (["match", "events.ndjson", "--index", "hail.index", "--out", "no/x.csv"], "no folder"),
            (
                ["match", "events.ndjson", "--index", "hail.index", "--out", "events.ndjson"],
                "is the file of events",
            ),
            (
                ["match", "events.ndjson", "--index", "hail.index", "--dead-letters", "no/x"],
                "no folder",
            ),
            (["index", "events.parquet", "--out", "x.index"], "no column expression"),
            (["index", "nothing.csv", "--out", "x.index"], "there is no file"),
            (
                ["index", "hail.csv", "--out", "x.index", "--stop-words", "nothing.txt"],
                "there is no file nothing.txt",
            ),
            (
                ["match", "events.ndjson", "--subscriptions", "hail.csv", "--stop-words", "cut"],
                "cut is no text in UTF-8: byte 2 is 0xff",
            ),
            (["stats", "nothing.index"], "there is no index"),
            (["explain", "events.ndjson", "storm", "--index", "hail.index"], "--row"),
            (["explain", "events.ndjson", "no", "--row", "0", "--index", "hail.index"], "'no'"),
            (["explain", "{}", "no", "--subscriptions", "hail.csv"], "'no' in hail.csv"),
            (["explain", "{", "storm", "--index", "hail.index"], "no JSON"),
            (["explain", "nothing", "storm", "--index", "hail.index"], "no such file"),
            (["explain", "{}", "--expression", "(" * 10_000], "deep"),
            (["explain", "{}", "--expression", "x" * 100_000], ""),
            (["explain", "events.ndjson", "--row", "9", "-e", "a = 1"], "no event 9"),
            (["explain", "calm.ndjson", "-e", "a = 1"], "no event"),
            (["explain", "bad.ndjson", "-e", "a = 1"], "cannot be used"),
            (["explain", "--simplify", "no", "--index", "hail.index"], "'no'"),
            (["explain", "--simplify", "no", "--subscriptions", "hail.csv"], "'no' in hail.csv"),
            (["explain", "--simplify", "-e", "a == 1"], "a == 1"),
        ],
        ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
    )
    @pytest.mark.usefixtures("index")
    def test_1_and_the_reason(self, arguments: list[str], message: str) -> None:
        Path("cut.parquet").write_bytes(Path("events.parquet").read_bytes()[:-4])
        Path("cut.geojson").write_bytes(Path("events.geojson").read_bytes()[:-4])
        Path("calm.ndjson").write_text("")
        Path("cut").write_bytes(b"a\n\xff")
        Path("bad.ndjson").write_text("nonsense")
        result = run(*arguments)
        assert result.exit_code == (4 if "x" * 100_000 in arguments else 1)
        assert message in result.stderr
        assert len(result.stderr) < 2_000

    def test_a_damaged_index(self, index: Path) -> None:
        for file in index.rglob("arrays"):
            file.write_bytes(b"nonsense")
        result = run("match", "events.ndjson", "--index", index)
        assert result.exit_code == 1


class TestExplain:
    def test_0_for_a_match(self, index: Path) -> None:
        for event in (json.dumps(EVENTS[0]), "events.ndjson", "events.parquet", "native.parquet"):
            row = [] if event.startswith("{") else ["--row", 0]
            result = run("explain", event, "storm", "--index", index, *row)
            assert result.exit_code == 0
            assert result.stdout.splitlines()[-1] == "matches: yes"
            assert "wind > 30  (wind is 42" in result.stdout

    def test_4_for_no_match(self) -> None:
        result = run("explain", '{"wind": 20}', "storm", "--subscriptions", "hail.csv")
        assert result.exit_code == 4
        assert "unknown" in result.stdout
        assert result.stdout.splitlines()[-1] == "matches: no"

    def test_a_subscription_that_has_expired(self, index: Path) -> None:
        for place in (["--subscriptions", "hail.csv"], ["--index", index]):
            result = run("explain", '{"wind": 20}', "gone", *place)
            assert result.exit_code == 4
            assert "expired" in result.stdout

    def test_an_expression_and_standard_input(self) -> None:
        text = json.dumps({"wind": 20}, indent=2)
        assert run("explain", "-", "-e", "wind > 30", input=text).exit_code == 4
        assert run("explain", "-", "-e", "wind > 10", input=text).exit_code == 0

    def test_json(self) -> None:
        result = run("explain", '{"wind": 20}', "-e", "wind > 30 AND a = 'ü'", "--json")
        answer = json.loads(result.stdout)
        assert (answer["matches"], answer["expired"]) == (False, False)
        assert [part["outcome"] for part in answer["explanation"]["parts"]] == ["false", "unknown"]
        assert answer["explanation"]["parts"][0]["finding"] == {"off_by": 10}

    def test_a_plan_names_the_source_of_its_estimate(self, index: Path) -> None:
        for place in (["--subscriptions", "hail.csv"], ["--index", index]):
            result = run("explain", "--plan", "storm", *place)
            assert result.exit_code == 0
            assert "expected from subscriptions)" in result.stdout
        matcher = Matcher()
        matcher.subscribe("of k", "kind = 'k' AND n > 1")
        matcher.match_batch([{"kind": "other", "n": 2}] * 1000, sort=True)
        matcher.reindex()
        matcher.save("seen.index")
        result = run("explain", "--plan", "of k", "--index", "seen.index", "--json")
        (planned,) = json.loads(result.stdout)["filters"]
        assert (planned["path"], planned["expected_from"]) == ("equality", "events")
        assert planned["selectivity"] > 0.4  # estimated from 7 events, not from the subscriptions
        assert planned["selectivity"] < 0.6

    def test_text_that_is_no_utf8(self) -> None:
        result = run("explain", '{"a": "\\ud800"}', "-e", "a = 'x'")
        assert result.exit_code == 4


class TestSimplify:
    def test_an_expression(self) -> None:
        result = run("explain", "--simplify", "-e", "wind > 30 AND wind > 20 OR wind > 40")
        assert result.exit_code == 0
        assert result.stdout.splitlines() == [
            "wind > 30",
            "filters: 2 -> 1; constraints: 3 -> 1",
            "rule 2 drops wind > 20: wind > 30 implies it",
            "rule 3 drops wind > 40: wind > 30 covers it",
        ]

    def test_a_subscription(self, index: Path) -> None:
        for place in (["--subscriptions", "hail.csv"], ["--index", index]):
            result = run("explain", "--simplify", "storm", *place)
            assert result.exit_code == 0
            assert result.stdout.splitlines()[-1] == "filters: 1 -> 1; constraints: 2 -> 2"

    def test_json(self) -> None:
        text = "wind > 30 AND wind < 20 AND a = 'ü'"
        answer = json.loads(run("explain", "--simplify", "-e", text, "--json").stdout)
        assert (answer["expression"], answer["never_matches"]) == ("FALSE", True)
        assert answer["filters"] == {"before": 1, "after": 0}
        assert answer["constraints"] == {"before": 3, "after": 0}
        why = "wind > 30 and wind < 20 cannot both hold"
        assert answer["dropped"] == [{"rule": 1, "what": text, "why": why}]


class TestStats:
    def test_text_and_json(self, index: Path) -> None:
        text = run("stats", index)
        assert text.exit_code == 0
        assert "subscriptions" in text.stdout
        assert json.loads(run("stats", index, "--json").stdout)["subscriptions"] == 2
