"""`MqttTransport`: publishes messages to MQTT topics, over the server's connection to a broker."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from fencepost.delivery.mqtt_address import default_topic, parse_broker_address, validate_topic
from fencepost.delivery.mqtt_connection import MqttConnection
from fencepost.server.broker.mqtt_events import MqttEvents
from fencepost.server.broker.transaction import Transaction
from fencepost.server.delivery.transports.transport import Transport
from fencepost.server.http.problems import RequestError
from fencepost.server.http.schemas import Endpoint, Json
from fencepost.server.service import Service
from fencepost.store.database import ensure_setting


class Mqtt(Json, tag_field="kind", tag="mqtt"):
    """Delivery of messages to an MQTT topic."""

    topic: Annotated[str, Meta(min_length=1, max_length=1_000)] | UnsetType = UNSET


class MqttEndpoint(Endpoint, tag_field="kind", tag="mqtt", kw_only=True):
    """An MQTT endpoint."""

    topic: str


class MqttTransport(Transport[Mqtt]):
    """Publishes messages; events that arrive over this connection are published too."""

    Settings = Mqtt
    EndpointView = MqttEndpoint

    def __init__(self, service: Service) -> None:
        address = service.settings.mqtt
        self._service = service
        self._address = None if address is None else parse_broker_address(address)
        self._events = MqttEvents(service)
        self._connection: MqttConnection | None = None
        self._connection_task: asyncio.Task[None] | None = None

    async def start(self, wake_all: Callable[[], None]) -> MqttConnection | None:
        """Return the connection, which reconnects whenever it is lost."""
        if self._address is None:
            return None
        settings = self._service.settings
        self._connection = MqttConnection(
            self._address,
            await self._service.change(_client_id),
            self._events.receive,
            settings.retention_s,
            settings.limits.body_bytes,
            wake_all,
        )
        self._connection_task = asyncio.create_task(self._connection.run())
        return self._connection

    async def stop(self) -> None:
        """Disconnect; the broker keeps the session and queues messages for it."""
        if self._connection_task is not None:
            self._connection_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._connection_task

    async def target(self, settings: Mqtt, tenant: str, subscriber: str) -> dict[str, Any]:
        """Return the topic; check that the tenant may use it."""
        if self._address is None:
            raise RequestError(
                422, "this server has no MQTT broker; start it with --mqtt HOST:PORT"
            )
        if settings.topic is UNSET:
            return {"topic": default_topic(tenant, subscriber)}
        return {"topic": validate_topic(settings.topic, tenant)}

    def public_target(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """See `Transport`."""
        return {"topic": target["topic"]}

    def counts(self) -> Mapping[str, int]:
        """Return counts of received messages, and whether the broker is connected."""
        connected = self._connection is not None and self._connection.is_ready
        return {**self._events.counts, "mqtt_connected": int(connected)}


def _client_id(transaction: Transaction) -> str:
    """Return the MQTT client id of this server, chosen once."""
    return ensure_setting(
        transaction.connection, "mqtt_client", f"fencepost-{secrets.token_hex(8)}"
    )
