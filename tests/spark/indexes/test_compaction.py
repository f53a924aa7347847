"""Compaction keeps segments few, and rewritten segments match as before."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from fencepost import spark as fps
from fencepost.engine import Matcher, merge_policy
from fencepost.engine.matcher import matcher_from_segments
from fencepost.engine.merge_policy import JOB_MERGE_FACTOR
from fencepost.engine.storage.manifest import (
    SegmentEntry,
    build_manifest,
    columns_as_json,
    decode_manifest,
    decode_segment_entry,
)
from fencepost.engine.storage.segment_files import open_segments
from fencepost.spark.indexes import build_tasks, compaction
from fencepost.spark.indexes.compaction import OutputPiece, RewriteTask, SampleTask, choose_merges
from fencepost.spark.indexes.partition_cuts import PartitionKeys, choose_partitioning
from fencepost.spark.indexes.subscription_reader import SubscriptionLayout, SubscriptionReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests

PART_SIZE = 500_000


def entry(count: int, *, part: bool = False, gone: int = 0) -> SegmentEntry:
    return SegmentEntry(
        folder="segment",
        subscriptions=count,
        arrays={},
        arrays_bytes=0,
        checksums={},
        last_columns={},
        names=["id"],
        deleted=gone,
        is_partition=part,
    )


def test_chosen_merges() -> None:
    base = [entry(100_000, part=True)] * 20
    few = [entry(10)] * 7
    assert choose_merges([*base, *few], PART_SIZE) == []
    (group,) = choose_merges([*base, *few, entry(10)], PART_SIZE)
    assert (group.numbers, group.is_partition) == (tuple(range(20, 28)), False)
    larger = [entry(8000)] * 7
    (group,) = choose_merges([*base, *larger, *[entry(1000)] * 7, entry(1000)], PART_SIZE)
    assert (sorted(group.numbers), group.is_partition) == (list(range(20, 35)), False)
    (group,) = choose_merges([entry(50, part=True), *few, entry(10)], PART_SIZE)
    assert (group.numbers, group.is_partition) == (
        tuple(range(9)),
        True,
    )  # more than half of the index: rewrite all of it
    assert choose_merges([*base, *[entry(PART_SIZE // 2)] * 20], PART_SIZE) == []
    parts = [entry(10, part=True, gone=6), entry(10, part=True, gone=5)]
    worn = choose_merges([*parts, entry(10, gone=9)], PART_SIZE)
    assert sorted((g.numbers, g.is_partition) for g in worn) == [((0,), True), ((2,), False)]


@pytest.mark.parametrize("seed", range(5))
def test_segments_stay_few_and_rows_are_rarely_rewritten(seed: int) -> None:
    """A thousand updates of any size, some of which delete many subscriptions."""
    rng = random.Random(seed)
    entries = [entry(20_000, part=True)] * 5
    added = written = 0
    for _ in range(1000):
        count = rng.choice([1, 10, 1000, 30_000])
        added += count
        entries = [*entries, entry(count)]
        if rng.random() < 0.2:
            entries = [replace(e, deleted=rng.randrange(e.subscriptions + 1)) for e in entries]
            entries = [e for e in entries if e.live]
        groups = choose_merges(entries, PART_SIZE)
        taken = [number for group in groups for number in group.numbers]
        assert len(taken) == len(set(taken))
        new = []
        for group in groups:
            total = sum(entries[number].live for number in group.numbers)
            parts = max(-(-total // PART_SIZE), 1)
            sizes = [total // parts + (k < total % parts) for k in range(parts)]
            new += [entry(size, part=group.is_partition) for size in sizes if size]
            written += total
        entries = [e for k, e in enumerate(entries) if k not in taken] + new
        full = sum(2 * e.live >= PART_SIZE for e in entries)
        tiers = 4  # of up to half a part
        assert len(entries) <= full + 5 + (JOB_MERGE_FACTOR - 1) * tiers
    assert written <= 8 * added


# ------------------------------------------------------------------ what workers do, without Spark


def expression(rng: random.Random) -> str:
    x, y, word = rng.randrange(90), rng.randrange(90), f"word{rng.randrange(9)}"
    return rng.choice(
        [
            f"S_INTERSECTS(g, BBOX({x}, {y}, {x + 9}, {y + 9}))",
            f"S_INTERSECTS(g, BBOX({x}, {y}, {x + 40}, {y + 40})) AND s = '{word}'",
            f"A_CONTAINS(t, ('{word}'))",
            f"s = '{word}' OR n > {x}",
            f"NOT S_DWITHIN(g, POINT({x} {y}), 40)",
            f"s LIKE '{word[:-1]}%' AND n BETWEEN {y} AND {x + y}",
        ]
    )


def events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "g": f"POINT({rng.uniform(0, 99)} {rng.uniform(0, 99)})",
            "s": f"word{rng.randrange(9)}",
            "t": f"word{rng.randrange(9)} word{rng.randrange(9)}",
            "n": rng.randrange(200),
        }
        for _ in range(count)
    ]


def number(value: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": [value]})


class Index:
    """Does what `build_index` does, in this process."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path = path
        self.reader = SubscriptionReader(SubscriptionLayout(), "planar", ())
        known = Matcher(space="planar")
        for k in range(100):
            known.subscribe(str(k), expression(rng))
        self.columns = known.view().columns
        self.entries: list[SegmentEntry] = []
        self.version = 0

    def update(self, upserts: dict[str, str], deleted: set[str]) -> None:
        self.version += 1
        changed = upserts.keys() | deleted
        for k in range(len(self.entries)):
            (ids,) = build_tasks.SegmentIdsTask(str(self.path), self.entries)([number(k)])
            hit = [row["row"] for row in ids.to_pylist() if row["id"] in changed]
            if hit:
                rows = {"segment": pa.array([k] * len(hit), pa.int32()), "row": pa.array(hit)}
                remove = build_tasks.DeletionTask(str(self.path), self.entries, self.version)
                (told,) = remove([pa.RecordBatch.from_pydict(rows)])
                self.entries[k] = decode_segment_entry(told.to_pylist()[0]["entry"])
        self.entries = [own for own in self.entries if own.live]
        if upserts:
            rows = {
                "c0": pa.array(upserts.keys()),
                "c1": pa.array(upserts.values()),
                build_tasks.PART: pa.array([0] * len(upserts), pa.int32()),
            }
            asks = columns_as_json(self.columns)
            build = build_tasks.SegmentBuildTask(
                str(self.path), ["id", "expression"], self.reader, asks, "segment-"
            )
            (told,) = build([pa.RecordBatch.from_pydict(rows)])
            self.entries.append(
                replace(decode_segment_entry(told.to_pylist()[0]["entry"]), is_partition=False)
            )

    def compact(self) -> None:
        groups = choose_merges(self.entries, PART_SIZE)
        self.rewrite([OutputPiece(group, None, 0) for group in groups])

    def rewrite(self, pieces: list[OutputPiece]) -> None:
        rewrite = RewriteTask(str(self.path), self.entries, pieces, "segment-")
        new = [
            decode_segment_entry(row["entry"])
            for k in range(len(pieces))
            for batch in rewrite([number(k)])
            for row in batch.to_pylist()
        ]
        taken = {n for piece in pieces for n in piece.group.numbers}
        self.entries = [own for k, own in enumerate(self.entries) if k not in taken] + new

    def matcher(self, entries: list[SegmentEntry] | None = None) -> Matcher:
        manifest = build_manifest(self.entries, self.columns)
        segments, columns = open_segments(
            self.path, manifest, self.entries if entries is None else entries
        )
        return matcher_from_segments(columns, segments)


