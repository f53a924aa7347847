"""Matching places: the relations between their geometries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.engine.columns.column_registry import Columns
    from fencepost.match.batch import Pairs, match_pairs
    from fencepost.match.catalogue import Subscription
    from fencepost.match.index_registry import INDEXES
    from fencepost.match.matcher import DeadLetters, Matcher
    from fencepost.match.ranking import scores_of_pairs
    from fencepost.match.relate import matrices, relations
    from fencepost.match.segments import Segment, SegmentReader, merge_segments
    from fencepost.match.snapshot import Snapshot

__all__ = [
    "INDEXES",
    "Columns",
    "DeadLetters",
    "Matcher",
    "Pairs",
    "Segment",
    "SegmentReader",
    "Snapshot",
    "Subscription",
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
            "catalogue": ["Subscription"],
            "index_registry": ["INDEXES"],
            "matcher": ["DeadLetters", "Matcher"],
            "ranking": ["scores_of_pairs"],
            "relate": ["matrices", "relations"],
            "segment_view": ["Columns"],
            "segments": ["Segment", "SegmentReader", "merge_segments"],
            "snapshot": ["Snapshot"],
        },
    )
