"""Events, subscriptions and matches in files: what the command line reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.formats.dead_letters import DeadLetter
    from fencepost.formats.event_files import Batch, read_events
    from fencepost.formats.file_formats import Format
    from fencepost.formats.file_matching import subscribe_file
    from fencepost.formats.subscription_files import read_subscriptions

__all__ = [
    "Batch",
    "DeadLetter",
    "Format",
    "read_events",
    "read_subscriptions",
    "subscribe_file",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "event_files": ["Batch", "read_events"],
            "file_formats": ["Format"],
            "dead_letters": ["DeadLetter"],
            "file_matching": ["subscribe_file"],
            "subscription_files": ["read_subscriptions"],
        },
    )
