"""Data for the console: the map of subscriptions, the live feed, and matches."""

from __future__ import annotations

import asyncio
import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
import websockets.sync.client as sockets
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from fencepost.geometry import Space
from fencepost.server.broker.transaction import CommittedChanges, CommittedMessage
from fencepost.server.console.live_feed import MAX_QUEUED_EVENTS, LiveFeed
from fencepost.server.console.map_shapes import AWAY, ShapeKind, shapes_of, summary_of
from fencepost.server.http.schemas import OmittedCounts
from fencepost.store.event_log import NewMessage
from tests.server.serving import Running, running
from tests.server.test_api import feature, subscribe
from tests.waiting import WAIT_S


class Map:
    """A client of the map, written from the documented layout only."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.version = ""
        self.full = False

    def load(self, server: Running, **headers: str) -> int:
        """Load the map or its changes. Return the status."""
        query = {"since": self.version} if self.version else {}
        answer = server.http.get("/v1/map", params=query, headers=headers)
        if answer.status_code != 200:
            return answer.status_code
        at, body = 0, answer.content
        while at < len(body):
            size, length = struct.unpack_from("<II", body, at)
            self._apply(
                json.loads(body[at + 8 : at + 8 + length]), body[at + 8 + length : at + 8 + size]
            )
            assert size % 8 == length % 8 == 0
            at += 8 + size
        return answer.status_code

    def _apply(self, header: dict[str, Any], arrays: bytes) -> None:
        if "full" in header:
            self.full = header["full"]
            if self.full:
                self.rows.clear()
        elif "end" in header:
            self.version = header["version"]
            for id in header["removed"]:
                del self.rows[id]
        else:
            self._add(header, arrays)

    def _add(self, header: dict[str, Any], arrays: bytes) -> None:
        n, shapes = len(header["ids"]), header["shapes"]
        at = 0

        def take(type: str, size: int) -> list[Any]:
            nonlocal at
            array = np.frombuffer(arrays, type, size, at)
            at += array.nbytes
            return [*array.tolist()]

        numbers = take("<f8", header["numbers"])
        starts, owners = take("<u4", shapes + 1), take("<u4", shapes)
        subscriber_of, summary_of_row = take("<u4", n), take("<u4", n)
        shape_kinds, subscription_kinds = take("u1", shapes), take("u1", n)
        for row, id in enumerate(header["ids"]):
            self.rows[id] = {
                "subscriber": header["subscribers"][subscriber_of[row]],
                "summary": header["summaries"][summary_of_row[row]],
                "kind": subscription_kinds[row],
                "shapes": [
                    (shape_kinds[shape], numbers[starts[shape] : starts[shape + 1]])
                    for shape in range(shapes)
                    if owners[shape] == row
                ],
            }


def test_a_map_has_the_shapes_of_subscriptions(server: Running) -> None:
    subscribe(server, "box", "S_INTERSECTS(geometry, BBOX(1, 2, 3, 4)) AND kind = 'taxi'")
    subscribe(server, "circle", "S_DWITHIN(geometry, POINT(5 6), 700)", subscriber="me")
    subscribe(
        server,
        "two",
        "S_WITHIN(geometry, POLYGON((0 0, 4 0, 2 3, 0 0))) OR S_CROSSES(way, LINESTRING(0 0, 1 1))",
    )
    subscribe(server, "nowhere", "kind = 'taxi'")
    subscribe(
        server,
        "away",
        "NOT S_INTERSECTS(geometry, POINT(1 2)) AND S_DISJOINT(geometry, POINT(3 4))",
    )
    map_view = Map()
    map_view.load(server)
    assert map_view.full
    assert map_view.rows["box"] == {
        "subscriber": "box",
        "summary": "S_INTERSECTS(geometry, BBOX(…)) AND kind = 'taxi'",
        "kind": 0,
        "shapes": [(ShapeKind.BOX, [1, 2, 3, 4])],
    }
    assert map_view.rows["circle"]["shapes"] == [(ShapeKind.CIRCLE, [5, 6, 700])]
    assert map_view.rows["circle"]["subscriber"] == "me"
    assert map_view.rows["two"]["shapes"] == [
        (ShapeKind.POLYGON, [0, 0, 4, 0, 2, 3, 0, 0]),
        (ShapeKind.LINE, [0, 0, 1, 1]),
    ]
    assert map_view.rows["nowhere"]["shapes"] == []
    assert map_view.rows["away"]["shapes"] == [
        (ShapeKind.POINT | AWAY, [1, 2]),
        (ShapeKind.POINT | AWAY, [3, 4]),
    ]


def test_a_map_receives_changes(server: Running) -> None:
    for n in range(5):
        subscribe(server, f"s{n}", f"S_INTERSECTS(geometry, BBOX({n}, 0, {n + 1}, 1))")
    map_view = Map()
    map_view.load(server)
    assert map_view.load(server, **{"if-none-match": f'"{map_view.version}"'}) == 304
    server.http.delete("/v1/subscriptions/s1")
    server.http.put("/v1/subscriptions/s2", json={"expression": "a = 1"})
    subscribe(server, "s9", "S_INTERSECTS(geometry, POINT(7 8))")
    assert map_view.load(server, **{"if-none-match": f'"{map_view.version}"'}) == 200
    assert not map_view.full
    fresh = Map()
    fresh.load(server)
    assert fresh.full
    assert map_view.rows == fresh.rows
    assert sorted(map_view.rows) == ["s0", "s2", "s3", "s4", "s9"]
    map_view.version = "another-1"
    map_view.load(server)
    assert map_view.full


def test_a_map_after_random_changes_equals_a_new_one(server: Running) -> None:
    rng = random.Random(9)
    map_view = Map()
    for _ in range(12):
        for _ in range(rng.randrange(6)):
            id = f"s{rng.randrange(8)}"
            if rng.random() < 0.4:
                server.http.delete(f"/v1/subscriptions/{id}")
            else:
                where = f"BBOX({rng.randrange(90)}, 0, 95, 1)"
                body = {"expression": f"S_INTERSECTS(geometry, {where})"}
                server.http.put(f"/v1/subscriptions/{id}", json=body)
        map_view.load(server)
        fresh = Map()
        fresh.load(server)
        assert map_view.rows == fresh.rows


def test_a_map_with_many_changes_is_built_again(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.server.console.subscription_map._MAX_STALE", 5)
    subscribe(server, "a")
    map_view = Map()
    map_view.load(server)
    for n in range(9):
        subscribe(server, f"s{n}")
        server.http.delete(f"/v1/subscriptions/s{n}")
    server.http.delete("/v1/subscriptions/a")
    subscribe(server, "b")
    assert map_view.load(server, **{"if-none-match": f'"{map_view.version}"'}) == 200
    assert map_view.full
    assert [*map_view.rows] == ["b"]


def test_shapes_of_composites_and_of_json() -> None:
    area = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]}
    expression = {"op": "s_within", "args": [{"property": "geometry"}, area]}
    [(kind, numbers)] = shapes_of({"expression": expression}, Space.WGS84)
    assert (kind, np.frombuffer(numbers).tolist()) == (ShapeKind.BOX, [0, 0, 9, 9])
    assert "S_WITHIN" in summary_of({"expression": expression}, Space.WGS84)
    inner = {"members": {"x": "S_INTERSECTS(geometry, POINT(3 4))"}, "within_s": 5}
    members = {"a": "S_DWITHIN(geometry, POINT(1 2), 5)", "b": inner, "c": 7}
    composite = {"composite": {"members": members, "within_s": 60}}
    assert [shape.kind for shape in shapes_of(composite, Space.WGS84)] == [
        ShapeKind.CIRCLE,
        ShapeKind.POINT,
    ]
    assert summary_of(composite, Space.WGS84) == "3 events: a, b, c"


def test_large_shapes_are_simplified_in_place() -> None:
    rng = random.Random(3)
    for _ in range(20):
        n = rng.randrange(70, 900)
        x, y, size = rng.uniform(-90, 90), rng.uniform(-40, 40), rng.uniform(0.01, 20)
        corners = []
        for k in range(n):
            turn, far = 2 * math.pi * k / n, size * (1 + 0.2 * math.sin(7 * k / n * math.pi * 2))
            corners.append((x + far * math.cos(turn), y + far * math.sin(turn)))
        exact = shapely.Polygon(corners, [[(x, y), (x + size / 9, y), (x, y + size / 9)]])
        [(kind, numbers)] = shapes_of(
            {"expression": f"S_WITHIN(geometry, {exact.wkt})"}, Space.PLANAR
        )
        assert kind == ShapeKind.POLYGON
        positions = np.frombuffer(numbers).reshape(-1, 2)
        assert len(positions) <= 66
        gap = int(np.flatnonzero(np.isnan(positions[:, 0]))[0])
        drawn = shapely.Polygon(positions[:gap], [positions[gap + 1 :]])
        assert shapely.symmetric_difference(drawn, exact).area < 0.03 * exact.area


def test_many_shapes_of_a_subscription_become_a_box() -> None:
    parts = " OR ".join(f"S_INTERSECTS(geometry, POINT({n} {n % 7}))" for n in range(40))
    [(kind, numbers)] = shapes_of({"expression": parts}, Space.PLANAR)
    assert (kind, np.frombuffer(numbers).tolist()) == (ShapeKind.BOX, [0, 0, 39, 6])


def test_matches_of_an_event_and_of_a_subscription(server: Running) -> None:
    subscribe(server, "a%2F1", "n > 0", subscriber="me")
    subscribe(server, "b", "n > 1", subscriber="me")
    subscribe(server, "c", "n > 2")
    for n in range(1, 4):
        server.http.post("/v1/events", json={"n": n})
    page = server.http.get("/v1/events/2/matches").json()
    assert [(match["subscriber"], match["data"]["subscriptions"]) for match in page["matches"]] == [
        ("me", ["a/1", "b"])
    ]
    assert page["left_out"] == 0
    page = server.http.get("/v1/events/3/matches", params={"limit": 1}).json()
    assert (len(page["matches"]), page["left_out"]) == (1, 1)
    assert server.http.get("/v1/events/1/matches").json()["matches"][0]["event"] == 1
    page = server.http.get("/v1/subscriptions/b/matches").json()
    assert [match["event"] for match in page["matches"]] == [3, 2]
    assert server.http.get("/v1/subscriptions/a%2F1/matches").json()["matches"][-1]["event"] == 1
    for missing in ("/v1/events/9/matches", "/v1/events/x/matches", "/v1/subscriptions/z/matches"):
        assert server.http.get(missing).status_code == 404


def socket_url(server: Running) -> str:
    return f"ws{server.url.removeprefix('http')}/v1/live"


def test_the_live_feed_shows_committed_events(server: Running) -> None:
    subscribe(server, "a", "kind = 'taxi'", subscriber="me")
    with sockets.connect(
        socket_url(server), subprotocols=[Subprotocol("fencepost")], open_timeout=WAIT_S
    ) as socket:
        assert json.loads(socket.recv(WAIT_S)) == {"events": []}
        server.http.post("/v1/events", json=feature(1, 2, kind="taxi"))
        [event] = json.loads(socket.recv(WAIT_S))["events"]
        assert event == {
            "position": 1,
            "event": feature(1, 2, kind="taxi"),
            "messages": 1,
            "matched": [{"subscriber": "me", "type": "match", "subscriptions": ["a"]}],
        }
        subscribe(server, "b")
        frame = json.loads(socket.recv(WAIT_S))
        assert frame["subscriptions_changed"]
        server.http.post("/v1/events", json={"text": "x" * 20_000})
        [large] = json.loads(socket.recv(WAIT_S))["events"]
        assert large["event"] is None
        many = "\n".join(
            json.dumps({"kind": "taxi" if n % 10 == 0 else "bus"}) for n in range(3000)
        )
        server.http.post(
            "/v1/events", content=many, headers={"content-type": "application/x-ndjson"}
        )
        frame = json.loads(socket.recv(WAIT_S))
        assert all(event["messages"] for event in frame["events"])
        assert len(frame["events"]) + frame["left_out"]["events"] == 3000
        assert len(frame["events"]) + frame["left_out"]["messages"] == 300


def test_the_queue_of_a_slow_watcher_is_bounded() -> None:
    async def run() -> None:
        feed = LiveFeed()
        watcher = feed.open(1)
        for position in range(1, 5_001):
            message = NewMessage(3, position, 0, position, "match", '{"subscriptions": ["a"]}')
            events = [(1, position, "{}", 1), (2, position, '{"secret": 1}', 0)]
            feed.push(CommittedChanges([CommittedMessage(message, "{}")], events, [(1, "a")]))
        update = await watcher.next()
        assert update is not None
        assert [event.position for event in update.events] == [
            *range(5_001 - MAX_QUEUED_EVENTS, 5_001)
        ]
        assert update.left_out == OmittedCounts(
            5_000 - MAX_QUEUED_EVENTS, 5_000 - MAX_QUEUED_EVENTS
        )
        feed.close(1, watcher)
        assert len(feed) == 0
        feed.close_all()

    asyncio.run(run())


def test_tenants_and_scopes_do_not_see_each_other(tmp_path: Path) -> None:
    with running(tmp_path, open_access=False) as server:
        scopes = ("admin", "publish", "subscribe")
        acme, other = server.key(*scopes, tenant="acme"), server.key(*scopes, tenant="other")
        weak = server.key("subscribe", tenant="acme")
        us, them = server.client(acme), server.client(other)
        assert us.get("/v1/me").json() == {
            "tenant": "acme",
            "scopes": ["admin", "publish", "subscribe"],
            "space": "wgs84",
            "needs_key": True,
        }
        assert server.http.get("/v1/me").status_code == 401
        body = {"expression": "S_INTERSECTS(geometry, POINT(1 2))"}
        assert us.put("/v1/subscriptions/a", json=body).status_code == 201
        protocols = ["fencepost", f"bearer.{other}"]
        with sockets.connect(
            socket_url(server), subprotocols=[*map(Subprotocol, protocols)], open_timeout=WAIT_S
        ) as socket:
            assert json.loads(socket.recv(WAIT_S)) == {"events": []}
            us.post("/v1/events", json=feature(1, 2))
            them.post("/v1/events", json=feature(3, 4))
            [event] = json.loads(socket.recv(WAIT_S))["events"]
            assert event["event"]["geometry"]["coordinates"] == [3, 4]
        assert b'"a"' in us.get("/v1/map").content
        assert b'"a"' not in them.get("/v1/map").content
        assert them.get("/v1/events/1/matches").status_code == 404
        assert them.get("/v1/subscriptions/a/matches").status_code == 404
        assert server.http.get("/v1/map").status_code == 401
        assert server.client(weak).get("/v1/events/1/matches").status_code == 403
        for protocols, code in ((["fencepost", f"bearer.{weak}"], 4403), (["fencepost"], 4401)):
            with (
                sockets.connect(
                    socket_url(server),
                    subprotocols=[*map(Subprotocol, protocols)],
                    open_timeout=WAIT_S,
                ) as socket,
                pytest.raises(ConnectionClosed),
            ):
                socket.recv(WAIT_S)
            assert socket.close_code == code
