"""Fencepost on Spark: the same matching, on DataFrames, in batch and in streams.

from fencepost import spark as fps
fps.build_index(spark, subscriptions, "/shared/index")
matches = fps.match(events, "/shared/index", columns=["id"])
"""

from __future__ import annotations

from fencepost.spark.building import BuiltIndex, build_index
from fencepost.spark.matching import MatchPlan, match, plan
from fencepost.spark.session import session

__all__ = ["BuiltIndex", "MatchPlan", "build_index", "match", "plan", "session"]
