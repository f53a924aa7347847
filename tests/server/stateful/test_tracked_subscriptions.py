"""Tracked subscriptions over HTTP: moving objects that enter, leave, cross and stay."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fencepost as fp
from fencepost.events import format_instant
from fencepost.server import Transaction
from tests.server.serving import Running, running
from tests.waiting import WAIT_S

SECOND = 10**9
START = 1_700_000_000 * SECOND
DEPOT = "S_INTERSECTS(geometry, BBOX(0, 0, 10, 10))"
ENTER_EXIT = {"key": "vehicle", "on": ["enter", "exit"]}


def at(second: float, x: float, y: float = 5.0, vehicle: Any = 7, **more: Any) -> dict[str, Any]:
    """Return a position of a vehicle at a second."""
    point = {"type": "Point", "coordinates": [x, y]}
    time = format_instant(START + round(second * SECOND))
    properties = {"vehicle": vehicle, "time": time, **more}
    return {"type": "Feature", "geometry": point, "properties": properties}


def track(server: Running, id: str, expression: str, rules: dict[str, Any], **more: Any) -> None:
    body = {"expression": expression, "track": rules, **more}
    answer = server.http.put(f"/v1/subscriptions/{id}", json=body)
    assert answer.status_code in (200, 201), answer.text


def publish(server: Running, *events: dict[str, Any]) -> dict[str, Any]:
    answer = server.http.post("/v1/events", json=list(events))
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def received(server: Running, subscriber: str) -> list[dict[str, Any]]:
    """Return the data of all messages of a subscriber."""
    data: list[dict[str, Any]] = []
    since = 0
    while page := server.http.get(
        f"/v1/subscribers/{subscriber}/messages", params={"since": since, "limit": 1000}
    ).json():
        assert all(message["type"] == "fencepost.notification" for message in page)
        data += [message["data"] for message in page]
        since = page[-1]["position"]
    return data


def kinds(notifications: list[dict[str, Any]]) -> list[tuple[str, Any, str, str]]:
    """Return kind, key, subscription and cause of each notification."""
    return [(n["kind"], n["key"], n["subscription"], n["cause"]) for n in notifications]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", space="planar") as server:
        yield server


def test_notifications_have_the_order_of_events(plane: Running) -> None:
    track(plane, "depot", DEPOT, ENTER_EXIT, subscriber="me", payload="P")
    track(plane, "half", "S_INTERSECTS(geometry, BBOX(5, 0, 10, 10))", ENTER_EXIT, subscriber="me")
    answer = publish(plane, at(0, -5), at(1, 4), {"vehicle": 7}, at(2, 6), {"x": 1}, at(3, 20))
    assert (answer["accepted"], answer["messages"]) == (6, 4)
    notifications = received(plane, "me")
    assert kinds(notifications) == [
        ("enter", 7, "depot", "movement"),
        ("enter", 7, "half", "movement"),
        ("exit", 7, "depot", "movement"),
        ("exit", 7, "half", "movement"),
    ]
    enter, _, leave, _ = notifications
    assert enter["event"] == at(1, 4)
    assert enter["position"] == 2
    assert enter["payload"] == "P"
    assert leave["since"] == enter["time"] == at(1, 4)["properties"]["time"]
    assert leave["time"] == leave["reported"] == at(3, 20)["properties"]["time"]
    [numbers] = plane.http.get("/v1/stats").json()["tracking"]
    assert (numbers["subscriptions"], numbers["objects"]) == (2, 1)
    assert (numbers["positions"], numbers["not_positions"], numbers["rejected"]) == (4, 2, 0)


@pytest.mark.parametrize("refresh", [True, False])
def test_subscriptions_change_while_an_object_is_inside(plane: Running, refresh: bool) -> None:
    rules = {**ENTER_EXIT, "refresh": True} if refresh else ENTER_EXIT
    track(plane, "far", "S_INTERSECTS(geometry, BBOX(90, 90, 99, 99))", rules, subscriber="me")
    publish(plane, at(0, 5))
    track(plane, "depot", DEPOT, rules, subscriber="me")
    if not refresh:
        assert received(plane, "me") == []
        publish(plane, at(1, 5))
    [enter] = received(plane, "me")
    assert kinds([enter]) == [("enter", 7, "depot", "rule")]
    assert ("event" in enter) == (not refresh)
    plane.http.delete("/v1/subscriptions/depot")
    if not refresh:
        publish(plane, at(2, 5))
    assert kinds(received(plane, "me"))[1:] == [("exit", 7, "depot", "rule")]


def test_rules_without_subscriptions_are_removed(plane: Running) -> None:
    track(plane, "depot", DEPOT, {**ENTER_EXIT, "refresh": True})
    publish(plane, at(0, 5))
    rows = "SELECT count(*) FROM state"
    with plane.service.database.reader() as connection:
        assert connection.execute(rows).fetchone() == (2,)
    track(plane, "depot", DEPOT, {**ENTER_EXIT, "debounce_s": 5})
    publish(plane, at(1, 5), at(10, 5))
    assert kinds(received(plane, "depot")) == [
        ("enter", 7, "depot", "movement"),
        ("exit", 7, "depot", "rule"),
        ("enter", 7, "depot", "movement"),
    ]
    plane.http.delete("/v1/subscriptions/depot")
    with plane.service.database.reader() as connection:
        assert connection.execute(rows).fetchone() == (0,)


def test_time_passes_for_rules_with_a_clock(tmp_path: Path) -> None:
    rules = {"key": "vehicle", "on": ["dwell"], "dwell_s": 60, "clock": True}
    with running(tmp_path, space="planar") as server:
        track(server, "depot", DEPOT, rules)
        track(server, "still", DEPOT, {**rules, "clock": False})
        publish(server, at(0, 5))  # years ago, so a minute has passed
        server.service.broker.change(Transaction.tick).result(WAIT_S)
        [dwell] = received(server, "depot")
        assert dwell["kind"] == "dwell"
        assert "event" not in dwell
        server.service.broker.change(Transaction.tick).result(WAIT_S)
        assert len(received(server, "depot")) == 1
        assert received(server, "still") == []
    with running(tmp_path, space="planar") as server:
        server.service.broker.change(Transaction.tick).result(WAIT_S)
        assert len(received(server, "depot")) == 1


def test_notifications_of_held_back_positions_have_their_events(plane: Running) -> None:
    track(plane, "depot", DEPOT, {**ENTER_EXIT, "lateness_s": 10})
    publish(plane, at(0, 5), at(2, 50))
    publish(plane, at(15, 60, vehicle="other"))
    notifications = received(plane, "depot")
    assert kinds(notifications) == [
        ("enter", 7, "depot", "movement"),
        ("exit", 7, "depot", "movement"),
    ]
    assert [notification["event"] for notification in notifications] == [at(0, 5), at(2, 50)]
    assert [notification["position"] for notification in notifications] == [1, 2]


RULES: dict[str, dict[str, Any]] = {
    "plain": ENTER_EXIT,
    "jitter": {"key": "vehicle", "on": ["enter", "exit"], "debounce_s": 3, "hysteresis": 1.5},
    "dwell": {"key": "vehicle", "on": ["dwell", "inside", "outside"], "dwell_s": 6},
    "cross": {"key": "vehicle", "on": ["cross", "exit"], "gap_s": 4, "lateness_s": 3},
    "forget": {"key": "vehicle", "on": ["enter"], "forget_after_s": 10},
}


def _walks(random: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Yield positions of a few vehicles, some of them late, and events that are no positions."""
    places = {key: [random.uniform(-5, 25), random.uniform(-5, 25)] for key in (1, "1", "b", 4)}
    for second in range(count):
        key = random.choice([*places])
        place = places[key]
        for axis in range(2):
            place[axis] += random.uniform(-6, 6) - 0.2 * (place[axis] - 10)
        late = random.choice([0.0, 0.0, 0.0, 1.5, 5.0])
        yield at(second / 2 - late, place[0], place[1], key)
        if random.random() < 0.1:
            yield random.choice([{"kind": "other"}, at(0, 0, vehicle=[1]), at(0, 0, vehicle=1.5)])


