"""Sinks: Parquet files have each match once; messages have stable ids, retries and dead letters."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import fencepost as fp
from fencepost import spark as fps
from fencepost.delivery import BrokerAddress
from fencepost.errors import DeliveryError, FencepostError, ModelError, StoreError
from tests.spark.broker import Mosquitto, mosquitto
from tests.waiting import until

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage
    from pyspark.sql import DataFrame, SparkSession

    from fencepost.spark.sinks.sink_messages import OutgoingMessage

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "id string, n long, subscription string, subscriber string"


def add(spark: SparkSession, folder: Path, *rows: tuple[str | None, int, str, str]) -> None:
    """Add a file of matches, which is one batch of the stream."""
    frame = spark.createDataFrame(list(rows), SCHEMA).coalesce(1)
    frame.write.mode("append").parquet(str(folder))


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def forget_last(checkpoint: Path) -> None:
    """Remove Spark's last commit, as if the process had ended after the sink's commit."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.suffix == "")
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def dead_letters(folder: Path) -> list[dict[str, str]]:
    files = sorted((folder / "dead-letters").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


# ----------------------------------------------------------------------------------------- messages


def test_messages_have_stable_ids(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    rows = [
        ("e1", 1, "s1", "ann"),
        ("e1", 1, "s2", "ann"),
        ("e2", 1, "s1", "bob"),
        (None, 1, "s1", "bob"),
        (None, 2, "s1", "bob"),
    ]
    matches = spark.createDataFrame(rows, SCHEMA)
    made = fps.messages_of(matches, f.concat(f.lit("to/"), "subscriber")).collect()
    assert len({row["id"] for row in made}) == 5
    assert [row["to"] for row in made] == ["to/ann", "to/ann", "to/bob", "to/bob", "to/bob"]
    assert json.loads(made[0]["body"]) == {
        "id": made[0]["id"],
        "subscription": "s1",
        "subscriber": "ann",
        "event": {"id": "e1", "n": 1},
    }
    assert json.loads(made[3]["body"])["event"] == {"id": None, "n": 1}
    key = b'{"event":"e1","subscription":"s1"}'
    assert made[0]["id"] == hashlib.sha256(key).hexdigest()[:32], (
        "receivers store ids, so the hash must never change"
    )
    changed = matches.withColumn("n", f.lit(9)).repartition(3)
    again = {
        json.loads(row["body"])["event"]["id"]: row["id"]
        for row in fps.messages_of(changed.where("subscription = 's1'"), "x").collect()
    }
    assert (again["e1"], again["e2"]) == (made[0]["id"], made[2]["id"])
    with pytest.raises(ModelError, match=r"no column 'key'.*keep it with match"):
        fps.messages_of(matches, "x", event="key")
    with pytest.raises(ModelError, match="no column 'subscription'"):
        fps.messages_of(spark.range(1), "x")


# ----------------------------------------------------------------------------------------- webhooks


class Endpoint:
    """An HTTP server. `/after/<n>` fails n times for a message; `/<status>` returns that status."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str, Any]] = []
        self.attempts: Counter[str] = Counter()
        self.signatures: list[tuple[str | None, bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"]))
                outer.signatures.append((self.headers["Fencepost-Signature"], text))
                body = json.loads(text)
                id = self.headers["Idempotency-Key"]
                outer.attempts[id] += 1
                words = self.path.split("?")[0].strip("/").split("/")
                status = 200
                if words[0].isdigit():
                    status = int(words[0])
                elif words[0] == "after" and outer.attempts[id] <= int(words[1]):
                    status = 503
                elif words[0] == "hang-up" and outer.attempts[id] == 1:
                    self.close_connection = True
                    return
                if status == 200:
                    outer.received.append((self.path, id, body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


@pytest.fixture
def dead_url() -> str:
    """Return a URL at which no server listens."""
    gone = Endpoint()
    gone.close()
    return gone.url


def message(number: int, to: str | None) -> OutgoingMessage:
    from fencepost.spark.sinks.sink_messages import OutgoingMessage

    return OutgoingMessage(f"m{number}", to, json.dumps({"n": number}))


def post(
    messages: list[OutgoingMessage],
    attempts: int = 3,
    *,
    extra_options: dict[str, str] | None = None,
    **how: Any,
) -> dict[str, str]:
    from fencepost.spark.sinks.webhook_sink import WebhookOptions, WebhookSender

    options = {"attempts": str(attempts), "pause": "0.001", "timeout": "60", "private": "true"}
    webhooks = WebhookSender(WebhookOptions({**options, **(extra_options or {})}), **how)
    try:
        return {refusal.message.id: refusal.reason for refusal in webhooks.send(messages)}
    finally:
        webhooks.close()


def test_webhooks_are_retried_and_then_dead_letters(endpoint: Endpoint, dead_url: str) -> None:
    url = endpoint.url
    rejected = post(
        [
            message(0, f"{url}/ok?a=b"),
            message(1, f"{dead_url}/x"),
            message(2, f"{url}/after/2"),
            message(3, f"{url}/410"),
            message(4, f"{dead_url}/y"),
            message(5, f"{url}/hang-up"),
            message(6, None),
            message(7, "ftp://example.org"),
            message(8, "http://[bad"),
            message(9, f"{url}/301"),
            message(10, url),
        ]
    )
    assert [(path, id, body["n"]) for path, id, body in endpoint.received] == [
        ("/ok?a=b", "m0", 0),
        ("/after/2", "m2", 2),
        ("/hang-up", "m5", 5),
        ("/", "m10", 10),
    ]
    assert endpoint.attempts == {"m0": 1, "m2": 3, "m3": 1, "m5": 2, "m9": 1, "m10": 1}
    assert sorted(rejected) == ["m1", "m3", "m4", "m6", "m7", "m8", "m9"]
    assert "cannot be reached" in rejected["m1"]
    assert ", 3 times" in rejected["m1"]
    assert rejected["m4"] == rejected["m1"]
    assert "answered 410" in rejected["m3"]
    assert "`url` is a text" in rejected["m6"]
    assert "begins with https:// or http://" in rejected["m7"]
    assert "cannot be read" in rejected["m8"]
    assert "answered 301, and redirects are not followed" in rejected["m9"]


def test_failing_host_gets_no_further_attempts(endpoint: Endpoint) -> None:
    rejected = post([message(k, f"{endpoint.url}/503") for k in range(4)], attempts=2)
    assert endpoint.attempts == {"m0": 2}
    assert len(rejected) == 4
    assert "answered 503, 2 times" in rejected["m3"]


def test_pauses_grow_vary_and_are_bounded(endpoint: Endpoint) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    post([message(0, f"{endpoint.url}/429")], attempts=20, sleep=sleep, random_fraction=lambda: 1.0)
    assert slept[:4] == [0.001, 0.002, 0.004, 0.008]
    assert max(slept) == 30.0
    assert len(slept) == 19
    slept.clear()
    post([message(1, f"{endpoint.url}/429")], attempts=3, sleep=sleep, random_fraction=lambda: 0.5)
    assert slept == [0.0005, 0.001]


def test_bodies_are_signed_and_private_addresses_rejected(endpoint: Endpoint) -> None:
    assert post([message(0, f"{endpoint.url}/ok")], extra_options={"secret": "s3cret"}) == {}
    (header, body), *_ = endpoint.signatures
    assert header is not None
    fp.verify_webhook("s3cret", header, body)
    assert post([message(1, f"{endpoint.url}/ok")]) == {}
    assert endpoint.signatures[1][0] is None
    rejected = post([message(2, f"{endpoint.url}/ok")], 1, extra_options={"private": "false"})
    assert "private or special" in rejected["m2"]
    assert endpoint.attempts == {"m0": 1, "m1": 1}


def test_invalid_webhook_options() -> None:
    from fencepost.spark.sinks.webhook_sink import WebhookOptions

    for options, wrong in [
        ({"timeout": "0"}, "'timeout' is '0'"),
        ({"pause": "soon"}, "give a number of seconds above 0"),
        ({"attempts": "-1"}, "whole number of at least 1"),
        ({"private": "maybe"}, "give true or false"),
    ]:
        with pytest.raises(FencepostError, match=wrong):
            WebhookOptions(options)


@pytest.mark.slow
def test_committed_batches_are_not_sent_again(
    spark: SparkSession, endpoint: Endpoint, dead_url: str, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    source, checkpoint, folder = tmp_path / "in", tmp_path / "checkpoint", tmp_path / "sink"

    def run() -> None:
        url = f.when(f.col("subscriber") == "dead", f"{dead_url}/x").otherwise(f"{endpoint.url}/ok")
        query = fps.send_webhooks(
            stream(spark, source),
            url,
            checkpoint,
            folder,
            attempts=2,
            pause_s=0.001,
            allow_private=True,
            available_now=True,
        )
        assert query.awaitTermination(300)

    def taken() -> list[tuple[str, str]]:
        return sorted(
            (body["event"]["id"], body["subscription"]) for _, _, body in endpoint.received
        )

    add(spark, source, ("e1", 1, "s1", "ann"), ("e1", 1, "s2", "dead"), ("e2", 2, "s1", "ann"))
    run()
    assert taken() == [("e1", "s1"), ("e2", "s1")]
    assert [
        (row["to"], json.loads(row["body"])["subscription"]) for row in dead_letters(folder)
    ] == [(f"{dead_url}/x", "s2")]
    assert "2 times" in dead_letters(folder)[0]["reason"]

    forget_last(checkpoint)
    run()
    assert taken() == [("e1", "s1"), ("e2", "s1")], "the journal has committed the batch"
    assert len(dead_letters(folder)) == 1

    forget_last(checkpoint)
    (marked,) = folder.glob("*/committed")
    marked.unlink()
    run()
    assert taken() == [("e1", "s1")] * 2 + [("e2", "s1")] * 2, (
        "as if killed in the middle of the batch"
    )
    assert set(Counter(id for _, id, _ in endpoint.received).values()) == {2}, "under the same ids"
    assert len(dead_letters(folder)) == 1, (
        "dead letters of a batch replace those of its first attempt"
    )

    add(spark, source, ("e3", 3, "s1", "ann"))
    run()
    assert taken()[-1] == ("e3", "s1")
    assert len(taken()) == 5
    assert list(folder.glob("*/pending/*")) == []

    # A stream of the dead letters sends them again, under the same ids.
    letters_stream = spark.readStream.schema("id string, to string, body string")
    query = (
        letters_stream.json(str(folder / "dead-letters"))
        .withColumn("to", f.lit(f"{endpoint.url}/late"))
        .writeStream.format("fencepost-webhook")
        .option("folder", str(tmp_path / "again"))
        .option("private", "true")
        .option("checkpointLocation", str(tmp_path / "checkpoint-again"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    assert [(path, id) for path, id, _ in endpoint.received[5:]] == [
        ("/late", dead_letters(folder)[0]["id"])
    ]


# --------------------------------------------------------------------------------------------- MQTT


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto") / "broker") as running:
        yield running


def test_matches_are_published_under_stable_ids(
    spark: SparkSession, broker: Mosquitto, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    source, checkpoint, folder = tmp_path / "in", tmp_path / "checkpoint", tmp_path / "sink"
    seen: dict[str, list[str]] = defaultdict(list)

    def on_message(message: MQTTMessage) -> None:
        seen[message.topic].append(json.loads(message.payload)["id"])

    def run() -> None:
        topic = f.concat(f.lit("matches/"), "subscriber")
        query = fps.send_mqtt(
            stream(spark, source), topic, checkpoint, folder, port=broker.port, available_now=True
        )
        assert query.awaitTermination(300)

    add(spark, source, ("e1", 1, "s1", "ann"), ("e1", 1, "s2", "bob"), ("e1", 1, "s3", "b+d"))
    with broker.client("matches/#", on_message):
        run()
        until(lambda: len(seen) == 2)
        first = {topic: list(ids) for topic, ids in seen.items()}
        assert sorted(first) == ["matches/ann", "matches/bob"]
        assert [row["to"] for row in dead_letters(folder)] == ["matches/b+d"]
        forget_last(checkpoint)
        shutil.rmtree(next(folder.glob("*/committed")).parent)
        run()
        until(lambda: all(len(ids) == 2 for ids in seen.values()))
    assert all(ids == first[topic] * 2 for topic, ids in seen.items())
    assert len(dead_letters(folder)) == 1


def test_broker_that_is_unreachable_or_rejects(tmp_path: Path) -> None:
    from fencepost.spark.sinks.mqtt_sink import MqttPublisher

    with mosquitto(tmp_path / "closed", ["allow_anonymous false"]) as own:
        where = BrokerAddress("127.0.0.1", own.port)
        with pytest.raises(DeliveryError, match=r"rejects the connection: Not authorized"):
            MqttPublisher(where)
    with pytest.raises(DeliveryError, match="cannot reach an MQTT broker"):
        MqttPublisher(where)


def test_messages_that_a_broker_rejects_are_dead_letters(tmp_path: Path) -> None:
    from fencepost.spark.sinks.mqtt_sink import MqttPublisher

    rules = tmp_path / "rules"
    rules.write_text("topic readwrite open/#\n")
    with mosquitto(tmp_path / "broker", [f"acl_file {rules}"]) as own:
        publisher = MqttPublisher(BrokerAddress("127.0.0.1", own.port))
        sent = [message(0, "open/a"), message(1, "shut"), message(2, None), message(3, "a/#")]
        rejected = {one.message.id: one.reason for one in publisher.send(sent)}
        publisher.close()
    assert sorted(rejected) == ["m1", "m2", "m3"]
    assert "Not authorized" in rejected["m1"]


# ------------------------------------------------------------------------------------------ Parquet


@pytest.mark.slow
def test_each_match_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also when batches run again, before and after the sink has committed them."""
    source, checkpoint, out = tmp_path / "in", tmp_path / "checkpoint", tmp_path / "out put"

    def run() -> None:
        query = fps.write_matches(stream(spark, source), out, checkpoint, available_now=True)
        assert query.awaitTermination(300)

    def written() -> list[str]:
        rows = spark.read.parquet(str(out)).select("id").collect()
        files = fps.written_files(out)
        named = [value for path in files for value in pq.read_table(path)["id"].to_pylist()]
        assert sorted(named) == sorted(row["id"] for row in rows)
        return sorted(named)

    assert fps.written_files(out) == []
    for k in range(3):
        add(spark, source, (f"e{k}", k, "s", "ann"))
    run()
    assert written() == ["e0", "e1", "e2"]
    forget_last(checkpoint)
    run()
    assert written() == ["e0", "e1", "e2"], "the sink had committed the batch"
    forget_last(checkpoint)
    log = out / "_spark_metadata"
    last = max((path for path in log.iterdir() if path.name.isdigit()), key=lambda p: int(p.name))
    last.unlink()
    (log / f".{last.name}.crc").unlink()
    run()
    assert written() == ["e0", "e1", "e2"], "the sink had not: the files of two attempts exist"
    assert len(list(out.glob("*.parquet"))) > len(fps.written_files(out))
    with pytest.raises(StoreError, match=r"has batches up to 2, .* ends at -1"):
        fps.write_matches(stream(spark, source), out, tmp_path / "new")


def test_written_files_read_compact_logs(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()

    def entry(name: str, *files: str) -> None:
        lines = ["v1", *(json.dumps({"path": f"file:///old/{file}"}) for file in files)]
        (log / name).write_text("\n".join(lines))
        (log / f".{name}.crc").write_bytes(b"x")

    for k in range(9):
        entry(str(k), f"{k}.parquet")
    entry("9.compact", *(f"{k}.parquet" for k in range(10)))
    entry("10", "a%20b.parquet")
    entry("11")
    found = [path.name for path in fps.written_files(tmp_path)]
    assert found == [*(f"{k}.parquet" for k in range(10)), "a b.parquet"]
