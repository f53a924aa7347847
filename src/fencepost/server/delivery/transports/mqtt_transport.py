"""Messages published to a topic, by way of the server's one connection to a broker."""

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
    """Messages are published to a topic."""

    topic: Annotated[str, Meta(min_length=1, max_length=1_000)] | UnsetType = UNSET


class MqttEndpoint(Endpoint, tag_field="kind", tag="mqtt", kw_only=True):
    """The topic."""

    topic: str


class MqttTransport(Transport[Mqtt]):
    """Publishes messages, and takes the events that come in over the same connection."""

    Settings = Mqtt
    EndpointView = MqttEndpoint

    def __init__(self, service: Service) -> None:
        given = service.settings.mqtt
        self._service = service
        self._address = None if given is None else parse_broker_address(given)
        self._events = MqttEvents(service)
        self._link: MqttConnection | None = None
        self._linking: asyncio.Task[None] | None = None

    async def start(self, wake_all: Callable[[], None]) -> MqttConnection | None:
        """The connection, which is made again whenever it is lost."""
        if self._address is None:
            return None
        settings = self._service.settings
        self._link = MqttConnection(
            self._address,
            await self._service.change(_identifier),
            self._events.receive,
            settings.retention_s,
            settings.limits.body_bytes,
            wake_all,
        )
        self._linking = asyncio.create_task(self._link.run())
        return self._link

    async def stop(self) -> None:
        """Leave the broker, which keeps what comes meanwhile."""
        if self._linking is not None:
            self._linking.cancel()
            with suppress(asyncio.CancelledError):
                await self._linking

    async def target(self, given: Mqtt, tenant: str, subscriber: str) -> dict[str, Any]:
        """Check that a tenant may have messages sent to the topic."""
        if self._address is None:
            raise RequestError(
                422, "this server has no MQTT broker; start it with --mqtt HOST:PORT"
            )
        if given.topic is UNSET:
            return {"topic": default_topic(tenant, subscriber)}
        return {"topic": validate_topic(given.topic, tenant)}

    def shown(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """The topic."""
        return {"topic": target["topic"]}

    def counts(self) -> Mapping[str, int]:
        """Events that came in, and whether the broker is connected."""
        connected = self._link is not None and self._link.is_ready
        return {**self._events.counts, "mqtt_connected": int(connected)}


def _identifier(transaction: Transaction) -> str:
    """The name of this server's session at a broker, chosen once."""
    return ensure_setting(
        transaction.connection, "mqtt_client", f"fencepost-{secrets.token_hex(8)}"
    )
