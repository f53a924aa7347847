"""A MoverPublisher and a real server: subscribers miss no match of the events it holds back."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

from tests.server.serving import Running


def at(x: float, y: float, **properties: Any) -> dict[str, Any]:
    place = {"type": "Point", "coordinates": [x, y]}
    return {"type": "Feature", "geometry": place, "properties": properties}


def test_subscribers_get_all_that_is_theirs(make_client: Any, server: Running) -> None:
    chance = random.Random(5)
    with make_client(server.url) as client:
        client.subscribe("zone", "S_INTERSECTS(geometry, BBOX(40, 40, 60, 60))", subscriber="me")
        movers = [client.mover(f"taxi {n}") for n in range(3)]
        wanted: list[tuple[int, int]] = []
        for step in range(200):
            if step == 150:  # while regions are out there
                client.subscribe(
                    "late", "S_INTERSECTS(geometry, BBOX(78, 79, 82, 81))", subscriber="me"
                )
                # A region counts until its withdrawal arrives; that is before this is answered.
                assert client.mover("another").send(at(0, 0))
            for n, mover in enumerate(movers):
                x, y = step / 2 + chance.uniform(-1, 1), 50 + 15 * n
                mover.send(at(x, y, step=step, n=n))
                late = n == 2 and 78 <= x <= 82
                if (n == 0 and 40 <= x <= 60) or late:
                    wanted.append((step, n))
        found = [one.event["properties"] for one in islice(client.messages("me"), len(wanted))]
        assert [(one["step"], one["n"]) for one in found] == wanted
        assert client.acknowledge("me", 2**40).depth == 0
        assert sum(mover.kept_back for mover in movers) > 300
