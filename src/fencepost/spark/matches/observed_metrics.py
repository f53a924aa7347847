"""What a stream tells of its micro-batches: aggregates of rows that pass points of the plan.

Spark reports them to listeners, see `fencepost.spark.matches.stream_progress`. A task that fails
and is run again counts once.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAYLOADS, EVENTS, MATCHES = (f"fencepost-{name}" for name in ("payloads", "events", "matches"))


class Observed:
    """The names of what one call of `match` observes."""

    def __init__(self, path: str) -> None:
        self._own = f"{uuid.uuid4().hex}:{path}"

    def events(self, rows: DataFrame, version: str) -> DataFrame:
        """Events counted, and the version of the index, which a column has."""
        from pyspark.sql import functions as F

        return rows.observe(
            f"{EVENTS}:{self._own}",
            F.count(F.lit(1)).alias("events"),
            F.max(version).alias("version"),
        )

    def matches(self, rows: DataFrame) -> DataFrame:
        """Matches counted, and rows without a subscription, which are dead letters."""
        from pyspark.sql import functions as F

        return rows.observe(
            f"{MATCHES}:{self._own}",
            F.count("subscription").alias("matches"),
            F.count_if(F.col("subscription").isNull()).alias("dead_letters"),
        )


def observe_payloads(rows: DataFrame) -> DataFrame:
    """Payloads as they were read; those with a reason why they are no events, counted."""
    from pyspark.sql import functions as F

    return rows.observe(f"{PAYLOADS}:{uuid.uuid4().hex}", F.count("reason").alias("dead_letters"))
