"""What a server hands over by itself: messages of subscribers who have an endpoint."""

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
    """The messages of a service, and how handing them over went."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def endpoint(self, subscriber: int) -> Endpoint | None:
        """Where messages go, and how that went."""
        return self._service.database.read(endpoint_rows.endpoint, subscriber)

    def pending(self, endpoint: Endpoint, limit: int) -> list[PendingMessage]:
        """The next messages that are not acknowledged."""
        envelopes = self._service.envelopes(endpoint.subscriber)
        page = self._service.database.read(
            event_log.messages_after, endpoint.subscriber, endpoint.acknowledged, limit, _PAGE_CHARS
        )
        return [
            PendingMessage(
                one.position,
                one.at,
                envelopes.wrap(one.position, one.at, one.type, one.data, one.event, one.body),
            )
            for one in page
        ]

    async def record(
        self, tried: Endpoint, acknowledged: int, dead_letter: PendingMessage | None
    ) -> None:
        """Keep how it went, in one transaction."""

        def work(transaction: Transaction) -> None:
            if acknowledged:
                transaction.acknowledge({tried.subscriber: acknowledged})
            endpoint_rows.update_delivery_state(transaction.connection, tried)
            if dead_letter is not None:
                endpoint_rows.add_dead_letter(
                    transaction.connection,
                    tried.tenant,
                    transaction.now,
                    tried.kind,
                    tried.problem or "",
                    dead_letter.text,
                    tried.subscriber,
                    dead_letter.position,
                )

        await self._service.change(work)


class EndpointDelivery:
    """Hands over what is committed, from `start` to `stop`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._transports = {one.kind(): one(service) for one in TRANSPORTS}
        self._posting: Dispatcher | None = None
        self._known: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def transport_for(self, settings: Settings) -> Transport[Any]:
        """What hands over as settings say."""
        return next(one for one in self._transports.values() if type(settings) is one.Settings)

    def shown(self, stored: Endpoint, **more: Any) -> EndpointView:
        """What is told of an endpoint."""
        return self._transports[stored.kind].endpoint(stored, **more)

    def counts(self) -> dict[str, int]:
        """How much was handed over, and what transports counted, since the start."""
        found = dict(self._posting.counts) if self._posting is not None else {}
        for one in self._transports.values():
            found |= one.counts()
        return found

    async def start(self) -> None:
        """Go on where the last server was."""
        service = self._service
        self._loop = asyncio.get_running_loop()
        self._known = service.database.read(endpoint_rows.endpoint_subscribers)
        carriers: dict[str, MessageSender] = {}
        self._posting = Dispatcher(Outbox(service), carriers)
        for kind, transport in self._transports.items():
            carrier = await transport.start(self._wake_all)
            if carrier is not None:
                carriers[kind] = carrier
        service.broker.on_commit(self._committed)
        self._wake_all()

    async def stop(self) -> None:
        """Hand over nothing more."""
        self._loop = None
        if self._posting is not None:
            await self._posting.close()
        for transport in self._transports.values():
            await transport.stop()

    def changed(self, subscriber: int, *, removed: bool = False) -> None:
        """Note that an endpoint was set, or removed."""
        if removed:
            self._known.discard(subscriber)
        else:
            self._known.add(subscriber)
        self._wake([subscriber], endpoint_changed=True)

    def _wake_all(self) -> None:
        self._wake(self._known & self._service.broker.depth.keys())

    def _committed(self, committed: CommittedChanges) -> None:
        """In the broker's thread: wake those who have new messages."""
        loop = self._loop
        new = {handed.message.subscriber for handed in committed.messages} & self._known
        if new and loop is not None:
            loop.call_soon_threadsafe(self._wake, new)

    def _wake(self, subscribers: Iterable[int], *, endpoint_changed: bool = False) -> None:
        assert self._posting is not None
        for one in subscribers:
            self._posting.wake(one, endpoint_changed=endpoint_changed)
