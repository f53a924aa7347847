"""Endpoints: a real server posts messages to real receivers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import fencepost as fp
from fencepost.server import Transaction
from fencepost.store import endpoint_rows
from tests.delivery.receiver import Answer, Receiver, Request, receiving
from tests.server.serving import Running, running
from tests.waiting import WAIT_S, until


def subscribe(server: Running, name: str, **target: Any) -> dict[str, Any]:
    made = server.http.put(f"/v1/subscriptions/{name}", json={"expression": f"{name} >= 0"})
    assert made.status_code == 201, made.text
    return set_endpoint(server, name, **target)


def set_endpoint(server: Running, name: str, **target: Any) -> dict[str, Any]:
    answer = server.http.put(
        f"/v1/subscribers/{quote(name, safe='')}/endpoint", json={"kind": "webhook", **target}
    )
    assert answer.status_code == 200, answer.text
    endpoint: dict[str, Any] = answer.json()
    return endpoint


def publish(server: Running, *events: dict[str, Any]) -> None:
    assert server.http.post("/v1/events", json=events).json()["accepted"] == len(events)


def subscriber(server: Running, name: str) -> dict[str, Any]:
    state: dict[str, Any] = server.http.get(f"/v1/subscribers/{name}").json()
    return state


def numbers(receiver: Receiver, count: int) -> list[int]:
    """Return the numbers of the next `count` events, in order of arrival."""
    received: list[int] = []
    while len(received) < count:
        received += [message["data"]["event"]["a"] for message in receiver.next().messages]
    return received


@pytest.mark.parametrize("batch", [1, 7])
def test_messages_are_posted_in_order_signed_and_acknowledged(tmp_path: Path, batch: int) -> None:
    with receiving() as receiver, running(tmp_path, allow_private_webhooks=True) as server:
        secret = subscribe(server, "a", url=receiver.url, batch=batch)["secret"]
        publish(server, *[{"a": n} for n in range(20)])
        publish(server, *[{"a": n} for n in range(20, 30)])
        first = receiver.next()
        fp.verify_webhook(secret, first.headers["fencepost-signature"], first.body)
        first_numbers = [message["data"]["event"]["a"] for message in first.messages]
        assert [*first_numbers, *numbers(receiver, 30 - len(first_numbers))] == [*range(30)]
        until(lambda: subscriber(server, "a")["depth"] == 0)
        state = subscriber(server, "a")
        assert state["acknowledged"] == 30
        assert state["endpoint"]["failures"] == 0
        assert "secret" not in str(state)
        assert "fencepost_delivered_total 30" in server.http.get("/metrics").text


def test_attributes_that_no_event_has_are_counted_and_named(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        server.http.put("/v1/subscriptions/a", json={"expression": "size > 1 AND kind = 'hail'"})
        publish(server, *[{"sizes": 3, "kind": "hail"} for _ in range(999)])
        assert "fencepost_attributes_not_found 0" in server.http.get("/metrics").text
        publish(server, {"sizes": 3})
        assert "fencepost_attributes_not_found 1" in server.http.get("/metrics").text
        assert server.http.get("/v1/stats").json()["index"]["attributes_not_found"] == ["size"]


def test_unacknowledged_messages_are_posted_when_an_endpoint_is_set(tmp_path: Path) -> None:
    with receiving() as receiver, running(tmp_path, allow_private_webhooks=True) as server:
        server.http.put("/v1/subscriptions/a", json={"expression": "a >= 0"})
        publish(server, *[{"a": n} for n in range(5)])
        server.http.post("/v1/subscribers/a/acknowledgement", json={"position": 2})
        set_endpoint(server, "a", url=receiver.url)
        assert numbers(receiver, 3) == [2, 3, 4]


def test_a_dead_endpoint_does_not_delay_another(tmp_path: Path) -> None:
    released = threading.Event()

    def answer(request: Request) -> Answer:
        if request.path == "/hangs":
            released.wait(WAIT_S)
        return Answer(500 if request.path == "/fails" else 204)

    with receiving(answer) as receiver, running(tmp_path, allow_private_webhooks=True) as server:
        base = f"http://127.0.0.1:{receiver.port}"
        for name, path in (("a", "/well"), ("b", "/hangs"), ("c", "/fails")):
            subscribe(server, name, url=base + path)
        set_endpoint(server, "d", url="http://127.0.0.1:1/nobody")
        server.http.put("/v1/subscriptions/d", json={"expression": "a >= 0"})
        for n in range(50):
            publish(server, {"a": n, "b": n, "c": n})
        until(lambda: subscriber(server, "a")["depth"] == 0)
        assert subscriber(server, "b")["depth"] == 50
        assert subscriber(server, "c")["depth"] == 50
        until(lambda: subscriber(server, "c")["endpoint"]["problem"] == "the endpoint answered 500")
        until(lambda: subscriber(server, "d")["endpoint"]["failures"] > 0)
        assert "cannot be reached" in subscriber(server, "d")["endpoint"]["problem"]
        requests = [request for request in [*receiver.requests.queue] if request.path == "/well"]
        assert [request.messages[0]["data"]["event"]["a"] for request in requests] == [*range(50)]
        released.set()
        assert server.http.delete("/v1/subscribers/d/endpoint").status_code == 204
        assert subscriber(server, "d")["endpoint"] is None
        assert subscriber(server, "d")["depth"] == 50


def test_deliveries_continue_after_a_restart(tmp_path: Path) -> None:
    down = [True]

    def answer(_: Request) -> Answer:
        return Answer(503, {"retry-after": "1"}) if down else Answer()

    with receiving(answer) as receiver:
        with running(tmp_path, allow_private_webhooks=True) as server:
            secret = subscribe(server, "a", url=receiver.url, batch=100)["secret"]
            publish(server, {"a": 0})
            until(lambda: subscriber(server, "a")["endpoint"]["failures"] == 1)
            publish(server, {"a": 1}, {"a": 2})
        assert receiver.requests.qsize() == 1
        first = receiver.next()
        down.clear()
        with running(tmp_path, allow_private_webhooks=True) as server:
            again = receiver.next()
            assert again.messages == first.messages
            assert again.messages[0]["id"] == "1"
            fp.verify_webhook(secret, again.headers["fencepost-signature"], again.body)
            assert numbers(receiver, 2) == [1, 2]
            until(lambda: subscriber(server, "a")["depth"] == 0)
            assert subscriber(server, "a")["endpoint"]["problem"] is None
        with running(tmp_path, allow_private_webhooks=True) as server:
            publish(server, {"a": 3})
            assert numbers(receiver, 1) == [3]
        assert receiver.requests.empty()


def test_gone_endpoints_wait_until_they_are_set_again(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        return Answer(410 if request.path == "/old" else 204)

    with receiving(answer) as receiver, running(tmp_path, allow_private_webhooks=True) as server:
        base = f"http://127.0.0.1:{receiver.port}"
        subscribe(server, "a", url=f"{base}/old")
        publish(server, {"a": 0})
        until(lambda: bool(subscriber(server, "a")["endpoint"]["disabled"]))
        publish(server, {"a": 1})
        assert subscriber(server, "a")["endpoint"]["retry_at"] is None
        set_endpoint(server, "a", url=f"{base}/new")
        paths = [receiver.next().path for _ in range(3)]
        assert paths == ["/old", "/new", "/new"]


def test_dead_letters_are_retried(tmp_path: Path) -> None:
    with receiving() as receiver, running(tmp_path, allow_private_webhooks=True) as server:
        subscribe(server, "a", url=receiver.url)
        publish(server, {"a": 0, "large": 12345678901234567890.0})
        posted = receiver.next()
        number = server.service.broker.tenant_subscriptions(1).subscribers["a"]

        def add_dead_letters(transaction: Transaction) -> None:
            body = posted.body.decode()
            endpoint_rows.add_dead_letter(
                transaction.connection, 1, 1, "webhook", "it answered 400", body, number, 1
            )
            endpoint_rows.add_dead_letter(
                transaction.connection, 1, 1, "mqtt:x", "it was bad", '{"a": 7}'
            )
            endpoint_rows.add_dead_letter(
                transaction.connection, 1, 1, "mqtt:x", "it is bad", "nonsense"
            )

        server.service.broker.change(add_dead_letters).result(WAIT_S)
        letters = server.http.get("/v1/dead-letters").json()["dead_letters"]
        assert [letter["reason"][:2] for letter in letters] == ["it"] * 3
        first, second, third = (f"/v1/dead-letters/{letter['number']}/retry" for letter in letters)
        assert server.http.post(first).status_code == 204
        again = receiver.next().messages[0]
        assert again["data"] == posted.messages[0]["data"]
        assert again["id"] != posted.messages[0]["id"]
        assert server.http.post(first).status_code == 404
        assert server.http.post(second).status_code == 204
        assert receiver.next().messages[0]["data"]["event"] == {"a": 7}
        rejected = server.http.post(third)
        assert rejected.status_code == 422
        assert "correct it" in rejected.json()["detail"]
        remaining = server.http.get("/v1/dead-letters").json()["dead_letters"]
        assert [letter["body"] for letter in remaining] == ["nonsense"]
        for bad in ("0", "x", "-1", "99999999999999999999", "1/2"):
            assert server.http.post(f"/v1/dead-letters/{bad}/retry").status_code == 404


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a server that rejects private addresses."""
    with running(tmp_path_factory.mktemp("strict")) as server:
        yield server


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://localhost:8080/", "http://[::1]/", "http://0.0.0.0/"),
        *("http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://[fd00::1]/"),
        *("http://[::ffff:7f00:1]/", "http://[2002:7f00:1::]/", "http://[64:ff9b::7f00:1]/"),
        *("http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/"),
        *("http://127.0.0.1./", "http://user@1.1.1.1/", "file:///etc/passwd", "ftp://1.1.1.1/"),
        *("http://1.1.1.1:22/", "", "nonsense", "http://"),
    ],
)
def test_private_addresses_are_rejected(strict: Running, url: str) -> None:
    answer = strict.http.put("/v1/subscribers/a/endpoint", json={"kind": "webhook", "url": url})
    assert answer.status_code == 422, answer.text
    assert strict.http.get("/v1/subscribers/a/endpoint").status_code == 404


