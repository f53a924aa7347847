"""Subscriptions that follow objects: what they enter, leave, cross and stay in."""

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
    """Where a vehicle is at a second."""
    place = {"type": "Point", "coordinates": [x, y]}
    time = format_instant(START + round(second * SECOND))
    properties = {"vehicle": vehicle, "time": time, **more}
    return {"type": "Feature", "geometry": place, "properties": properties}


def track(server: Running, id: str, expression: str, rules: dict[str, Any], **more: Any) -> None:
    body = {"expression": expression, "track": rules, **more}
    answer = server.http.put(f"/v1/subscriptions/{id}", json=body)
    assert answer.status_code in (200, 201), answer.text


def publish(server: Running, *events: dict[str, Any]) -> dict[str, Any]:
    answer = server.http.post("/v1/events", json=list(events))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def told(server: Running, subscriber: str) -> list[dict[str, Any]]:
    """The data of all messages of a subscriber."""
    found: list[dict[str, Any]] = []
    since = 0
    while page := server.http.get(
        f"/v1/subscribers/{subscriber}/messages", params={"since": since, "limit": 1000}
    ).json():
        assert all(one["type"] == "fencepost.notification" for one in page)
        found += [one["data"] for one in page]
        since = page[-1]["position"]
    return found


def kinds(found: list[dict[str, Any]]) -> list[tuple[str, Any, str, str]]:
    """What happened to which subscription, when, and why."""
    return [(one["kind"], one["key"], one["subscription"], one["cause"]) for one in found]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", space="planar") as found:
        yield found


def test_entering_and_leaving_is_told_in_the_order_of_events(plane: Running) -> None:
    track(plane, "depot", DEPOT, ENTER_EXIT, subscriber="me", payload="P")
    track(plane, "half", "S_INTERSECTS(geometry, BBOX(5, 0, 10, 10))", ENTER_EXIT, subscriber="me")
    answer = publish(plane, at(0, -5), at(1, 4), {"vehicle": 7}, at(2, 6), {"x": 1}, at(3, 20))
    assert (answer["accepted"], answer["messages"]) == (6, 4)
    found = told(plane, "me")
    assert kinds(found) == [
        ("enter", 7, "depot", "movement"),
        ("enter", 7, "half", "movement"),
        ("exit", 7, "depot", "movement"),
        ("exit", 7, "half", "movement"),
    ]
    enter, _, leave, _ = found
    assert enter["event"] == at(1, 4)
    assert enter["position"] == 2
    assert enter["payload"] == "P"
    assert leave["since"] == enter["time"] == at(1, 4)["properties"]["time"]
    assert leave["time"] == leave["reported"] == at(3, 20)["properties"]["time"]
    [numbers] = plane.http.get("/v1/stats").json()["tracking"]
    assert (numbers["subscriptions"], numbers["objects"]) == (2, 1)
    assert (numbers["positions"], numbers["not_positions"], numbers["rejected"]) == (4, 2, 0)


@pytest.mark.parametrize("refresh", [True, False])
def test_a_subscription_that_comes_or_goes_under_an_object(plane: Running, refresh: bool) -> None:
    rules = {**ENTER_EXIT, "refresh": True} if refresh else ENTER_EXIT
    track(plane, "far", "S_INTERSECTS(geometry, BBOX(90, 90, 99, 99))", rules, subscriber="me")
    publish(plane, at(0, 5))
    track(plane, "depot", DEPOT, rules, subscriber="me")
    if not refresh:
        assert told(plane, "me") == []
        publish(plane, at(1, 5))
    [enter] = told(plane, "me")
    assert kinds([enter]) == [("enter", 7, "depot", "rule")]
    assert ("event" in enter) == (not refresh)
    plane.http.delete("/v1/subscriptions/depot")
    if not refresh:
        publish(plane, at(2, 5))
    assert kinds(told(plane, "me"))[1:] == [("exit", 7, "depot", "rule")]


