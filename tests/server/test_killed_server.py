"""A server that is killed at random moments under load, and started again each time.

Answered writes are durable; others may be. Every message arrives, in order, with one id.
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
# Subscriber -> divisor of the numbers that its subscription matches.
DIVISORS = {"even": 2, "third": 3, "all": 1}


@dataclass
class Inbox:
    """The messages that a subscriber received, in order of arrival."""

    messages: list[dict[str, Any]] = field(default_factory=list)


class RestartableServer:
    """A server that is killed and started again at one address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
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
    for thread in started:
        thread.start()
    yield
    for thread in started:
        thread.join(WAIT_S)
        assert not thread.is_alive()


class Load:
    """A publisher, a client that changes subscriptions, and three subscribers."""

    def __init__(self, server: RestartableServer) -> None:
        self.server = server
        self.stop = threading.Event()
        self.published = 0
        self.acknowledged: list[int] = []
        self.exists: dict[str, bool] = {}  # by id of subscription, after its last answered change
        self.inboxes = {name: Inbox() for name in DIVISORS}

    def publish(self) -> None:
        """Publish events 0, 1, 2, ... in batches; repeat a batch that was not answered."""
        with httpx.Client(timeout=WAIT_S) as http:
            while not self.stop.is_set():
                first = self.published
                body = "\n".join(json.dumps({"n": n}) for n in range(first, first + BATCH))
                headers = {
                    "content-type": "application/x-ndjson",
                    "idempotency-key": f"from {first}",
                }
                with suppress(httpx.HTTPError):
                    answer = http.post(
                        f"{self.server.url}/v1/events", content=body, headers=headers
                    )
                    if answer.status_code == 200:
                        assert answer.json()["accepted"] == BATCH
                        self.published += BATCH
                        self.acknowledged += range(first, first + BATCH)

    def has_published(self, more_than: int) -> bool:
        """Return whether more than this many events were published."""
        return self.published > more_than

    def change(self) -> None:
        """Add and remove subscriptions that match nothing."""
        rng = random.Random(5)
        with httpx.Client(timeout=WAIT_S) as http:
            while not self.stop.is_set():
                id = f"s{rng.randrange(30)}"
                self.exists.pop(id, None)  # unknown until the change is answered
                add = rng.random() < 0.6
                with suppress(httpx.HTTPError):
                    url = f"{self.server.url}/v1/subscriptions/{id}"
                    if add:
                        answer = http.put(url, json={"expression": "n < 0", "subscriber": "x"})
                        assert answer.status_code in (200, 201), answer.text
                    else:
                        answer = http.delete(url)
                        assert answer.status_code in (204, 404), answer.text
                    self.exists[id] = add

    def listen(self, name: str) -> Any:
        """Return a function that reads messages from a WebSocket and acknowledges some."""
        rng = random.Random(name)

        def run() -> None:
            inbox = self.inboxes[name]
            while not self.stop.is_set():
                url = self.server.url.replace("http", "ws") + f"/v1/subscribers/{name}/socket"
                with (
                    suppress(OSError, WebSocketException, TimeoutError),
                    connect(url, open_timeout=WAIT_S, max_size=None) as socket,
                ):
                    while not self.stop.is_set():
                        with suppress(TimeoutError):
                            inbox.messages += json.loads(socket.recv(timeout=0.2))
                            if rng.random() < 0.3:
                                position = inbox.messages[-1]["position"]
                                socket.send(json.dumps({"position": position}))

        return run


def _is_past(moment: float) -> bool:
    return time.monotonic() >= moment


def check(load: Load) -> None:
    """Compare the received and the stored messages with the published events."""
    for name, divisor in DIVISORS.items():
        with httpx.Client(base_url=load.server.url, timeout=WAIT_S) as http:
            stored_messages: list[dict[str, Any]] = []
            while page := http.get(
                f"/v1/subscribers/{name}/messages",
                params={
                    "since": stored_messages[-1]["position"] if stored_messages else 0,
                    "limit": 1000,
                },
            ).json():
                stored_messages += page
        by_id: dict[str, dict[str, Any]] = {}
        highest = 0
        for message in load.inboxes[name].messages:
            by_id.setdefault(message["id"], message)
            assert by_id[message["id"]] == message, "a repeated message must be the same"
            # New messages arrive without gaps; messages repeat only after a reconnection.
            if message["position"] > highest:
                between = [
                    row
                    for row in stored_messages
                    if highest < row["position"] < message["position"]
                ]
                assert not between, f"{len(between)} messages were skipped"
                highest = message["position"]
        stored = {message["id"]: message for message in stored_messages}
        assert all(stored[id] == message for id, message in by_id.items()), (
            "every received message is stored"
        )
        numbers = [message["data"]["event"]["n"] for message in stored_messages]
        assert numbers == sorted(set(numbers)), "in order, each event once"
        assert all(n % divisor == 0 for n in numbers)
        assert set(numbers) >= {n for n in load.acknowledged if n % divisor == 0}
        assert set(numbers) <= set(range(load.published + BATCH))
    with httpx.Client(base_url=load.server.url, timeout=WAIT_S) as http:
        listed = http.get("/v1/subscriptions", params={"limit": 1000}).json()["subscriptions"]
        existing = {subscription["id"] for subscription in listed}
        assert {id: id in existing for id in load.exists} == load.exists


@pytest.mark.slow
def test_messages_survive_kills(tmp_path: Path) -> None:
    rng = random.Random(11)
    server = RestartableServer(tmp_path / "data")
    server.start()
    try:
        for name, divisor in DIVISORS.items():
            definition = {"expression": f"n % {divisor} = 0", "subscriber": name}
            made = httpx.put(
                f"{server.url}/v1/subscriptions/{name}", json=definition, timeout=WAIT_S
            )
            assert made.status_code == 201, made.text
        load = Load(server)
        with threads(load.publish, load.change, *(load.listen(name) for name in DIVISORS)):
            try:
                for _ in range(KILLS):
                    before = load.published
                    moment = time.monotonic() + rng.uniform(0.0, 0.5)
                    until(partial(load.has_published, before))
                    until(partial(_is_past, moment))
                    server.kill()
                    server.start()
                last = load.published
                until(partial(load.has_published, last))
            finally:
                load.stop.set()
        assert load.published > KILLS * BATCH
        check(load)
        for name in DIVISORS:
            assert load.inboxes[name].messages
    finally:
        server.kill()