def test_the_address_policy_applies_to_stored_endpoints(tmp_path: Path) -> None:
    with receiving() as receiver:
        with running(tmp_path, allow_private_webhooks=True) as server:
            subscribe(server, "a", url=receiver.url)
        with running(tmp_path) as server:
            publish(server, {"a": 0})
            until(lambda: subscriber(server, "a")["endpoint"]["failures"] > 0)
            assert "private" in subscriber(server, "a")["endpoint"]["problem"]
        assert receiver.requests.empty()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "pigeon"},
        {"kind": "webhook"},
        {"kind": "webhook", "url": 7},
        {"kind": "webhook", "url": "http://1.1.1.1/", "secret": "short"},
        {"kind": "webhook", "url": "http://1.1.1.1/", "secret": None},
        {"kind": "webhook", "url": "http://1.1.1.1/", "batch": 0},
        {"kind": "webhook", "url": "http://1.1.1.1/", "batch": True},
        {"kind": "webhook", "url": "http://1.1.1.1/", "headers": []},
        {"kind": "webhook", "url": "http://1.1.1.1/", "headers": {"Host": "x"}},
        {"kind": "webhook", "url": "http://1.1.1.1/", "headers": {"content-length": "1"}},
        {"kind": "webhook", "url": "http://1.1.1.1/", "headers": {"fencepost-signature": "x"}},
        {"kind": "webhook", "url": "http://1.1.1.1/", "headers": {"a b": "x"}},
        {"kind": "webhook", "url": "http://1.1.1.1/", "headers": {"a": "x\r\ny: z"}},
        {"kind": "webhook", "url": "http://1.1.1.1/", "headers": {"a": 1}},
        {"kind": "webhook", "url": "http://1.1.1.1/", "topic": "x"},
        {"kind": "mqtt"},
        {"kind": "mqtt", "url": "x"},
    ],
)
def test_invalid_endpoints_are_rejected(strict: Running, body: dict[str, Any]) -> None:
    answer = strict.http.put("/v1/subscribers/a/endpoint", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_secrets_are_shown_once(tmp_path: Path) -> None:
    with running(tmp_path, allow_private_webhooks=True) as server:
        headers = {"Authorization": "Bearer abc"}
        url = "http://127.0.0.1:1/"
        made = set_endpoint(server, "a/b", url=url, headers=headers)
        assert len(made["secret"]) > 40
        assert made["headers"] == ["authorization"]
        with_secret = set_endpoint(
            server, "c", url=url, secret="my own secret!".replace(" ", "-") + "xx"
        )
        assert "secret" not in with_secret
        shown = server.http.get("/v1/subscribers/a%2Fb/endpoint").text
        assert "abc" not in shown
        assert made["secret"] not in shown


def test_tenants_do_not_reach_each_other_s_endpoints(tmp_path: Path) -> None:
    with running(tmp_path, allow_private_webhooks=True, open_access=False) as server:
        url = {"kind": "webhook", "url": "http://127.0.0.1:1/"}
        mine = server.client(server.key("subscribe", tenant="acme"))
        theirs = server.client(server.key("subscribe", "admin", tenant="other"))
        publisher = server.client(server.key("publish", tenant="acme"))
        with mine, theirs, publisher:
            assert mine.put("/v1/subscribers/a/endpoint", json=url).status_code == 200
            assert publisher.put("/v1/subscribers/a/endpoint", json=url).status_code == 403
            assert publisher.get("/v1/subscribers/a/endpoint").status_code == 403
            for method in ("GET", "DELETE"):
                answer = theirs.request(method, "/v1/subscribers/a/endpoint")
                assert answer.status_code == 404
            assert mine.get("/v1/subscribers/a/endpoint").status_code == 200
            server.service.broker.change(
                lambda w: endpoint_rows.add_dead_letter(w.connection, 2, 1, "mqtt:x", "bad", "{}")
            ).result(WAIT_S)
            assert theirs.post("/v1/dead-letters/1/retry").status_code == 404
            assert mine.post("/v1/dead-letters/1/retry").status_code == 403
