"""`until`: wait for a condition, with a deadline that only a fault reaches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

WAIT_S = 300.0  # even a busy machine needs less


def until(condition: Callable[[], bool], wait_s: float = WAIT_S) -> None:
    """Wait until a condition holds."""
    pause = threading.Event()
    end = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < end, "the condition did not become true in time"
        pause.wait(0.01)
