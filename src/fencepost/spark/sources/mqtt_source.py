"""A streaming source of Spark that reads what an MQTT broker publishes.

Spark asks for offsets and partitions in a process beside the driver; there the receiver runs, and
an offset is a position in the spool. Tasks read ranges of the spool's files, so that a batch that
is run again reads the same messages, whatever the broker does meanwhile.

Several queries may read one spool under different reader names: the first of them receives, and
when it ends another one takes over.
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
_PARTITION_MESSAGES = 10_000  # messages; as many as Spark puts into one Arrow batch
_TAKE_OVER_S = 1.0
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
    """A stream of the messages that are published to some topics.

    Parameters
    ----------
    spark : SparkSession
        Where it runs.
    topics : str or sequence of str
        Topic filters, such as ``"storms/#"``.
    spool : str or Path
        A folder for what has come and is not yet processed; made where there is none. It must be
        on a disk that the driver and the workers see under this path, and stay between runs.
    max_messages : int, optional
        How many messages a micro-batch has at most.
    reader : str
        The name of this query among those that read the same spool.
    **broker
        `host` (127.0.0.1), `port` (1883, or 8883 with tls), `username`, `password`, `tls`
        (False), `cafile`.

    Returns
    -------
    DataFrame
        `topic` (string), `payload` (binary), `received` (timestamp), `redelivered` (boolean; the
        broker says it may have sent this before) and `position` (long; grows by one a message).
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
    _SourceOptions(texts)  # bad options are reported here, not in another process later
    spark.dataSource.register(MqttSource)
    return spark.readStream.format(FORMAT).options(**texts).load()


class MqttSource(DataSource):
    """The source that is registered with Spark as `fencepost-mqtt`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return FORMAT

    def schema(self) -> str:
        """The columns of every message."""
        return _SCHEMA

    def streamReader(self, schema: object) -> MqttStreamReader:
        """What Spark asks for offsets, partitions and rows."""
        return MqttStreamReader(self.options)


class _RangePartition(InputPartition):
    def __init__(self, value: MessageRange) -> None:
        self.value = value


class _SourceOptions:
    """The options, read and checked."""

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
        limited = "maxMessages" in options
        self.most = integer_option(options, "maxMessages", 1) if limited else None
        self.broker = broker_of(options)


class MqttStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are positions in the spool; nothing is opened before Spark asks for one."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._settings = _SourceOptions(options)
        self._spool: SpoolReader | None = None
        self._receiver: Receiver | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """A new query begins with the oldest message that is there."""
        return _offset(self._open().first)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """How far a batch may go that starts there."""
        spool = self._open()
        self._receive()
        first, end = start["position"], spool.refresh()
        if first > end:
            raise StoreError(
                f"the checkpoint has come to position {first}, and the spool "
                f"{self._settings.spool} ends at {end}: it was emptied, or belongs to another "
                "query; restore it, or begin with a new checkpoint"
            )
        if self._target is not None:
            end = max(first, min(end, self._target))
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return _offset(end)

    def getDefaultReadLimit(self) -> ReadLimit:
        """What `maxMessages` says."""
        most = self._settings.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def reportLatestOffset(self) -> dict[str, int]:
        """The end of the spool, for the progress of the query."""
        return _offset(self._open().end)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take in what the broker holds now; that is where this run ends."""
        spool = self._open()
        self._receive(_TAKE_OVER_S)
        if self._receiver is not None:
            self._receiver.catch_up()
        self._target = spool.refresh()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The ranges of files to read, for tasks of a few thousand messages."""
        spool = self._open()
        if end["position"] > spool.end:
            spool.refresh()
        found = spool.ranges(start["position"], end["position"], _PARTITION_MESSAGES)
        return [_RangePartition(some) for some in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a partition; runs in a task."""
        return read_range(partition.value)

    def commit(self, end: dict[str, int]) -> None:
        """Let files go that all readers have passed."""
        self._open().commit(end["position"])

    def stop(self) -> None:
        """Leave the broker, which keeps what comes, and let the spool go."""
        if self._receiver is not None:
            self._receiver.stop()
        if self._spool is not None:
            self._spool.close()

    def _open(self) -> SpoolReader:
        if self._spool is None:
            self._spool = SpoolReader(self._settings.spool, self._settings.reader)
        return self._spool

    def _receive(self, wait_s: float = 0.0) -> None:
        """Receive, unless another query does so into this spool."""
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
            f"{topic!r} is no topic filter of MQTT; '+' stands for one whole level, '#' at the "
            "end for all that follow"
        )
