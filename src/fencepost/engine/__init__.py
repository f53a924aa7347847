"""The engine: subscriptions in segments, events past them, the ids of those that match.

- `columns/`: Events as columns, and the kinds of checks that compare them
- `explain/`: Why an event matches a subscription or not
- `postings/`: Postings: filters stored under the words and strings that they need
- `regions/`: The region index: regions that filters relate events to
- `storage/`: An index on disk: a manifest, and a folder for each segment
- `access_paths`: By which of its checks each filter is found
- `batch`: Matching many events at once: tables in, an Arrow table of pairs out
- `bounding_boxes`: `BoundingBoxes`: the boxes that an event must meet for checks to be true
- `bulk_columns`: Reads the columns of `Matcher.subscribe_columns`: values, and lists of keywords
- `bulk_loading`: `ColumnSubscriptions`: a table of filters from columns, without parsing
- `decompiler`: The condition of a subscription, put together from its checks: for those added as
  columns
- `event_sampler`: Some of the events that went by, from which the planner learns what events are
  like
- `executors`: What stands behind a `Matcher`: ways to find the subscriptions that events answer
- `filter_table`: `FilterTable`: filters as rows of a table, from which a segment is built
- `index_registry`: The indexes of a `Matcher` by name, and what makes an engine of one
- `kernel_runner`: Running the matching kernel over a segment, and distances too close to call
- `matcher`: `Matcher`: subscriptions in, events past, the ids of those that match out
- `memtable`: `Memtable`: the newest subscriptions, searchable at once, in arrays that grow
- `merge_policy`: Pure functions from the sizes of segments to the neighbours to merge
- `progress`: A progress bar for calls that may take a minute
- `ranking`: How well the subscriptions that an event answers fit it: `docs/ranking.md` is the
  rule
- `relate`: `relate` and its batch forms: geometries in, relations out
- `requirements`: What events must have to match subscriptions: for routing, and for safe regions
- `segment`: `Segment`: subscriptions as flat arrays, with the id and subscriber of each row
- `segment_builder`: Builds the arrays of a segment from a table of filters
- `segment_manager`: `SegmentManager`: the memtable and the segments of a matcher, and their merges
- `segment_view`: `SegmentView`: through which other packages read subscriptions and segments
- `segment_words`: Reads the keywords and spatial bounds of subscriptions from a segment
- `selectivity`: How many of the events are expected to pass a check: its *share*
- `simplify`: What expressions can do without: `simplify` for one, `simplify_many` for
  subscriptions
- `snapshot`: `Snapshot`: the segments of a matcher, and its memtable, at one version
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
