"""Fencepost on Spark: the same matching, on DataFrames, in batch and in streams.

from fencepost import spark as fps
fps.build_index(spark, subscriptions, "/shared/index")
matches = fps.match(events, "/shared/index", columns=["id"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencepost.lazy_exports import offering
from fencepost.spark.session import session

if TYPE_CHECKING:
    from fencepost.spark.building import BuiltIndex, build_index
    from fencepost.spark.detecting import detect
    from fencepost.spark.matching import MatchPlan, match, plan
    from fencepost.spark.mqtt_source import read_mqtt
    from fencepost.spark.payloads import EventsAndLetters, events_of
    from fencepost.spark.progress import Progress, ProgressListener, progress_of
    from fencepost.spark.simplifying import simplify
    from fencepost.spark.sinks.mqtt import send_mqtt
    from fencepost.spark.sinks.parquet import write_matches, written_files
    from fencepost.spark.sinks.sending import messages_of
    from fencepost.spark.sinks.webhook import send_webhooks
    from fencepost.spark.tracking import track

__all__ = [
    "BuiltIndex",
    "EventsAndLetters",
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
    "read_mqtt",
    "send_mqtt",
    "send_webhooks",
    "session",
    "simplify",
    "track",
    "write_matches",
    "written_files",
]

# Loaded when first used: sources and sinks need PySpark, and the processes that Spark starts for
# them need not wait for the kernels, which only `match` and `build_index` need.
_load = offering(
    __name__,
    {
        "building": ["BuiltIndex", "build_index"],
        "detecting": ["detect"],
        "matching": ["MatchPlan", "match", "plan"],
        "mqtt_source": ["read_mqtt"],
        "payloads": ["EventsAndLetters", "events_of"],
        "progress": ["Progress", "ProgressListener", "progress_of"],
        "simplifying": ["simplify"],
        "sinks.mqtt": ["send_mqtt"],
        "sinks.parquet": ["write_matches", "written_files"],
        "sinks.sending": ["messages_of"],
        "sinks.webhook": ["send_webhooks"],
        "tracking": ["track"],
    },
)


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "pyspark":
            raise
        from fencepost.errors import FencepostError

        raise FencepostError(
            f"{name} needs PySpark 4.2 or later; install it with: pip install 'fencepost[spark]'"
        ) from error
