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
    """A point with properties."""
    place = {"type": "Point", "coordinates": [x, y]}
    return {"type": "Feature", "geometry": place, "properties": properties}


def subscribe(server: Running, id: str, expression: str = TAXI, **more: Any) -> None:
    made = server.http.put(f"/v1/subscriptions/{id}", json={"expression": expression, **more})
    assert made.status_code == 201, made.text


def messages(server: Running, subscriber: str, **query: Any) -> list[dict[str, Any]]:
    answer = server.http.get(f"/v1/subscribers/{subscriber}/messages", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/cloudevents-batch+json")
    found: list[dict[str, Any]] = answer.json()
    return found


def test_an_event_reaches_those_whom_it_answers(server: Running) -> None:
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
    seen = [one["data"]["event"]["properties"]["number"] for one in messages(server, "a")]
    assert seen == [0, 1, 2, 3, 4]
    third = messages(server, "a")[2]["position"]
    answer = server.http.post("/v1/subscribers/a/acknowledgement", json={"position": third})
    assert answer.json() == {"acknowledged": third, "depth": 2}
    assert [one["position"] for one in messages(server, "a")] == [third + 1, third + 2]
    assert len(messages(server, "a", since=0)) == 5
    assert len(messages(server, "a", since=0, limit=2)) == 2
    back = server.http.post("/v1/subscribers/a/acknowledgement", json={"position": 1})
    assert back.json()["acknowledged"] == third


def _lines(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    return "\n".join(json.dumps(one) for one in events).encode(), "application/x-ndjson"


def _collection(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    whole = {"type": "FeatureCollection", "features": events}
    return json.dumps(whole, indent=2).encode(), "application/geo+json"


def _list(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    return json.dumps(events).encode(), "application/json"


def _arrow(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    rows = [{"geometry": one["geometry"], **one["properties"]} for one in events]
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue(), "application/vnd.apache.arrow.stream"


@pytest.mark.parametrize("written", [_lines, _collection, _list, _arrow])
def test_many_events_in_one_request(server: Running, written: Any) -> None:
    subscribe(server, "a", subscriber="me")
    events = [feature(5 * n, 1, kind="taxi", number=n) for n in range(5)]
    body, type = written(events)
    answer = server.http.post("/v1/events", content=body, headers={"content-type": type})
    assert answer.json()["accepted"] == 5, answer.text
    found = [one["data"]["event"] for one in messages(server, "me")]
    assert found == events[:3]


def test_bad_events_are_told_and_the_others_are_taken(server: Running) -> None:
    subscribe(server, "a")
    body = b'{"kind": "taxi"}\n[1]\nnonsense\n\n{"geometry": {"type": "Point"}, "kind": "taxi"}\n'
    answer = server.http.post(
        "/v1/events", content=body, headers={"content-type": "application/x-ndjson"}
    ).json()
    assert answer["accepted"] == 1
    assert [one["row"] for one in answer["rejected"]] == [1, 2, 3]
    assert "array" in answer["rejected"][0]["reason"]
    alone = server.http.post("/v1/events", json={"geometry": {"type": "Point"}})
    assert alone.status_code == 422
    assert alone.headers["content-type"] == "application/problem+json"


def test_a_publication_of_a_name_is_taken_once(server: Running) -> None:
    subscribe(server, "a", "kind = 'taxi'")
    headers = {"idempotency-key": "batch 7"}
    first = server.http.post("/v1/events", json=feature(0, 0, kind="taxi"), headers=headers)
    again = server.http.post("/v1/events", json=feature(0, 0, kind="taxi"), headers=headers)
    assert first.json() == again.json()
    assert len(messages(server, "a")) == 1


def test_subscriptions_are_made_replaced_listed_and_removed(server: Running) -> None:
    for id, quoted in (("a/1", "a%2F1"), ("b", "b"), ("c", "c")):
        subscribe(server, quoted, f"name = '{id}'", subscriber="me" if id != "c" else "you")
    again = server.http.put("/v1/subscriptions/b", json={"expression": "name = 'new'"})
    assert again.status_code == 200
    kept = server.http.put(
        "/v1/subscriptions/b", json={"expression": "a = 1"}, headers={"if-none-match": "*"}
    )
    assert kept.status_code == 409
    assert server.http.post("/v1/subscriptions", json={"id": "b", "expression": "a=1"}).is_error
    listed = server.http.get("/v1/subscriptions", params={"limit": 2}).json()
    assert [one["id"] for one in listed["subscriptions"]] == ["a/1", "b"]
    rest = server.http.get("/v1/subscriptions", params={"after": listed["next"]}).json()
    assert [one["id"] for one in rest["subscriptions"]] == ["c"]
    assert rest["next"] is None
    mine = server.http.get("/v1/subscriptions", params={"subscriber": "me"}).json()
    assert [one["id"] for one in mine["subscriptions"]] == ["a/1"]
    new = server.http.get("/v1/subscriptions", params={"contains": "NEW"}).json()
    assert [one["id"] for one in new["subscriptions"]] == ["b"]
    assert server.http.delete("/v1/subscriptions/a%2F1").status_code == 204
    assert server.http.delete("/v1/subscriptions/a%2F1").status_code == 404
    assert server.http.get("/v1/subscriptions/a%2F1").status_code == 404
    assert server.http.post("/v1/events", json={"name": "new"}).json()["messages"] == 1
    assert server.http.post("/v1/events", json={"name": "a/1"}).json()["messages"] == 0


@pytest.mark.parametrize("id", ["a/explanation", "...", "ä\u2603 %41", "a?b#c", "explanation"])
def test_ids_of_any_characters(server: Running, id: str) -> None:
    subscribe(server, quote(id, safe=""), "n = 1", subscriber=f"{id}/messages")
    found = server.http.get(f"/v1/subscriptions/{quote(id, safe='')}").json()
    assert (found["id"], found["subscriber"]) == (id, f"{id}/messages")
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
    assert [one["row"] for one in answer["rejected"]] == [3]
    assert server.http.post("/v1/events", json={"n": 599}).json()["messages"] == 1


def test_why_an_event_matches(server: Running) -> None:
    subscribe(server, "a")
    server.http.post("/v1/events", json=feature(20, 0, kind="taxi"))
    missed = server.http.get("/v1/subscriptions/a/explanation", params={"event": 1}).json()
    assert missed["matches"] is False
    assert "disjoint" in missed["text"]
    event = {"event": feature(1, 1, kind="taxi")}
    assert server.http.post("/v1/subscriptions/a/explanation", json=event).json()["matches"]
    tried = server.http.post("/v1/try", json={"expression": "a > 3", "events": [{"a": 4}, {}]})
    assert [one["matches"] for one in tried.json()["results"]] == [True, False]


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        subscribe(server, "a", "kind = 'taxi'", subscriber="me")
        subscribe(server, "b", "kind = 'taxi'", expires="2020-01-01T00:00:00Z")
        for _ in range(3):
            server.http.post("/v1/events", json=feature(0, 0, kind="taxi"))
        server.http.post("/v1/subscribers/me/acknowledgement", json={"position": 2})
    with running(tmp_path) as server:
        assert [one["position"] for one in messages(server, "me")] == [3]
        answer = server.http.post("/v1/events", json=feature(0, 0, kind="taxi")).json()
        assert (answer["first"], answer["messages"]) == (4, 1)
        assert [one["position"] for one in messages(server, "me")] == [3, 4]


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
def test_what_is_refused_has_one_shape(
    server: Running, method: str, path: str, body: bytes | None, status: int
) -> None:
    headers = {"content-type": "application/json"}
    answer = server.http.request(method, path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= answer.json().keys()
