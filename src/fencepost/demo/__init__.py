"""The demonstration: a made-up city, standing questions, a stream of events matched on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.demo import city
    from fencepost.demo.map import write_map

__all__ = [
    "city",
    "write_map",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "map": ["write_map"],
            "city": None,
        },
    )
