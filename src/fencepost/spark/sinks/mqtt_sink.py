"""A streaming sink that publishes matches to an MQTT broker, with QoS 1."""

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
    """Publish each match of a stream to a topic.

    The body has the match's id, which is the same whenever it is sent. After a crash the batch
    that was being sent is sent again: at least once, and once for a receiver that remembers ids.
    While the broker cannot be reached the query fails, and goes on where it was when started again;
    a message that the broker refuses is set aside as a dead letter.

    Parameters
    ----------
    matches : DataFrame
        What `fencepost.spark.match` gives for a stream.
    to : str or Column
        The topic: one for all, or an expression of the match's columns.
    checkpoint : str or Path
        Spark's checkpoint of this query.
    folder : str or Path
        Where dead letters and the record of batches go; driver and workers must share it.
    event : str
        The column that tells events apart.
    available_now : bool
        Whether to end when what is there now is done.
    every : str, optional
        How often a batch begins, such as ``"5 seconds"``; as soon as the last is done otherwise.
    **broker
        `host`, `port`, `username`, `password`, `tls`, `cafile`, as for `read_mqtt`.

    Returns
    -------
    StreamingQuery
        Running.
    """
    options = {name: str(value) for name, value in broker.items()}
    broker_of(options)  # bad options are reported here, not in a task later
    matches.sparkSession.dataSource.register(MqttSink)
    writer = messages_of(matches, to, event).writeStream.format(FORMAT)
    writer = writer.options(**options).option("folder", absolute_path(folder))
    return start_query(writer, checkpoint, available_now, every)


class MqttSink(DataSource):
    """The sink that is registered with Spark as `fencepost-mqtt-sink`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> MessageStreamWriter:
        """What Spark gives the rows to."""
        make = partial(MqttPublisher, broker_of(self.options))
        return MessageStreamWriter(schema.names, self.options["folder"], make)


class MqttPublisher:
    """Publishes messages, and waits until the broker has them.

    Raises
    ------
    DeliveryError
        If the broker is not there, or refuses the client.
    """

    def __init__(self, broker: BrokerAddress) -> None:
        self._broker = broker
        self._answers: dict[int, Any] = {}
        self._refusal = ""
        ready = threading.Event()

        def on_connect(_: Client, __: object, ___: object, reason: Any, ____: object) -> None:
            if reason.is_failure:
                self._refusal = str(reason)
            ready.set()

        def on_publish(_: Client, __: object, mid: int, reason: Any, ___: object) -> None:
            self._answers[mid] = reason

        self._client = new_client(broker, f"fencepost-sink-{uuid.uuid4().hex}")
        self._client.on_connect = on_connect
        self._client.on_publish = on_publish
        # When the connection breaks, the broker is to know which messages it has.
        connect(self._client, broker, {"SessionExpiryInterval": _SESSION_EXPIRY_S}, clean=True)
        self._client.loop_start()
        if not ready.wait(_WAIT_S) or self._refusal:
            self.close()
            raise DeliveryError(
                f"the broker at {broker} refuses the connection: {self._refusal or 'no answer'}; "
                "see the options 'username', 'password' and 'tls'"
            )

    def send(self, messages: list[OutgoingMessage]) -> list[RejectedMessage]:
        """Publish messages; which the broker did not take, and why."""
        refused, waiting = [], []
        self._answers.clear()
        for message in messages:
            if not message.to:  # to MQTT 5, a topic that was named before
                refused.append(RejectedMessage(message, "there is no topic to publish it to"))
                continue
            try:
                sent = self._client.publish(message.to, message.body, qos=1)
            except ValueError as error:
                refused.append(
                    RejectedMessage(message, f"{message.to!r} cannot be published to: {error}")
                )
            else:
                waiting.append((message, sent))
        for message, sent in waiting:
            sent.wait_for_publish(_WAIT_S)
            if not sent.is_published():
                raise DeliveryError(
                    f"the broker at {self._broker} did not take a message within {_WAIT_S:.0f} s; "
                    "start the query again when it does: what it has has kept its id"
                )
            answer = self._answers.get(sent.mid)
            if answer is not None and answer.is_failure:
                refused.append(RejectedMessage(message, f"the broker refuses it: {answer}"))
        return refused

    def close(self) -> None:
        """Leave the broker."""
        self._client.disconnect()
        self._client.loop_stop()