def test_forty_updates(tmp_path: Path) -> None:
    rng = random.Random(1)
    index, right = Index(tmp_path, rng), Matcher(index="reference", space="planar")
    there: set[str] = set()
    asked = events(rng, 40)
    most = 0
    for step in range(40):
        ids = [f"s{rng.randrange(400)}" for _ in range(rng.choice([3, 20, 40]))]
        upserts = {id: expression(rng) for id in ids}
        deleted = {f"s{rng.randrange(400)}" for _ in range(10)} - upserts.keys()
        index.update(upserts, deleted)
        for id, text in upserts.items():
            right.subscribe(id, text, replace=True)
        for id in deleted & there:
            right.unsubscribe(id)
        there = (there | upserts.keys()) - deleted
        index.compact()
        most = max(most, len(index.entries))
        if step % 8 == 7:
            found = index.matcher()
            assert found.ids() == right.ids() == sorted(there)
            for event in asked:
                assert sorted(found.match(event)) == sorted(right.match(event))
    assert most <= 16
    assert sum(own.live for own in index.entries) == len(there)
    assert max(own.subscriptions for own in index.entries) > 40


def test_whole_index_in_new_parts(tmp_path: Path) -> None:
    rng = random.Random(2)
    index = Index(tmp_path, rng)
    for first in (0, 100, 200):
        index.update({f"s{first + k}": expression(rng) for k in range(100)}, {f"s{first // 2}"})
    before = index.matcher()
    group = compaction.MergeGroup(tuple(range(len(index.entries))), True)
    sample = SampleTask(str(tmp_path), index.entries, 0.5)
    batches = [batch for k in group.numbers for batch in sample([number(k)])]
    partitioning = choose_partitioning(PartitionKeys.of(pa.Table.from_batches(batches)), 3)
    assert partitioning.parts >= 3
    index.rewrite([OutputPiece(group, partitioning, part) for part in range(partitioning.parts)])
    assert len(index.entries) == partitioning.parts
    assert all(own.is_partition for own in index.entries)
    parts = [index.matcher([own]).ids() for own in index.entries]
    assert sorted(id for ids in parts for id in ids) == before.ids()
    assert max(map(len, parts)) < 200
    for event in events(rng, 60):
        assert sorted(index.matcher().match(event)) == sorted(before.match(event))


