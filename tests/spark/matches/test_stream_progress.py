"""Progress of streams: the listener reports the true figures of each micro-batch."""

from __future__ import annotations

import datetime as dt
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from fencepost import spark as fps
from fencepost.engine import Matcher
from tests.spark.broker import mosquitto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]

RULES = "id string, expression string, deleted boolean"


class ReportedFigures:
    """Records the figures that a listener reports."""

    def __init__(self) -> None:
        self._kept: list[fps.Progress] = []
        self.listener = fps.ProgressListener(self._kept.append)

    def of(self, query: StreamingQuery) -> list[fps.Progress]:
        """Return all figures of an ended query."""
        assert self.listener.wait(query)
        return [p for p in self._kept if p.query in {query.name, str(query.id)}]


@pytest.fixture
def reported(spark: SparkSession) -> Iterator[ReportedFigures]:
    """Record the figures that are reported while a test runs."""
    figures = ReportedFigures()
    spark.streams.addListener(figures.listener)
    yield figures
    spark.streams.removeListener(figures.listener)


def matches_of(rules: dict[str, str], numbers: list[int]) -> int:
    matcher = Matcher(space="planar")
    for id, expression in rules.items():
        matcher.subscribe(id, expression)
    return sum(len(matcher.match({"n.1": n, "s": "x"})) for n in numbers)


def add(folder: Path, numbers: list[int]) -> None:
    """Add two files at once; if 7 divides a number, the text is not UTF-8."""
    staged = folder.parent.parent / f"staged-{folder.name}"
    staged.mkdir()
    for part in range(2):
        own = numbers[part::2]
        texts = pa.array([b"x" if n % 7 else b"\xff" for n in own], pa.binary())
        table = pa.table({"n.1": pa.array(own, pa.int64()), "s": texts.view(pa.string())})
        pq.write_table(table, staged / f"{part}.parquet")
    staged.rename(folder)


@pytest.mark.parametrize("how", ["whole", "partitioned"])
def test_figures_of_batches_while_the_index_changes(
    spark: SparkSession, reported: ReportedFigures, tmp_path: Path, how: Any
) -> None:
    """Several tasks a batch, some bad events, batches without matches, and a new version."""
    index, source = tmp_path / "index", tmp_path / "source"
    rules = {f"from {k}": f"\"n.1\" >= {k} AND s = 'x'" for k in (0, 10, 20)}
    first = spark.createDataFrame([(*rule, False) for rule in rules.items()], RULES)
    fps.build_index(spark, first, index, space="planar")
    changes = {"under": '"n.1" < 15', "from 0": None}
    batches = [list(range(-20, 0)), list(range(30)), [7, 14]]  # the rules change after the first
    source.mkdir()
    reader = spark.readStream.schema("`n.1` long, s string").option("recursiveFileLookup", True)
    matches = fps.match(
        reader.parquet(str(source)), index, columns=["n.1"], how=how, dead_letters=True
    )
    query = fps.write_matches(matches, tmp_path / "out", tmp_path / "checkpoint")
    expected, version = [], 1
    for number, numbers in enumerate(batches):
        add(source / f"{number}", numbers)
        query.processAllAvailable()
        good = [n for n in numbers if n % 7]
        found = matches_of(rules, good)
        expected.append((number, len(numbers), found, len(numbers) - len(good), version))
        if number == 0:
            frame = [(id, text, text is None) for id, text in changes.items()]
            built = fps.build_index(
                spark, spark.createDataFrame(frame, RULES), index, mode="update"
            )
            rules = {id: text for id, text in {**rules, **changes}.items() if text is not None}
            version = built.version
    query.stop()
    figures = reported.of(query)
    assert [(p.batch, p.events, p.matches, p.dead_letters, p.version) for p in figures] == expected
    assert [row[2] for row in expected] == [0, 37, 0], (
        "the version is also reported without matches"
    )
    assert [row[4] for row in expected] == [1, 2, 2]
    assert {(p.query, p.index, p.waiting) for p in figures} == {(str(query.id), str(index), None)}
    assert all(p.lag_s > 0 for p in figures)
    written = spark.read.parquet(str(tmp_path / "out"))
    assert written.columns == ["n.1", "subscription", "subscriber", "reason"]
    assert written.where("reason IS NULL").count() == sum(p.matches for p in figures)
    assert written.where("reason IS NOT NULL").count() == sum(p.dead_letters for p in figures)


