"""What composites and trackers know survives `kill -9`: all is told as if nothing had happened."""

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
    found = []
    second = 0.0
    for _ in range(count):
        batch = []
        for _ in range(chance.choice([1, 3, 8])):
            vehicle = chance.randrange(5)
            place = places[vehicle]
            place[:] = (min(9.0, max(0.0, one + chance.uniform(-3, 3))) for one in place)
            second += chance.choice([0.25, 0.5, 1.0])
            time = format_instant(START + round((second - chance.choice([0, 0, 2])) * SECOND))
            at = {"type": "Point", "coordinates": [*place]}
            batch.append({"geometry": at, "vehicle": vehicle, "time": time})
        found.append(batch)
    return found


def _post(http: httpx.Client, number: int, batch: list[dict[str, Any]]) -> None:
    headers = {"idempotency-key": f"batch {number}"}
    answer = http.post("/v1/events", json=batch, headers=headers)
    assert answer.json()["accepted"] == len(batch), answer.text


def _changes(http: httpx.Client, number: int) -> None:
    """Subscriptions that come and go on the way; to say it twice changes nothing."""
    if number % 12 == 6:
        one = {**SUBSCRIPTIONS[number // 12 % 3], "id": f"later {number}"}
        answer = http.put(f"/v1/subscriptions/later {number}", json=one)
        assert answer.status_code in (200, 201), answer.text
    if number % 12 == 11:
        answer = http.delete(f"/v1/subscriptions/later {number - 5}")
        assert answer.status_code in (204, 404), answer.text


def _told(http: httpx.Client) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Type and data of all messages of each subscriber."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    names = http.get("/v1/subscribers").json()["subscribers"]
    for name in (one["subscriber"] for one in names):
        since = 0
        found[name] = []
        while page := http.get(
            f"/v1/subscribers/{name}/messages", params={"since": since, "limit": 1000}
        ).json():
            found[name] += [(one["type"], one["data"]) for one in page]
            since = page[-1]["position"]
    return found


@pytest.mark.slow
def test_nothing_that_is_known_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    chance = random.Random(9)
    batches = _batches(chance, 50)
    with running(tmp_path / "whole", space="planar") as server:
        for one in SUBSCRIPTIONS:
            server.http.post("/v1/subscriptions", json=one)
        for number, batch in enumerate(batches):
            _changes(server.http, number)
            _post(server.http, number, batch)
        wanted = _told(server.http)

    fatal = {*chance.sample(range(2, len(batches)), KILLS)}
    killed = Child(tmp_path / "killed", "planar")
    try:
        for one in SUBSCRIPTIONS:
            killed.http.post("/v1/subscriptions", json=one)
        for number, batch in enumerate(batches):
            if number in fatal:
                timer = threading.Timer(chance.uniform(0.0, 0.01), killed.kill)
                timer.start()
                with suppress(httpx.HTTPError):  # whether it was taken is not known
                    _changes(killed.http, number)
                    _post(killed.http, number, batch)
                timer.join()
                killed.gone()
                killed = Child(tmp_path / "killed", "planar")
            _changes(killed.http, number)
            _post(killed.http, number, batch)
        found = _told(killed.http)
    finally:
        killed.gone()
    assert {name: len(own) for name, own in found.items()} == {
        name: len(own) for name, own in wanted.items()
    }
    assert found == wanted
    assert all(len(found[name]) > 3 for name in ("depot", "stay", "meet", "plain"))
