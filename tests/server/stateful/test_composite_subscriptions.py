"""Composites over HTTP: detections, restarts, and rejected definitions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fencepost as fp
from fencepost.events import format_instant
from fencepost.geometry import SpaceName
from fencepost.papers.events import parse_ops4st
from fencepost.server import Limits
from fencepost.server.service import delete_events
from tests.server.serving import Running, running
from tests.waiting import WAIT_S

SECOND = 10**9
START = 1_700_000_000 * SECOND
PICK_UP = {
    "members": {"taxi": "kind = 'taxi'", "rider": "kind = 'rider'"},
    "where": ["DIST(taxi, rider) < 5"],
    "within_s": 60,
}


def event(kind: str, second: float, x: float, y: float, id: object = None) -> dict[str, Any]:
    """Return an event of a kind at a second and a location."""
    feature: dict[str, Any] = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [x, y]},
        "properties": {"kind": kind, "time": format_instant(START + round(second * SECOND))},
    }
    return feature if id is None else {**feature, "id": id}


def put(server: Running, id: str, composite: dict[str, Any], **more: Any) -> None:
    answer = server.http.put(f"/v1/subscriptions/{id}", json={"composite": composite, **more})
    assert answer.status_code in (200, 201), answer.text


def publish(server: Running, *events: dict[str, Any]) -> dict[str, Any]:
    answer = server.http.post("/v1/events", json=list(events))
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def detections(server: Running, subscriber: str) -> list[dict[str, Any]]:
    """Return the data of all messages of a subscriber."""
    data: list[dict[str, Any]] = []
    since = 0
    while page := server.http.get(
        f"/v1/subscribers/{subscriber}/messages", params={"since": since, "limit": 1000}
    ).json():
        assert all(message["type"] == "fencepost.detection" for message in page)
        data += [message["data"] for message in page]
        since = page[-1]["position"]
    return data


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", space="planar") as server:
        yield server


def test_the_data_of_a_detection(plane: Running) -> None:
    put(plane, "meet", PICK_UP, subscriber="me", payload=[1])
    last = event("rider", 7, 3, 4)
    answer = publish(plane, event("taxi", 0, 0, 0.5, "t7"), {"kind": "taxi"}, last)
    assert (answer["accepted"], answer["messages"]) == (3, 1)
    [detection] = detections(plane, "me")
    assert detection == {
        "subscription": "meet",
        "members": {"taxi": {"position": 1, "id": "t7"}, "rider": {"position": 3, "id": None}},
        "earliest": format_instant(START),
        "latest": format_instant(START + 7 * SECOND),
        "geometry": {"type": "LineString", "coordinates": [[0.0, 0.5], [3.0, 4.0]]},
        "payload": [1],
        "position": 3,
        "event": last,
    }
    numbers = plane.http.get("/v1/stats").json()["composites"]
    assert (numbers["composites"], numbers["live"], numbers["no_time"]) == (1, 2, 1)


def test_converted_and_nested_composites(plane: Running) -> None:
    text = 'DIST((STRING:kind="taxi");<;5)(STRING:kind="rider")'
    composite = parse_ops4st(text, id="text", within_s=60)
    assert isinstance(composite, fp.Composite)
    definition = composite.to_json()
    del definition["id"]
    put(plane, "text", definition)
    inner = {"id": "pair", **PICK_UP}
    nested = {"pair": inner, "third": "kind = 'dog'"}
    put(plane, "nested", {"members": nested, "where": ["DIST(pair, third) <= 1"], "within_s": 60})
    publish(plane, event("taxi", 0, 0, 0), event("dog", 1, 2, 1), event("rider", 2, 4, 0))
    [detection] = detections(plane, "text")
    assert {member["position"] for member in detection["members"].values()} == {1, 3}
    [detection] = detections(plane, "nested")
    assert detection["members"]["third"] == {"position": 2, "id": None}
    assert detection["members"]["pair"]["members"]["rider"] == {"position": 3, "id": None}


def test_composites_are_added_changed_and_removed(plane: Running) -> None:
    publish(plane, event("taxi", 0, 0, 0))
    put(plane, "meet", PICK_UP)
    publish(plane, event("rider", 1, 0, 0))  # the taxi came before the subscription
    assert detections(plane, "meet") == []
    publish(plane, event("taxi", 2, 0, 0))
    assert len(detections(plane, "meet")) == 1
    put(plane, "meet", PICK_UP)  # an equal definition keeps the state
    publish(plane, event("taxi", 3, 0, 0))
    assert len(detections(plane, "meet")) == 2
    put(plane, "meet", {**PICK_UP, "within_s": 30})
    publish(plane, event("taxi", 4, 0, 0))
    assert len(detections(plane, "meet")) == 2
    put(plane, "over", PICK_UP, expires="2020-01-01T00:00:00Z")
    publish(plane, event("taxi", 5, 0, 0), event("rider", 5, 0, 0))
    assert detections(plane, "over") == []
    assert plane.http.delete("/v1/subscriptions/meet").status_code == 204
    count = len(detections(plane, "meet"))
    publish(plane, event("rider", 6, 0, 0))
    assert len(detections(plane, "meet")) == count


def _stream(chance: random.Random, count: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for number in range(count):
        kind = chance.choice(["taxi", "rider", "dog"])
        late = chance.choice([0.0, 0.0, 3.0, 90.0])
        x, y = chance.uniform(0, 60), chance.uniform(0, 60)
        events.append(event(kind, 2 * number - late, x, y, f"e{number}"))
        if chance.random() < 0.1:
            events.append({"kind": "taxi", "time": "soon"})
    return events


@pytest.mark.parametrize(("seed", "space"), [(1, "planar"), (3, "wgs84")])
def test_detections_equal_those_of_a_detector_despite_restarts(
    tmp_path: Path, seed: int, space: SpaceName
) -> None:
    chance = random.Random(seed)
    unit = 1.0 if space == "planar" else 111_000.0
    detector = fp.Detector(lateness_s=60, space=space)
    expected: list[tuple[str, int, str]] = []
    existing: set[str] = set()
    position = 0
    ids: dict[Any, int] = {}
    events = _stream(chance, 200)
    for start in range(0, len(events), 40):
        with running(tmp_path, space=space) as server:
            for id in ("p", "q", "r"):
                if id in existing and chance.random() < 0.3:
                    existing.remove(id)
                    server.http.delete(f"/v1/subscriptions/{id}")
                    detector.remove(id)
                elif id not in existing and (not start or chance.random() < 0.7):
                    existing.add(id)
                    composite: dict[str, Any] = {
                        "members": {"a": "kind = 'taxi'", "b": "kind = 'rider'"},
                        "where": [f"DIST(a, b) < {chance.choice([5, 10, 15]) * unit}"],
                        "within_s": chance.choice([30, 120]),
                    }
                    put(server, id, composite, subscriber="me")
                    detector.add(fp.Composite(id, **composite))
            part = events[start : start + 40]
            for cut in range(0, len(part), 13):
                publish(server, *part[cut : cut + 13])
            for published in part:
                position += 1
                ids[published.get("id")] = position
                completed = detector.push(published, dead_letters=[])
                for detection in completed:
                    members = sorted(ids[member] for member in detection.members.values())
                    expected.append((detection.composite, position, repr(members)))
    with running(tmp_path, space=space) as server:
        actual = [
            (detection["subscription"], detection["position"],
             repr(sorted(member["position"] for member in detection["members"].values())))
            for detection in detections(server, "me")
        ]  # fmt: skip
    assert len(expected) > 20
    assert sorted(actual) == sorted(expected)
    assert [triple[1] for triple in actual] == sorted(triple[1] for triple in actual)


def test_events_may_leave_the_log_before_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, space="planar") as server:
        put(server, "meet", PICK_UP)
        publish(server, event("taxi", 0, 0, 0, "t"))
        publish(server, event("dog", 1, 50, 50))
        server.service.broker.change(lambda transaction: delete_events(transaction, 2)).result(
            WAIT_S
        )
        with server.service.database.reader() as connection:
            assert connection.execute("SELECT count(*) FROM event").fetchone() == (0,)
    with running(tmp_path, space="planar") as server:
        publish(server, event("rider", 2, 0, 0))
        [detection] = detections(server, "meet")
        assert detection["members"]["taxi"] == {"position": 1, "id": "t"}


def test_detections_of_an_event_are_bounded(tmp_path: Path) -> None:
    limits = Limits(detections_per_event=7, live_members=50)
    with running(tmp_path, space="planar", limits=limits) as server:
        anything = {"members": {"a": "kind = 'x'", "b": "kind = 'x'", "c": "kind = 'x'"}}
        put(server, "all", {**anything, "within_s": 1000})
        for second in range(80):
            publish(server, event("x", second, 0, 0))
        numbers = server.http.get("/v1/stats").json()["composites"]
        assert numbers["live"] <= 50
        assert numbers["cut_short"] > 0
        all_detections = detections(server, "all")
        assert (
            max(sum(detection["position"] == p for detection in all_detections) for p in range(81))
            <= 21
        )


@pytest.mark.parametrize(
    ("composite", "message"),
    [
        ("IN(a)b", "`composite` must be an object"),
        ({}, "members"),
        ({"members": {"a": "x = 1"}}, "within_s"),
        ({"members": {"a": "x ="}, "within_s": 5}, "member 'a'"),
        ({"members": {"a": "x = 1"}, "where": ["DIST(a, b) < 5"], "within_s": 5}, "'b'"),
        ({"members": {"a": "x = 1"}, "within_s": 5, "id": "mine"}, "'id'"),
        ({"members": {f"m{n}": "x = 1" for n in range(9)}, "within_s": 5}, "9 members"),
        ({"ops4st": '(STRING:kind="taxi")', "within_s": 5}, "'ops4st'"),
    ],
)
def test_invalid_composites_are_rejected(plane: Running, composite: Any, message: str) -> None:
    answer = plane.http.put("/v1/subscriptions/a", json={"composite": composite})
    assert answer.status_code == 422, answer.text
    assert message in answer.json()["detail"]


def test_an_explanation_has_the_members(plane: Running) -> None:
    put(plane, "meet", PICK_UP)
    publish(plane, event("taxi", 0, 0, 0))
    result = plane.http.get("/v1/subscriptions/meet/explanation", params={"event": 1}).json()
    assert result["matches"] is True
    outcomes = {
        name: member["outcome"] for name, member in result["explanation"]["members"].items()
    }
    assert outcomes == {"taxi": "true", "rider": "false"}
    dog = {"event": event("dog", 0, 0, 0)}
    assert not plane.http.post("/v1/subscriptions/meet/explanation", json=dog).json()["matches"]