def test_dead_payloads_and_lag(
    spark: SparkSession, reported: ReportedFigures, tmp_path: Path
) -> None:
    made = Matcher(space="planar")
    made.subscribe("all", "n >= 0")
    made.subscribe("large", "n > 2")
    made.save(tmp_path / "a")
    other = Matcher(space="planar")
    other.subscribe("one", "n = 1")
    other.save(tmp_path / "b")
    (tmp_path / "in").mkdir()
    at = dt.datetime.now(dt.UTC) - dt.timedelta(hours=2)
    lines = [json.dumps({"n": n, "at": at.isoformat()}) for n in range(5)] + ["{", "[]", "null"]
    (tmp_path / "in" / "first.txt").write_text("\n".join(lines))
    messages = spark.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "payload")
    events = fps.events_of(messages, "n long, at timestamp").events.withWatermark("at", "1 second")
    both = fps.match(events, tmp_path / "a", ["n"]).union(fps.match(events, tmp_path / "b", ["n"]))
    query = both.writeStream.format("memory").queryName("both").trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert spark.table("both").count() == 8
    figures = reported.of(query)
    first, second = figures
    assert (first.query, first.index, first.batch) == ("both", str(tmp_path / "a"), 0)
    assert (first.events, first.matches, first.dead_letters) == (5, 7, 3)
    assert (second.events, second.matches, second.dead_letters) == (5, 1, 3)
    assert 7200 <= first.lag_s < 9000
    assert [p for batch in query.recentProgress for p in fps.progress_of(batch)] == figures


def test_waiting_messages_of_a_broker(
    spark: SparkSession, reported: ReportedFigures, tmp_path: Path
) -> None:
    made = Matcher(space="planar")
    made.subscribe("even", "n % 2 = 0")
    made.save(tmp_path / "index")

    def run(broker_port: int) -> StreamingQuery:
        messages = fps.read_mqtt(
            spark, "count", tmp_path / "spool", port=broker_port, max_messages=10
        )
        events = fps.events_of(messages, "n long").events
        query = fps.write_matches(
            fps.match(events, tmp_path / "index", ["n"]),
            tmp_path / "out",
            tmp_path / "checkpoint",
            available_now=True,
        )
        assert query.awaitTermination(300)
        return query

    with mosquitto(tmp_path / "mosquitto") as broker:
        run(broker.port)  # the session at the broker begins with the first query
        broker.publish("count", [json.dumps({"n": n}) for n in range(25)])
        last = run(broker.port)
    busy = [(p.events, p.matches, p.waiting) for p in reported.of(last) if p.events]
    assert busy == [(10, 5, 15), (10, 5, 5), (5, 3, 0)]


def spark_progress(sources: list[dict[str, Any]]) -> StreamingQueryProgress:
    """Return a progress report of Spark, with figures recorded from a query."""
    return StreamingQueryProgress.fromJson(
        {
            "id": "5f3c7412-cacc-4631-8c86-d490d339b5e8",
            "runId": "7b906cd8-04af-45fb-9c69-71decefd623e",
            "name": None,
            "timestamp": "2026-11-16T08:12:04.073Z",
            "batchId": 3,
            "batchDuration": 3499,
            "durationMs": {"addBatch": 3126, "triggerExecution": 3494},
            "stateOperators": [],
            "sources": [
                {
                    "description": "one",
                    "startOffset": None,
                    "numInputRows": 3,
                    "inputRowsPerSecond": 0.0,
                    "processedRowsPerSecond": 0.9,
                    **source,
                }
                for source in sources
            ],
            "sink": {"description": "sink", "numOutputRows": -1},
            "observedMetrics": {
                "fencepost-events:0123:/a:b": {"events": 1000, "version": None},
                "fencepost-matches:0123:/a:b": {"matches": 2, "dead_letters": 0},
                "of another program": {"n": 1},
            },
        }
    )


def test_waiting_messages_of_other_sources(caplog: pytest.LogCaptureFixture) -> None:
    kafka = {"endOffset": {"t": {"0": 5, "1": 7}}, "latestOffset": {"t": {"0": 9, "1": 7, "2": 3}}}
    files = {"endOffset": {"logOffset": 4}, "latestOffset": None}
    (one,) = fps.progress_of(spark_progress([kafka]))
    assert (one.index, one.waiting, one.lag_s) == ("/a:b", 7, 3.494)
    assert str(one) == (
        "batch 3: 1,000 events, 2 matches, 0 dead letters, no version, 3.5 s behind, 7 waiting"
    )
    assert fps.progress_of(spark_progress([kafka, files]))[0].waiting is None
    from pyspark.sql.streaming.listener import QueryProgressEvent

    with caplog.at_level(logging.INFO, "fencepost.spark"):
        fps.ProgressListener().onQueryProgress(QueryProgressEvent(spark_progress([files])))
    (line,) = caplog.messages
    assert line.endswith("no version, 3.5 s behind")
