"""The state of composites and trackers survives `kill -9`: messages are the same as without."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from fencepost.events import format_instant
from tests.server.child import Child
from tests.server.serving import running

SECOND = 10**9
START = 1_700_000_000 * SECOND
KILLS = 3

SUBSCRIPTIONS: list[dict[str, Any]] = [
    {
        "id": "depot",
        "expression": "S_INTERSECTS(geometry, BBOX(2, 2, 8, 8))",
        "track": {"key": "vehicle", "on": ["enter", "exit"], "debounce_s": 0.5, "lateness_s": 3},
    },
    {
        "id": "stay",
        "expression": "S_INTERSECTS(geometry, BBOX(4, 0, 9, 9))",
        "track": {"key": "vehicle", "on": ["dwell", "cross", "outside"], "dwell_s": 4},
    },
    {
        "id": "meet",
        "composite": {
            "members": {"a": "vehicle <= 2", "b": "vehicle > 2"},
            "where": ["DIST(a, b) < 1"],
            "within_s": 20,
        },
    },
    {"id": "plain", "expression": "vehicle = 1"},
]


def _batches(chance: random.Random, count: int) -> list[list[dict[str, Any]]]:
    places = {vehicle: [chance.uniform(0, 9), chance.uniform(0, 9)] for vehicle in range(5)}
    batches = []
    second = 0.0
    for _ in range(count):
        batch = []
        for _ in range(chance.choice([1, 3, 8])):
            vehicle = chance.randrange(5)
            place = places[vehicle]
            place[:] = (
                min(9.0, max(0.0, coordinate + chance.uniform(-3, 3))) for coordinate in place
            )
            second += chance.choice([0.25, 0.5, 1.0])
            time = format_instant(START + round((second - chance.choice([0, 0, 2])) * SECOND))
            point = {"type": "Point", "coordinates": [*place]}
            batch.append({"geometry": point, "vehicle": vehicle, "time": time})
        batches.append(batch)
    return batches


def _post(http: httpx.Client, number: int, batch: list[dict[str, Any]]) -> None:
    headers = {"idempotency-key": f"batch {number}"}
    answer = http.post("/v1/events", json=batch, headers=headers)
    assert answer.json()["accepted"] == len(batch), answer.text


def _changes(http: httpx.Client, number: int) -> None:
    """Add or remove a subscription at some batches; repeating the change has no effect."""
    if number % 12 == 6:
        definition = {**SUBSCRIPTIONS[number // 12 % 3], "id": f"later {number}"}
        answer = http.put(f"/v1/subscriptions/later {number}", json=definition)
        assert answer.status_code in (200, 201), answer.text
    if number % 12 == 11:
        answer = http.delete(f"/v1/subscriptions/later {number - 5}")
        assert answer.status_code in (204, 404), answer.text


def _received(http: httpx.Client) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return type and data of all messages of each subscriber."""
    messages: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    names = http.get("/v1/subscribers").json()["subscribers"]
    for name in (subscriber["subscriber"] for subscriber in names):
        since = 0
        messages[name] = []
        while page := http.get(
            f"/v1/subscribers/{name}/messages", params={"since": since, "limit": 1000}
        ).json():
            messages[name] += [(message["type"], message["data"]) for message in page]
            since = page[-1]["position"]
    return messages


@pytest.mark.slow
def test_state_survives_kills(tmp_path: Path) -> None:
    chance = random.Random(9)
    batches = _batches(chance, 50)
    with running(tmp_path / "whole", space="planar") as server:
        for subscription in SUBSCRIPTIONS:
            server.http.post("/v1/subscriptions", json=subscription)
        for number, batch in enumerate(batches):
            _changes(server.http, number)
            _post(server.http, number, batch)
        expected = _received(server.http)

    fatal = {*chance.sample(range(2, len(batches)), KILLS)}
    killed = Child(tmp_path / "killed", "planar")
    try:
        for subscription in SUBSCRIPTIONS:
            killed.http.post("/v1/subscriptions", json=subscription)
        for number, batch in enumerate(batches):
            if number in fatal:
                timer = threading.Timer(chance.uniform(0.0, 0.01), killed.kill)
                timer.start()
                with suppress(httpx.HTTPError):  # the request may or may not have been committed
                    _changes(killed.http, number)
                    _post(killed.http, number, batch)
                timer.join()
                killed.close()
                killed = Child(tmp_path / "killed", "planar")
            _changes(killed.http, number)
            _post(killed.http, number, batch)
        actual = _received(killed.http)
    finally:
        killed.close()
    assert {name: len(messages) for name, messages in actual.items()} == {
        name: len(messages) for name, messages in expected.items()
    }
    assert actual == expected
    assert all(len(actual[name]) > 3 for name in ("depot", "stay", "meet", "plain"))
