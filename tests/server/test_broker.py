"""The broker's thread goes on, whatever those who wait for it do."""

from __future__ import annotations

import threading
from pathlib import Path

from fencepost.server.broker import Writing
from fencepost.server.service import Service
from fencepost.server.settings import Settings

WAIT_S = 30.0


def test_who_stops_waiting_does_not_stop_the_broker(tmp_path: Path) -> None:
    service = Service(Settings(tmp_path))
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Writing) -> str:
        begun.set()
        go_on.wait(WAIT_S)
        return "done"

    under_way = service.broker.change(wait)
    assert begun.wait(WAIT_S)
    waiting = service.broker.publish(1, [{"n": 1}], ["{}"])
    assert waiting.cancel()
    assert not under_way.cancel()
    go_on.set()
    assert under_way.result(WAIT_S) == "done"
    published = service.broker.publish(1, [{"n": 2}], ["{}"]).result(WAIT_S)
    assert (published.accepted, published.first) == (1, 1)
    service.close()
