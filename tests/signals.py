"""Signals in processes that tests start."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """Whoever runs the tests in the background may have them, and their children, ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
