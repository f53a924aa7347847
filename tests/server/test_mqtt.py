"""Events and messages over MQTT, with a real mosquitto that stops and restarts."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from fencepost.delivery import BrokerAddress, default_topic, parse_broker_address, validate_topic
from fencepost.errors import ModelError
from fencepost.geometry import parse_space
from fencepost.server import Limits
from fencepost.server.broker.mqtt_events import parse_payload
from fencepost.store import event_log
from tests.server.serving import Running, running
from tests.spark.broker import Mosquitto, mosquitto
from tests.waiting import WAIT_S, until

EVENT_TOPIC = "fencepost/default/events"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path / "broker") as broker:
        yield broker


def serving(folder: Path, broker: Mosquitto, **more: Any) -> Any:
    return running(folder, mqtt=f"127.0.0.1:{broker.port}", **more)


def wait_until_connected(server: Running) -> None:
    until(lambda: "fencepost_mqtt_connected 1" in server.http.get("/metrics").text)


def subscribe(server: Running, id: str, expression: str = "n >= 0") -> None:
    made = server.http.put(f"/v1/subscriptions/{id}", json={"expression": expression})
    assert made.status_code == 201, made.text


def received(server: Running, name: str = "a") -> list[int]:
    """Return the numbers of the events in a subscriber's messages."""
    answer = server.http.get(f"/v1/subscribers/{name}/messages", params={"since": 0, "limit": 1000})
    return [message["data"]["event"]["n"] for message in answer.json()]


def letters(server: Running) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = server.http.get("/v1/dead-letters").json()["dead_letters"]
    return rows


def numbered(*numbers: int) -> list[str]:
    return [json.dumps({"n": n}) for n in numbers]


def test_payload_formats(tmp_path: Path, broker: Mosquitto) -> None:
    feature = {"type": "Feature", "geometry": None, "properties": {"n": 1}}
    point = {"type": "Point", "coordinates": [3, 4]}
    collection = {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "geometry": point, "properties": {"n": n}} for n in (2, 3)
        ],
    }
    with serving(tmp_path / "data", broker) as server:
        wait_until_connected(server)
        subscribe(server, "a")
        payloads = [
            json.dumps(feature),
            json.dumps(collection, indent=2),
            '{"n": 4}\n\n{"n": 5}\n',
            '[{"n": 6}, {"n": 7}]',
        ]
        broker.publish(EVENT_TOPIC, payloads)
        until(lambda: "fencepost_events_total 7" in server.http.get("/metrics").text)
        messages = server.http.get("/v1/subscribers/a/messages").json()
        events = [message["data"]["event"] for message in messages]
        assert events[0] == feature
        assert events[1:3] == collection["features"]
        assert events[3:] == [{"n": 4}, {"n": 5}, {"n": 6}, {"n": 7}]
        assert letters(server) == []


def test_bad_payloads_become_dead_letters(tmp_path: Path, broker: Mosquitto) -> None:
    with serving(tmp_path / "data", broker, limits=Limits(body_bytes=2_000)) as server:
        wait_until_connected(server)
        subscribe(server, "a")
        bad: list[str | bytes] = [
            *(b"", b"nonsense", b"\xff\xfe", b"7", b'"text"', b"null", b"[" * 900, b"{" * 900),
            *(b'{"n": 1', b'{"n": NaN}', b"\0\0", b'{"n": "\\ud800"}', b"\n" * 90, b"x" * 2_500),
            b'{"type": "Feature", "geometry": {"type": "Point", "coordinates": [999, 0]}}',
            b'[{"n": 2}, 3, {"geometry": {"type": "Nonsense"}, "n": 4}]',
            b'{"n": 5}\nnonsense\n\n[1]\n{"n": 6}',
        ]
        broker.publish(EVENT_TOPIC, bad)
        broker.publish("fencepost/nobody/events", ['{"n": 100}'])
        broker.publish(EVENT_TOPIC, numbered(7))
        until(lambda: 7 in received(server))
        assert received(server) == [2, 5, 6, 7]
        dead_letters = letters(server)
        bodies = [letter["body"] for letter in dead_letters]
        assert {"nonsense", "7", "null", '{"n": 1', "3", "[1]"} <= set(bodies)
        assert bodies.count("nonsense") == 2
        assert all(letter["reason"] for letter in dead_letters)
        assert {letter["source"] for letter in dead_letters} == {f"mqtt:{EVENT_TOPIC}"}
        assert "fencepost_mqtt_unusable_total" in server.http.get("/metrics").text


