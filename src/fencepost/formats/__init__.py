"""Events, subscriptions and matches in files: what the command line reads and writes.

- `dead_letters`: Dead letters: rows that cannot be used, set aside with the reason while the rest
  goes on
- `event_files`: Files of events, a batch at a time
- `feature_writer`: Events as GeoJSON Features, and their geometries as WKB, for what is written
- `file_formats`: Which format a file has, by the ending of its name unless it is said; and files
  of stop words
- `file_matching`: Subscriptions of a file into a matcher, and the events of a file past it
- `json_elements`: JSON objects one at a time: from lines, and from a file that is one JSON value
- `line_batches`: Lines of a file or a pipe in batches, in bounded memory
- `match_files`: Matches into files: lines, CSV, Parquet, GeoParquet, or GeoJSON with the events
  themselves
- `parquet_files`: Parquet and GeoParquet files, a batch of rows at a time
- `subscription_files`: Files of subscriptions, a batch of rows at a time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.formats.dead_letters import DeadLetter
    from fencepost.formats.event_files import Batch, read_events
    from fencepost.formats.file_formats import Format
    from fencepost.formats.file_matching import subscribe_file
    from fencepost.formats.subscription_files import read_subscriptions

__all__ = [
    "Batch",
    "DeadLetter",
    "Format",
    "read_events",
    "read_subscriptions",
    "subscribe_file",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "event_files": ["Batch", "read_events"],
            "file_formats": ["Format"],
            "dead_letters": ["DeadLetter"],
            "file_matching": ["subscribe_file"],
            "subscription_files": ["read_subscriptions"],
        },
    )
