"""`fencepost.spark.build_index`: partitioning, updates, dead letters, and matches of the index."""

from __future__ import annotations

import fcntl
import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

from fencepost import spark as fps
from fencepost.cli import entry_point
from fencepost.engine import Matcher
from fencepost.errors import IndexingError, ModelError
from fencepost.spark.indexes import partition_cuts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

EVENTS = "number long, g binary, s string, l array<string>, t string, n double"
PARTS = 6


def expression(rng: random.Random) -> str:
    x, y = rng.uniform(-170, 160), rng.uniform(-80, 70)
    wide = rng.choice([0.5, 3.0, 60.0])
    word, other = f"word{rng.randrange(12)}", f"word{rng.randrange(12)}"
    place = rng.choice(
        [
            f"S_INTERSECTS(g, BBOX({x}, {y}, {x + wide}, {y + wide}))",
            f"S_DWITHIN(g, POINT({x} {y}), {wide})",
            f"EH_INSIDE(g, BBOX({x}, {y}, {x + wide}, {y + wide}))",
            f"S_DISJOINT(g, BBOX({x}, {y}, {x + wide}, {y + wide}))",
            f"S_BEYOND(g, POINT({x} {y}), {wide})",
            f"NOT S_INTERSECTS(g, BBOX({x}, {y}, {x + wide}, {y + wide}))",
        ]
    )
    parts = [
        place,
        f"s IN ('{word}', '{other}')",
        f"s <> '{word}'",
        f"A_CONTAINS(l, ('{word}', '{other}'))",
        f"A_OVERLAPS(t, ('{word}', 'Word1 {other}'))",
        f"n > {rng.randrange(10)}",
        "s IS NULL",
    ]
    chosen = rng.sample(parts, rng.choice([1, 1, 2, 3]))
    return rng.choice([" AND ", " AND ", " OR "]).join(chosen)


def subscriptions(count: int, seed: int = 1) -> list[tuple[str, str, str]]:
    rng = random.Random(seed)
    return [(f"s{k}", expression(rng), f"owner {k % 7}") for k in range(count)]


def events(count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(2)
    rows: list[tuple[Any, ...]] = []
    for number in range(count):
        x, y = rng.uniform(-180, 180), rng.uniform(-90, 90)
        shape = rng.choice([shapely.Point(x, y), shapely.box(x, y, x + 9, y + 9)])
        words = [f"word{rng.randrange(12)}" for _ in range(rng.randrange(4))]
        rows.append(
            (
                number,
                bytearray(shape.wkb) if rng.random() < 0.9 else None,
                rng.choice([None, f"word{rng.randrange(12)}"]),
                rng.choice([None, words]),
                rng.choice([None, " ".join(words).title()]),
                rng.choice([None, float(rng.randrange(12))]),
            )
        )
    return rows


def matcher_of(rows: list[tuple[str, str, str]]) -> Matcher:
    matcher = Matcher(space="planar")
    for id, text, owner in rows:
        matcher.subscribe(id, text, subscriber=owner, replace=True)
    return matcher


def expected_pairs(matcher: Matcher, rows: list[tuple[Any, ...]]) -> set[tuple[int, str]]:
    names = [column.split()[0] for column in EVENTS.split(", ")]
    return {
        (row[0], id) for row in rows for id in matcher.match(dict(zip(names, row, strict=True)))
    }


def matched_pairs(result: DataFrame) -> set[tuple[int, str]]:
    rows = [(row["number"], row["subscription"]) for row in result.collect()]
    assert len(rows) == len(set(rows)), "duplicate matches"
    return set(rows)


def subscription_frame(spark: SparkSession, rows: list[tuple[str, str, str]]) -> DataFrame:
    return spark.createDataFrame(rows, "id string, expression string, subscriber string")


def test_whole_partitioned_streamed_and_embedded_agree(spark: SparkSession, tmp_path: Path) -> None:
    rows, given = subscriptions(400), events(300)
    built = fps.build_index(
        spark, subscription_frame(spark, rows), tmp_path / "index", parts=PARTS, space="planar"
    )
    assert (built.version, built.subscriptions, built.added, built.removed) == (1, 400, 400, 0)
    assert PARTS <= built.parts <= PARTS + 4
    assert (built.dead_letters, built.dead_letters_path) == (0, None)
    expected = expected_pairs(matcher_of(rows), given)
    assert len(expected) > 5_000
    assert expected_pairs(Matcher.open(tmp_path / "index"), given) == expected
    spark.createDataFrame(given, EVENTS).repartition(3).write.parquet(str(tmp_path / "events"))
    batch = spark.read.parquet(str(tmp_path / "events"))
    for how in ("whole", "partitioned"):
        assert matched_pairs(fps.match(batch, tmp_path / "index", ["number"], how=how)) == expected
        stream = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1)
        matches = fps.match(
            stream.parquet(str(tmp_path / "events")), tmp_path / "index", ["number"], how=how
        )
        query = (
            matches.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / f"checkpoint-{how}"))
            .trigger(availableNow=True)
            .start(str(tmp_path / f"matches-{how}"))
        )
        query.awaitTermination()
        assert len(query.recentProgress) >= 3
        assert matched_pairs(spark.read.parquet(str(tmp_path / f"matches-{how}"))) == expected


