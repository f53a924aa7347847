"""Publishing events of moving objects over a WebSocket; each reply has a safe region.

When a new subscription makes a region invalid, the server withdraws the region on the same socket.
When the socket closes, the server forgets its objects and the client drops their regions. Every
region in use can therefore be withdrawn.

`TenantSafeRegions` accounts for all kinds of subscriptions of a tenant. `SafeRegions` follows the
subscriptions to single events itself. Conditions of tracked subscriptions and of members of
composites are added to it: an object must send every event that meets one of them. This suffices
for composites, whose state changes only by events that match a member. A tracker must also see that
an object leaves a fence. An object that is in a fence, or may be, therefore has no safe region and
sends every event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw
from starlette.websockets import WebSocket

from fencepost.errors import FencepostError
from fencepost.events.event_attributes import Row, attributes
from fencepost.events.table import EventTable
from fencepost.saferegion.client_rule import SafeRegion, point_of
from fencepost.saferegion.safe_regions import SafeRegions, Withdrawal
from fencepost.server.broker.tenant_subscriptions import TenantSubscriptions
from fencepost.server.http import request_bodies, schemas
from fencepost.server.http.operations import RequestContext, operation
from fencepost.server.http.problems import RequestError, problem, request_error_of
from fencepost.server.http.request_bodies import event_table
from fencepost.server.http.schemas import Forget, Move, MoveResult, PublishResult, SampleEvent
from fencepost.server.http.schemas import SafeRegion as RegionOfEvent
from fencepost.server.http.websockets import CloseReason, SocketSession, parse_object, serve_socket
from fencepost.server.service import Caller, Service
from fencepost.server.settings import Limits

_POSITION = "geometry"
_CHANGING = ("time",)  # attributes whose conditions are assumed to hold
_MAX_HOLES = 64  # a region is up to 4 kB


class RegionReply(NamedTuple):
    """The reply to an event of a moving object.

    Attributes
    ----------
    region : str
        The safe region as JSON.
    is_held : bool
        Whether the server holds a region of the object, which it may withdraw.
    withdrawn : list of Withdrawal
        Regions of all objects that became void since the last reply.
    """

    region: str
    is_held: bool
    withdrawn: list[Withdrawal]


class TenantSafeRegions:
    """The safe regions of a tenant's objects; for any thread.

    The constructor visits all subscriptions and holds the matcher's lock, so none can be added
    meanwhile.
    """

    def __init__(self, tenant_subscriptions: TenantSubscriptions, limits: Limits) -> None:
        self.tenant_subscriptions = tenant_subscriptions
        matcher = tenant_subscriptions.expressions.matcher
        with matcher.view().lock:
            self._regions = SafeRegions(
                matcher,
                position=_POSITION,
                changing=_CHANGING,
                max_holes=_MAX_HOLES,
                max_objects=limits.safe_regions,
            )
            for id, kind in tenant_subscriptions.kind_names():
                self.subscription_put(id, kind)
            tenant_subscriptions.set_listener(self)

    # Subscriptions, with the matcher's lock held

    def subscription_put(self, id: str, kind: str) -> None:
        """See `SubscriptionListener`."""
        if kind == "track":
            self._regions.add_conditions(
                id, [self.tenant_subscriptions.tracked.publish_condition(id)]
            )
        elif kind == "composite":
            self._regions.add_conditions(
                id, (condition for _, condition in self.tenant_subscriptions.composites.atoms(id))
            )

    def subscription_removed(self, id: str) -> None:
        """See `SubscriptionListener`."""
        self._regions.remove_conditions(id)

    # Objects

    def reply(self, event: object, key: str) -> RegionReply:
        """Return the reply to a committed event: a region, or that the object keeps its own."""
        if self.tenant_subscriptions.must_publish(attributes(event)):
            self._regions.forget(key)
            region = self._no_region(attributes(event))
        else:
            region = self._regions.answer(event, key)
        return RegionReply(region, self._regions.has_region(key), self._regions.withdrawals())

    def around(self, event: object) -> str:
        """Return a region around an event; the server does not hold it."""
        if self.tenant_subscriptions.must_publish(attributes(event)):
            return self._no_region(attributes(event))
        return self._regions.around(event).to_json()

    def _no_region(self, values: Mapping[str, object]) -> str:
        at = point_of(values.get(_POSITION))
        return SafeRegion(False, position=_POSITION, at=at, version=self._regions.version).to_json()

    def changed(self) -> list[Withdrawal]:
        """Return the regions that became void since the last call."""
        return self._regions.withdrawals()

    def forget(self, key: str) -> None:
        """Forget an object."""
        self._regions.forget(key)


_SERVICE_RESTART = 1012
_MAX_QUEUED_FRAMES = 64  # without a reply; then the socket is not read
_VALID_S = 30.0


class Publishers:
    """The open publishing sockets, and the safe regions of their objects."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sockets: dict[int, Publisher] = {}
        self._numbers = count(1)
        self._regions: dict[int, TenantSafeRegions] = {}
        self._build_lock = asyncio.Lock()
        service.broker.on_change(self._changed)
        service.broker.on_reload(self._reloaded)

    def __len__(self) -> int:
        return len(self._sockets)

    async def regions(self, tenant: int) -> TenantSafeRegions:
        """Return the safe regions of a tenant, which are built at the first call."""
        broker, limits = self._service.broker, self._service.settings.limits
        async with self._build_lock:
            regions = self._regions.get(tenant)
            # The broker replaces the subscriptions of a tenant when it reloads.
            while (
                regions is None
                or regions.tenant_subscriptions is not broker.tenant_subscriptions(tenant)
            ):
                regions = await asyncio.to_thread(
                    TenantSafeRegions, broker.tenant_subscriptions(tenant), limits
                )
            self._regions[tenant] = regions
        return regions

    def open(self, socket: WebSocket, caller: Caller, regions: TenantSafeRegions) -> Publisher:
        """Add a socket."""
        self._service.check_connection_limit(len(self))
        publisher = Publisher(self, next(self._numbers), socket, self._service, caller, regions)
        self._sockets[publisher.number] = publisher
        return publisher

    def close(self, publisher: Publisher) -> None:
        """Remove a socket, and forget its objects."""
        self._sockets.pop(publisher.number, None)
        for key in publisher.keys:
            publisher.regions.forget(publisher.object_name(key))

    def withdraw(self, withdrawn: list[Withdrawal]) -> None:
        """Send withdrawals to the sockets of their objects."""
        for name, version in withdrawn:
            number, _, key = name.partition(":")
            publisher = self._sockets.get(int(number))
            if publisher is not None:
                publisher.withdraw(key, version)

    def _changed(self, tenants: set[int]) -> None:
        """Withdraw regions after a commit that changed subscriptions, in the broker's thread."""
        for tenant in tenants:
            regions = self._regions.get(tenant)
            withdrawn = [] if regions is None else regions.changed()
            if withdrawn:
                self._service.call_in_loop(self.withdraw, withdrawn)

    def _reloaded(self) -> None:
        """Close all sockets, in the broker's thread: after a reload their regions may be wrong."""
        self._service.call_in_loop(self.close_all)

    def close_all(self) -> None:
        """Close all sockets; clients connect again."""
        self._regions.clear()
        for publisher in [*self._sockets.values()]:
            publisher.invalidate()


