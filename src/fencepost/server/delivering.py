"""What a server hands over by itself: its endpoints, and its connection to an MQTT broker."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

from fencepost.deliver.addresses import Gate
from fencepost.deliver.mqtt import Link
from fencepost.deliver.mqtt_address import broker_address
from fencepost.deliver.posting import Carrier, Posting, Waiting
from fencepost.deliver.webhook import Webhooks
from fencepost.server.mqtt_events import MqttEvents
from fencepost.server.service import Service
from fencepost.server.writing import Committed, Writing
from fencepost.store import endpoints, log
from fencepost.store.database import setting
from fencepost.store.endpoints import Endpoint

_PAGE_CHARS = 1 << 20


class Outbox:
    """The messages of a service, and how handing them over went."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def endpoint(self, subscriber: int) -> Endpoint | None:
        """Where messages go, and how that went."""
        return self._service.database.read(endpoints.endpoint, subscriber)

    def waiting(self, endpoint: Endpoint, most: int) -> list[Waiting]:
        """The next messages that are not acknowledged."""
        envelopes = self._service.envelopes(endpoint.subscriber)
        page = self._service.database.read(
            log.messages_after, endpoint.subscriber, endpoint.acknowledged, most, _PAGE_CHARS
        )
        return [
            Waiting(
                one.position,
                one.at,
                envelopes.wrap(one.position, one.at, one.type, one.data, one.event, one.body),
            )
            for one in page
        ]

    async def note(self, tried: Endpoint, acknowledged: int, dead: Waiting | None) -> None:
        """Keep how it went, in one transaction."""

        def work(writing: Writing) -> None:
            if acknowledged:
                writing.acknowledge({tried.subscriber: acknowledged})
            endpoints.note_attempt(writing.connection, tried)
            if dead is not None:
                endpoints.add_dead_letter(
                    writing.connection,
                    tried.tenant,
                    writing.now,
                    tried.kind,
                    tried.problem or "",
                    dead.text,
                    tried.subscriber,
                    dead.position,
                )

        await self._service.changed(work)


class Delivering:
    """Hands over what is committed, from `start` to `stop`.

    Attributes
    ----------
    gate : Gate
        Which addresses webhooks may go to.
    posting : Posting
    events : MqttEvents or None
        What came in over MQTT.
    """

    def __init__(self, service: Service, gate: Gate | None = None) -> None:
        self.gate = gate or Gate(allow_private=service.settings.allow_private_webhooks)
        self.events: MqttEvents | None = None
        self._address = (
            None if service.settings.mqtt is None else broker_address(service.settings.mqtt)
        )
        self._service = service
        self._link: Link | None = None
        self._linking: asyncio.Task[None] | None = None
        self._known: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def has_mqtt(self) -> bool:
        """Whether there is a broker to hand over to."""
        return self._address is not None

    @property
    def is_mqtt_connected(self) -> bool:
        """Whether it can be reached now."""
        return self._link is not None and self._link.is_ready

    def counts(self) -> dict[str, int]:
        """How much was handed over and came in since the start."""
        came = {"mqtt_received": 0, "mqtt_unusable": 0}
        return {**self.posting.counts, **(came if self.events is None else self.events.counts)}

    async def start(self) -> None:
        """Go on where the last server was."""
        service = self._service
        self._loop = asyncio.get_running_loop()
        self._webhooks = Webhooks(self.gate)
        carriers: dict[str, Carrier] = {"webhook": self._webhooks}
        if self._address is not None:
            self.events = MqttEvents(service)
            self._link = carriers["mqtt"] = Link(
                self._address,
                await service.changed(_identifier),
                self.events.take,
                service.settings.retention_s,
                service.settings.limits.body_bytes,
                self._wake_all,
            )
        self.posting = Posting(Outbox(service), carriers)
        self._known = service.database.read(endpoints.endpoint_subscribers)
        service.broker.on_commit(self._committed)
        self._wake_all()
        if self._link is not None:
            self._linking = asyncio.create_task(self._link.run())

    async def stop(self) -> None:
        """Hand over nothing more."""
        self._loop = None
        if self._linking is not None:
            self._linking.cancel()
            with suppress(asyncio.CancelledError):
                await self._linking
        await self.posting.close()
        await self._webhooks.close()

    def changed(self, subscriber: int, *, removed: bool = False) -> None:
        """Note that an endpoint was set, or removed."""
        if removed:
            self._known.discard(subscriber)
        else:
            self._known.add(subscriber)
        self.posting.wake(subscriber, changed=True)

    def _wake_all(self) -> None:
        for subscriber in self._known & self._service.broker.depth.keys():
            self.posting.wake(subscriber)

    def _committed(self, committed: Committed) -> None:
        """In the broker's thread: wake those who have new messages."""
        loop = self._loop
        new = {handed.message.subscriber for handed in committed.messages} & self._known
        if new and loop is not None:
            loop.call_soon_threadsafe(self._wake, new)

    def _wake(self, subscribers: set[int]) -> None:
        for one in subscribers:
            self.posting.wake(one)


def _identifier(writing: Writing) -> str:
    """The name of this server's session at a broker, chosen once."""
    return setting(writing.connection, "mqtt_client", f"fencepost-{secrets.token_hex(8)}")