def test_events_are_routed_to_few_parts(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = []
    for k in range(600):
        x, y = rng.uniform(0, 99), rng.uniform(0, 99)
        rows.append((f"s{k}", f"S_INTERSECTS(g, BBOX({x}, {y}, {x + 1}, {y + 1}))", "me"))
    fps.build_index(
        spark, subscription_frame(spark, rows), tmp_path / "index", parts=8, space="planar"
    )
    router = Matcher.open(next((tmp_path / "index").glob("router-*")))
    parts = [len(router.match({"g": f"POINT ({x} {y})"})) for x in range(100) for y in range(100)]
    assert max(parts) <= 4
    assert sum(parts) / len(parts) < 1.3


def test_invalid_rows_are_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        ("good", "n > 1", None),
        ("bad", "n >", "x"),
        (None, "n > 1", "x"),
        ("", "n > 1", "x"),
        ("twice", "n > 1", "x"),
        ("twice", "n > 2", "x"),
        ("odd", "S_INTERSECTS(g, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))", "x"),
    ]
    given: Any = rows
    built = fps.build_index(
        spark, subscription_frame(spark, given), tmp_path / "index", space="planar"
    )
    assert (built.subscriptions, built.dead_letters) == (1, 6)
    assert built.dead_letters_path is not None
    dead = pq.read_table(built.dead_letters_path).to_pylist()
    reasons = sorted((row["id"] or "", row["expression"], row["reason"]) for row in dead)
    assert [reason[:2] for reason in reasons] == sorted((r[0] or "", r[1]) for r in rows[1:])
    assert [row["reason"] for row in dead if row["id"] == "twice"] == [
        "the id is in the table 2 times"
    ] * 2
    assert all(row["reason"] for row in dead)
    assert Matcher.open(tmp_path / "index").ids() == ["good"]


