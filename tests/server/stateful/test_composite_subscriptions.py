"""Composites over HTTP: detections, over restarts too, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fencepost as fp
from fencepost.events import format_instant
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
    """Something of a kind at a second and a place."""
    found: dict[str, Any] = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [x, y]},
        "properties": {"kind": kind, "time": format_instant(START + round(second * SECOND))},
    }
    return found if id is None else {**found, "id": id}


def put(server: Running, id: str, composite: dict[str, Any], **more: Any) -> None:
    answer = server.http.put(f"/v1/subscriptions/{id}", json={"composite": composite, **more})
    assert answer.status_code in (200, 201), answer.text


def publish(server: Running, *events: dict[str, Any]) -> dict[str, Any]:
    answer = server.http.post("/v1/events", json=list(events))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def detections(server: Running, subscriber: str) -> list[dict[str, Any]]:
    """The data of all messages of a subscriber."""
    found: list[dict[str, Any]] = []
    since = 0
    while page := server.http.get(
        f"/v1/subscribers/{subscriber}/messages", params={"since": since, "limit": 1000}
    ).json():
        assert all(one["type"] == "fencepost.detection" for one in page)
        found += [one["data"] for one in page]
        since = page[-1]["position"]
    return found


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", space="planar") as found:
        yield found


def test_a_detection_says_who_when_and_where(plane: Running) -> None:
    put(plane, "meet", PICK_UP, subscriber="me", payload=[1])
    last = event("rider", 7, 3, 4)
    answer = publish(plane, event("taxi", 0, 0, 0.5, "t7"), {"kind": "taxi"}, last)
    assert (answer["accepted"], answer["messages"]) == (3, 1)
    [found] = detections(plane, "me")
    assert found == {
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


def test_composites_that_were_written_as_json_and_those_within_others(plane: Running) -> None:
    text = 'DIST((STRING:kind="taxi");<;5)(STRING:kind="rider")'
    composite = parse_ops4st(text, id="text", within_s=60)
    assert isinstance(composite, fp.Composite)
    given = composite.to_json()
    del given["id"]
    put(plane, "text", given)
    inner = {"id": "pair", **PICK_UP}
    nested = {"pair": inner, "third": "kind = 'dog'"}
    put(plane, "nested", {"members": nested, "where": ["DIST(pair, third) <= 1"], "within_s": 60})
    publish(plane, event("taxi", 0, 0, 0), event("dog", 1, 2, 1), event("rider", 2, 4, 0))
    [found] = detections(plane, "text")
    assert {one["position"] for one in found["members"].values()} == {1, 3}
    [found] = detections(plane, "nested")
    assert found["members"]["third"] == {"position": 2, "id": None}
    assert found["members"]["pair"]["members"]["rider"] == {"position": 3, "id": None}


def test_composites_come_change_end_and_go(plane: Running) -> None:
    publish(plane, event("taxi", 0, 0, 0))
    put(plane, "meet", PICK_UP)
    publish(plane, event("rider", 1, 0, 0))  # the taxi came before it was asked for
    assert detections(plane, "meet") == []
    publish(plane, event("taxi", 2, 0, 0))
    assert len(detections(plane, "meet")) == 1
    put(plane, "meet", PICK_UP)  # says the same, so nothing is forgotten
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
    found: list[dict[str, Any]] = []
    for number in range(count):
        kind = chance.choice(["taxi", "rider", "dog"])
        late = chance.choice([0.0, 0.0, 3.0, 90.0])
        x, y = chance.uniform(0, 60), chance.uniform(0, 60)
        found.append(event(kind, 2 * number - late, x, y, f"e{number}"))
        if chance.random() < 0.1:
            found.append({"kind": "taxi", "time": "soon"})
    return found


@pytest.mark.parametrize(("seed", "space"), [(1, "planar"), (3, "wgs84")])
def test_it_is_what_a_detector_finds_over_restarts_too(
    tmp_path: Path, seed: int, space: str
) -> None:
    chance = random.Random(seed)
    unit = 1.0 if space == "planar" else 111_000.0
    detector = fp.Detector(lateness_s=60, space=space)
    wanted: list[tuple[str, int, str]] = []
    there: set[str] = set()
    position = 0
    ids: dict[Any, int] = {}
    events = _stream(chance, 200)
    for start in range(0, len(events), 40):
        with running(tmp_path, space=space) as server:
            for id in ("p", "q", "r"):
                if id in there and chance.random() < 0.3:
                    there.remove(id)
                    server.http.delete(f"/v1/subscriptions/{id}")
                    detector.remove(id)
                elif id not in there and (not start or chance.random() < 0.7):
                    there.add(id)
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
            for given in part:
                position += 1
                ids[given.get("id")] = position
                found = detector.push(given, dead_letters=[])
                for one in found:
                    members = sorted(ids[member] for member in one.members.values())
                    wanted.append((one.composite, position, repr(members)))
    with running(tmp_path, space=space) as server:
        got = [
            (one["subscription"], one["position"],
             repr(sorted(member["position"] for member in one["members"].values())))
            for one in detections(server, "me")
        ]  # fmt: skip
    assert len(wanted) > 20
    assert sorted(got) == sorted(wanted)
    assert [one[1] for one in got] == sorted(one[1] for one in got)


def test_events_may_go_from_the_log_before_a_restart(tmp_path: Path) -> None:
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
        [found] = detections(server, "meet")
        assert found["members"]["taxi"] == {"position": 1, "id": "t"}


def test_one_event_completes_a_bounded_number(tmp_path: Path) -> None:
    limits = Limits(detections_per_event=7, live_members=50)
    with running(tmp_path, space="planar", limits=limits) as server:
        anything = {"members": {"a": "kind = 'x'", "b": "kind = 'x'", "c": "kind = 'x'"}}
        put(server, "all", {**anything, "within_s": 1000})
        for second in range(80):
            publish(server, event("x", second, 0, 0))
        numbers = server.http.get("/v1/stats").json()["composites"]
        assert numbers["live"] <= 50
        assert numbers["cut_short"] > 0
        found = detections(server, "all")
        assert max(sum(one["position"] == p for one in found) for p in range(81)) <= 21


@pytest.mark.parametrize(
    ("composite", "said"),
    [
        ("IN(a)b", "`composite` is an object"),
        ({}, "members"),
        ({"members": {"a": "x = 1"}}, "within_s"),
        ({"members": {"a": "x ="}, "within_s": 5}, "member 'a'"),
        ({"members": {"a": "x = 1"}, "where": ["DIST(a, b) < 5"], "within_s": 5}, "'b'"),
        ({"members": {"a": "x = 1"}, "within_s": 5, "id": "mine"}, "'id'"),
        ({"members": {f"m{n}": "x = 1" for n in range(9)}, "within_s": 5}, "9 members"),
        ({"ops4st": '(STRING:kind="taxi")', "within_s": 5}, "'ops4st'"),
    ],
)
def test_composites_that_mean_nothing_are_refused(
    plane: Running, composite: Any, said: str
) -> None:
    answer = plane.http.put("/v1/subscriptions/a", json={"composite": composite})
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["detail"]


def test_why_an_event_plays_a_part(plane: Running) -> None:
    put(plane, "meet", PICK_UP)
    publish(plane, event("taxi", 0, 0, 0))
    found = plane.http.get("/v1/subscriptions/meet/explanation", params={"event": 1}).json()
    assert found["matches"] is True
    outcomes = {name: one["outcome"] for name, one in found["explanation"]["members"].items()}
    assert outcomes == {"taxi": "true", "rider": "false"}
    dog = {"event": event("dog", 0, 0, 0)}
    assert not plane.http.post("/v1/subscriptions/meet/explanation", json=dog).json()["matches"]
