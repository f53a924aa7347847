"""`MqttConnection`: one connection to an MQTT broker, opened again whenever it is lost.

It speaks MQTT 5, where a session has an expiry, a rejection has a reason, and a client limits the
messages it has not acknowledged. The session outlives the connection, so the broker keeps what is
published while the server is away. A message is acknowledged once it is durable here.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import aiomqtt
from paho.mqtt.client import MQTT_ERR_SUCCESS
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from fencepost.delivery.cloud_events import CONTENT_TYPE
from fencepost.delivery.dispatcher import (
    DeliveryResult,
    Outcome,
    PendingMessage,
    deliver_one_by_one,
)
from fencepost.delivery.mqtt_address import EVENTS_TOPIC_FILTER, BrokerAddress
from fencepost.delivery.retry_schedule import RetrySchedule
from fencepost.errors import FencepostError
from fencepost.store.endpoint_rows import Endpoint

_KEEPALIVE_S = 30
_TIMEOUT_S = 20.0
_MAX_UNACKNOWLEDGED = 64  # the broker sends no more before it gets an acknowledgement
_BATCH_SIZE = 100
_MIN_ERROR_CODE = 0x80  # reason codes from here on are errors
_SEND_NO_RETAINED = 2
_PACKET_OVERHEAD = 1_024  # bytes of a packet beyond its topic and payload, at most
_MAX_SESSION_S = 0xFFFF_FFFE
_SCHEDULE = RetrySchedule(initial_wait_s=0.5, max_wait_s=30.0)
_logger = logging.getLogger("fencepost")


class _Client(aiomqtt.Client):
    """A client with manual acknowledgements, which reports the reason of a rejection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._confirmations: dict[int, asyncio.Future[str | None]] = {}
        self.max_packet_bytes = 0  # the broker's limit; 0 if it has none
        super().__init__(*args, **options)
        self._client.manual_ack_set(True)

    def acknowledge(self, message: aiomqtt.Message) -> None:
        """Acknowledge a message, so that the broker deletes it."""
        if message.qos:
            self._client.ack(message.mid, message.qos)

    async def send(self, topic: str, payload: bytes, properties: Properties) -> str | None:
        """Publish, and wait for the broker's confirmation. Return why it rejected, or None."""
        sent = self._client.publish(topic, payload, qos=1, properties=properties)
        if sent.rc != MQTT_ERR_SUCCESS:
            raise aiomqtt.MqttCodeError(sent.rc, "could not publish")
        confirmation: asyncio.Future[str | None] = self._loop.create_future()
        self._confirmations[sent.mid] = confirmation
        try:
            either: set[asyncio.Future[Any]] = {confirmation, self._disconnected}
            await asyncio.wait(either, timeout=_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            if not confirmation.done():
                raise aiomqtt.MqttError("the broker did not confirm")
            return confirmation.result()
        finally:
            self._confirmations.pop(sent.mid, None)

    def _on_publish(
        self, client: Any, userdata: Any, mid: int, reason_code: ReasonCode, properties: Any
    ) -> None:
        confirmation = self._confirmations.get(mid)
        if confirmation is not None and not confirmation.done():
            is_error = reason_code.value >= _MIN_ERROR_CODE
            confirmation.set_result(str(reason_code) if is_error else None)

    def _on_message(self, client: Any, userdata: Any, message: Any) -> None:
        # Acknowledgements bound the queue, except for QoS 0, where messages may be dropped.
        if message.qos or self._queue.qsize() < _MAX_UNACKNOWLEDGED:
            super()._on_message(client, userdata, message)

    def _on_connect(
        self, client: Any, userdata: Any, flags: Any, reason_code: Any, properties: Any = None
    ) -> None:
        self.max_packet_bytes = int(getattr(properties, "MaximumPacketSize", 0))
        super()._on_connect(client, userdata, flags, reason_code, properties)


EventHandler: TypeAlias = Callable[[aiomqtt.Message], Awaitable[Awaitable[object]]]
"""Accepts a message, and returns an awaitable that is done when the message is durable."""


class MqttConnection:
    """The connection to a broker.

    Parameters
    ----------
    address : BrokerAddress
    client_id : str
        The name of the session; the same after a restart.
    handle_event : callable
        Handles incoming events, one after the other.
    session_s : float
        How long the broker keeps messages while the server is away.
    max_message_bytes : int
        The broker drops larger messages instead of sending them here.
    on_connect : callable
        Called when messages can be delivered again.
    """

    def __init__(
        self,
        address: BrokerAddress,
        client_id: str,
        handle_event: EventHandler,
        session_s: float,
        max_message_bytes: int,
        on_connect: Callable[[], None],
    ) -> None:
        self._address = address
        self._client_id = client_id
        self._handle_event = handle_event
        self._on_connect = on_connect
        self._client: _Client | None = None
        self._tls = ssl.create_default_context(cafile=address.cafile) if address.tls else None
        self._connect_properties = _properties(
            PacketTypes.CONNECT,
            SessionExpiryInterval=min(round(session_s), _MAX_SESSION_S),
            ReceiveMaximum=_MAX_UNACKNOWLEDGED,
            MaximumPacketSize=max_message_bytes + _PACKET_OVERHEAD,
        )
        self._publish_properties = _properties(PacketTypes.PUBLISH, ContentType=CONTENT_TYPE)

    @property
    def is_ready(self) -> bool:
        """Whether the broker is connected."""
        return self._client is not None

    def batch_size(self, endpoint: Endpoint) -> int:
        """Return how many messages are sent before they are acknowledged together."""
        return _BATCH_SIZE

    async def run(self) -> None:
        """Stay connected until cancelled."""
        failures = 0
        while True:
            try:
                async with self._new_client() as client:
                    failures = 0
                    await self._serve(client)
            except Exception as error:  # any failure of a broker may be temporary
                problem: object = error
            else:
                problem = "disconnected"
            finally:
                self._client = None
            failures += 1
            wait_s = _SCHEDULE.wait_s(failures, 0.0, random.random())
            _logger.warning(
                "MQTT broker %s: %s; trying again in %.1f s", self._address, problem, wait_s
            )
            await asyncio.sleep(wait_s)

    def _new_client(self) -> _Client:
        return _Client(
            self._address.host,
            self._address.port,
            username=self._address.user,
            password=self._address.password,
            identifier=self._client_id,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=False,
            keepalive=_KEEPALIVE_S,
            timeout=_TIMEOUT_S,
            properties=self._connect_properties,
            tls_context=self._tls,
            logger=_logger,
        )

    async def _serve(self, client: _Client) -> None:
        options = SubscribeOptions(qos=1, retainHandling=_SEND_NO_RETAINED)
        reason_codes = await client.subscribe(EVENTS_TOPIC_FILTER, options=options)
        if any(
            code.value >= _MIN_ERROR_CODE for code in reason_codes if isinstance(code, ReasonCode)
        ):
            raise FencepostError(
                f"it does not allow a subscription to {EVENTS_TOPIC_FILTER}: {reason_codes[0]}"
            )
        self._client = client
        self._on_connect()
        received: asyncio.Queue[tuple[aiomqtt.Message, Awaitable[object]]]
        received = asyncio.Queue(_MAX_UNACKNOWLEDGED)
        tasks = {
            asyncio.create_task(self._receive(client, received)),
            asyncio.create_task(_acknowledge(client, received)),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive(
        self, client: _Client, received: asyncio.Queue[tuple[aiomqtt.Message, Awaitable[object]]]
    ) -> None:
        async for message in client.messages:
            await received.put((message, await self._handle_event(message)))

    async def deliver(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        """Publish messages, each after the broker has confirmed the one before."""
        topic = endpoint.target["topic"]
        return await deliver_one_by_one(
            messages, lambda message: self._publish(topic, message.text.encode())
        )

    async def _publish(self, topic: str, payload: bytes) -> DeliveryResult:
        client = self._client
        if client is None:
            return DeliveryResult(Outcome.FAILED, problem="the MQTT broker is not connected")
        packet_bytes = len(payload) + len(topic.encode()) + _PACKET_OVERHEAD
        if client.max_packet_bytes and packet_bytes > client.max_packet_bytes:
            return DeliveryResult(
                Outcome.REJECTED, problem="the message is larger than the MQTT broker accepts"
            )
        try:
            reason = await client.send(topic, payload, self._publish_properties)
        except (aiomqtt.MqttError, ValueError, OSError) as error:
            problem = f"the MQTT broker did not accept the message: {error}"
            return DeliveryResult(Outcome.FAILED, problem=problem)
        if reason is not None:
            problem = f"the MQTT broker rejected the message: {reason}"
            return DeliveryResult(Outcome.FAILED, problem=problem)
        return DeliveryResult(Outcome.OK, 1)


async def _acknowledge(
    client: _Client, received: asyncio.Queue[tuple[aiomqtt.Message, Awaitable[object]]]
) -> None:
    """Acknowledge messages in order, each when it is durable."""
    while True:
        message, durable = await received.get()
        await durable
        client.acknowledge(message)


def _properties(packet_type: int, **values: object) -> Properties:
    properties = Properties(packet_type)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(properties, name, value)
    return properties
