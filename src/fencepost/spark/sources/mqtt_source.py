"""Provides `read_mqtt`, a streaming source that reads an MQTT broker through a spool.

An offset is a position in the spool. Spark requests offsets and partitions from a process beside
the driver, in which the receiver runs. Tasks read ranges of the spool's files, so a batch that runs
again reads the same messages, independent of the broker.

Several queries may read one spool under different reader names: the first query runs the receiver,
and when it ends, another query takes over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from fencepost.errors import FencepostError, StoreError
from fencepost.spark.sources.mqtt_client import broker_of, integer_option
from fencepost.spark.sources.mqtt_receiver import Receiver
from fencepost.spark.sources.spool import SpoolReader, open_writer
from fencepost.spark.sources.spool_files import MessageRange, read_range

FORMAT = "fencepost-mqtt"
_SCHEMA = "topic string, payload binary, received timestamp, redelivered boolean, position long"
_PARTITION_MESSAGES = 10_000  # as many rows as Spark puts into an Arrow batch by default
_TAKE_OVER_WAIT_S = 1.0
_MAX_FILTER_BYTES = 65_535


def read_mqtt(
    spark: SparkSession,
    topics: str | Sequence[str],
    spool: str | Path,
    *,
    max_messages: int | None = None,
    reader: str = "default",
    **broker: str | int | bool,
) -> DataFrame:
    """Return a stream of the messages that are published to topics.

    Parameters
    ----------
    spark : SparkSession
        The session of the stream.
    topics : str or sequence of str
        Topic filters, such as ``"storms/#"``.
    spool : str or Path
        A folder for messages that are received but not yet processed; created if it is missing.
        The driver and the workers must reach it under the same path, and it must persist between
        runs.
    max_messages : int, optional
        The largest number of messages in a micro-batch.
    reader : str
        The name of this query; each query that reads the same spool needs its own.
    **broker
        `host` (127.0.0.1), `port` (1883, or 8883 with TLS), `username`, `password`, `tls` (False),
        `cafile`.

    Returns
    -------
    DataFrame
        `topic` (string), `payload` (binary), `received` (timestamp), `redelivered` (boolean: the
        broker may have sent the message before) and `position` (long: 0, 1, 2, ...).
    """
    options: dict[str, Any] = {
        "topics": json.dumps([topics] if isinstance(topics, str) else list(topics)),
        "spool": str(Path(spool).absolute()),
        "reader": reader,
        **broker,
    }
    if max_messages is not None:
        options["maxMessages"] = max_messages
    texts = {name: str(value) for name, value in options.items() if value is not None}
    _SourceOptions(texts)  # raises here, not in another process, if an option is invalid
    spark.dataSource.register(MqttSource)
    return spark.readStream.format(FORMAT).options(**texts).load()


class MqttSource(DataSource):
    """The data source that Spark registers as `fencepost-mqtt`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    def schema(self) -> str:
        """The columns of every message."""
        return _SCHEMA

    def streamReader(self, schema: object) -> MqttStreamReader:
        """Return the reader of a stream: its offsets, partitions and rows."""
        return MqttStreamReader(self.options)


class _RangePartition(InputPartition):
    def __init__(self, value: MessageRange) -> None:
        self.value = value


class _SourceOptions:
    """The parsed options of the source."""

    def __init__(self, options: Mapping[str, str]) -> None:
        known = {"topics", "spool", "reader", "maxmessages"}
        known |= {"host", "port", "username", "password", "tls", "cafile"}
        unknown = [name for name in options if name.lower() not in known]
        if unknown:
            raise FencepostError(
                f"the MQTT source has no option {unknown[0]!r}; it has: {', '.join(sorted(known))}"
            )
        if "topics" not in options or "spool" not in options:
            raise FencepostError("the MQTT source needs the options 'topics' and 'spool'")
        text = options["topics"]
        self.topics: list[str] = json.loads(text) if text.startswith("[") else [text]
        for topic in self.topics:
            _check_filter(topic)
        self.spool = Path(options["spool"])
        self.reader = options.get("reader", "default")
        has_limit = "maxMessages" in options
        self.max_messages = integer_option(options, "maxMessages", 1) if has_limit else None
        self.broker = broker_of(options)


class MqttStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a spool as a stream, whose offsets are positions; opens it with the first offset."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._settings = _SourceOptions(options)
        self._spool: SpoolReader | None = None
        self._receiver: Receiver | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """Return where a new query begins: the position of the oldest message in the spool."""
        return _offset(self._open().first)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the largest end offset of a batch that begins at `start`."""
        spool = self._open()
        self._receive()
        first, end = start["position"], spool.refresh()
        if first > end:
            raise StoreError(
                f"the checkpoint has reached position {first}, but the spool "
                f"{self._settings.spool} ends at {end}: it was emptied, or belongs to another "
                "query; restore the spool, or start with a new checkpoint"
            )
        if self._target is not None:
            end = max(first, min(end, self._target))
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return _offset(end)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the option `maxMessages` sets."""
        limit = self._settings.max_messages
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def reportLatestOffset(self) -> dict[str, int]:
        """Return the end of the spool, for Spark's report of progress."""
        return _offset(self._open().end)

    def prepareForTriggerAvailableNow(self) -> None:
        """Receive the messages that the broker has queued; the run ends after the last of them."""
        spool = self._open()
        self._receive(_TAKE_OVER_WAIT_S)
        if self._receiver is not None:
            self._receiver.catch_up()
        self._target = spool.refresh()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Divide a batch into ranges of files, at most `_PARTITION_MESSAGES` messages a task."""
        spool = self._open()
        if end["position"] > spool.end:
            spool.refresh()
        ranges = spool.ranges(start["position"], end["position"], _PARTITION_MESSAGES)
        return [_RangePartition(message_range) for message_range in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the messages of a partition; runs in a task."""
        return read_range(partition.value)

    def commit(self, end: dict[str, int]) -> None:
        """Record how far the query has read, and delete files that all readers have passed."""
        self._open().commit(end["position"])

    def stop(self) -> None:
        """Disconnect from the broker, which keeps the session, and close the spool."""
        if self._receiver is not None:
            self._receiver.stop()
        if self._spool is not None:
            self._spool.close()

    def _open(self) -> SpoolReader:
        if self._spool is None:
            self._spool = SpoolReader(self._settings.spool, self._settings.reader)
        return self._spool

    def _receive(self, wait_s: float = 0.0) -> None:
        """Start the receiver, unless another query receives into this spool."""
        if self._receiver is None:
            settings = self._settings
            writer = open_writer(settings.spool, wait_s)
            if writer is None:
                return
            try:
                self._receiver = Receiver(settings.broker, settings.topics, settings.spool, writer)
            except FencepostError:
                writer.close()
                raise
        else:
            self._receiver.check()


def _offset(position: int) -> dict[str, int]:
    return {"position": position}


def _check_filter(topic: object) -> None:
    levels = topic.split("/") if isinstance(topic, str) else []
    if (
        not isinstance(topic, str)
        or not 0 < len(topic.encode()) <= _MAX_FILTER_BYTES
        or "\0" in topic
        or any(("#" in level or "+" in level) and len(level) > 1 for level in levels)
        or "#" in levels[:-1]
    ):
        raise FencepostError(
            f"{topic!r} is not an MQTT topic filter; '+' stands for one whole level, '#' at the "
            "end for all levels that follow"
        )
