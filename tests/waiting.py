"""Waiting for what must happen: a busy machine may take its time, a fault is still found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

WAIT_S = 300.0  # only a fault takes that long


def until(condition: Callable[[], bool], wait_s: float = WAIT_S) -> None:
    """Wait for a condition; an event that is never set is how to wait a moment."""
    pause = threading.Event()
    end = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < end, "what was waited for did not happen"
        pause.wait(0.01)
