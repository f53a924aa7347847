"""Segments: immutable bundles of flat arrays that hold many subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.index.columns import Columns
    from fencepost.index.events import lay_out
    from fencepost.index.segment import build
    from fencepost.index.table import FilterTable

__all__ = [
    "Columns",
    "FilterTable",
    "build",
    "lay_out",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "columns": ["Columns"],
            "events": ["lay_out"],
            "segment": ["build"],
            "table": ["FilterTable"],
        },
    )
