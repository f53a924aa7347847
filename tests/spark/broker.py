"""Provides `mosquitto`: a real MQTT broker for tests, on a free port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import WAIT_S, until

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage


class Mosquitto:
    """A broker that keeps its sessions on disk, and that can be restarted."""

    def __init__(self, folder: Path, settings: Sequence[str] = ()) -> None:
        program = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            pytest.skip("NOT TESTED: there is no mosquitto; run: apt-get install mosquitto")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        folder.mkdir()
        self._command = [program, "-c", str(folder / "mosquitto.conf")]
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "max_queued_messages 0",
            "persistence true",
            f"persistence_location {folder}/",
            "log_dest none",
            *([] if os.getuid() else ["user root"]),
            *settings,
        ]
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        until(self._answers)

    def stop(self) -> None:
        """Stop the broker, which then saves its sessions."""
        self._process.terminate()
        self._process.wait(WAIT_S)

    def _answers(self) -> bool:
        assert self._process.poll() is None, "mosquitto ended"
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def publish(self, topic: str, payloads: Sequence[str | bytes], retain: bool = False) -> None:
        """Publish with QoS 1, and wait for the broker's acknowledgements."""
        with self.client() as client:
            publications = [
                client.publish(topic, payload, qos=1, retain=retain) for payload in payloads
            ]
            for publication in publications:
                publication.wait_for_publish(WAIT_S)
                assert publication.is_published()

    @contextmanager
    def client(
        self, topic: str = "", on_message: Callable[[MQTTMessage], None] | None = None
    ) -> Iterator[Client]:
        """Provide a connected client, subscribed to a topic if one is given."""
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2)
        ready = threading.Event()
        client.on_subscribe = lambda *_: ready.set()

        def connected(*_: object) -> None:
            if topic:
                client.subscribe(topic, qos=1)
            else:
                ready.set()

        client.on_connect = connected  # earlier messages may be lost
        if on_message is not None:
            client.on_message = lambda _, __, message: on_message(message)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        assert ready.wait(WAIT_S)
        try:
            yield client
        finally:
            client.disconnect()
            client.loop_stop()


@contextmanager
def mosquitto(folder: Path, settings: Sequence[str] = ()) -> Iterator[Mosquitto]:
    broker = Mosquitto(folder, settings)
    try:
        yield broker
    finally:
        broker.stop()
