"""`heed_interrupts`: for processes that tests start."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """Restore the default action of SIGINT, which background jobs of a shell ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
