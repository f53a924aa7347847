"""Fencepost on Spark: the same matching on batch and streaming DataFrames.

from fencepost import spark as fps
fps.build_index(spark, subscriptions, "/shared/index")
matches = fps.match(events, "/shared/index", columns=["id"])

- `indexes/`: build, partition, compact and cache indexes; simplify subscriptions
- `matches/`: match the events of a DataFrame against an index
- `feature_frames`: GeoJSON Features in DataFrames: columns and types of their attributes
- `sinks/`: write matches to Parquet files, an MQTT broker or webhooks
- `sources/`: read streams of events
- `stateful/`: composites and tracked objects on DataFrames
- `spark_session`: start a local Spark session, or the one that `spark-submit` configured
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencepost.extras import requires_extra
from fencepost.lazy_exports import lazy_getattr
from fencepost.spark.spark_session import session

if TYPE_CHECKING:
    from fencepost.spark.indexes.index_build import BuiltIndex, build_index
    from fencepost.spark.indexes.simplification import simplify
    from fencepost.spark.matches.match_frames import MatchPlan, match, plan
    from fencepost.spark.matches.stream_progress import Progress, ProgressListener, progress_of
    from fencepost.spark.sinks.mqtt_sink import send_mqtt
    from fencepost.spark.sinks.parquet_sink import write_matches, written_files
    from fencepost.spark.sinks.sink_messages import messages_of
    from fencepost.spark.sinks.webhook_sink import send_webhooks
    from fencepost.spark.sources.event_frames import read_events
    from fencepost.spark.sources.json_payloads import EventsAndDeadLetters, events_of
    from fencepost.spark.sources.mqtt_source import read_mqtt
    from fencepost.spark.stateful.detection_frames import detect
    from fencepost.spark.stateful.tracking_frames import track

__all__ = [
    "BuiltIndex",
    "EventsAndDeadLetters",
    "MatchPlan",
    "Progress",
    "ProgressListener",
    "build_index",
    "detect",
    "events_of",
    "match",
    "messages_of",
    "plan",
    "progress_of",
    "read_events",
    "read_mqtt",
    "send_mqtt",
    "send_webhooks",
    "session",
    "simplify",
    "track",
    "write_matches",
    "written_files",
]

# Loaded on first use: sources and sinks need PySpark but no kernels, so the processes that Spark
# starts for them skip loading the kernels, which only `match` and `build_index` need.
_load = lazy_getattr(
    __name__,
    {
        "indexes.index_build": ["BuiltIndex", "build_index"],
        "stateful.detection_frames": ["detect"],
        "matches.match_frames": ["MatchPlan", "match", "plan"],
        "sources.event_frames": ["read_events"],
        "sources.mqtt_source": ["read_mqtt"],
        "sources.json_payloads": ["EventsAndDeadLetters", "events_of"],
        "matches.stream_progress": ["Progress", "ProgressListener", "progress_of"],
        "indexes.simplification": ["simplify"],
        "sinks.mqtt_sink": ["send_mqtt"],
        "sinks.parquet_sink": ["write_matches", "written_files"],
        "sinks.sink_messages": ["messages_of"],
        "sinks.webhook_sink": ["send_webhooks"],
        "stateful.tracking_frames": ["track"],
    },
)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        return _load(name)  # which raises AttributeError
    with requires_extra(f"fencepost.spark.{name}", "spark"):
        return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