def test_update_writes_new_segments_and_deletions(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "index"
    rows, given = subscriptions(200), events(120)
    fps.build_index(spark, subscription_frame(spark, rows), path, parts=4, space="planar")
    before = {folder.name for folder in path.glob("segment-*")}
    changed = [(f"s{k}", text, "new owner") for k, (_, text, _) in
               enumerate(subscriptions(40, seed=9), start=180)]  # fmt: skip
    flagged = [(*row, False) for row in changed] + [(f"s{k}", None, None, True) for k in range(30)]
    flagged.append(("nobody", None, None, True))
    schema = "id string, expression string, subscriber string, deleted boolean"
    changes = spark.createDataFrame(flagged, schema)
    built = fps.build_index(spark, changes, path, mode="update", parts=2)
    assert (built.version, built.added, built.removed) == (2, 40, 50)
    assert built.subscriptions == 200 - 50 + 40
    assert before < {folder.name for folder in path.glob("segment-*")}
    matcher = matcher_of(rows)
    for id, text, owner in changed:
        matcher.subscribe(id, text, subscriber=owner, replace=True)
    for k in range(30):
        matcher.unsubscribe(f"s{k}")
    expected = expected_pairs(matcher, given)
    assert Matcher.open(path).ids() == matcher.ids()
    batch = spark.createDataFrame(given, EVENTS)
    for how in ("whole", "partitioned"):
        result = fps.match(batch, path, ["number"], how=how)
        assert matched_pairs(result) == expected
        owners = {row["subscription"]: row["subscriber"] for row in result.collect()}
        assert {owners[id] for id, _, _ in changed if id in owners} == {"new owner"}
    again = fps.build_index(
        spark, subscription_frame(spark, rows), path, mode="replace", parts=3, space="planar"
    )
    assert (again.version, again.subscriptions) == (3, 200)
    assert matched_pairs(fps.match(batch, path, ["number"], how="partitioned")) == expected_pairs(
        matcher_of(rows), given
    )


def test_columns_instead_of_expressions(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(4)
    rows = []
    for k in range(150):
        x, y = rng.uniform(0, 90), rng.uniform(0, 90)
        box = bytearray(shapely.box(x, y, x + 5, y + 5).wkb)
        words = [f"word{rng.randrange(12)}" for _ in range(rng.randrange(3))]
        rows.append((f"s{k}", box, words, rng.choice([None, "word1", "word2"])))
    rows.append(("bad", bytearray(b"junk"), [], None))
    schema = "id string, area binary, words array<string>, kind string"
    built = fps.build_index(
        spark,
        spark.createDataFrame(rows, schema),
        tmp_path / "index",
        regions={"g": ("area", "S_INTERSECTS")},
        keywords={"t": "words"},
        equals={"s": "kind"},
        parts=3,
        space="planar",
    )
    assert (built.subscriptions, built.dead_letters) == (150, 1)
    matcher = Matcher(space="planar")
    good = rows[:-1]
    matcher.subscribe_columns(
        [row[0] for row in good],
        regions={"g": ([bytes(row[1]) for row in good], "S_INTERSECTS")},
        keywords={"t": [row[2] for row in good]},
        equals={"s": [row[3] for row in good]},
    )
    given = events(200)
    expected = expected_pairs(matcher, given)
    assert expected
    batch = spark.createDataFrame(given, EVENTS)
    for how in ("whole", "partitioned"):
        assert matched_pairs(fps.match(batch, tmp_path / "index", ["number"], how=how)) == expected


def test_unreadable_events(spark: SparkSession, tmp_path: Path) -> None:
    fps.build_index(
        spark,
        subscription_frame(spark, [("a", "s = 'x'", "me"), ("b", "n > 0", "me")]),
        tmp_path / "index",
        space="planar",
    )
    rows = spark.range(3).selectExpr(
        "id AS number",
        "CASE WHEN id = 1 THEN CAST(X'ff' AS STRING) ELSE 'x' END AS s",
        "CAST(1 AS DOUBLE) AS n",
    )
    for how in ("whole", "partitioned"):
        result = fps.match(rows, tmp_path / "index", ["number"], how=how, dead_letters=True)
        matches = sorted(tuple(row) for row in result.collect() if row["reason"] is None)
        assert [row[:2] for row in matches] == [(0, "a"), (0, "b"), (2, "a"), (2, "b")]
        (bad,) = (row for row in result.collect() if row["reason"] is not None)
        assert (bad["number"], bad["subscription"]) == (1, None)
        assert "UTF-8" in bad["reason"]


def test_plan_reports_the_choice(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "index"
    fps.build_index(
        spark, subscription_frame(spark, subscriptions(30)), path, parts=2, space="planar"
    )
    chosen = fps.plan(path)
    assert chosen.how == "whole"
    assert "30 subscriptions" in str(chosen)
    assert fps.plan(path, "partitioned").why == "it was requested"
    Matcher(space="planar").save(tmp_path / "saved")
    assert fps.plan(tmp_path / "saved").how == "whole"
    with pytest.raises(IndexingError, match="no parts; build it with"):
        fps.plan(tmp_path / "saved", "partitioned")
    with pytest.raises(ModelError, match="how must be one of auto"):
        fps.plan(path, "some")  # type: ignore[arg-type]


def test_invalid_arguments(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "index"
    good = subscription_frame(spark, subscriptions(3))
    with pytest.raises(IndexingError, match=r"no index in .* to update"):
        fps.build_index(spark, good, path, mode="update")
    with pytest.raises(ModelError, match="no column 'expression'; they have: id"):
        fps.build_index(spark, good.select("id"), path, space="planar")
    with pytest.raises(ModelError, match="mode must be one of"):
        fps.build_index(spark, good, path, mode="append", space="planar")  # type: ignore[arg-type]
    fps.build_index(spark, good, path, space="planar")
    with pytest.raises(IndexingError, match="give mode='replace' or mode='update'"):
        fps.build_index(spark, good, path, space="planar")


def test_no_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    built = fps.build_index(
        spark, subscription_frame(spark, []), tmp_path / "index", space="planar"
    )
    assert (built.subscriptions, built.parts) == (0, 0)
    batch = spark.createDataFrame(events(5), EVENTS)
    for how in ("whole", "partitioned"):
        assert fps.match(batch, tmp_path / "index", how=how).collect() == []


def test_columns_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    names = ("part", "version", "slot", "reason", "times", "fencepost_kind", "a.b", "a`b", "Part")
    given = ", ".join(f"`{name.replace('`', '``')}` string" for name in names)
    table = spark.createDataFrame([("s", *names), (None, *names)], f"id string, {given}")
    with pytest.raises(ModelError, match="'part' and 'Part' clash"):
        fps.build_index(
            spark, table, tmp_path / "index", equals={"a": "part", "b": "Part"}, space="planar"
        )
    with pytest.raises(ModelError, match="'reason' and 'reason' clash"):
        fps.build_index(
            spark, table, tmp_path / "index", equals={"reason": "reason"}, space="planar"
        )
    used = {name: name for name in names if name not in ("reason", "Part")}
    built = fps.build_index(spark, table, tmp_path / "index", equals=used, parts=2, space="planar")
    assert (built.subscriptions, built.dead_letters) == (1, 1)
    assert built.dead_letters_path is not None
    assert pq.read_schema(next(Path(built.dead_letters_path).glob("*.parquet"))).names == [
        *("id", *used, "reason")
    ]
    for how in ("whole", "partitioned"):
        (row,) = fps.match(table.where("id = 's'"), tmp_path / "index", how=how).collect()
        assert tuple(row) == ("s", *names, "s", "s")
    twice = spark.createDataFrame([("x", "y")], "part string, part string")
    with pytest.raises(ModelError, match="two columns 'part'"):
        fps.match(twice, tmp_path / "index")


def test_text_that_is_not_utf8_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(3).selectExpr(
        "CASE WHEN id = 1 THEN CAST(X'ff' AS STRING) ELSE CAST(id AS STRING) END AS id",
        "CASE WHEN id = 2 THEN CAST(X'ff' AS STRING) ELSE 'x' END AS kind",
        "'n > 0' AS expression",
    )
    forms: tuple[tuple[dict[str, Any], int], ...] = (({}, 1), ({"equals": {"s": "kind"}}, 2))
    for form, bad in forms:
        path = tmp_path / f"index {bad}"
        built = fps.build_index(spark, rows, path, **form)
        assert (built.subscriptions, built.dead_letters) == (3 - bad, bad)
        assert built.dead_letters_path is not None
        dead = pq.read_table(built.dead_letters_path, columns=["reason"]).to_pylist()
        assert all("not UTF-8" in row["reason"] for row in dead)


def matched_ids(result: DataFrame) -> list[str]:
    return sorted(row["subscription"] for row in result.collect())


def test_index_removed_and_index_overwritten_by_save(spark: SparkSession, tmp_path: Path) -> None:
    """Workers do not use what they have mapped of a former index in the same folder."""
    path = tmp_path / "an index, é"
    event = spark.createDataFrame([(1.0,)], "n double")
    for name in ("first", "second"):
        shutil.rmtree(path, ignore_errors=True)
        built = fps.build_index(
            spark, subscription_frame(spark, [(name, "n > 0", "me")]), path, space="planar"
        )
        assert built.version == 1
        assert matched_ids(fps.match(event, path, how="partitioned")) == [name]
    saved = Matcher(space="planar")
    for id in ("third", "gone"):
        saved.subscribe(id, "n > 0")
    saved.compact()
    saved.unsubscribe("gone")
    saved.save(path, overwrite=True)
    with pytest.raises(IndexingError, match="has no parts; build it with"):
        fps.match(event, path, how="partitioned")
    built = fps.build_index(
        spark, subscription_frame(spark, [("fourth", "n > 0", "me")]), path, mode="update"
    )
    assert (built.version, built.subscriptions, built.removed) == (2, 2, 0)
    assert fps.plan(path).bytes == built.bytes > 2_000
    for how in ("whole", "partitioned"):
        assert matched_ids(fps.match(event, path, how=how)) == ["fourth", "third"]


def test_delete_all_and_add_some_again(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "index"
    event = spark.createDataFrame([(1.0,)], "n double")
    schema = "id string, expression string, deleted boolean"
    fps.build_index(
        spark,
        subscription_frame(spark, [("a", "n > 0", "me"), ("b", "n > 0", "me")]),
        path,
        space="planar",
    )
    steps: tuple[tuple[list[Any], list[str]], ...] = (
        ([("a", None, True), ("b", None, True)], []),
        ([("a", "n > 0", None)], ["a"]),
        ([("a", "n > 5", False), ("b", "n > 0", False)], ["b"]),
        ([("a", "n > 0", False), ("b", "n >", False)], ["a", "b"]),
    )
    for changes, expected in steps:
        fps.build_index(spark, spark.createDataFrame(changes, schema), path, mode="update")
        for how in ("whole", "partitioned"):
            assert matched_ids(fps.match(event, path, how=how)) == expected


def test_verify_reads_the_parts_and_the_router(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "index"
    first = [("a", "n > 0", "me"), ("b", "n > 1", "me")]
    fps.build_index(spark, subscription_frame(spark, first), path, space="planar")
    changed = subscription_frame(spark, [("a", "n > 2", "me")])
    fps.build_index(spark, changed, path, mode="update")
    manifest = json.loads((path / "manifest.json").read_bytes())
    (router,) = path.glob(f"{manifest['router']}/segment-*")
    files = [file for entry in manifest["segments"] for file in entry["checksums"]]
    assert "needs.arrow" in files
    result = CliRunner().invoke(entry_point.app, ["index", "--verify", str(path), "--json"])
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["files"], answer["damaged"]) == (0, len(files) + 3, [])
    for damaged in (router / "arrays", *path.glob(f"{manifest['segments'][0]['folder']}/needs.*")):
        damaged.write_bytes(b"x" + damaged.read_bytes()[1:] + b"x")
        result = CliRunner().invoke(entry_point.app, ["index", "--verify", str(path)])
        assert result.exit_code == 1
        assert f"{damaged} differs from its checksum" in result.stdout


def test_one_build_at_a_time_and_remains_of_a_killed_build(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    for left in ("segment-1-x", "router-1-x"):
        (path / left).mkdir(parents=True)
    rows = subscription_frame(spark, [("a", "n > 0", "me")])
    with (path / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(IndexingError, match=r"another process is writing an index in .*"):
            fps.build_index(spark, rows, path, space="planar")
    fps.build_index(spark, rows, path, space="planar")
    assert not [*path.glob("segment-1-x"), *path.glob("router-1-x")]
    for manifest in ("manifest.json", "manifest-1.json"):
        (path / manifest).write_text('{"format": 1}')
    assert fps.build_index(spark, rows, path, mode="replace", space="planar").version == 2
    assert Matcher.open(path).ids() == ["a"]


def test_integer_ids(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "index"
    rows = [(1, "x", 7, False), (2, "x", None, False), (3, "y", None, False), (None, "x", 1, False)]
    schema = "id long, kind string, subscriber int, deleted boolean"
    built = fps.build_index(
        spark,
        spark.createDataFrame(rows, schema),
        path,
        equals={"s": "kind"},
        parts=2,
        space="planar",
    )
    assert (built.subscriptions, built.dead_letters) == (3, 1)
    changes = [(1, None, None, True), (3, "x", 8, False)]
    built = fps.build_index(
        spark, spark.createDataFrame(changes, schema), path, mode="update", equals={"s": "kind"}
    )
    assert (built.subscriptions, built.removed) == (2, 2)
    event = spark.createDataFrame([("x",)], "s string")
    for how in ("whole", "partitioned"):
        matches = sorted(tuple(row) for row in fps.match(event, path, [], how=how).collect())
        assert matches == [("2", "2"), ("3", "8")]


def test_spark_and_workers_partition_alike(spark: SparkSession) -> None:
    """Also for kinds that the sample lacked, and for values equal to a cut."""
    rng = np.random.default_rng(4)
    count = 600

    def partition_keys(kinds: list[int]) -> pa.Table:
        return pa.table(
            {
                partition_cuts.KIND: pa.array(rng.choice(kinds, count), pa.int32()),
                partition_cuts.X: rng.integers(0, 40, count) / 4.0,
                partition_cuts.Y: rng.integers(0, 9, count) - 4.0,
                partition_cuts.SIZE: rng.exponential(1.0, count),
                partition_cuts.RANDOM: rng.random(count),
            }
        )

    for parts in (1, 2, 9, 40):
        partitioning = partition_cuts.choose_partitioning(
            partition_cuts.PartitionKeys.of(partition_keys([0, 0, 1, 3])), parts
        )
        table = partition_keys([0, 0, 1, 2, 3])
        rows = spark.createDataFrame(table.to_pandas())
        parts_of_rows = [row[0] for row in rows.select(partitioning.column()).collect()]
        assert (
            parts_of_rows == partitioning.part_of(partition_cuts.PartitionKeys.of(table)).tolist()
        )
        assert len(set(parts_of_rows)) > parts / 2
