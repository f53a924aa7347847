"""The MQTT source and a real mosquitto: messages arrive, also when processes are killed."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost import spark as fps
from fencepost.delivery import BrokerAddress
from fencepost.engine import Matcher
from fencepost.errors import DeliveryError, FencepostError, ModelError, StoreError
from fencepost.spark.sources.mqtt_receiver import Receiver
from fencepost.spark.sources.spool import SpoolReader, SpoolWriter, open_writer
from fencepost.spark.sources.spool_files import Message, read_range
from tests.spark.broker import Mosquitto, mosquitto
from tests.spark.cluster import kill_session
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto") / "broker") as running:
        yield running


def start_receiver(broker: Mosquitto, folder: Path, *topics: str) -> Receiver:
    writer = open_writer(folder, wait_s=10.0)
    assert writer is not None
    try:
        return Receiver(BrokerAddress("127.0.0.1", broker.port), topics, folder, writer)
    except FencepostError:
        writer.close()
        raise


def spooled_rows(folder: Path) -> list[dict[str, Any]]:
    reader = SpoolReader(folder, "looking")
    try:
        ranges = reader.ranges(0, reader.end, 1000)
        return [row for some in ranges for batch in read_range(some) for row in batch.to_pylist()]
    finally:
        reader.close()


def payloads(folder: Path) -> list[bytes]:
    return [row["payload"] for row in spooled_rows(folder)]


# ------------------------------------------------------------------------------------- the receiver


def test_broker_queues_messages_while_no_receiver_runs(broker: Mosquitto, tmp_path: Path) -> None:
    start_receiver(broker, tmp_path, "wait/#").stop()
    broker.publish("wait/a", [b"%d" % k for k in range(300)])
    broker.publish("other", [b"not for us"])
    second = start_receiver(broker, tmp_path, "wait/#")
    second.catch_up()
    second.stop()
    rows = spooled_rows(tmp_path)
    assert [row["payload"] for row in rows] == [b"%d" % k for k in range(300)]
    assert [row["position"] for row in rows] == list(range(300))
    assert {(row["topic"], row["redelivered"]) for row in rows} == {("wait/a", False)}
    third = start_receiver(broker, tmp_path, "wait/#")
    third.catch_up()
    third.stop()
    assert len(spooled_rows(tmp_path)) == 300


def test_redelivered_message_with_an_id_is_dropped(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends twice after it wrote the messages and before it acknowledged them."""
    sent = [b'{"id": 1}', b'{"type": "Feature", "id": "a"}', b"no id", b'{"n": 1}', b'{"id": 1}']
    start_receiver(broker, tmp_path, "twice").stop()
    broker.publish("twice", sent)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr("paho.mqtt.client.Client.ack", lambda *_: None)
            dying = start_receiver(broker, tmp_path, "twice")
            until(lambda: len(payloads(tmp_path)) >= 5)
            dying.stop()
    last = start_receiver(broker, tmp_path, "twice")
    last.catch_up()
    last.stop()
    rows = spooled_rows(tmp_path)
    assert [row["payload"] for row in rows[:5]] == sent
    assert not any(row["redelivered"] for row in rows[:5])
    again = rows[5:]
    assert again
    assert all(row["redelivered"] for row in again)
    assert {row["payload"] for row in again} == {b"no id", b'{"n": 1}'}


def test_unwritten_messages_are_not_acknowledged(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: SpoolWriter, __: list[Message]) -> None:
        raise StoreError("full")

    def failed(one: Receiver) -> bool:
        try:
            one.check()
        except StoreError:
            return True
        return False

    start_receiver(broker, tmp_path, "full").stop()
    with monkeypatch.context() as patch:
        patch.setattr(SpoolWriter, "append", full)
        first = start_receiver(broker, tmp_path, "full")
        broker.publish("full", [b"precious"])
        until(lambda: failed(first))
        first.stop()
    assert payloads(tmp_path) == []
    second = start_receiver(broker, tmp_path, "full")
    second.catch_up()
    second.stop()
    assert payloads(tmp_path) == [b"precious"]


