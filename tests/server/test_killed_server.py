"""A server that is killed at random moments under load, and started again each time.

What was answered is kept, what was not may be; every message comes, in order, under one id.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.waiting import WAIT_S, until

KILLS = int(os.environ.get("FENCEPOST_KILLS", "4"))
BATCH = 20
_SERVE = """
import sys
from pathlib import Path
from fencepost.server.server_process import serve
from fencepost.server import Settings

serve(Settings(Path(sys.argv[1]), space="planar", open_access=True), "127.0.0.1",
      int(sys.argv[2]), lambda address: print(address, flush=True))
"""
# By subscriber: which numbers their subscriptions want.
WANTED = {"even": 2, "third": 3, "all": 1}


@dataclass
class Told:
    """What a subscriber was sent, in the order in which it came."""

    messages: list[dict[str, Any]] = field(default_factory=list)


class Life:
    """A server that lives, dies and comes back at one address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def begin(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(self._folder), str(self._port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the server did not start"
        self._port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def threads(*targets: Any) -> Iterator[None]:
    started = [threading.Thread(target=target, daemon=True) for target in targets]
    for one in started:
        one.start()
    yield
    for one in started:
        one.join(WAIT_S)
        assert not one.is_alive()


class Load:
    """A publisher, a subscriber who changes their mind, and three who listen."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.stop = threading.Event()
        self.published = 0
        self.acknowledged: list[int] = []
        self.kept: dict[str, bool] = {}  # subscriptions whose change was answered: are they there?
        self.told = {name: Told() for name in WANTED}

    def publish(self) -> None:
        """Events 0, 1, 2, ... in batches; a batch that was not answered is sent again."""
        with httpx.Client(timeout=WAIT_S) as http:
            while not self.stop.is_set():
                first = self.published
                body = "\n".join(json.dumps({"n": n}) for n in range(first, first + BATCH))
                headers = {
                    "content-type": "application/x-ndjson",
                    "idempotency-key": f"from {first}",
                }
                with suppress(httpx.HTTPError):
                    answer = http.post(f"{self.life.url}/v1/events", content=body, headers=headers)
                    if answer.status_code == 200:
                        assert answer.json()["accepted"] == BATCH
                        self.published += BATCH
                        self.acknowledged += range(first, first + BATCH)

    def has_published(self, more_than: int) -> bool:
        """Whether more events were answered."""
        return self.published > more_than

    def change(self) -> None:
        """Subscriptions that come and go and want nothing."""
        rng = random.Random(5)
        with httpx.Client(timeout=WAIT_S) as http:
            while not self.stop.is_set():
                id = f"s{rng.randrange(30)}"
                self.kept.pop(id, None)  # until it is answered, it may be either
                there = rng.random() < 0.6
                with suppress(httpx.HTTPError):
                    url = f"{self.life.url}/v1/subscriptions/{id}"
                    if there:
                        answer = http.put(url, json={"expression": "n < 0", "subscriber": "x"})
                        assert answer.status_code in (200, 201), answer.text
                    else:
                        answer = http.delete(url)
                        assert answer.status_code in (204, 404), answer.text
                    self.kept[id] = there

    def listen(self, name: str) -> Any:
        """Read through a WebSocket; what was read is acknowledged now and then."""
        rng = random.Random(name)

        def run() -> None:
            told = self.told[name]
            while not self.stop.is_set():
                url = self.life.url.replace("http", "ws") + f"/v1/subscribers/{name}/socket"
                with (
                    suppress(OSError, WebSocketException, TimeoutError),
                    connect(url, open_timeout=WAIT_S, max_size=None) as socket,
                ):
                    while not self.stop.is_set():
                        with suppress(TimeoutError):
                            told.messages += json.loads(socket.recv(timeout=0.2))
                            if rng.random() < 0.3:
                                position = told.messages[-1]["position"]
                                socket.send(json.dumps({"position": position}))

        return run


def _is_past(moment: float) -> bool:
    return time.monotonic() >= moment


def check(load: Load) -> None:
    """Compare what came with what should have."""
    for name, divisor in WANTED.items():
        with httpx.Client(base_url=load.life.url, timeout=WAIT_S) as http:
            rest: list[dict[str, Any]] = []
            while page := http.get(
                f"/v1/subscribers/{name}/messages",
                params={"since": rest[-1]["position"] if rest else 0, "limit": 1000},
            ).json():
                rest += page
        by_id: dict[str, dict[str, Any]] = {}
        highest = 0
        for message in load.told[name].messages:
            by_id.setdefault(message["id"], message)
            assert by_id[message["id"]] == message, "a message sent again is the same"
            # A new one is the next of all: it may come again only after a reconnection.
            if message["position"] > highest:
                between = [one for one in rest if highest < one["position"] < message["position"]]
                assert not between, f"{len(between)} messages were passed over"
                highest = message["position"]
        kept = {one["id"]: one for one in rest}
        assert all(kept[id] == one for id, one in by_id.items()), "nothing is invented"
        numbers = [one["data"]["event"]["n"] for one in rest]
        assert numbers == sorted(set(numbers)), "in order, and each event once"
        assert all(n % divisor == 0 for n in numbers)
        assert set(numbers) >= {n for n in load.acknowledged if n % divisor == 0}
        assert set(numbers) <= set(range(load.published + BATCH))
    with httpx.Client(base_url=load.life.url, timeout=WAIT_S) as http:
        listed = http.get("/v1/subscriptions", params={"limit": 1000}).json()["subscriptions"]
        there = {one["id"] for one in listed}
        assert {id: id in there for id in load.kept} == load.kept


@pytest.mark.slow
def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    rng = random.Random(11)
    life = Life(tmp_path / "data")
    life.begin()
    try:
        for name, divisor in WANTED.items():
            definition = {"expression": f"n % {divisor} = 0", "subscriber": name}
            made = httpx.put(f"{life.url}/v1/subscriptions/{name}", json=definition, timeout=WAIT_S)
            assert made.status_code == 201, made.text
        load = Load(life)
        with threads(load.publish, load.change, *(load.listen(name) for name in WANTED)):
            try:
                for _ in range(KILLS):
                    before = load.published
                    moment = time.monotonic() + rng.uniform(0.0, 0.5)
                    until(partial(load.has_published, before))
                    until(partial(_is_past, moment))
                    life.kill()
                    life.begin()
                last = load.published
                until(partial(load.has_published, last))
            finally:
                load.stop.set()
        assert load.published > KILLS * BATCH
        check(load)
        for name in WANTED:
            assert load.told[name].messages
    finally:
        life.kill()
