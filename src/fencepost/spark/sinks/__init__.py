"""Where matches go: Parquet files, an MQTT broker, webhooks; each safe to run again.

- `mqtt_sink`: A streaming sink that publishes matches to an MQTT broker, with QoS 1
- `parquet_sink`: Matches as Parquet files, each match once, by Spark's own file sink
- `sink_messages`: What the sinks that send have in common: messages, which batches are done, what
  was not sent
- `webhook_sink`: A streaming sink that posts matches to webhooks, as the server does: signed, and
  guarded
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def start_query(
    writer: DataStreamWriter,
    checkpoint: str | Path,
    available_now: bool,
    every: str | None,
    path: Path | None = None,
) -> StreamingQuery:
    """The query: batch after batch, or at intervals, or until all that is there now is done."""
    writer = writer.outputMode("append").option("checkpointLocation", str(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    return writer.start(None if path is None else str(path))