@pytest.mark.parametrize("seed", [1])
def test_notifications_equal_those_of_trackers_despite_restarts(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    fences: dict[tuple[str, int], str] = {}
    trackers = {
        name: fp.Tracker(fp.Matcher(space="planar"), dead_letters=[], **rules)
        for name, rules in RULES.items()
    }
    expected: dict[str, list[tuple[Any, ...]]] = {name: [] for name in RULES}
    events = list(_walks(chance, 400))
    for start in range(0, len(events), 50):
        with running(tmp_path, space="planar") as server:
            for name, tracker in trackers.items():
                for fence in range(6):
                    if start and chance.random() > 0.3:
                        continue
                    id = f"{name} {fence}"
                    if (name, fence) in fences and chance.random() < 0.4:
                        del fences[name, fence]
                        server.http.delete(f"/v1/subscriptions/{id}")
                        tracker.matcher.unsubscribe(id)
                        continue
                    x, y = chance.uniform(0, 16), chance.uniform(0, 16)
                    text = f"S_INTERSECTS(geometry, BBOX({x}, {y}, {x + 6}, {y + 6}))"
                    track(server, id, text, RULES[name], subscriber=name)
                    tracker.matcher.subscribe(id, text, subscriber=name, replace=True)
                    fences[name, fence] = text
            part = events[start : start + 50]
            for cut in range(0, len(part), 17):
                publish(server, *part[cut : cut + 17])
            for name, tracker in trackers.items():
                for event in part:
                    expected[name] += [
                        (n.kind, n.key, n.subscription, format_instant(n.time),
                         format_instant(n.since), format_instant(n.reported), n.cause)
                        for n in tracker.push(event)
                    ]  # fmt: skip
    with running(tmp_path, space="planar") as server:
        for name in RULES:
            actual = [
                tuple(notification[member] for member in
                      ("kind", "key", "subscription", "time", "since", "reported", "cause"))
                for notification in received(server, name)
            ]  # fmt: skip
            assert actual == expected[name], name
            assert len(actual) > 20, name


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([], "`track` must be an object"),
        ({}, "`key`"),
        ({"key": ""}, "name of an attribute"),
        ({"key": "v", "on": "enter"}, "list of kinds"),
        ({"key": "v", "on": ["leave"]}, "leave"),
        ({"key": "v", "on": ["dwell"]}, "dwell_s"),
        ({"key": "v", "debounce_s": -1}, "debounce_s"),
        ({"key": "v", "refresh": 1}, "`refresh`"),
        ({"key": "v", "speed": 1}, "'speed'"),
    ],
)
def test_invalid_rules_are_rejected(plane: Running, rules: Any, message: str) -> None:
    body = {"expression": DEPOT, "track": rules}
    answer = plane.http.put("/v1/subscriptions/a", json=body)
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_an_explanation_of_a_position(plane: Running) -> None:
    track(plane, "depot", DEPOT, ENTER_EXIT)
    response = plane.http.post("/v1/subscriptions/depot/explanation", json={"event": at(0, 20)})
    assert response.json()["matches"] is False
    assert "disjoint" in response.json()["text"]