def test_receiver_reconnects(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "broker") as own:
        kept = start_receiver(own, tmp_path / "spool", "a")
        own.publish("a", [b"before"])
        until(lambda: payloads(tmp_path / "spool") == [b"before"])
        own.stop()
        own.start()
        own.publish("a", [b"after"])
        until(lambda: payloads(tmp_path / "spool") == [b"before", b"after"])
        kept.check()
        kept.stop()


def test_password_and_tls(tmp_path: Path) -> None:
    if shutil.which("openssl") is None or shutil.which("mosquitto_passwd") is None:
        pytest.skip("NOT TESTED: there is no openssl or no mosquitto_passwd")
    names, key, certificate = (tmp_path / name for name in ("names", "key.pem", "ca.pem"))
    run = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    run += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(run, check=True, capture_output=True)
    run = ["mosquitto_passwd", "-b", "-c", str(names), "ann", "secret"]
    subprocess.run(run, check=True, capture_output=True)
    settings = [f"cafile {certificate}", f"certfile {certificate}", f"keyfile {key}"]
    settings += ["allow_anonymous false", f"password_file {names}"]
    with mosquitto(tmp_path / "broker", settings) as own:
        for password, cafile, works in [
            ("secret", str(certificate), True),
            ("wrong", str(certificate), False),
            ("secret", None, False),  # the certificate is not trusted
        ]:
            writer = open_writer(tmp_path / "spool")
            assert writer is not None
            where = BrokerAddress("127.0.0.1", own.port, "ann", password, True, cafile)
            try:
                Receiver(where, ["a"], tmp_path / "spool", writer).stop()
                assert works
            except DeliveryError:
                assert not works
                writer.close()


def test_former_topics_are_unsubscribed(broker: Mosquitto, tmp_path: Path) -> None:
    broker.publish("first", [b"retained"], retain=True)
    one = start_receiver(broker, tmp_path, "first", "both")
    one.catch_up()
    one.stop()
    for _ in range(2):
        two = start_receiver(broker, tmp_path, "second", "both")
        broker.publish("first", [b"unwanted"])
        broker.publish("second", [b"wanted"])
        two.catch_up()
        two.stop()
    broker.publish("first", [b""], retain=True)
    assert payloads(tmp_path) == [b"retained", b"wanted", b"wanted"]


def test_broker_that_rejects_or_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "rules"
    rules.write_text("topic read open/#\n")
    with mosquitto(tmp_path / "broker", [f"acl_file {rules}"]) as own:
        start_receiver(own, tmp_path / "spool", "open/a").stop()
        barred = start_receiver(own, tmp_path / "spool", "open/a")
        monkeypatch.setattr("fencepost.spark.sources.mqtt_receiver._WAIT_S", 0.5)
        with pytest.raises(DeliveryError, match=r"rejects a subscription|does not return"):
            barred.catch_up()
        barred.stop()
    with pytest.raises(DeliveryError, match="cannot reach an MQTT broker"):
        start_receiver(own, tmp_path / "spool", "open/a")
    with (
        mosquitto(tmp_path / "closed", ["allow_anonymous false"]) as own,
        pytest.raises(DeliveryError, match="rejects the connection"),
    ):
        start_receiver(own, tmp_path / "spool", "open/a")


# --------------------------------------------------------------------------- the reader, in process


def stream_reader(broker: Mosquitto, folder: Path, **options: str) -> Any:
    from fencepost.spark.sources.mqtt_source import MqttStreamReader

    return MqttStreamReader(
        {"topics": "read/#", "spool": str(folder), "port": str(broker.port), **options}
    )


def values(reader: Any, start: int, end: int) -> list[int]:
    parts = reader.partitions({"position": start}, {"position": end})
    batches = [batch for part in parts for batch in reader.read(part)]
    return [int(value) for batch in batches for value in batch.column("payload").to_pylist()]


