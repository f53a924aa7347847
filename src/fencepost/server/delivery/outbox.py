"""`EndpointDelivery`: delivers committed messages to webhooks and MQTT topics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from fencepost.delivery.dispatcher import Dispatcher, MessageSender, PendingMessage
from fencepost.server.broker.transaction import CommittedChanges, Transaction
from fencepost.server.delivery.transports import TRANSPORTS, EndpointView, Settings, Transport
from fencepost.server.service import Service
from fencepost.store import endpoint_rows, event_log
from fencepost.store.endpoint_rows import Endpoint

_PAGE_CHARS = 1 << 20


class Outbox:
    """The unacknowledged messages of subscribers, for a `Dispatcher`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def endpoint(self, subscriber: int) -> Endpoint | None:
        """Return the endpoint of a subscriber, or None."""
        return self._service.database.read(endpoint_rows.endpoint, subscriber)

    def pending(self, endpoint: Endpoint, limit: int) -> list[PendingMessage]:
        """Return the next unacknowledged messages of an endpoint."""
        envelopes = self._service.envelopes(endpoint.subscriber)
        page = self._service.database.read(
            event_log.messages_after, endpoint.subscriber, endpoint.acknowledged, limit, _PAGE_CHARS
        )
        return [
            PendingMessage(
                row.position,
                row.at,
                envelopes.wrap(row.position, row.at, row.type, row.data, row.event, row.body),
            )
            for row in page
        ]

    async def record(
        self, endpoint: Endpoint, acknowledged: int, dead_letter: PendingMessage | None
    ) -> None:
        """Store the outcome of a delivery, in one transaction."""

        def work(transaction: Transaction) -> None:
            if acknowledged:
                transaction.acknowledge({endpoint.subscriber: acknowledged})
            endpoint_rows.update_delivery_state(transaction.connection, endpoint)
            if dead_letter is not None:
                endpoint_rows.add_dead_letter(
                    transaction.connection,
                    endpoint.tenant,
                    transaction.now,
                    endpoint.kind,
                    endpoint.problem or "",
                    dead_letter.text,
                    endpoint.subscriber,
                    dead_letter.position,
                )

        await self._service.change(work)


class EndpointDelivery:
    """Delivers committed messages to endpoints, from `start` to `stop`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._transports = {transport.kind(): transport(service) for transport in TRANSPORTS}
        self._dispatcher: Dispatcher | None = None
        self._subscribers_with_endpoint: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def transport_for(self, settings: Settings) -> Transport[Any]:
        """Return the transport of an endpoint's settings."""
        return next(
            transport
            for transport in self._transports.values()
            if type(settings) is transport.Settings
        )

    def view(self, stored: Endpoint, **members: Any) -> EndpointView:
        """Return an endpoint as JSON shows it."""
        return self._transports[stored.kind].view(stored, **members)

    def counts(self) -> dict[str, int]:
        """Return counts since the start, of deliveries and of the transports."""
        counts = dict(self._dispatcher.counts) if self._dispatcher is not None else {}
        for transport in self._transports.values():
            counts |= transport.counts()
        return counts

    async def start(self) -> None:
        """Start the transports, and deliver what is unacknowledged."""
        service = self._service
        self._loop = asyncio.get_running_loop()
        self._subscribers_with_endpoint = service.database.read(endpoint_rows.endpoint_subscribers)
        senders: dict[str, MessageSender] = {}
        self._dispatcher = Dispatcher(Outbox(service), senders)
        for kind, transport in self._transports.items():
            sender = await transport.start(self._wake_all)
            if sender is not None:
                senders[kind] = sender
        service.broker.on_commit(self._on_commit)
        self._wake_all()

    async def stop(self) -> None:
        """Stop deliveries and transports."""
        self._loop = None
        if self._dispatcher is not None:
            await self._dispatcher.close()
        for transport in self._transports.values():
            await transport.stop()

    def changed(self, subscriber: int, *, removed: bool = False) -> None:
        """Note that an endpoint was set or removed."""
        if removed:
            self._subscribers_with_endpoint.discard(subscriber)
        else:
            self._subscribers_with_endpoint.add(subscriber)
        self._wake([subscriber], endpoint_changed=True)

    def _wake_all(self) -> None:
        self._wake(self._subscribers_with_endpoint & self._service.broker.depth.keys())

    def _on_commit(self, committed: CommittedChanges) -> None:
        """Wake the subscribers with new messages, in the broker's thread."""
        loop = self._loop
        subscribers = {
            added.message.subscriber for added in committed.messages
        } & self._subscribers_with_endpoint
        if subscribers and loop is not None:
            loop.call_soon_threadsafe(self._wake, subscribers)

    def _wake(self, subscribers: Iterable[int], *, endpoint_changed: bool = False) -> None:
        assert self._dispatcher is not None
        for subscriber in subscribers:
            self._dispatcher.wake(subscriber, endpoint_changed=endpoint_changed)
