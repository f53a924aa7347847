"""The engine: `Matcher`, its segments, and everything that a match or a change of them needs.

- `columns/`: Events as columns, and the kinds of checks that compare them
- `explain/`: Explanations: why an event matches a subscription or not, and the access paths
- `postings/`: Postings: filters stored under the words and strings that they need
- `regions/`: The region index: regions that filters relate events to
- `storage/`: An index on disk: a manifest, and a folder for each segment
- `access_paths`: The planner, which chooses the check by which events find each filter
- `attribute_watch`: attributes that events lack, or whose geometries cannot be used, reported once
- `batch`: `match_pairs`, `table_of_pairs`: a table of events in, an Arrow table of pairs out
- `best_matches`: the matches of each event of a table, best first and with their scores
- `bounding_boxes`: `BoundingBoxes`: the boxes that an event's geometry must meet for checks to be
  true
- `bulk_columns`: Reads the columns of `Matcher.subscribe_columns`: values, and lists of keywords
- `bulk_loading`: `ColumnSubscriptions`: a table of filters from columns, without parsing
- `crs_agreement`: `CrsAgreement`: whether geometries have the CRS of a matcher
- `decompiler`: `condition_of`, which rebuilds the condition of a subscription added as columns
- `event_sampler`: `EventSampler`: a sample of recent events, for the planner
- `executors`: Engines of a `Matcher`, which find the subscriptions that an event matches
- `fence_frames`: reads the ids, geometries and expiry times of a table's rows, for fences
- `fence_subscriptions`: `Fence`: how a geometry becomes a subscription, one by one or in columns
- `filter_table`: `FilterTable`: filters as rows of a table, from which a segment is built
- `frames`: tables of geometries that become subscriptions, and tables of events joined with those
  that they match
- `index_registry`: `resolve_index`: the indexes of a `Matcher`, by name
- `kernel_runner`: `KernelRunner`, which runs the matching kernels over the segments of a snapshot
- `matcher`: `Matcher`, the index of subscriptions: add subscriptions, match events, get ids back
- `matcher_display`: `matcher_html`, a matcher in a notebook: counts, and a map of subscriptions
- `memtable`: `Memtable`: the newest subscriptions, searchable at once, in arrays that grow
- `merge_policy`: Which neighbouring segments to merge: pure functions of their sizes
- `progress`: `progress_steps`: a progress bar for calls that may take a minute
- `ranking`: Scores of matches, by which `Matcher.rank` orders them; `docs/ranking.md` has the rule
- `relate`: `relate` and its batch forms: the topological relations of geometries
- `requirements`: `Requirements`: what events must have to match subscriptions
- `segment`: `Segment`: subscriptions as flat arrays, with the id and subscriber of each row
- `segment_builder`: Builds the arrays of a segment from a table of filters
- `segment_manager`: `SegmentManager`: the memtable and the segments of a matcher, and their merges
- `segment_view`: `SegmentView`: lets other packages read subscriptions and segments
- `segment_words`: Reads the keywords and spatial bounds of subscriptions from a segment
- `selectivity`: `CheckEstimates`: the access path and the estimated selectivity of each check
- `simplify`: `simplify` drops redundant parts of an expression; `simplify_many`, of many
  subscriptions
- `snapshot`: `Snapshot`: the segments of a matcher, and its memtable, at one version
- `subscription_tables`: `subscription_table`, the subscriptions of a matcher as an Arrow table
- `subscriptions`: `Subscription`, and readers that compile expressions and tables to it
- `unit_watch`: `UnitWatch`: reports distances in metres that are compared with degrees
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.engine.attribute_watch import AttributeWatch
    from fencepost.engine.batch import Pairs, match_pairs
    from fencepost.engine.best_matches import MatchLimits, rank_pairs
    from fencepost.engine.columns.column_registry import ColumnRegistry
    from fencepost.engine.columns.event_columns import encode_events
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
    "AttributeWatch",
    "ColumnRegistry",
    "DeadLetters",
    "FilterTable",
    "MatchLimits",
    "Matcher",
    "Pairs",
    "Segment",
    "SegmentReader",
    "Snapshot",
    "Subscription",
    "build",
    "encode_events",
    "match_pairs",
    "matrices",
    "merge_segments",
    "rank_pairs",
    "relations",
    "scores_of_pairs",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "attribute_watch": ["AttributeWatch"],
            "batch": ["Pairs", "match_pairs"],
            "best_matches": ["MatchLimits", "rank_pairs"],
            "columns.column_registry": ["ColumnRegistry"],
            "columns.event_columns": ["encode_events"],
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
