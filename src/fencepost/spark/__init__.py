"""Fencepost on Spark: the same matching, on DataFrames, in batch and in streams.

from fencepost import spark as fps
matches = fps.match(events, "/shared/index", columns=["id"])
"""

from __future__ import annotations

from fencepost.spark.matching import match
from fencepost.spark.session import session

__all__ = ["match", "session"]
