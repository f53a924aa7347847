"""Provides `send_mqtt`, a streaming sink that publishes matches to an MQTT broker with QoS 1."""

from __future__ import annotations

import threading
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from fencepost.delivery.mqtt_address import BrokerAddress
from fencepost.errors import DeliveryError
from fencepost.spark.sinks import start_query
from fencepost.spark.sinks.sink_messages import (
    MessageStreamWriter,
    OutgoingMessage,
    RejectedMessage,
    absolute_path,
    messages_of,
)
from fencepost.spark.sources.mqtt_client import broker_of, connect, new_client

if TYPE_CHECKING:
    from paho.mqtt.client import Client
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "fencepost-mqtt-sink"
_WAIT_S = 60.0
_SESSION_EXPIRY_S = 3600


def send_mqtt(
    matches: DataFrame,
    to: str | Column,
    checkpoint: str | Path,
    folder: str | Path,
    *,
    event: str = "id",
    available_now: bool = False,
    every: str | None = None,
    **broker: str | int | bool,
) -> StreamingQuery:
    """Publish each match of a stream to a topic, at least once.

    The body has the match's id, which is the same in every attempt. After a crash, the interrupted
    batch is sent again, so receivers should ignore ids that they have seen. If the broker cannot be
    reached, the query fails; restarted, it continues with the same batch. A message that the broker
    rejects becomes a dead letter.

    Parameters
    ----------
    matches : DataFrame
        The matches of a stream, from `fencepost.spark.match`.
    to : str or Column
        The topic: a string, or an expression over the columns of matches.
    checkpoint : str or Path
        Spark's checkpoint of this query.
    folder : str or Path
        The folder for dead letters and the log of sent batches; driver and workers must share it.
    event : str
        The column that identifies an event.
    available_now : bool
        If true, the query ends when it has processed the data available at its start.
    every : str, optional
        The interval of micro-batches, such as ``"5 seconds"``; by default, each begins when the
        last one has ended.
    **broker
        `host`, `port`, `username`, `password`, `tls`, `cafile`, as in `read_mqtt`.

    Returns
    -------
    StreamingQuery
        The running query.
    """
    options = {name: str(value) for name, value in broker.items()}
    broker_of(options)  # raises here, not in a task, if an option is invalid
    matches.sparkSession.dataSource.register(MqttSink)
    writer = messages_of(matches, to, event).writeStream.format(FORMAT)
    writer = writer.options(**options).option("folder", absolute_path(folder))
    return start_query(writer, checkpoint, available_now, every)


class MqttSink(DataSource):
    """The data source that Spark registers as `fencepost-mqtt-sink`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> MessageStreamWriter:
        """Return the writer of a stream."""
        make = partial(MqttPublisher, broker_of(self.options))
        return MessageStreamWriter(schema.names, self.options["folder"], make)


class MqttPublisher:
    """Publishes messages and waits for the broker's acknowledgements.

    Parameters
    ----------
    broker : BrokerAddress
        The broker to connect to.

    Raises
    ------
    DeliveryError
        If the broker cannot be reached or rejects the connection.
    """

    def __init__(self, broker: BrokerAddress) -> None:
        self._broker = broker
        self._acks: dict[int, Any] = {}
        self._rejection = ""
        ready = threading.Event()

        def on_connect(_: Client, __: object, ___: object, reason: Any, ____: object) -> None:
            if reason.is_failure:
                self._rejection = str(reason)
            ready.set()

        def on_publish(_: Client, __: object, mid: int, reason: Any, ___: object) -> None:
            self._acks[mid] = reason

        self._client = new_client(broker, f"fencepost-sink-{uuid.uuid4().hex}")
        self._client.on_connect = on_connect
        self._client.on_publish = on_publish
        # The session outlives a lost connection, so the broker remembers which messages it has.
        connect(self._client, broker, {"SessionExpiryInterval": _SESSION_EXPIRY_S}, clean=True)
        self._client.loop_start()
        if not ready.wait(_WAIT_S) or self._rejection:
            self.close()
            raise DeliveryError(
                f"the broker at {broker} rejects the connection: {self._rejection or 'no answer'}; "
                "check the options 'username', 'password' and 'tls'"
            )

    def send(self, messages: list[OutgoingMessage]) -> list[RejectedMessage]:
        """Publish messages; return the rejected ones with reasons."""
        rejected, pending = [], []
        self._acks.clear()
        for message in messages:
            if not message.to:  # in MQTT 5, an empty topic means a topic alias
                rejected.append(RejectedMessage(message, "the message has no topic"))
                continue
            try:
                publication = self._client.publish(message.to, message.body, qos=1)
            except ValueError as error:
                rejected.append(
                    RejectedMessage(message, f"{message.to!r} cannot be published to: {error}")
                )
            else:
                pending.append((message, publication))
        for message, publication in pending:
            publication.wait_for_publish(_WAIT_S)
            if not publication.is_published():
                raise DeliveryError(
                    f"the broker at {self._broker} did not acknowledge a message within "
                    f"{_WAIT_S:.0f} s; start the query again when the broker answers: it sends the "
                    "batch again, with the same ids"
                )
            ack = self._acks.get(publication.mid)
            if ack is not None and ack.is_failure:
                rejected.append(RejectedMessage(message, f"the broker rejects it: {ack}"))
        return rejected

    def close(self) -> None:
        """Disconnect from the broker."""
        self._client.disconnect()
        self._client.loop_stop()
