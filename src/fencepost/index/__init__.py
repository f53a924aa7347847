"""Segments: immutable bundles of flat arrays that hold many subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.index.columns import Columns
    from fencepost.index.events import block_of_rows, block_of_table
    from fencepost.index.segment import Segment, build
    from fencepost.index.table import FilterTable

__all__ = [
    "Columns",
    "FilterTable",
    "Segment",
    "block_of_rows",
    "block_of_table",
    "build",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "columns": ["Columns"],
            "events": ["block_of_rows", "block_of_table"],
            "segment": ["Segment", "build"],
            "table": ["FilterTable"],
        },
    )
