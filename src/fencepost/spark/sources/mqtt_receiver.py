"""Provides `Receiver`, which writes a broker's messages to a spool and then acknowledges them.

There are two threads. Paho's thread queues the messages that the broker sends. The writer thread
takes all queued messages as one group, appends the group to the spool with one fsync, and then
acknowledges it. A message is acknowledged only when it is on disk.

The broker keeps the session under a fixed client id, so it queues messages while no receiver runs.
It resends messages that were not acknowledged: after a crash between fsync and acknowledgement, a
message comes twice. The broker marks the second copy as redelivered. The receiver drops this copy
if it equals one of the last messages byte for byte *and* has an id, because then it is the same
event. Without an id it may be another message with the same content, so it is kept.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from fencepost.atomic_replace import replace_file
from fencepost.delivery.mqtt_address import BrokerAddress
from fencepost.errors import DeliveryError, FencepostError
from fencepost.spark.sources.mqtt_client import connect, new_client
from fencepost.spark.sources.spool import MIN_RETAINED_MESSAGES, SpoolWriter
from fencepost.spark.sources.spool_files import Message

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

_log = logging.getLogger(__name__)

_MAX_UNACKNOWLEDGED = 1000  # messages; with redelivered ones, far below MIN_RETAINED_MESSAGES
_NEVER_EXPIRES = 0xFFFFFFFF
_WAIT_S = 30.0
_MARK = re.compile(r"fencepost/fencepost-[0-9a-f]{32}/mark")  # of any client


class _ReceivedMessage(NamedTuple):
    message: Message
    mid: int
    qos: int
    connection: int


class Receiver:
    """Receives the messages of topics into a spool until it is stopped.

    Parameters
    ----------
    broker : BrokerAddress
        The broker to connect to.
    topics : sequence of str
        Topic filters.
    folder : Path
        The folder of the spool; it also holds the client id and the topics of the session.
    spool : SpoolWriter
        The writer of the spool. `stop` closes it; if the constructor raises, the caller does.

    Raises
    ------
    DeliveryError
        If the broker cannot be reached, or rejects the connection or a subscription.
    """

    def __init__(
        self, broker: BrokerAddress, topics: Sequence[str], folder: Path, spool: SpoolWriter
    ) -> None:
        self._broker = broker
        self._topics = list(topics)
        self._session = _Session(folder)
        self._spool = spool
        self._recent_digests: OrderedDict[bytes, None] = OrderedDict()
        for topic, payload in spool.last(MIN_RETAINED_MESSAGES):
            self._remember(_digest(topic, payload))
        self._arrived: SimpleQueue[_ReceivedMessage | None] = SimpleQueue()
        self._connection = 0
        self._subscribed = threading.Event()
        self._marks: dict[bytes, threading.Event] = {}
        self._error: FencepostError | None = None
        self._client = new_client(broker, self._session.client_id, manual_ack=True)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        self._writer_thread = threading.Thread(
            target=self._write_received, name="fencepost-spool", daemon=True
        )
        self._start()

    def check(self) -> None:
        """Raise the error that stopped the receiver, if there is one."""
        if self._error is not None:
            raise self._error

    def catch_up(self) -> None:
        """Wait until the messages that the broker has queued for this session are in the spool.

        The receiver publishes a mark to itself. The broker delivers in order, so the messages
        queued before the mark come first.
        """
        topic = self._mark_topic
        mark = uuid.uuid4().hex.encode()
        mark_received = self._marks[mark] = threading.Event()
        end, deadline = -1, 0.0
        self._client.subscribe(topic, qos=1)
        while not mark_received.is_set():
            self.check()
            if self._spool.end != end:  # progress: extend the deadline
                end, deadline = self._spool.end, time.monotonic() + _WAIT_S
            if time.monotonic() > deadline:
                raise DeliveryError(
                    f"the broker at {self._broker} does not return what was published to {topic}; "
                    "allow this client to publish and subscribe there"
                )
            # Repeated, because a broker whose queue is full discards new messages.
            self._client.publish(topic, mark, qos=1)
            mark_received.wait(1.0)
        self._client.unsubscribe(topic)
        del self._marks[mark]
        self.check()

    def stop(self) -> None:
        """Write and acknowledge queued messages, disconnect, and close the spool."""
        self._disconnect()
        self._spool.close()

    def _disconnect(self) -> None:
        self._arrived.put(None)
        self._writer_thread.join()
        self._client.disconnect()
        self._client.loop_stop()

    @property
    def _mark_topic(self) -> str:
        return f"fencepost/{self._session.client_id}/mark"

    def _start(self) -> None:
        properties = {
            "SessionExpiryInterval": _NEVER_EXPIRES,
            "ReceiveMaximum": _MAX_UNACKNOWLEDGED,
        }
        connect(self._client, self._broker, properties, clean=False)
        self._writer_thread.start()
        self._client.loop_start()
        if not self._subscribed.wait(_WAIT_S):
            self._broker_failed("does not answer; check that it supports MQTT 5")
        if self._error is not None:
            self._disconnect()
            raise self._error

    # ------------------------------------------------------------------------- on paho's thread

    def _on_connect(self, client: Client, _: object, flags: Any, reason: Any, __: object) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        if reason.is_failure:
            self._broker_failed(
                f"rejects the connection: {reason}; check the options 'username', 'password', 'tls'"
            )
            return
        self._connection += 1
        if self._session.topics and not flags.session_present:
            _log.warning(
                "the broker at %s has lost the session %s and all messages queued for it; "
                "configure it to keep sessions (mosquitto: persistence true)",
                self._broker,
                self._session.client_id,
            )
        former = [topic for topic in self._session.topics if topic not in self._topics]
        if former:
            client.unsubscribe(former)
        # The broker sends retained messages with a new subscription only, not on reconnection.
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        client.subscribe([(topic, options) for topic in self._topics])

    def _on_subscribe(
        self, _: Client, __: object, ___: int, reasons: Sequence[Any], ____: object
    ) -> None:
        rejections = [str(reason) for reason in reasons if reason.is_failure]
        if rejections:
            self._broker_failed(
                f"rejects a subscription: {rejections[0]}; allow this client to read "
                f"{', '.join(self._topics)} (and {self._mark_topic} for availableNow)"
            )
        elif not self._subscribed.is_set():
            self._session.save(self._topics)
            self._subscribed.set()

    def _on_message(self, _: Client, __: object, message: MQTTMessage) -> None:
        copy = Message(
            message.topic, bytes(message.payload), time.time_ns() // 1000, bool(message.dup)
        )
        self._arrived.put(_ReceivedMessage(copy, message.mid, message.qos, self._connection))

    def _broker_failed(self, problem: str) -> None:
        self._fail(DeliveryError(f"the broker at {self._broker} {problem}"))

    def _fail(self, error: FencepostError) -> None:
        self._error = self._error or error
        self._subscribed.set()
        for mark_received in list(self._marks.values()):
            mark_received.set()
        self._client.disconnect()

    # ------------------------------------------------------------------------ on the writer thread

    def _write_received(self) -> None:
        while (first := self._arrived.get()) is not None:
            group: list[_ReceivedMessage] = [first]
            stopping = False
            while not self._arrived.empty():
                arrival = self._arrived.get()
                if arrival is None:
                    stopping = True
                    break
                group.append(arrival)
            try:
                self._write_group(group)
            except FencepostError as error:
                self._fail(error)
                return
            except Exception as error:
                # Otherwise the thread would end silently, and the query would wait forever.
                self._fail(DeliveryError(f"messages cannot be written to the spool: {error!r}"))
                return
            if stopping:
                return

    def _write_group(self, group: list[_ReceivedMessage]) -> None:
        new = []
        for arrival in group:
            message = arrival.message
            if _MARK.fullmatch(message.topic):
                continue
            digest = _digest(message.topic, message.payload)
            known = digest in self._recent_digests
            if not (known and message.redelivered and _has_id(message.payload)):
                new.append(message)
            self._remember(digest)
        if new:
            self._spool.append(new)
        for arrival in group:
            # Message ids belong to a connection; the broker resends messages of earlier ones.
            if arrival.connection == self._connection:
                self._client.ack(arrival.mid, arrival.qos)
            mark = arrival.message.payload if arrival.message.topic == self._mark_topic else b""
            if mark in self._marks:
                self._marks[mark].set()

    def _remember(self, digest: bytes) -> None:
        self._recent_digests[digest] = None
        self._recent_digests.move_to_end(digest)
        if len(self._recent_digests) > MIN_RETAINED_MESSAGES:
            self._recent_digests.popitem(last=False)


class _Session:
    """The client id and the topics of the session at the broker, in a file of the spool."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "session.json"
        if self._path.exists():
            saved = json.loads(self._path.read_text(encoding="utf-8"))
            self.client_id, self.topics = str(saved["client_id"]), list(saved["topics"])
        else:
            self.client_id = f"fencepost-{uuid.uuid4().hex}"
            # The id is saved before it is used; a lost id would leave a session that nobody reads.
            self.save([])

    def save(self, topics: Sequence[str]) -> None:
        self.topics = list(topics)
        text = json.dumps({"client_id": self.client_id, "topics": self.topics})
        replace_file(self._path, text.encode(), durable=True)


def _digest(topic: str, payload: bytes) -> bytes:
    name = topic.encode()
    return blake2b(len(name).to_bytes(4, "little") + name + payload, digest_size=16).digest()


def _has_id(payload: bytes) -> bool:
    """Return whether a payload is a JSON object, such as a GeoJSON Feature, with an id."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("id") is not None
