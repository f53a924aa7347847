"""Subscriptions, events and messages over HTTP."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from tests.server.serving import Running, running

TAXI = "S_INTERSECTS(geometry, BBOX(0, 0, 10, 10)) AND kind = 'taxi'"


def feature(x: float, y: float, **properties: Any) -> dict[str, Any]:
    """Return a Feature with a point."""
    geometry = {"type": "Point", "coordinates": [x, y]}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def subscribe(server: Running, id: str, expression: str = TAXI, **more: Any) -> None:
    made = server.http.put(f"/v1/subscriptions/{id}", json={"expression": expression, **more})
    assert made.status_code == 201, made.text


def messages(server: Running, subscriber: str, **query: Any) -> list[dict[str, Any]]:
    answer = server.http.get(f"/v1/subscribers/{subscriber}/messages", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/cloudevents-batch+json")
    page: list[dict[str, Any]] = answer.json()
    return page


def test_an_event_reaches_matching_subscribers(server: Running) -> None:
    subscribe(server, "a", subscriber="me", payload={"colour": "red"})
    subscribe(server, "b", "kind = 'taxi'", subscriber="me")
    subscribe(server, "c", "kind = 'bus'")
    event = feature(1, 2, kind="taxi")
    answer = server.http.post("/v1/events", json=event)
    assert answer.json() == {
        "accepted": 1,
        "first": 1,
        "last": 1,
        "messages": 1,
        "rejected": [],
    }
    [message] = messages(server, "me")
    assert message["data"] == {
        "subscriptions": ["a", "b"],
        "payloads": {"a": {"colour": "red"}},
        "position": 1,
        "event": event,
    }
    assert message["source"] == "urn:fencepost:default:me"
    assert (message["id"], message["position"]) == ("1", 1)
    assert messages(server, "c") == []


def test_messages_are_read_again_until_acknowledged(server: Running) -> None:
    subscribe(server, "a", "kind = 'taxi'")
    for number in range(5):
        server.http.post("/v1/events", json=feature(0, 0, kind="taxi", number=number))
    numbers = [
        message["data"]["event"]["properties"]["number"] for message in messages(server, "a")
    ]
    assert numbers == [0, 1, 2, 3, 4]
    third = messages(server, "a")[2]["position"]
    answer = server.http.post("/v1/subscribers/a/acknowledgement", json={"position": third})
    assert answer.json() == {"acknowledged": third, "depth": 2}
    assert [message["position"] for message in messages(server, "a")] == [third + 1, third + 2]
    assert len(messages(server, "a", since=0)) == 5
    assert len(messages(server, "a", since=0, limit=2)) == 2
    repeated = server.http.post("/v1/subscribers/a/acknowledgement", json={"position": 1})
    assert repeated.json()["acknowledged"] == third


def _lines(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    return "\n".join(json.dumps(event) for event in events).encode(), "application/x-ndjson"


def _collection(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    collection = {"type": "FeatureCollection", "features": events}
    return json.dumps(collection, indent=2).encode(), "application/geo+json"


def _list(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    return json.dumps(events).encode(), "application/json"


def _arrow(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    rows = [{"geometry": event["geometry"], **event["properties"]} for event in events]
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue(), "application/vnd.apache.arrow.stream"


@pytest.mark.parametrize("encode", [_lines, _collection, _list, _arrow])
def test_many_events_in_one_request(server: Running, encode: Any) -> None:
    subscribe(server, "a", subscriber="me")
    events = [feature(5 * n, 1, kind="taxi", number=n) for n in range(5)]
    body, type = encode(events)
    answer = server.http.post("/v1/events", content=body, headers={"content-type": type})
    assert answer.json()["accepted"] == 5, answer.text
    received = [message["data"]["event"] for message in messages(server, "me")]
    assert received == events[:3]


def test_bad_events_are_rejected_and_the_others_accepted(server: Running) -> None:
    subscribe(server, "a")
    body = b'{"kind": "taxi"}\n[1]\nnonsense\n\n{"geometry": {"type": "Point"}, "kind": "taxi"}\n'
    answer = server.http.post(
        "/v1/events", content=body, headers={"content-type": "application/x-ndjson"}
    ).json()
    assert answer["accepted"] == 1
    assert [rejected["row"] for rejected in answer["rejected"]] == [1, 2, 3]
    assert "array" in answer["rejected"][0]["reason"]
    alone = server.http.post("/v1/events", json={"geometry": {"type": "Point"}})
    assert alone.status_code == 422
    assert alone.headers["content-type"] == "application/problem+json"


def test_a_publication_with_an_idempotency_key_is_accepted_once(server: Running) -> None:
    subscribe(server, "a", "kind = 'taxi'")
    headers = {"idempotency-key": "batch 7"}
    first = server.http.post("/v1/events", json=feature(0, 0, kind="taxi"), headers=headers)
    again = server.http.post("/v1/events", json=feature(0, 0, kind="taxi"), headers=headers)
    assert first.json() == again.json()
    assert len(messages(server, "a")) == 1


def test_subscriptions_are_created_replaced_listed_and_removed(server: Running) -> None:
    for id, quoted in (("a/1", "a%2F1"), ("b", "b"), ("c", "c")):
        subscribe(server, quoted, f"name = '{id}'", subscriber="me" if id != "c" else "you")
    again = server.http.put("/v1/subscriptions/b", json={"expression": "name = 'new'"})
    assert again.status_code == 200
    conflict = server.http.put(
        "/v1/subscriptions/b", json={"expression": "a = 1"}, headers={"if-none-match": "*"}
    )
    assert conflict.status_code == 409
    assert server.http.post("/v1/subscriptions", json={"id": "b", "expression": "a=1"}).is_error
    listed = server.http.get("/v1/subscriptions", params={"limit": 2}).json()
    assert [subscription["id"] for subscription in listed["subscriptions"]] == ["a/1", "b"]
    rest = server.http.get("/v1/subscriptions", params={"after": listed["next"]}).json()
    assert [subscription["id"] for subscription in rest["subscriptions"]] == ["c"]
    assert rest["next"] is None
    mine = server.http.get("/v1/subscriptions", params={"subscriber": "me"}).json()
    assert [subscription["id"] for subscription in mine["subscriptions"]] == ["a/1"]
    new = server.http.get("/v1/subscriptions", params={"contains": "NEW"}).json()
    assert [subscription["id"] for subscription in new["subscriptions"]] == ["b"]
    assert server.http.delete("/v1/subscriptions/a%2F1").status_code == 204
    assert server.http.delete("/v1/subscriptions/a%2F1").status_code == 404
    assert server.http.get("/v1/subscriptions/a%2F1").status_code == 404
    assert server.http.post("/v1/events", json={"name": "new"}).json()["messages"] == 1
    assert server.http.post("/v1/events", json={"name": "a/1"}).json()["messages"] == 0


@pytest.mark.parametrize("id", ["a/explanation", "...", "ä\u2603 %41", "a?b#c", "explanation"])
def test_ids_of_any_characters(server: Running, id: str) -> None:
    subscribe(server, quote(id, safe=""), "n = 1", subscriber=f"{id}/messages")
    stored = server.http.get(f"/v1/subscriptions/{quote(id, safe='')}").json()
    assert (stored["id"], stored["subscriber"]) == (id, f"{id}/messages")
    server.http.post("/v1/events", json={"n": 1})
    assert len(messages(server, quote(f"{id}/messages", safe=""))) == 1
    event = {"event": {"n": 2}}
    path = f"/v1/subscriptions/{quote(id, safe='')}/explanation"
    assert server.http.post(path, json=event).json()["matches"] is False


def test_many_subscriptions_in_one_request(server: Running) -> None:
    rows = [{"id": f"s{n}", "expression": f"n = {n}"} for n in range(600)]
    rows[3]["expression"] = "n ="
    body = "\n".join(map(json.dumps, rows))
    answer = server.http.post(
        "/v1/subscriptions", content=body, headers={"content-type": "application/x-ndjson"}
    ).json()
    assert (answer["created"], answer["replaced"]) == (599, 0)
    assert [rejected["row"] for rejected in answer["rejected"]] == [3]
    assert server.http.post("/v1/events", json={"n": 599}).json()["messages"] == 1


def test_why_an_event_matches(server: Running) -> None:
    subscribe(server, "a")
    server.http.post("/v1/events", json=feature(20, 0, kind="taxi"))
    logged = server.http.get("/v1/subscriptions/a/explanation", params={"event": 1}).json()
    assert logged["matches"] is False
    assert "disjoint" in logged["text"]
    event = {"event": feature(1, 1, kind="taxi")}
    assert server.http.post("/v1/subscriptions/a/explanation", json=event).json()["matches"]
    tried = server.http.post("/v1/try", json={"expression": "a > 3", "events": [{"a": 4}, {}]})
    assert [result["matches"] for result in tried.json()["results"]] == [True, False]


def test_state_survives_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        subscribe(server, "a", "kind = 'taxi'", subscriber="me")
        subscribe(server, "b", "kind = 'taxi'", expires="2020-01-01T00:00:00Z")
        for _ in range(3):
            server.http.post("/v1/events", json=feature(0, 0, kind="taxi"))
        server.http.post("/v1/subscribers/me/acknowledgement", json={"position": 2})
    with running(tmp_path) as server:
        assert [message["position"] for message in messages(server, "me")] == [3]
        answer = server.http.post("/v1/events", json=feature(0, 0, kind="taxi")).json()
        assert (answer["first"], answer["messages"]) == (4, 1)
        assert [message["position"] for message in messages(server, "me")] == [3, 4]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nothing", None, 404),
        ("PATCH", "/v1/events", None, 405),
        ("POST", "/v1/events", b"{", 400),
        ("POST", "/v1/events", b"\xff", 400),
        ("POST", "/v1/subscriptions", b"[]", 400),
        ("POST", "/v1/subscriptions", b'{"id": "a"}', 422),
        ("POST", "/v1/subscriptions", b'{"id": "", "expression": "a=1"}', 422),
        ("POST", "/v1/subscriptions", b'{"id": "a", "expression": "a=1", "x": 1}', 422),
        ("PUT", "/v1/subscriptions/b", b'{"expression": "a=1", "payload": "\\ud800"}', 400),
        ("POST", "/v1/events", b'{"name": "\\udfff"}', 422),
        ("PUT", "/v1/subscriptions/b", b'{"id": "a", "expression": "a=1"}', 422),
        ("POST", "/v1/subscriptions", b'{"id": "..", "expression": "a=1"}', 422),
        ("GET", "/v1/subscriptions/%FF", None, 400),
        ("GET", "/v1/subscribers/nobody/messages", None, 404),
        ("GET", "/v1/events?limit=0", None, 400),
        ("GET", "/v1/events/-1", None, 404),
    ],
)
def test_errors_are_problem_objects(
    server: Running, method: str, path: str, body: bytes | None, status: int
) -> None:
    headers = {"content-type": "application/json"}
    answer = server.http.request(method, path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= answer.json().keys()
