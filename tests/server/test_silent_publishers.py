"""Publishers that use safe regions: subscribers get the same messages as without them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

import fencepost as fp
from fencepost.events import format_instant
from fencepost.server import Limits
from tests.server.serving import Running, running
from tests.waiting import WAIT_S

SECOND = 10**9
START = 1_700_000_000 * SECOND
STEPS = 220
FRAMES = ["{", "[1]", "{}", '{"event": {}, "x": 1}', '{"forget": 7}', b"a"]


def position(second: float, x: float, y: float, vehicle: str, **more: Any) -> dict[str, Any]:
    """Return a position of a vehicle at a second."""
    time = format_instant(START + round(second * SECOND))
    point = {"type": "Point", "coordinates": [x, y]}
    properties = {"vehicle": vehicle, "time": time, **more}
    return {"type": "Feature", "geometry": point, "properties": properties}


class Taxi:
    """A moving object, which sends events as its `SafeClient` decides."""

    def __init__(self, fleet: Fleet, key: str) -> None:
        self.client = fp.SafeClient()
        self._fleet = fleet
        self._key = key

    def move(self, event: dict[str, Any]) -> None:
        if self.client.should_send(event):
            answer = self._fleet.request({"event": event, "key": self._key})
            assert "problem" not in answer, answer
            self.client.accept(json.dumps(answer["region"]))


class Fleet:
    """Objects that share a socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = 0
        self.taxis: dict[str, Taxi] = {}
        self.withdrawn = 0

    def taxi(self, key: str) -> Taxi:
        return self.taxis.setdefault(key, Taxi(self, key))

    def request(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a frame; withdrawals before it are processed."""
        self._numbers += 1
        self._socket.send(json.dumps({**frame, "id": self._numbers}))
        while (received := json.loads(self._socket.recv(WAIT_S))).get("id") != self._numbers:
            self._withdraw(received)
        return dict(received)

    def settle(self) -> None:
        """Process the withdrawals that were sent so far."""
        self._socket.send('{"ping": 1}')
        while "pong" not in (received := json.loads(self._socket.recv(WAIT_S))):
            self._withdraw(received)

    def _withdraw(self, frame: dict[str, Any]) -> None:
        self.taxis[frame["withdrawn"]].client.withdraw(frame["version"])
        self.withdrawn += 1


@contextmanager
def fleet_of(server: Running, **headers: str) -> Iterator[Fleet]:
    url = server.url.replace("http", "ws") + "/v1/publish/socket"
    with connect(url, additional_headers=headers, open_timeout=WAIT_S) as socket:
        yield Fleet(socket)


def received(server: Running) -> dict[str, list[tuple[Any, ...]]]:
    """Return the messages of each subscriber, without positions."""
    messages: dict[str, list[tuple[Any, ...]]] = {}
    for subscriber in server.http.get("/v1/subscribers").json()["subscribers"]:
        name = subscriber["subscriber"]
        messages[name] = []
        since = 0
        while page := server.http.get(
            f"/v1/subscribers/{name}/messages", params={"since": since, "limit": 1000}
        ).json():
            messages[name] += [_without_positions(message["data"]) for message in page]
            since = page[-1]["position"]
    return messages


def _without_positions(data: dict[str, Any]) -> tuple[Any, ...]:
    if "kind" in data:  # a change of subscriptions causes notifications without an event
        return tuple(data[name] for name in ("kind", "key", "subscription", "time", "reported"))
    if "members" in data:
        ids = {name: member["id"] for name, member in data["members"].items()}
        return data["subscription"], repr(ids), repr(data["geometry"])
    return tuple(data["subscriptions"]), json.dumps(data["event"])


def _subscription(chance: random.Random, kind: str, unit: float) -> dict[str, Any]:
    x, y = chance.uniform(0, 32), chance.uniform(0, 32)
    box = f"S_INTERSECTS(geometry, BBOX({x}, {y}, {x + 8}, {y + 8}))"
    near = f"S_DWITHIN(geometry, POINT({x} {y}), {chance.uniform(2, 6) * unit})"
    place = chance.choice([box, near])
    state = chance.choice([place, f"{place} AND state = 'empty'"])
    if kind == "plain":
        return {"expression": state}
    if kind == "composite":
        members = {"a": state, "b": "state = 'empty' AND " + box}
        return {"composite": {"members": members, "where": ["DIST(a, b) < 1e7"], "within_s": 9}}
    if kind == "watched":  # objects with such rules send every event
        watched: dict[str, Any] = chance.choice(
            [{"on": ["cross", "exit"]}, {"debounce_s": 2}, {"lateness_s": 1}, {"forget_after_s": 3}]
        )
        return {"expression": box, "track": {"key": "vehicle", **watched}}
    rules: dict[str, Any] = {"key": "vehicle", "on": ["enter", "exit", "inside"]}
    more: dict[str, Any] = chance.choice([{}, {"hysteresis": unit}, {"dwell_s": 3}])
    rules |= more
    if "dwell_s" in more:
        rules["on"] = ["enter", "dwell", "outside"]
    return {"expression": state, "track": rules}


@pytest.mark.parametrize(("seed", "space"), [(1, "planar"), (2, "wgs84")])
def test_filtered_publishers_cause_the_same_messages(tmp_path: Path, seed: int, space: str) -> None:
    chance = random.Random(seed)
    unit = 1.0 if space == "planar" else 111_000.0
    with (
        running(tmp_path / "all", space=space) as everything,
        running(tmp_path / "some", space=space) as filtered,
        fleet_of(filtered) as fleet,
    ):
        servers = (everything, filtered)
        walks: dict[str, list[Any]] = {f"v{n}": [20.0, 20.0, "empty"] for n in range(4)}
        existing: set[str] = set()
        for step in range(STEPS):
            if step % 8 == 0:
                # Rules that need every position come only towards the end.
                kinds = ["plain", "track", "composite"] + ["watched"] * (step > STEPS - 60)
                for kind in kinds:
                    id = f"{kind} {chance.randrange(4)}"
                    body = _subscription(chance, kind, unit)
                    gone = id in existing and chance.random() < 0.4
                    existing.symmetric_difference_update({id} if gone or id not in existing else ())
                    for server in servers:
                        path = f"/v1/subscriptions/{id}"
                        answer = (
                            server.http.delete(path) if gone else server.http.put(path, json=body)
                        )
                        assert answer.status_code < 300, answer.text
                fleet.settle()
            vehicle = chance.choice([*walks])
            walk = walks[vehicle]
            for axis in range(2):
                walk[axis] = min(40.0, max(0.0, walk[axis] + chance.uniform(-3, 3)))
            if chance.random() < 0.05:
                walk[2] = chance.choice(["empty", "busy"])
            event = position(step / 4, walk[0], walk[1], vehicle, state=walk[2])
            event["id"] = f"e{step}"
            assert everything.http.post("/v1/events", json=event).status_code == 200
            fleet.taxi(vehicle).move(event)
        expected, actual = received(everything), received(filtered)
        assert actual == expected
        assert sum(map(len, expected.values())) > 40
        assert fleet.withdrawn > 0
        kept_back = sum(taxi.client.kept_back for taxi in fleet.taxis.values())
        sent = sum(taxi.client.sent for taxi in fleet.taxis.values())
        assert kept_back + sent == STEPS
        assert kept_back > 25


def test_a_region_with_an_expiry(server: Running) -> None:
    expression = "S_DWITHIN(geometry, POINT(10 50), 1000)"
    server.http.put("/v1/subscriptions/a", json={"expression": expression})
    away = server.http.post("/v1/safe-regions", json={"event": position(0, 11, 50, "v")}).json()
    region = fp.SafeRegion.from_json(json.dumps(away["region"]))
    assert region.contains(11, 50)
    assert not region.contains(10.001, 50)
    assert away["valid_s"] > 0
    assert server.http.get("/v1/events").json() == {"events": []}
    body = {"expression": "kind = 'bus'", "track": {"key": "vehicle", "on": ["cross"]}}
    server.http.put("/v1/subscriptions/b", json=body)
    here = server.http.post("/v1/safe-regions", json={"event": position(0, 11, 50, "v")}).json()
    assert here["region"]["safe"] is False
    bad = server.http.post("/v1/safe-regions", json={"event": position(0, 999, 50, "v")})
    assert bad.status_code == 422


def test_regions_are_bounded(tmp_path: Path) -> None:
    with (
        running(tmp_path, space="planar", limits=Limits(safe_regions=3)) as server,
        fleet_of(server) as fleet,
    ):
        for number in range(5):
            fleet.taxi(f"v{number}").move(position(number, number, 0, f"v{number}"))
        fleet.settle()
        has_region = [key for key, taxi in fleet.taxis.items() if taxi.client.region is not None]
        assert has_region == ["v2", "v3", "v4"]


def test_bad_events_get_a_problem_and_the_socket_stays_open(server: Running) -> None:
    with fleet_of(server) as fleet:
        wrong = fleet.request({"event": {"geometry": {"type": "Point"}}, "key": "v"})
        assert wrong["problem"]["status"] == 422
        assert "region" not in wrong
        good = fleet.request({"event": position(0, 1, 1, "v")})
        assert good["position"] == 1
        assert "region" not in good


@pytest.mark.parametrize(
    "frame", ["{", "[1]", "{}", '{"event": {}, "x": 1}', '{"forget": 7}', b"a"]
)
def test_invalid_frames_close_the_socket(server: Running, frame: str | bytes) -> None:
    url = server.url.replace("http", "ws") + "/v1/publish/socket"
    with connect(url, open_timeout=WAIT_S) as socket:
        socket.send(frame)
        with pytest.raises(Exception, match="4422"):
            socket.recv(WAIT_S)


def test_a_socket_needs_a_key_that_may_publish(tmp_path: Path) -> None:
    with running(tmp_path, open_access=False) as server:
        for scope, refused in (("subscribe", True), ("publish", False)):
            key = server.key(scope)
            with fleet_of(server, authorization=f"Bearer {key}") as fleet:
                if refused:
                    with pytest.raises(Exception, match="publish"):
                        fleet.settle()
                else:
                    fleet.settle()


def test_a_failed_commit_closes_the_sockets(server: Running) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("the disk is on fire")

    with fleet_of(server) as fleet:
        fleet.taxi("v").move(position(0, 1, 1, "v"))
        assert fleet.taxi("v").client.region is not None
        with pytest.raises(fp.FencepostError, match="on fire"):
            server.service.broker.change(fail).result(WAIT_S)
        with pytest.raises(Exception, match="1012"):
            fleet.settle()
