"""Files of events, subscriptions and matches, which the command line reads and writes.

- `csv_files`: the rows of CSV files, and such rows as events with points
- `dead_letters`: `DeadLetter`, a row that cannot be used; handlers of dead letters
- `event_files`: `read_events`, the events of a file in batches
- `fence_files`: `subscribe_fences`, a subscription for each feature of a file
- `feature_writer`: events as GeoJSON Features, and their geometries as WKB, for output files
- `file_formats`: `Format`, by the ending of a name; opening of files; stop words
- `file_matching`: `subscribe_file` and `match_file`, the work of `fencepost index` and `match`
- `geopackage_files`: `GeoPackageRows`, the features of a layer of a GeoPackage in batches
- `json_elements`: JSON objects, one at a time, from lines or from a text that is one JSON value
- `line_batches`: the lines of a file or a pipe in batches, in bounded memory
- `match_files`: sinks of matches: NDJSON, CSV, Parquet, GeoParquet and GeoJSON
- `parquet_files`: `ParquetRows`, the rows of Parquet and GeoParquet files in batches
- `subscription_files`: `read_subscriptions`, the subscriptions of a file in batches
- `subscription_writer`: `write_subscriptions`, the subscriptions of a matcher as lines of JSON
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
