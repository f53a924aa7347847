"""The engine: subscriptions in segments, events past them, the ids of those that match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.engine.batch import Pairs, match_pairs
    from fencepost.engine.columns.column_registry import Columns
    from fencepost.engine.columns.event_columns import lay_out
    from fencepost.engine.filter_table import FilterTable
    from fencepost.engine.index_registry import INDEXES
    from fencepost.engine.matcher import DeadLetters, Matcher
    from fencepost.engine.ranking import scores_of_pairs
    from fencepost.engine.relate import matrices, relations
    from fencepost.engine.segment import Segment, SegmentReader, merge_segments
    from fencepost.engine.segment_builder import build
    from fencepost.engine.snapshot import Snapshot
    from fencepost.engine.subscriptions import Subscription

__all__ = [
    "INDEXES",
    "Columns",
    "DeadLetters",
    "FilterTable",
    "Matcher",
    "Pairs",
    "Segment",
    "SegmentReader",
    "Snapshot",
    "Subscription",
    "build",
    "lay_out",
    "match_pairs",
    "matrices",
    "merge_segments",
    "relations",
    "scores_of_pairs",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "batch": ["Pairs", "match_pairs"],
            "columns.column_registry": ["Columns"],
            "columns.event_columns": ["lay_out"],
            "filter_table": ["FilterTable"],
            "index_registry": ["INDEXES"],
            "matcher": ["DeadLetters", "Matcher"],
            "ranking": ["scores_of_pairs"],
            "relate": ["matrices", "relations"],
            "segment": ["Segment", "SegmentReader", "merge_segments"],
            "segment_builder": ["build"],
            "snapshot": ["Snapshot"],
            "subscriptions": ["Subscription"],
        },
    )
