"""Segments of subscriptions: how they are built, and how events find what matches in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.engine.columns.column_registry import Columns
    from fencepost.engine.columns.event_columns import lay_out
    from fencepost.engine.filter_table import FilterTable
    from fencepost.engine.segment_builder import build

__all__ = [
    "build",
    "Columns",
    "FilterTable",
    "lay_out",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "columns.column_registry": ["Columns"],
            "columns.event_columns": ["lay_out"],
            "filter_table": ["FilterTable"],
            "segment_builder": ["build"],
        },
    )
