"""Events as tables: each attribute of each event is read once, whoever asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.events.table import EventTable

__all__ = ["EventTable"]

if not TYPE_CHECKING:
    __getattr__ = offering(__name__, {"table": ["EventTable"]})
