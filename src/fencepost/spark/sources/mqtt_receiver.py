"""From a broker into a spool: a message is acknowledged when it is on disk, not before.

Two threads. One is paho's: it takes what the broker sends. The other writes all that has come
since it last looked as one group, synchronises once, and then acknowledges the group, so that
the cost of the disk is shared when messages come fast.

The broker keeps the session under a fixed client id, so what is published while nobody receives
waits there. It sends again what was not acknowledged: after a crash between disk and
acknowledgement a message comes twice. The second copy is marked as a redelivery; it is dropped
when it is, byte for byte, one of the last that came *and* carries an id, which makes it the same
event beyond doubt. Without an id it may as well be another message that says the same, so it stays.
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

_MAX_UNACKNOWLEDGED = 1000  # at once, at most; with those that come again it stays well below KEPT
_NEVER_EXPIRES = 0xFFFFFFFF
_WAIT_S = 30.0
_MARK = re.compile(r"fencepost/fencepost-[0-9a-f]{32}/mark")  # of this client or another


class _ReceivedMessage(NamedTuple):
    message: Message
    mid: int
    qos: int
    connection: int


class Receiver:
    """Takes the messages of some topics into a spool until it is stopped.

    Parameters
    ----------
    broker : BrokerAddress
        Where from.
    topics : sequence of str
        Topic filters.
    folder : Path
        The spool; it also keeps the client id and the topics of the session.
    spool : SpoolWriter
        Its writer; `stop` closes it, once there is a receiver to stop.

    Raises
    ------
    DeliveryError
        If the broker is not there or refuses.
    """

    def __init__(
        self, broker: BrokerAddress, topics: Sequence[str], folder: Path, spool: SpoolWriter
    ) -> None:
        self._broker = broker
        self._topics = list(topics)
        self._session = _Session(folder)
        self._spool = spool
        self._seen: OrderedDict[bytes, None] = OrderedDict()
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
        """Raise what made the receiver end, if something did."""
        if self._error is not None:
            raise self._error

    def catch_up(self) -> None:
        """Wait until all that the broker holds for this session now is in the spool.

        It sends a mark to itself; the broker delivers in order, so what was there comes first.
        """
        topic = self._mark_topic
        mark = uuid.uuid4().hex.encode()
        came = self._marks[mark] = threading.Event()
        end, until = -1, 0.0
        self._client.subscribe(topic, qos=1)
        while not came.is_set():
            self.check()
            if self._spool.end != end:  # there is much to catch up on
                end, until = self._spool.end, time.monotonic() + _WAIT_S
            if time.monotonic() > until:
                raise DeliveryError(
                    f"the broker at {self._broker} does not give back what was published to "
                    f"{topic}; allow this client to publish and subscribe there"
                )
            # Again and again: a broker whose queue is full throws new messages away.
            self._client.publish(topic, mark, qos=1)
            came.wait(1.0)
        self._client.unsubscribe(topic)
        del self._marks[mark]
        self.check()

    def stop(self) -> None:
        """Write what has come, acknowledge it, leave the broker, and let the spool go."""
        self._leave()
        self._spool.close()

    def _leave(self) -> None:
        self._arrived.put(None)
        self._writer_thread.join()
        self._client.disconnect()
        self._client.loop_stop()

    @property
    def _mark_topic(self) -> str:
        return f"fencepost/{self._session.client_id}/mark"

    def _start(self) -> None:
        asked = {"SessionExpiryInterval": _NEVER_EXPIRES, "ReceiveMaximum": _MAX_UNACKNOWLEDGED}
        connect(self._client, self._broker, asked, clean=False)
        self._writer_thread.start()
        self._client.loop_start()
        if not self._subscribed.wait(_WAIT_S):
            self._refused("does not answer; is it one of MQTT 5?")
        if self._error is not None:
            self._leave()
            raise self._error

    # ------------------------------------------------------------------------- on paho's thread

    def _on_connect(self, client: Client, _: object, flags: Any, reason: Any, __: object) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        if reason.is_failure:
            self._refused(
                f"refuses the connection: {reason}; see the options 'username', 'password', 'tls'"
            )
            return
        self._connection += 1
        if self._session.topics and not flags.session_present:
            _log.warning(
                "the broker at %s has forgotten the session %s: what was published meanwhile is "
                "lost; let it keep sessions (for mosquitto: persistence true)",
                self._broker,
                self._session.client_id,
            )
        former = [topic for topic in self._session.topics if topic not in self._topics]
        if former:
            client.unsubscribe(former)
        # What is retained comes with the first subscription, not with every connection.
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        client.subscribe([(topic, options) for topic in self._topics])

    def _on_subscribe(
        self, _: Client, __: object, ___: int, reasons: Sequence[Any], ____: object
    ) -> None:
        refused = [str(reason) for reason in reasons if reason.is_failure]
        if refused:
            self._refused(
                f"refuses a subscription: {refused[0]}; let this client read "
                f"{', '.join(self._topics)} (and {self._mark_topic} for availableNow)"
            )
        elif not self._subscribed.is_set():
            self._session.keep(self._topics)
            self._subscribed.set()

    def _on_message(self, _: Client, __: object, message: MQTTMessage) -> None:
        kept = Message(
            message.topic, bytes(message.payload), time.time_ns() // 1000, bool(message.dup)
        )
        self._arrived.put(_ReceivedMessage(kept, message.mid, message.qos, self._connection))

    def _refused(self, what: str) -> None:
        self._fail(DeliveryError(f"the broker at {self._broker} {what}"))

    def _fail(self, error: FencepostError) -> None:
        self._error = self._error or error
        self._subscribed.set()
        for came in list(self._marks.values()):
            came.set()
        self._client.disconnect()

    # ------------------------------------------------------------------------ on our own thread

    def _write_received(self) -> None:
        while (first := self._arrived.get()) is not None:
            group: list[_ReceivedMessage] = [first]
            last = False
            while not self._arrived.empty():
                arrival = self._arrived.get()
                if arrival is None:
                    last = True
                    break
                group.append(arrival)
            try:
                self._write_group(group)
            except FencepostError as error:
                self._fail(error)
                return
            except Exception as error:
                # Without a word the thread would end, and the query wait for ever.
                self._fail(DeliveryError(f"messages cannot be kept: {error!r}"))
                return
            if last:
                return

    def _write_group(self, group: list[_ReceivedMessage]) -> None:
        new = []
        for arrival in group:
            message = arrival.message
            if _MARK.fullmatch(message.topic):
                continue
            digest = _digest(message.topic, message.payload)
            known = digest in self._seen
            if not (known and message.redelivered and _has_id(message.payload)):
                new.append(message)
            self._remember(digest)
        if new:
            self._spool.append(new)
        for arrival in group:
            # Numbers belong to a connection; what came over a former one will come again.
            if arrival.connection == self._connection:
                self._client.ack(arrival.mid, arrival.qos)
            mark = arrival.message.payload if arrival.message.topic == self._mark_topic else b""
            if mark in self._marks:
                self._marks[mark].set()

    def _remember(self, digest: bytes) -> None:
        self._seen[digest] = None
        self._seen.move_to_end(digest)
        if len(self._seen) > MIN_RETAINED_MESSAGES:
            self._seen.popitem(last=False)


class _Session:
    """What a spool remembers of its session at the broker: the client id, the topics."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "session.json"
        if self._path.exists():
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            self.client_id, self.topics = str(kept["client_id"]), list(kept["topics"])
        else:
            self.client_id = f"fencepost-{uuid.uuid4().hex}"
            self.keep([])  # before the broker hears of it: it would keep messages for nobody

    def keep(self, topics: Sequence[str]) -> None:
        self.topics = list(topics)
        text = json.dumps({"client_id": self.client_id, "topics": self.topics})
        replace_file(self._path, text.encode(), durable=True)


def _digest(topic: str, payload: bytes) -> bytes:
    name = topic.encode()
    return blake2b(len(name).to_bytes(4, "little") + name + payload, digest_size=16).digest()


def _has_id(payload: bytes) -> bool:
    """Whether a payload is a JSON object with an id, or a Feature with one."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("id") is not None
