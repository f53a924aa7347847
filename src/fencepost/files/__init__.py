"""Events, subscriptions and matches in files: what the command line reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.files.events import Batch, read_events
    from fencepost.files.formats import Format
    from fencepost.files.letters import DeadLetter
    from fencepost.files.run import subscribe_file
    from fencepost.files.spark_commands import submission
    from fencepost.files.subscriptions import read_subscriptions

__all__ = [
    "Batch",
    "DeadLetter",
    "Format",
    "read_events",
    "read_subscriptions",
    "submission",
    "subscribe_file",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "events": ["Batch", "read_events"],
            "formats": ["Format"],
            "letters": ["DeadLetter"],
            "run": ["subscribe_file"],
            "spark_commands": ["submission"],
            "subscriptions": ["read_subscriptions"],
        },
    )
