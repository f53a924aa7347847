"""The engine: subscriptions in segments, events past them, the ids of those that match.

- `columns/`: Events as columns, and the kinds of checks that compare them
- `explain/`: Why an event matches a subscription or not
- `postings/`: Postings: filters under the words and strings that they need
- `regions/`: Regions of filters, as an index that a kernel walks
- `storage/`: An index on disk: its manifest, its segment files, the folder that holds both
- `access_paths`: By which of its checks each filter is found
- `batch`: Matching many events at once: tables in, an Arrow table of pairs out
- `bounding_boxes`: Where an event must be for a check about its geometry to be true: one box or,
  across the antimeridian, two
- `bulk_columns`: Columns of subscriptions as arrays: values to compare with, and lists of
  keywords
- `bulk_loading`: Subscriptions given as columns: straight to a table of filters, without parsing
- `decompiler`: The condition of a subscription, put together from its checks: for those added as
  columns
- `event_sampler`: Some of the events that went by, from which the planner learns what events are
  like
- `executors`: What stands behind a `Matcher`: ways to find the subscriptions that events answer
- `filter_table`: Filters as rows of a table: what a segment is built from, and merged from
- `index_registry`: The indexes of a `Matcher` by name, and what makes an engine of one
- `kernel_runner`: Running the matching kernel over a segment, and distances too close to call
- `matcher`: `Matcher`: subscriptions in, events past, the ids of those that match out
- `memtable`: The memtable: the subscriptions that came last, in arrays that grow
- `merge_policy`: Which neighbouring segments to merge: pure functions of their sizes, and nothing
  else
- `progress`: A progress bar for calls that may take a minute
- `ranking`: How well the subscriptions that an event answers fit it: `docs/ranking.md` is the
  rule
- `relate`: `relate` and its batch forms: geometries in, relations out
- `requirements`: What events must have to match subscriptions: for routing, and for safe regions
- `segment`: Segments: subscriptions as flat arrays, and the names that belong to their rows
- `segment_builder`: Building an immutable segment of subscriptions from a table of filters
- `segment_manager`: The subscriptions of a matcher: the memtable, the segments, and where each id
  is
- `segment_view`: `SegmentView`: what other packages may read of a matcher's subscriptions and
  segments
- `segment_words`: What subscriptions of a segment name and where they want events to be, read
  from its arrays
- `selectivity`: How many of the events are expected to pass a check: its *share*
- `simplify`: What expressions can do without: `simplify` for one, `simplify_many` for
  subscriptions
- `snapshot`: Snapshots: the segments of a matcher, and its memtable, as they were at one version
- `subscriptions`: What a subscription is, and subscriptions read from expressions and tables
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