def test_events_published_while_the_server_is_down_arrive(
    tmp_path: Path, broker: Mosquitto
) -> None:
    with serving(tmp_path / "data", broker) as server:
        wait_until_connected(server)
        subscribe(server, "a")
        broker.publish(EVENT_TOPIC, numbered(*range(50)))
        until(lambda: len(received(server)) == 50)
    broker.publish(EVENT_TOPIC, numbered(*range(50, 150)))
    broker.stop()
    broker.start()
    with serving(tmp_path / "data", broker) as server:
        until(lambda: len(received(server)) >= 150)
        assert received(server) == [*range(150)]


def test_events_are_acknowledged_after_they_are_written(tmp_path: Path, broker: Mosquitto) -> None:
    """A server whose disk failed receives the messages again once the disk works."""
    with serving(tmp_path / "data", broker) as server:
        wait_until_connected(server)
        subscribe(server, "a")
        writer = server.service.database.writer

        def fail(on: bool) -> None:
            server.service.broker.change(
                lambda _: writer.execute(f"PRAGMA query_only = {on}") and None
            ).result(WAIT_S)

        fail(True)
        broker.publish(EVENT_TOPIC, numbered(1, 2, 3))
        until(lambda: "fencepost_mqtt_received_total 0" not in server.http.get("/metrics").text)
        assert received(server) == []
        writer.execute("PRAGMA query_only = OFF")
        until(lambda: set(received(server)) == {1, 2, 3})
        assert letters(server) == []


