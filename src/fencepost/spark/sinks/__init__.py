"""Streaming sinks of matches: Parquet files, an MQTT broker, webhooks.

Despite crashes, the file sink writes each match exactly once; other sinks send it at least once.

- `mqtt_sink`: publishes matches to an MQTT broker with QoS 1
- `parquet_sink`: writes matches as Parquet files, each match once
- `sink_messages`: messages, committed batches and dead letters of the sinks that send
- `webhook_sink`: posts matches to webhooks, signed, to addresses that a policy allows
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
    """Start a streaming query that appends to a sink.

    Parameters
    ----------
    writer : DataStreamWriter
        The writer, with format and options set.
    checkpoint : str or Path
        Spark's checkpoint of the query.
    available_now : bool
        If true, the query ends when it has processed the data available at its start.
    every : str, optional
        The interval of micro-batches; by default, each begins when the last one has ended.
    path : Path, optional
        The folder that the sink writes.
    """
    writer = writer.outputMode("append").option("checkpointLocation", str(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    return writer.start(None if path is None else str(path))
