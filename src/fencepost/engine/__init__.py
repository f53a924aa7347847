"""The engine: `Matcher`, its segments, and everything that a match or a change of them needs.

- `columns/`: Events as columns, and the kinds of checks that compare them
- `explain/`: Explanations: why an event matches a subscription or not, and the access paths
- `postings/`: Postings: filters under the words and strings that they need
- `regions/`: Regions of filters, as an index that a kernel walks
- `storage/`: An index on disk: its manifest, its segment files, the folder that holds both
- `access_paths`: The planner, which chooses the check by which events find each filter
- `batch`: `match_table`, `match_pairs`: a table of events in, an Arrow table of pairs out
- `bounding_boxes`: `BoundingBoxes`: the boxes that an event's geometry must meet for checks to be
  true
- `bulk_columns`: Columns of subscriptions as arrays: values to compare with, and lists of
  keywords
- `bulk_loading`: Subscriptions given as columns: straight to a table of filters, without parsing
- `decompiler`: `condition_of`, which rebuilds the condition of a subscription added as columns
- `event_sampler`: `EventSampler`: a sample of recent events, for the planner
- `executors`: Engines of a `Matcher`, which find the subscriptions that an event matches
- `filter_table`: Filters as rows of a table: what a segment is built from, and merged from
- `index_registry`: `resolve_index`: the indexes of a `Matcher`, by name
- `kernel_runner`: `KernelRunner`, which runs the matching kernels over the segments of a snapshot
- `matcher`: `Matcher`, the index of subscriptions: add subscriptions, match events, get ids back
- `memtable`: The memtable: the subscriptions that came last, in arrays that grow
- `merge_policy`: Which neighbouring segments to merge: pure functions of their sizes
- `progress`: `progress_steps`: a progress bar for calls that may take a minute
- `ranking`: Scores of matches, by which `Matcher.rank` orders them; `docs/ranking.md` has the rule
- `relate`: `relate` and its batch forms: the topological relations of geometries
- `requirements`: `Requirements`: what events must have to match subscriptions
- `segment`: Segments: subscriptions as flat arrays, and the names that belong to their rows
- `segment_builder`: Building an immutable segment of subscriptions from a table of filters
- `segment_manager`: The subscriptions of a matcher: the memtable, the segments, and where each id
  is
- `segment_view`: `SegmentView`: what other packages may read of a matcher's subscriptions and
  segments
- `segment_words`: What subscriptions of a segment name and where they want events to be, read
  from its arrays
- `selectivity`: `CheckEstimates`: the access path and the estimated selectivity of each check
- `simplify`: `simplify` drops redundant parts of an expression; `simplify_many`, of many
  subscriptions
- `snapshot`: Snapshots: the segments of a matcher, and its memtable, as they were at one version
- `subscriptions`: `Subscription`, and readers that compile expressions and tables to it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.engine.batch import Pairs, match_pairs
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
    "ColumnRegistry",
    "DeadLetters",
    "FilterTable",
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
    "relations",
    "scores_of_pairs",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "batch": ["Pairs", "match_pairs"],
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
