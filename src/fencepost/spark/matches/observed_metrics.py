"""Provides the metrics that Spark observes in a stream: counts of rows at points of the plan.

Spark reports them to listeners for each micro-batch; `fencepost.spark.matches.stream_progress`
reads them. The rows of a task that fails and is run again count once.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAYLOADS, EVENTS, MATCHES = (f"fencepost-{name}" for name in ("payloads", "events", "matches"))


class ObservedMatch:
    """Adds the metrics of one call of `match`, named by a unique id and the index's path."""

    def __init__(self, path: str) -> None:
        self._suffix = f"{uuid.uuid4().hex}:{path}"

    def events(self, rows: DataFrame, version_column: str) -> DataFrame:
        """Return `rows`, observed: the number of events, and the index version in a column."""
        from pyspark.sql import functions as F

        return rows.observe(
            f"{EVENTS}:{self._suffix}",
            F.count(F.lit(1)).alias("events"),
            F.max(version_column).alias("version"),
        )

    def matches(self, rows: DataFrame) -> DataFrame:
        """Return `rows`, observed: the number of matches, and of dead letters."""
        from pyspark.sql import functions as F

        return rows.observe(
            f"{MATCHES}:{self._suffix}",
            F.count("subscription").alias("matches"),
            F.count_if(F.col("subscription").isNull()).alias("dead_letters"),
        )


def observe_payloads(rows: DataFrame) -> DataFrame:
    """Return parsed payloads, observed: the number of rows with a reason, the dead letters."""
    from pyspark.sql import functions as F

    return rows.observe(f"{PAYLOADS}:{uuid.uuid4().hex}", F.count("reason").alias("dead_letters"))
