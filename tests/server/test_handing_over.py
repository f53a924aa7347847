"""Events from an MQTT broker reach a webhook although the server is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx

from fencepost.server import listen
from tests.delivery.receiver import Answer, Request, receiving
from tests.spark.broker import mosquitto
from tests.waiting import WAIT_S, until

COUNT = 300
KILLS = 2


def test_a_killed_server_delivers_every_message(tmp_path: Path) -> None:
    received: list[dict[str, Any]] = []
    arrivals = threading.Semaphore(0)

    def answer(request: Request) -> Answer:
        received.extend(request.messages)
        arrivals.release()
        return Answer()

    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with mosquitto(tmp_path / "broker") as broker, receiving(answer) as receiver:
        url = f"http://127.0.0.1:{port}"
        command = [
            *(
                sys.executable,
                "-c",
                "from fencepost.cli.entry_point import main; main()",
                "serve",
                "--open",
            ),
            *("--data", str(tmp_path / "data"), "--port", str(port), "--allow-private-webhooks"),
            *("--mqtt", f"127.0.0.1:{broker.port}"),
        ]

        def connected() -> bool:
            try:
                return (
                    "fencepost_mqtt_connected 1" in httpx.get(f"{url}/metrics", timeout=WAIT_S).text
                )
            except httpx.HTTPError:
                return False

        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            until(connected)
            made = httpx.put(f"{url}/v1/subscriptions/a", json={"expression": "n >= 0"})
            assert made.status_code == 201
            to = {"kind": "webhook", "url": receiver.url}
            assert httpx.put(f"{url}/v1/subscribers/a/endpoint", json=to).is_success
            for round in range(KILLS):
                numbers = range(round * 100, round * 100 + 100)
                broker.publish("fencepost/default/events", [json.dumps({"n": n}) for n in numbers])
                for _ in range(10 + 20 * round):  # a different moment in each round
                    assert arrivals.acquire(timeout=WAIT_S)
                server.send_signal(signal.SIGKILL)
                server.wait(WAIT_S)
                server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
                until(connected)
            last = range(KILLS * 100, COUNT)
            broker.publish("fencepost/default/events", [json.dumps({"n": n}) for n in last])
            until(lambda: len({_number(message) for message in [*received]}) == COUNT)
            until(lambda: httpx.get(f"{url}/v1/subscribers/a", timeout=WAIT_S).json()["depth"] == 0)
        finally:
            server.kill()
            server.wait(WAIT_S)
    assert {_number(message) for message in received} == {*range(COUNT)}
    by_id: dict[str, dict[str, Any]] = {}
    for message in received:
        assert by_id.setdefault(message["id"], message) == message  # a repeated message is the same
    ids = [int(id) for id in by_id]
    assert ids == sorted(ids)  # in order, apart from repeated messages
    assert ids == [*range(1, len(ids) + 1)]


def _number(message: dict[str, Any]) -> int:
    number: int = message["data"]["event"]["n"]
    return number