class Publisher:
    """A publishing socket.

    Attributes
    ----------
    keys : set of str
        Keys of the objects whose regions the server holds.
    """

    def __init__(
        self,
        publishers: Publishers,
        number: int,
        socket: WebSocket,
        service: Service,
        caller: Caller,
        regions: TenantSafeRegions,
    ) -> None:
        self.number = number
        self.regions = regions
        self.keys: set[str] = set()
        self._publishers = publishers
        self._socket = socket
        self._service = service
        self._caller = caller
        self._replies: asyncio.Queue[asyncio.Task[bytes]] = asyncio.Queue(_MAX_QUEUED_FRAMES)
        self._send_lock = asyncio.Lock()
        self._withdrawn: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._is_void = False

    def object_name(self, key: str) -> str:
        """Return the name of an object that is unique among all sockets."""
        return f"{self.number}:{key}"

    def withdraw(self, key: str, version: int) -> None:
        """Queue the withdrawal of an object's region."""
        self.keys.discard(key)
        self._withdrawn[key] = max(version, self._withdrawn.get(key, 0))
        self._wake.set()

    def invalidate(self) -> None:
        """Close the socket, because its regions may be wrong."""
        self._is_void = True
        self._wake.set()

    def senders(self) -> Sequence[Coroutine[Any, Any, CloseReason]]:
        """See `SocketSession`."""
        return [self._send_replies(), self._send_withdrawals()]

    def close(self) -> None:
        """See `SocketSession`."""
        self._publishers.close(self)
        while not self._replies.empty():
            self._replies.get_nowait().cancel()

    async def receive(self, frame: str | None) -> None:
        """Handle a frame; its reply is queued, in the order of the frames."""
        members = parse_object(frame)
        reply: Coroutine[Any, Any, bytes]
        if "ping" in members:
            reply = _pong(members["ping"])
        elif "forget" in members:
            key = request_bodies.convert(members, Forget).forget
            self.keys.discard(key)
            self.regions.forget(self.object_name(key))
            return
        else:
            reply = self._publish(request_bodies.convert(members, Move))
        await self._replies.put(asyncio.create_task(reply))

    async def _publish(self, move: Move) -> bytes:
        key = move.key
        result = MoveResult(
            id=UNSET if move.id is None else move.id, key=UNSET if key is None else key
        )
        try:
            self._service.rate_limiter.count(self._caller.key or self._socket_host())
            published, values = await self._log(move.event)
        except FencepostError as error:
            result.problem = problem(request_error_of(error))
            return msgspec.json.encode(result)
        result.position, result.messages = published.first, published.messages
        if key is not None and not self._is_void:
            self.keys.add(key)  # before the region exists, so that `close` forgets it
            reply = await asyncio.to_thread(self.regions.reply, values, self.object_name(key))
            if not reply.is_held:
                self.keys.discard(key)
            self._publishers.withdraw(reply.withdrawn)
            result.region = Raw(reply.region.encode())
        return msgspec.json.encode(result)

    async def _log(self, event: object) -> tuple[PublishResult, Row]:
        service = self._service
        table = _one_event_table(event, service)
        body = msgspec.json.encode(event).decode()
        published = await service.wait_for(
            service.broker.publish(self._caller.tenant, table, [body])
        )
        if published.rejected:
            raise RequestError(422, f"the event cannot be used: {published.rejected[0].reason}")
        return published, Row(table.row(0))

    def _socket_host(self) -> str:
        return self._socket.client.host if self._socket.client else ""

    async def _send_replies(self) -> CloseReason:
        while True:
            task = await self._replies.get()
            await self._send(await task)

    async def _send_withdrawals(self) -> CloseReason:
        while not self._is_void:
            await self._wake.wait()
            self._wake.clear()
            withdrawn, self._withdrawn = self._withdrawn, {}
            for key, version in withdrawn.items():
                await self._send(msgspec.json.encode(schemas.Withdrawal(key, version)))
        return _SERVICE_RESTART, "subscriptions were reloaded; connect again"

    async def _send(self, text: bytes) -> None:
        async with self._send_lock:
            if not self._is_void:  # a reply implies that all earlier withdrawals were sent
                await self._socket.send_text(text.decode())


