"""Things that move send what matters, and nothing else while a region holds."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

import fencepost as fp
from tests.client.cutting import Cutting
from tests.waiting import until


class Publishing:
    """The server's side of the conversation, over a real matcher and its safe regions."""

    def __init__(self) -> None:
        self.matcher = fp.Matcher(space="planar")
        self.matcher.subscribe("zone", "S_INTERSECTS(geometry, BBOX(40, 40, 60, 60))")
        self.taken: list[dict[str, Any]] = []
        self.forgotten: list[str] = []
        self.url = ""
        self._regions = fp.SafeRegions(self.matcher)
        self._lock = threading.Lock()
        self._open: ServerConnection | None = None

    def subscribe(self, id: str, expression: str) -> None:
        """Change what is asked; who has a region that is void now is told."""
        with self._lock:
            self.matcher.subscribe(id, expression)
            for key, version in self._regions.withdrawals():
                if self._open is not None:
                    self._open.send(json.dumps({"withdrawn": key, "version": version}))

    def talk(self, socket: ServerConnection) -> None:
        with self._lock:
            self._open = socket
            self._regions = fp.SafeRegions(self.matcher)
        try:
            for text in socket:
                frame = json.loads(text)
                with self._lock:
                    if "forget" in frame:
                        self._regions.forget(frame["forget"])
                        self.forgotten.append(frame["forget"])
                        continue
                    about = {"id": frame["id"], "key": frame["key"]}
                    if frame["event"].get("bad"):
                        problem = {"status": 422, "detail": "no such event"}
                        socket.send(json.dumps({**about, "problem": problem}))
                        continue
                    self.taken.append(frame["event"])
                    region = self._regions.answer(frame["event"], key=frame["key"])
                    position = len(self.taken)
                    answer = {**about, "position": position, "region": json.loads(region)}
                    socket.send(json.dumps(answer))
        except ConnectionClosed:
            pass
        finally:
            with self._lock:
                self._open = None


@contextmanager
def publishing() -> Iterator[Publishing]:
    found = Publishing()
    with serve(found.talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        yield found
        server.shutdown()
        thread.join()


def at(x: float, y: float, **more: Any) -> dict[str, Any]:
    return {"geometry": {"type": "Point", "coordinates": [x, y]}, **more}


def test_only_what_may_matter_is_sent(make_client: Any) -> None:
    chance = random.Random(7)
    with publishing() as server, make_client(server.url) as client:
        movers = [client.mover(f"taxi {n}") for n in range(3)]
        matched = 0
        for step in range(200):
            for n, mover in enumerate(movers):
                x = step / 2 + chance.uniform(-1, 1)  # the first crosses the zone
                event = at(x, 50 + 20 * n, step=step, n=n)
                sent = mover.send(event)
                if server.matcher.match(event):
                    matched += 1
                    assert sent
                assert sent == (event in server.taken)
        assert matched > 20
        assert sum(mover.sent for mover in movers) == len(server.taken)
        assert sum(mover.kept_back for mover in movers) > 400


def test_a_region_that_was_withdrawn_is_not_used(make_client: Any) -> None:
    with publishing() as server, make_client(server.url) as client:
        mover = client.mover("taxi")
        assert mover.send(at(1, 1))
        assert not mover.send(at(1.5, 1))
        server.subscribe("corner", "S_INTERSECTS(geometry, BBOX(0, 0, 3, 3))")
        # Another thing's answer comes after the withdrawal, so that this has arrived.
        assert client.mover("other").send(at(99, 99))
        assert mover.send(at(1.5, 1))
        mover.close()
        assert mover.send(at(1.5, 1))
        assert server.forgotten == ["taxi"]


def test_regions_are_void_while_the_socket_is_not_open(make_client: Any) -> None:
    with publishing() as server, Cutting(server.url) as line, make_client(line.url) as client:
        mover = client.mover("taxi")
        assert mover.send(at(1, 1))
        assert not mover.send(at(1, 2))
        line.cut_all()
        until(lambda: mover.send(at(1, 2)))  # the client has noticed
        assert server.taken[-1] == at(1, 2)
        assert not mover.send(at(1, 3))


def test_a_bad_event_is_told_and_the_next_one_is_sent(make_client: Any) -> None:
    with publishing() as server, make_client(server.url) as client:
        mover = client.mover("taxi")
        with pytest.raises(fp.RequestRefused, match="no such event"):
            mover.send(at(1, 1, bad=True))
        assert mover.send(at(1, 1))
        assert server.taken == [at(1, 1)]


def test_a_server_that_is_gone(make_client: Any) -> None:
    with make_client("http://127.0.0.1:9", retry_timeout_s=0) as client:
        mover = client.mover("taxi")
        with pytest.raises(fp.Unreachable):
            mover.send(at(1, 1))
        assert (mover.sent, mover.kept_back) == (0, 0)