def test_a_payload_that_cannot_be_written_becomes_a_dead_letter(
    tmp_path: Path, broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A payload that always fails, while others are written, must not be redelivered for ever."""
    append = event_log.append_events

    def fail(connection: Any, tenant: int, received: int, first: int, bodies: Any) -> None:
        if any("poison" in body for body, _ in bodies):
            raise RuntimeError("a bug")
        append(connection, tenant, received, first, bodies)

    monkeypatch.setattr(event_log, "append_events", fail)
    with serving(tmp_path / "data", broker) as server:
        wait_until_connected(server)
        subscribe(server, "a")
        broker.publish(EVENT_TOPIC, [*numbered(1, 2), '{"n": 3, "poison": true}', *numbered(4, 5)])
        until(lambda: len(received(server)) == 4 and bool(letters(server)))
        assert set(received(server)) == {1, 2, 4, 5}
        [letter] = letters(server)
        assert "poison" in letter["body"]
        assert "a bug" in letter["reason"]


def test_a_publication_with_an_idempotency_key_is_accepted_once(
    tmp_path: Path, broker: Mosquitto
) -> None:
    with serving(tmp_path / "data", broker) as server:
        wait_until_connected(server)
        subscribe(server, "a")
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        client.connect("127.0.0.1", broker.port)
        client.loop_start()
        for name in ("one", "one", "two"):
            named: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            named.UserProperty = ("idempotency-key", name)
            sent = client.publish(EVENT_TOPIC, '{"n": 1}', qos=1, properties=named)
            sent.wait_for_publish(WAIT_S)
        client.publish(EVENT_TOPIC, '{"n": 2}', qos=1).wait_for_publish(WAIT_S)
        client.disconnect()
        client.loop_stop()
        until(lambda: 2 in received(server))
        assert received(server) == [1, 1, 2]


def test_messages_go_out_in_order(tmp_path: Path, broker: Mosquitto) -> None:
    arrived: Queue[tuple[str, dict[str, Any]]] = Queue()
    with (
        serving(tmp_path / "data", broker) as server,
        broker.client("fencepost/#", lambda m: arrived.put((m.topic, json.loads(m.payload)))),
    ):
        wait_until_connected(server)
        subscribe(server, "a%2F+")
        subscribe(server, "b")
        set_one = server.http.put("/v1/subscribers/a%2F+/endpoint", json={"kind": "mqtt"})
        assert set_one.json()["topic"] == "fencepost/default/subscribers/a%2F%2B"
        topic = {"kind": "mqtt", "topic": "fencepost/default/mine"}
        assert server.http.put("/v1/subscribers/b/endpoint", json=topic).status_code == 200
        server.http.post("/v1/events", json=[{"n": n} for n in range(250)])
        numbers_by_topic: dict[str, list[int]] = {}
        for _ in range(500):
            topic_name, message = arrived.get(timeout=WAIT_S)
            numbers_by_topic.setdefault(topic_name, []).append(message["data"]["event"]["n"])
        assert numbers_by_topic == {
            "fencepost/default/subscribers/a%2F%2B": [*range(250)],
            "fencepost/default/mine": [*range(250)],
        }
        until(lambda: server.http.get("/v1/subscribers/b").json()["depth"] == 0)


def test_messages_survive_a_restart_of_the_broker(tmp_path: Path, broker: Mosquitto) -> None:
    """The broker stops under load in both directions; all messages arrive, in order."""
    delivered: list[int] = []
    reader = Client(CallbackAPIVersion.VERSION2, client_id="reader", clean_session=False)
    ready = threading.Event()
    reader.on_subscribe = lambda *_: ready.set()
    reader.on_message = lambda _, __, message: delivered.append(
        json.loads(message.payload)["data"]["event"]["n"]
    )
    reader.reconnect_delay_set(1, 1)
    with serving(tmp_path / "data", broker) as server:
        wait_until_connected(server)
        subscribe(server, "a")
        assert server.http.put("/v1/subscribers/a/endpoint", json={"kind": "mqtt"}).is_success
        reader.connect("127.0.0.1", broker.port)
        reader.loop_start()
        reader.subscribe("fencepost/default/subscribers/a", qos=1)
        assert ready.wait(WAIT_S)
        broker.publish(EVENT_TOPIC, numbered(*range(100)))
        server.http.post("/v1/events", json=[{"n": n} for n in range(100, 300)])
        broker.stop()
        server.http.post("/v1/events", json=[{"n": n} for n in range(300, 350)])
        until(lambda: "fencepost_mqtt_connected 0" in server.http.get("/metrics").text)
        broker.start()
        wait_until_connected(server)
        broker.publish(EVENT_TOPIC, numbered(*range(350, 400)))
        until(lambda: len(set(delivered)) == 400)
        until(lambda: server.http.get("/v1/subscribers/a").json()["depth"] == 0)
        reader.disconnect()
        reader.loop_stop()
        logged = list(dict.fromkeys(received(server)))
        by_mqtt = [n for n in logged if not 100 <= n < 350]
        by_http = [n for n in logged if 100 <= n < 350]
        assert by_mqtt == [*range(100), *range(350, 400)]
        assert by_http == [*range(100, 350)]
        assert (
            list(dict.fromkeys(delivered)) == logged
        )  # some messages repeat, none is lost, in order


def test_the_endpoint_shows_that_the_broker_rejects_messages(
    tmp_path: Path,
) -> None:
    acl = tmp_path / "acl"
    acl.write_text("topic read fencepost/+/events\ntopic write fencepost/default/allowed\n")
    with (
        mosquitto(tmp_path / "broker", [f"acl_file {acl}"]) as broker,
        serving(tmp_path / "data", broker) as server,
    ):
        wait_until_connected(server)
        for name in ("allowed", "denied"):
            subscribe(server, name)
            to = {"kind": "mqtt", "topic": f"fencepost/default/{name}"}
            assert server.http.put(f"/v1/subscribers/{name}/endpoint", json=to).is_success
        server.http.post("/v1/events", json={"n": 1})

        def shown(name: str) -> dict[str, Any]:
            state: dict[str, Any] = server.http.get(f"/v1/subscribers/{name}").json()
            return state

        until(lambda: shown("allowed")["depth"] == 0)
        until(lambda: shown("denied")["endpoint"]["failures"] > 0)
        assert "rejected" in shown("denied")["endpoint"]["problem"]
        assert shown("denied")["depth"] == 1


def test_tenants_have_separate_topics(tmp_path: Path, broker: Mosquitto) -> None:
    with serving(tmp_path / "data", broker, open_access=False) as server:
        key = server.key("subscribe", "publish", "admin", tenant="acme")
        other = server.key("subscribe", "publish", "admin", tenant="other")
        with server.client(key) as mine, server.client(other) as theirs:
            until(lambda: "fencepost_mqtt_connected 1" in mine.get("/metrics").text)
            for client in (mine, theirs):
                client.put("/v1/subscriptions/a", json={"expression": "n >= 0"})
            for topic in ("fencepost/other/x", "fencepost/acme/events", "x", "fencepost/acme/+"):
                to = {"kind": "mqtt", "topic": topic}
                assert mine.put("/v1/subscribers/a/endpoint", json=to).status_code == 422
            broker.publish("fencepost/acme/events", ['{"n": 1}', "nonsense", '{"n": 2}'])
            until(lambda: len(mine.get("/v1/subscribers/a/messages").json()) == 2)
            assert theirs.get("/v1/subscribers/a/messages").json() == []
            assert len(mine.get("/v1/dead-letters").json()["dead_letters"]) == 1
            assert theirs.get("/v1/dead-letters").json()["dead_letters"] == []


def test_fuzzed_payloads_never_stop_the_server(tmp_path: Path, broker: Mosquitto) -> None:
    rng = random.Random(9)
    good = json.dumps(
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "n": 1}
    ).encode()
    marks = b'{}[]":,0123456789.eE+-\\u\n\0\xff\xc3tfn '
    payloads: list[str | bytes] = [rng.randbytes(rng.randrange(200)) for _ in range(300)]
    for _ in range(700):
        changed = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(changed))
            changed[at : at + rng.randrange(3)] = bytes(rng.choices(marks, k=rng.randrange(4)))
        payloads.append(bytes(changed))
    with serving(tmp_path / "data", broker) as server:
        wait_until_connected(server)
        subscribe(server, "a", "n = 'last'")
        broker.publish(EVENT_TOPIC, payloads)
        broker.publish(EVENT_TOPIC, ['{"n": "last"}'])
        until(lambda: len(server.http.get("/v1/subscribers/a/messages").json()) == 1)
        counts = server.http.get("/v1/stats").json()["server"]
        assert counts["mqtt_received"] == len(payloads) + 1
        assert server.http.get("/healthz").json()["status"] == "ok"


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-8")))
def test_any_payload_becomes_events_or_dead_letters(payload: bytes) -> None:
    events, letters = parse_payload(payload, Limits(), parse_space("wgs84"))
    assert len(events.table) == len(events.bodies)
    for letter in letters:
        assert letter.reason
        letter.body.encode()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("broker", BrokerAddress("broker", 1883)),
        ("127.0.0.1:1884", BrokerAddress("127.0.0.1", 1884)),
        ("mqtt://me:p%40ss@broker", BrokerAddress("broker", 1883, "me", "p@ss")),
        ("mqtts://broker", BrokerAddress("broker", 8883, tls=True)),
        ("mqtts://me@[::1]:1/", BrokerAddress("::1", 1, "me", tls=True)),
    ],
)
def test_broker_addresses(text: str, address: BrokerAddress) -> None:
    assert parse_broker_address(text) == address
    assert "p@ss" not in str(parse_broker_address(text))


@pytest.mark.parametrize("text", ["", "http://broker", "broker:x", "broker:99999", "broker/x"])
def test_invalid_broker_addresses_are_rejected(text: str) -> None:
    with pytest.raises(ModelError, match="HOST:PORT"):
        parse_broker_address(text)


@given(st.text(min_size=1, max_size=30).filter(lambda text: text.isprintable()))
def test_all_subscribers_has_one_topic(name: str) -> None:
    topic = default_topic("acme", name)
    assert validate_topic(topic, "acme") == topic
    assert topic.count("/") == 3
    assert default_topic("acme", name + "/") != topic