async def _pong(ping: object) -> bytes:
    return msgspec.json.encode({"pong": ping})


def _one_event_table(event: object, service: Service) -> EventTable:
    """Return a table of one event; raise a `RequestError` if the event cannot be used."""
    table = event_table(
        [request_bodies.checked_event(event)], service.space, service.settings.limits.vertices
    )
    if table.bad:
        raise RequestError(422, f"the event cannot be used: {table.bad[0][1]}")
    return table


async def publish_socket(socket: WebSocket) -> None:
    """Publish events from frames; reply to each with a safe region of its object."""
    publishers: Publishers = socket.app.state.publishers

    async def open_session(_: Service, caller: Caller) -> SocketSession:
        return publishers.open(socket, caller, await publishers.regions(caller.tenant))

    await serve_socket(socket, "publish", open_session)


@operation("POST", "/v1/safe-regions", "publish", {200: RegionOfEvent})
async def safe_region(context: RequestContext, body: SampleEvent) -> RegionOfEvent:
    """Return a safe region around an event, valid for some seconds. Nothing is published.

    Subscriptions that are added meanwhile take effect for the object once the region expires.
    """
    event = Row(_one_event_table(body.event, context.service).row(0))
    publishers: Publishers = context.request.app.state.publishers
    regions = await publishers.regions(context.caller.tenant)
    region = await asyncio.to_thread(regions.around, event)
    return RegionOfEvent(Raw(region.encode()), _VALID_S)