def test_rewriting_drops_expired_subscriptions(tmp_path: Path) -> None:
    made = Matcher(clock=lambda: 0, space="planar")
    made.subscribe("a", "n > 0", expires="1990-01-01T00:00:00Z")
    made.subscribe("b", "n > 0", expires="2990-01-01T00:00:00Z")
    made.save(tmp_path)
    index = Index(tmp_path, random.Random(3))
    index.entries = decode_manifest("index", (tmp_path / "manifest.json").read_text()).segments
    index.columns = made.view().columns
    index.rewrite([OutputPiece(compaction.MergeGroup((0,), True), None, 0)])
    (own,) = index.entries
    assert own.subscriptions == 1
    assert index.matcher().match({"n": 1}) == ["b"]
    index.update({}, {"b"})
    assert index.entries == []


# ----------------------------------------------------------------------------------------- on Spark


@pytest.mark.slow
def test_updates_on_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merges two segments of a tier instead of eight; the third build rewrites everything."""
    monkeypatch.setattr(merge_policy, "JOB_MERGE_FACTOR", 2)
    monkeypatch.setattr("fencepost.spark.indexes.index_build._MIN_PART_SIZE", 10)
    rng = random.Random(4)
    path, right = tmp_path / "index", Matcher(space="planar")
    are_parts = []
    modes: Any = ("create", "update", "update", "update", "update")
    for step, mode in enumerate(modes):
        rows = [(f"s{rng.randrange(40 * (step + 1))}", expression(rng)) for _ in range(12)]
        rows = list(dict(rows).items())
        for id, text in rows:
            right.subscribe(id, text, replace=True)
        given = spark.createDataFrame(rows, "id string, expression string")
        built = fps.build_index(spark, given, path, mode=mode, parts=1, space="planar")
        assert built.subscriptions == len(right.ids())
        manifest = decode_manifest("index", (path / "manifest.json").read_text())
        are_parts.append([own.is_partition for own in manifest.segments])
    assert are_parts[:2] == [[True], [True, False]]
    assert all(are_parts[2]), "the whole index was partitioned again"
    assert len(are_parts[2]) >= 2, "a part for each of two cores"
    assert len(are_parts[4]) <= len(are_parts[2]) + 2
    assert Matcher.open(path).ids() == right.ids()
    asked = events(rng, 50)
    batch = spark.createDataFrame([(k, *e.values()) for k, e in enumerate(asked)],
                                  "number int, g string, s string, t string, n int")  # fmt: skip
    wanted = sorted((k, id) for k, event in enumerate(asked) for id in right.match(event))
    for how in ("whole", "partitioned"):
        found = fps.match(batch, path, ["number"], how=how).collect()
        assert sorted((row["number"], row["subscription"]) for row in found) == wanted