def test_rules_without_subscriptions_are_forgotten(plane: Running) -> None:
    track(plane, "depot", DEPOT, {**ENTER_EXIT, "refresh": True})
    publish(plane, at(0, 5))
    rows = "SELECT count(*) FROM state"
    with plane.service.database.reader() as connection:
        assert connection.execute(rows).fetchone() == (2,)
    track(plane, "depot", DEPOT, {**ENTER_EXIT, "debounce_s": 5})
    publish(plane, at(1, 5), at(10, 5))
    assert kinds(told(plane, "depot")) == [
        ("enter", 7, "depot", "movement"),
        ("exit", 7, "depot", "rule"),
        ("enter", 7, "depot", "movement"),
    ]
    plane.http.delete("/v1/subscriptions/depot")
    with plane.service.database.reader() as connection:
        assert connection.execute(rows).fetchone() == (0,)


def test_time_goes_by_where_a_clock_is_wanted(tmp_path: Path) -> None:
    rules = {"key": "vehicle", "on": ["dwell"], "dwell_s": 60, "clock": True}
    with running(tmp_path, space="planar") as server:
        track(server, "depot", DEPOT, rules)
        track(server, "still", DEPOT, {**rules, "clock": False})
        publish(server, at(0, 5))  # years ago: a minute has gone by
        server.service.broker.change(Transaction.tick).result(WAIT_S)
        [dwell] = told(server, "depot")
        assert dwell["kind"] == "dwell"
        assert "event" not in dwell
        server.service.broker.change(Transaction.tick).result(WAIT_S)
        assert len(told(server, "depot")) == 1
        assert told(server, "still") == []
    with running(tmp_path, space="planar") as server:
        server.service.broker.change(Transaction.tick).result(WAIT_S)
        assert len(told(server, "depot")) == 1


def test_positions_that_waited_are_told_with_their_own_events(plane: Running) -> None:
    track(plane, "depot", DEPOT, {**ENTER_EXIT, "lateness_s": 10})
    publish(plane, at(0, 5), at(2, 50))
    publish(plane, at(15, 60, vehicle="other"))
    found = told(plane, "depot")
    assert kinds(found) == [("enter", 7, "depot", "movement"), ("exit", 7, "depot", "movement")]
    assert [one["event"] for one in found] == [at(0, 5), at(2, 50)]
    assert [one["position"] for one in found] == [1, 2]


RULES: dict[str, dict[str, Any]] = {
    "plain": ENTER_EXIT,
    "jitter": {"key": "vehicle", "on": ["enter", "exit"], "debounce_s": 3, "hysteresis": 1.5},
    "dwell": {"key": "vehicle", "on": ["dwell", "inside", "outside"], "dwell_s": 6},
    "cross": {"key": "vehicle", "on": ["cross", "exit"], "gap_s": 4, "lateness_s": 3},
    "forget": {"key": "vehicle", "on": ["enter"], "forget_after_s": 10},
}


def _walks(random: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Positions of a few vehicles, some of them late or twice, and events that are none."""
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
def test_it_is_what_trackers_tell_over_restarts_too(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    fences: dict[tuple[str, int], str] = {}
    trackers = {
        name: fp.Tracker(fp.Matcher(), dead_letters=[], **rules) for name, rules in RULES.items()
    }
    wanted: dict[str, list[tuple[Any, ...]]] = {name: [] for name in RULES}
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
                    wanted[name] += [
                        (one.kind, one.key, one.subscription, format_instant(one.time),
                         format_instant(one.since), format_instant(one.reported), one.cause)
                        for one in tracker.push(event)
                    ]  # fmt: skip
    with running(tmp_path, space="planar") as server:
        for name in RULES:
            found = [
                tuple(one[member] for member in
                      ("kind", "key", "subscription", "time", "since", "reported", "cause"))
                for one in told(server, name)
            ]  # fmt: skip
            assert found == wanted[name], name
            assert len(found) > 20, name


@pytest.mark.parametrize(
    ("rules", "said"),
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
def test_rules_that_mean_nothing_are_refused(plane: Running, rules: Any, said: str) -> None:
    body = {"expression": DEPOT, "track": rules}
    answer = plane.http.put("/v1/subscriptions/a", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


def test_why_a_position_is_in_a_fence(plane: Running) -> None:
    track(plane, "depot", DEPOT, ENTER_EXIT)
    found = plane.http.post("/v1/subscriptions/depot/explanation", json={"event": at(0, 20)})
    assert found.json()["matches"] is False
    assert "disjoint" in found.json()["text"]