def test_offsets_limits_and_replays(broker: Mosquitto, tmp_path: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    reader = stream_reader(broker, tmp_path, maxMessages="7")
    assert reader.initialOffset() == {"position": 0}
    assert reader.latestOffset({"position": 0}, ReadMaxRows(7)) == {"position": 0}
    broker.publish("read/a", [b"%d" % k for k in range(20)])
    reader.prepareForTriggerAvailableNow()
    broker.publish("read/a", [b"20"])
    assert reader.getDefaultReadLimit() == ReadMaxRows(7)
    assert reader.latestOffset({"position": 0}, ReadMaxRows(7)) == {"position": 7}
    assert reader.latestOffset({"position": 14}, ReadMaxRows(7)) == {"position": 20}
    assert reader.latestOffset({"position": 3}, ReadAllAvailable()) == {"position": 20}
    assert reader.latestOffset({"position": 20}, ReadMaxRows(7)) == {"position": 20}
    assert values(reader, 5, 9) == [5, 6, 7, 8]
    assert reader.partitions({"position": 4}, {"position": 4}) == []
    reader.commit({"position": 9})
    with pytest.raises(StoreError, match="has reached position 99"):
        reader.latestOffset({"position": 99}, ReadAllAvailable())
    reader.stop()
    again = stream_reader(broker, tmp_path)
    assert values(again, 5, 9) == [5, 6, 7, 8], "a batch that runs again first"
    again.prepareForTriggerAvailableNow()
    assert again.latestOffset({"position": 20}, ReadAllAvailable()) == {"position": 21}
    again.stop()


def test_queries_share_a_spool_under_different_names(broker: Mosquitto, tmp_path: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    def arrived(reader: Any, end: int) -> Callable[[], bool]:
        start, limit = {"position": 0}, ReadAllAvailable()
        return lambda: reader.latestOffset(start, limit) == {"position": end}

    one, two = (
        stream_reader(broker, tmp_path, reader="one"),
        stream_reader(broker, tmp_path, reader="two"),
    )
    assert arrived(one, 0)()
    assert arrived(two, 0)()
    broker.publish("read/x", [b"1", b"2"])
    until(arrived(one, 2))
    until(arrived(two, 2))
    one.stop()
    broker.publish("read/x", [b"3"])
    until(arrived(two, 3))  # the second query has taken over
    assert values(two, 0, 3) == [1, 2, 3]
    two.stop()


def test_failed_receiver_releases_the_spool(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "broker") as gone:
        pass
    reader = stream_reader(gone, tmp_path / "spool")
    for _ in range(2):
        with pytest.raises(DeliveryError, match="cannot reach an MQTT broker"):
            reader.prepareForTriggerAvailableNow()
    writer = open_writer(tmp_path / "spool")
    assert writer is not None
    writer.close()
    reader.stop()


def test_invalid_options(broker: Mosquitto, tmp_path: Path) -> None:
    for options, wrong in [
        ({"port": "x"}, "option 'port' is 'x'"),
        ({"maxMessages": "0"}, "whole number of at least 1"),
        ({"topics": "a/#/b"}, "not an MQTT topic filter"),
        ({"topics": "a/b+"}, "not an MQTT topic filter"),
        ({"topics": '["a", 3]'}, "not an MQTT topic filter"),
        ({"topics": ""}, "not an MQTT topic filter"),
        ({"tls": "yes"}, "give true or false"),
        ({"topic": "a"}, "no option 'topic'; it has"),
    ]:
        with pytest.raises(FencepostError, match=wrong):
            stream_reader(broker, tmp_path, **options)
    with pytest.raises(StoreError, match="cannot name a reader"):
        stream_reader(broker, tmp_path, reader="a/b").initialOffset()


def test_missing_packages_are_named(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "paho.mqtt.client", None)
        with pytest.raises(FencepostError, match=r"paho-mqtt.*pip install"):
            start_receiver(broker, tmp_path, "a")
    monkeypatch.delattr(fps, "read_mqtt", raising=False)  # this loads it first
    monkeypatch.delitem(sys.modules, "fencepost.spark.sources.mqtt_source", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    with pytest.raises(FencepostError, match=r"read_mqtt needs a newer version of pyspark"):
        _ = fps.read_mqtt
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fps.nothing


# -------------------------------------------------------------------------------------- with Spark

FEATURE = (
    '{"type": "Feature", "id": 7, "geometry": {"type": "Point", "coordinates": [1, 2]}, '
    '"properties": {"n": 3, "when": "2024-05-01T12:00:00+02:00", "words": ["a", "b"]}}'
)
GOOD = [FEATURE, '{"id": "x", "n": 4.0, "ok": true, "day": "2024-05-01"}', "{}"]
BAD = {
    b"nothing": "not JSON: Expecting value",
    b"\xff": "byte 1 of the payload is not UTF-8",
    b"[1]": "not a JSON object; saw [1]",
    b'{"n": 1.5}': "n: it is not a whole number; saw 1.5",
    b'{"n": 99999999999999999999}': "n: ",
    b'{"ok": 1}': "ok: it is neither true nor false; saw 1",
    b'{"x": NaN}': "NaN is not a JSON number",
    b'{"x": "1"}': "x: it is not a number; saw '1'",
    b'{"id": {}}': "id: it is not a string",
    b'{"when": "noon"}': "when: it is not a time",
    b'{"day": "2024-05-01T12:00"}': "day: it is not a date",
    b'{"words": ["a", 1]}': "words: it is not a string",
    b'{"words": "a"}': "words: it is not a list",
    b'{"geometry": "POINT (1 2)"}': "geometry: it is not a GeoJSON geometry",
    b'{"geometry": {"type": "Point", "coordinates": [1]}}': "geometry: it is not a GeoJSON",
    b'{"type": "Feature", "properties": 3}': "properties of the Feature are no mapping",
    b"[" * 100_000: "nests too deeply",
    b"": "not JSON",
}
COLUMNS = (
    "id string, n long, x double, ok boolean, when timestamp, day date, "
    "words array<string>, geometry binary"
)


def as_messages(spark: SparkSession, rows: list[bytes]) -> DataFrame:
    came = dt.datetime.fromtimestamp(5, dt.UTC)
    numbered = [("t", bytearray(row), k, came) for k, row in enumerate(rows)]
    schema = "topic string, payload binary, position long, received timestamp"
    return spark.createDataFrame(numbered, schema)


def test_payloads_become_events_or_dead_letters(spark: SparkSession) -> None:
    sent = [text.encode() for text in GOOD] + list(BAD)
    split = fps.events_of(as_messages(spark, sent), COLUMNS)
    assert split.events.columns == [
        *("id", "n", "x", "ok", "when", "day", "words", "geometry"),
        *("topic", "position", "received"),
    ]
    feature, plain, empty = sorted(split.events.collect(), key=lambda row: row["position"])
    assert (feature["id"], feature["n"], feature["words"]) == ("7", 3, ["a", "b"])
    assert feature["when"].isoformat() == "2024-05-01T10:00:00"
    assert shapely.from_wkb(bytes(feature["geometry"])).wkt == "POINT (1 2)"
    assert (plain["id"], plain["n"], plain["ok"], str(plain["day"])) == ("x", 4, True, "2024-05-01")
    assert plain["geometry"] is None
    assert empty["id"] == "t@2-5000000", "the id is composed of the message's columns"
    letters = split.dead_letters.collect()
    assert split.dead_letters.columns == ["topic", "payload", "position", "received", "reason"]
    assert {bytes(row["payload"]) for row in letters} == set(BAD)
    for row in letters:
        assert BAD[bytes(row["payload"])] in row["reason"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
FITS: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: type(value) in {str, int, float},
    "n": lambda value: (
        (type(value) is int or (type(value) is float and value == value // 1))
        and -(2**63) <= value < 2**63
    ),
    "x": lambda value: type(value) in {int, float},
    "ok": lambda value: type(value) is bool,
    "words": lambda value: type(value) is list and all(v is None or type(v) is str for v in value),
}


def is_unicode(value: object) -> bool:
    return "\\ud" not in json.dumps(value)


@pytest.mark.slow
@given(
    st.lists(
        st.dictionaries(st.sampled_from(sorted(FITS)), VALUES) | VALUES | st.binary(max_size=5),
        max_size=4,
    )
)
def test_each_payload_is_an_event_or_a_dead_letter(sent: list[Any]) -> None:
    """Compares the parser with a simple rule for each type."""
    from pyspark.sql import types as t

    from fencepost.spark.sources.json_payloads import PayloadColumn, PayloadParser

    kinds = {"id": t.StringType(), "n": t.LongType(), "x": t.DoubleType(), "ok": t.BooleanType()}
    columns = [PayloadColumn.of(name, kind) for name, kind in kinds.items()]
    columns.append(PayloadColumn.of("words", t.ArrayType(t.StringType())))
    raw = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in sent]
    batch = pa.RecordBatch.from_arrays([pa.array(raw, pa.binary())], ["payload"])
    (made,) = PayloadParser(columns, ["payload"])([batch])
    rows = made.to_pylist()
    assert [row["m0"] for row in rows] == raw
    for one, text, row in zip(sent, raw, rows, strict=True):
        if not isinstance(one, dict):
            assert row["reason"] is not None or (isinstance(one, bytes) and text[:1] == b"{")
            continue
        given_ones = {name: one[name] for name in FITS if one.get(name) is not None}
        unsure = any(not is_unicode(value) for value in given_ones.values())
        fits = all(FITS[name](value) for name, value in given_ones.items())
        assert unsure or (row["reason"] is None) == fits, row["reason"]
        if row["reason"] is None:
            read = {column.name: row[f"e{k}"] for k, column in enumerate(columns)}
            expected: dict[str, Any] = dict.fromkeys(FITS) | given_ones
            expected["id"] = None if expected["id"] is None else str(expected["id"])
            assert read == expected


def test_invalid_messages_and_schemas(spark: SparkSession) -> None:
    with pytest.raises(ModelError, match="no column 'payload'; they have: id"):
        fps.events_of(spark.range(1), "id long")
    with pytest.raises(ModelError, match=r"'long' is not a schema"):
        fps.events_of(as_messages(spark, []), "long")
    with pytest.raises(ModelError, match=r"'m' is of type map<string,int>, which is not read"):
        fps.events_of(as_messages(spark, []), "m map<string, int>")
    texts = spark.createDataFrame([('{"topic": "own"}',)], "payload string")
    row = fps.events_of(texts, "id string, topic string").events.collect()[0]
    assert (row["id"], row["topic"]) == (None, "own")


_DRIVER = """
import sys
from fencepost import spark as fps
port, folder = int(sys.argv[1]), sys.argv[2]
spark = fps.session()
messages = fps.read_mqtt(spark, "kill/#", folder + "/spool", port=port, max_messages=10)
events = fps.events_of(messages, "id string, n long").events
matches = fps.match(events, folder + "/index", columns=["id"])
query = fps.write_matches(matches, folder + "/out", folder + "/checkpoint")
done = -1
while query.isActive:
    query.awaitTermination(0.02)
    progress = query.lastProgress
    if progress and progress["batchId"] > done and progress["numInputRows"]:
        done = progress["batchId"]
        print("batch", done, flush=True)
"""


@pytest.mark.slow
def test_killed_stream_writes_each_match_once(
    spark: SparkSession, broker: Mosquitto, tmp_path: Path
) -> None:
    """Kills driver, planner and workers; after a restart, each match is written once."""
    made = Matcher(space="planar")
    made.subscribe("all", "n >= 0")
    made.subscribe("even", "n % 2 = 0")
    made.save(tmp_path / "index")

    def publish(start: int) -> None:
        texts = [json.dumps({"id": f"e{k}", "n": k}) for k in range(start, start + 60)]
        broker.publish(f"kill/{start}", texts)

    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(broker.port), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        assert driver.stdout is not None
        try:
            # The session at the broker begins with the first query.
            until(lambda: '"kill/#"' in session_of(tmp_path))
            publish(0)
            assert driver.stdout.readline().startswith("batch")
            publish(60)
        finally:
            kill_session(driver.pid)
    publish(120)
    messages = fps.read_mqtt(
        spark, "kill/#", tmp_path / "spool", port=broker.port, max_messages=100
    )
    events = fps.events_of(messages, "id string, n long").events
    matches = fps.match(events, tmp_path / "index", columns=["id"])
    query = fps.write_matches(
        matches, tmp_path / "out", tmp_path / "checkpoint", available_now=True
    )
    assert query.awaitTermination(300)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    expected = [(f"e{k}", "all") for k in range(180)] + [
        (f"e{k}", "even") for k in range(0, 180, 2)
    ]
    assert sorted((row["id"], row["subscription"]) for row in rows) == sorted(expected)
    files = fps.written_files(tmp_path / "out")
    assert sum(pq.read_metadata(path).num_rows for path in files) == len(expected)


def session_of(folder: Path) -> str:
    path = folder / "spool" / "session.json"
    return path.read_text() if path.exists() else ""
