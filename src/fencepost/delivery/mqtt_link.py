"""One connection to an MQTT broker, made again whenever it is lost.

MQTT 5: a session says how long it lasts, a refusal has a reason, and a client says how many
messages it takes before it acknowledges. The session outlives the connection, so the broker keeps
what is published while the server is away; a message is acknowledged once it is on our disk.
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
from fencepost.delivery.mqtt_address import EVERY_TENANT, BrokerAddress
from fencepost.delivery.retry_schedule import RetrySchedule
from fencepost.errors import FencepostError
from fencepost.store.endpoint_rows import Endpoint

_KEEPALIVE_S = 30
_TIMEOUT_S = 20.0
_UNACKNOWLEDGED = 64  # messages that a broker sends before it waits for us
_PAGE = 100
_REFUSED = 0x80  # reasons from here on
_NO_RETAINED = 2
_OVERHEAD = 1_024  # of a packet over its topic and payload
_LONGEST_SESSION_S = 0xFFFF_FFFE
_AGAIN = RetrySchedule(first_s=0.5, longest_s=30.0)
_logger = logging.getLogger("fencepost")


class _Client(aiomqtt.Client):
    """A client that acknowledges when it is told to, and hears why a broker refuses."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self._confirmations: dict[int, asyncio.Future[str | None]] = {}
        self.largest = 0  # of a packet that the broker takes; 0 where it did not say
        super().__init__(*args, **more)
        self._client.manual_ack_set(True)

    def acknowledge(self, message: aiomqtt.Message) -> None:
        """Let the broker forget a message."""
        if message.qos:
            self._client.ack(message.mid, message.qos)

    async def send(self, topic: str, payload: bytes, properties: Properties) -> str | None:
        """Publish, and wait until the broker has it; why it refused, where it did."""
        sent = self._client.publish(topic, payload, qos=1, properties=properties)
        if sent.rc != MQTT_ERR_SUCCESS:
            raise aiomqtt.MqttCodeError(sent.rc, "could not publish")
        confirmed: asyncio.Future[str | None] = self._loop.create_future()
        self._confirmations[sent.mid] = confirmed
        try:
            either: set[asyncio.Future[Any]] = {confirmed, self._disconnected}
            await asyncio.wait(either, timeout=_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            if not confirmed.done():
                raise aiomqtt.MqttError("the broker did not confirm")
            return confirmed.result()
        finally:
            self._confirmations.pop(sent.mid, None)

    def _on_publish(
        self, client: Any, userdata: Any, mid: int, reason_code: ReasonCode, properties: Any
    ) -> None:
        confirmed = self._confirmations.get(mid)
        if confirmed is not None and not confirmed.done():
            refused = reason_code.value >= _REFUSED
            confirmed.set_result(str(reason_code) if refused else None)

    def _on_message(self, client: Any, userdata: Any, message: Any) -> None:
        # The broker waits for acknowledgements, but of QoS 0, where nobody promised anything.
        if message.qos or self._queue.qsize() < _UNACKNOWLEDGED:
            super()._on_message(client, userdata, message)

    def _on_connect(
        self, client: Any, userdata: Any, flags: Any, reason_code: Any, properties: Any = None
    ) -> None:
        self.largest = int(getattr(properties, "MaximumPacketSize", 0))
        super()._on_connect(client, userdata, flags, reason_code, properties)


Take: TypeAlias = Callable[[aiomqtt.Message], Awaitable[Awaitable[object]]]
"""Takes a message; what it gives is done when the message is on the disk."""


class MqttConnection:
    """The connection to a broker.

    Parameters
    ----------
    address : BrokerAddress
    identifier : str
        Of the session; the same after a restart.
    take : callable
        Takes events, one message after the other.
    session_s : float
        For how long the broker keeps what comes while we are away.
    largest : int
        Bytes of a message that comes in; the broker drops those that are larger.
    connected : callable
        Called when messages can be handed over again.
    """

    def __init__(
        self,
        address: BrokerAddress,
        identifier: str,
        take: Take,
        session_s: float,
        largest: int,
        connected: Callable[[], None],
    ) -> None:
        self._address = address
        self._identifier = identifier
        self._take = take
        self._connected = connected
        self._client: _Client | None = None
        self._tls = ssl.create_default_context(cafile=address.cafile) if address.tls else None
        self._asked = _properties(
            PacketTypes.CONNECT,
            SessionExpiryInterval=min(round(session_s), _LONGEST_SESSION_S),
            ReceiveMaximum=_UNACKNOWLEDGED,
            MaximumPacketSize=largest + _OVERHEAD,
        )
        self._described = _properties(PacketTypes.PUBLISH, ContentType=CONTENT_TYPE)

    @property
    def is_ready(self) -> bool:
        """Whether the broker is connected."""
        return self._client is not None

    def batch_size(self, endpoint: Endpoint) -> int:
        """How many messages are sent before all are acknowledged at once."""
        return _PAGE

    async def run(self) -> None:
        """Stay connected until cancelled."""
        failures = 0
        while True:
            try:
                async with self._new_client() as client:
                    failures = 0
                    await self._serve(client)
            except Exception as error:  # whatever it is, the broker may be well again later
                problem: object = error
            else:
                problem = "disconnected"
            finally:
                self._client = None
            failures += 1
            wait_s = _AGAIN.wait_s(failures, 0.0, random.random())
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
            identifier=self._identifier,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=False,
            keepalive=_KEEPALIVE_S,
            timeout=_TIMEOUT_S,
            properties=self._asked,
            tls_context=self._tls,
            logger=_logger,
        )

    async def _serve(self, client: _Client) -> None:
        options = SubscribeOptions(qos=1, retainHandling=_NO_RETAINED)
        granted = await client.subscribe(EVERY_TENANT, options=options)
        if any(code.value >= _REFUSED for code in granted if isinstance(code, ReasonCode)):
            raise FencepostError(f"it does not let us read {EVERY_TENANT}: {granted[0]}")
        self._client = client
        self._connected()
        taken: asyncio.Queue[tuple[aiomqtt.Message, Awaitable[object]]]
        taken = asyncio.Queue(_UNACKNOWLEDGED)
        both = {
            asyncio.create_task(self._read(client, taken)),
            asyncio.create_task(_acknowledge(client, taken)),
        }
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _read(
        self, client: _Client, taken: asyncio.Queue[tuple[aiomqtt.Message, Awaitable[object]]]
    ) -> None:
        async for message in client.messages:
            await taken.put((message, await self._take(message)))

    async def deliver(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        """Publish messages, each when the broker has the one before."""
        topic = endpoint.target["topic"]
        return await deliver_one_by_one(
            messages, lambda one: self._publish(topic, one.text.encode())
        )

    async def _publish(self, topic: str, payload: bytes) -> DeliveryResult:
        client = self._client
        if client is None:
            return DeliveryResult(Outcome.FAILED, problem="the MQTT broker is away")
        if client.largest and len(payload) + len(topic.encode()) + _OVERHEAD > client.largest:
            return DeliveryResult(
                Outcome.REFUSED, problem="it is larger than the MQTT broker takes"
            )
        try:
            refused = await client.send(topic, payload, self._described)
        except (aiomqtt.MqttError, ValueError, OSError) as error:
            return DeliveryResult(
                Outcome.FAILED, problem=f"the MQTT broker did not take it: {error}"
            )
        if refused is not None:
            return DeliveryResult(Outcome.FAILED, problem=f"the MQTT broker refused it: {refused}")
        return DeliveryResult(Outcome.OK, 1)


async def _acknowledge(
    client: _Client, taken: asyncio.Queue[tuple[aiomqtt.Message, Awaitable[object]]]
) -> None:
    """Acknowledge messages in their order, each when it is on the disk."""
    while True:
        message, done = await taken.get()
        await done
        client.acknowledge(message)


def _properties(kind: int, **values: object) -> Properties:
    found = Properties(kind)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(found, name, value)
    return found
