"""Publishing over a WebSocket, for things that move: each event is answered with a safe region.

When a subscription comes that wants what a region leaves out, its object is told on the same
socket. When the socket closes, the server forgets the objects and the client drops their regions:
so no region is out there that cannot be withdrawn.

`Regions` are right for all subscriptions of a tenant, of whatever kind. Plain subscriptions are
followed by `SafeRegions` itself. Of tracked ones and of the members of composites it is told: every
event is sent that one of them could want. That is enough for composites, as what plays no part
changes nothing. A tracker must also hear of what leaves: so an object that is in a fence, or may
be, has no region, and sends everything until it is out.
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
_CHANGING = ("time",)  # conditions on it are taken to hold
_MAX_HOLES = 64  # a region is up to 4 kB


class RegionReply(NamedTuple):
    """The region for an event, as JSON; whether its object has one; whose are void since."""

    region: str
    is_held: bool
    withdrawn: list[Withdrawal]


class TenantSafeRegions:
    """The regions of a tenant's objects; for any thread.

    While it is made, which takes a while for many subscriptions, none can be added.
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
        """Follow a subscription that was added or replaced."""
        if kind == "track":
            self._regions.add_conditions(
                id, [self.tenant_subscriptions.tracked.publish_condition(id)]
            )
        elif kind == "composite":
            self._regions.add_conditions(
                id, (one for _, one in self.tenant_subscriptions.composites.atoms(id))
            )

    def subscription_removed(self, id: str) -> None:
        """Follow that a subscription is no more."""
        self._regions.remove_conditions(id)

    # Objects

    def answer(self, event: object, key: str) -> RegionReply:
        """The region of an object whose event was just committed, or that it may keep its own."""
        if self.tenant_subscriptions.must_publish(attributes(event)):
            self._regions.forget(key)
            region = self._nowhere(attributes(event))
        else:
            region = self._regions.answer(event, key)
        return RegionReply(region, self._regions.has_region(key), self._regions.withdrawals())

    def around(self, event: object) -> str:
        """The region of an object that nobody remembers."""
        if self.tenant_subscriptions.must_publish(attributes(event)):
            return self._nowhere(attributes(event))
        return self._regions.around(event).to_json()

    def _nowhere(self, values: Mapping[str, object]) -> str:
        at = point_of(values.get(_POSITION))
        return SafeRegion(False, position=_POSITION, at=at, version=self._regions.version).to_json()

    def changed(self) -> list[Withdrawal]:
        """The objects whose regions are void since the last call."""
        return self._regions.withdrawals()

    def forget(self, key: str) -> None:
        """Forget an object that is gone."""
        self._regions.forget(key)


_AGAIN = 1012
_WAITING = 64  # frames that are not answered yet; who sends more has to wait
_VALID_S = 30.0


class Publishers:
    """The open sockets of those who publish, and the regions that their objects have."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sockets: dict[int, Publisher] = {}
        self._numbers = count(1)
        self._regions: dict[int, TenantSafeRegions] = {}
        self._making = asyncio.Lock()
        service.broker.on_change(self._changed)
        service.broker.on_reload(self._reloaded)

    def __len__(self) -> int:
        return len(self._sockets)

    async def regions(self, tenant: int) -> TenantSafeRegions:
        """The regions of a tenant, made when first asked for."""
        broker, limits = self._service.broker, self._service.settings.limits
        async with self._making:
            found = self._regions.get(tenant)
            while found is None or found.tenant_subscriptions is not broker.tenant_subscriptions(
                tenant
            ):
                found = await asyncio.to_thread(
                    TenantSafeRegions, broker.tenant_subscriptions(tenant), limits
                )
            self._regions[tenant] = found
        return found

    def open(self, socket: WebSocket, caller: Caller, regions: TenantSafeRegions) -> Publisher:
        """Take events from a socket."""
        self._service.check_connection_limit(len(self))
        publisher = Publisher(self, next(self._numbers), socket, self._service, caller, regions)
        self._sockets[publisher.number] = publisher
        return publisher

    def close(self, publisher: Publisher) -> None:
        """Forget a socket and its objects."""
        self._sockets.pop(publisher.number, None)
        for key in publisher.keys:
            publisher.regions.forget(publisher.name(key))

    def withdraw(self, withdrawn: list[Withdrawal]) -> None:
        """Tell objects that their regions are void."""
        for name, version in withdrawn:
            number, _, key = name.partition(":")
            publisher = self._sockets.get(int(number))
            if publisher is not None:
                publisher.withdraw(key, version)

    def _changed(self, tenants: set[int]) -> None:
        """In the broker's thread, after a commit: subscriptions of some tenants are others."""
        for tenant in tenants:
            regions = self._regions.get(tenant)
            withdrawn = [] if regions is None else regions.changed()
            if withdrawn:
                self._service.call_in_loop(self.withdraw, withdrawn)

    def _reloaded(self) -> None:
        """In the broker's thread: what is known was read anew, so that regions follow nothing."""
        self._service.call_in_loop(self.close_all)

    def close_all(self) -> None:
        """Have every client begin anew."""
        self._regions.clear()
        for publisher in [*self._sockets.values()]:
            publisher.begin_anew()


class Publisher:
    """One socket.

    Attributes
    ----------
    keys : set of str
        Of the objects that have regions.
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
        self._answers: asyncio.Queue[asyncio.Task[bytes]] = asyncio.Queue(_WAITING)
        self._sending = asyncio.Lock()
        self._withdrawn: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._void = False

    def name(self, key: str) -> str:
        """What one of its objects is called among those of all sockets."""
        return f"{self.number}:{key}"

    def withdraw(self, key: str, version: int) -> None:
        """Have an object told that its region is void."""
        self.keys.discard(key)
        self._withdrawn[key] = max(version, self._withdrawn.get(key, 0))
        self._wake.set()

    def begin_anew(self) -> None:
        """Have the socket closed, as its regions may be wrong."""
        self._void = True
        self._wake.set()

    def senders(self) -> Sequence[Coroutine[Any, Any, CloseReason]]:
        """See `Conversation`."""
        return [self._answer(), self._tell()]

    def close(self) -> None:
        """See `Conversation`."""
        self._publishers.close(self)
        while not self._answers.empty():
            self._answers.get_nowait().cancel()

    async def take(self, frame: str | None) -> None:
        """Begin to answer a frame, if it has an answer."""
        given = parse_object(frame)
        answer: Coroutine[Any, Any, bytes]
        if "ping" in given:
            answer = _pong(given["ping"])
        elif "forget" in given:
            key = request_bodies.convert(given, Forget).forget
            self.keys.discard(key)
            self.regions.forget(self.name(key))
            return
        else:
            answer = self._published(request_bodies.convert(given, Move))
        await self._answers.put(asyncio.create_task(answer))

    async def _published(self, given: Move) -> bytes:
        key = given.key
        found = MoveResult(
            id=UNSET if given.id is None else given.id, key=UNSET if key is None else key
        )
        try:
            self._service.rate_limiter.count(self._caller.key or self._socket_host())
            published, values = await self._logged(given.event)
        except FencepostError as error:
            found.problem = problem(request_error_of(error))
            return msgspec.json.encode(found)
        found.position, found.messages = published.first, published.messages
        if key is not None and not self._void:
            self.keys.add(key)  # before, as the socket may be closed in the meantime
            answer = await asyncio.to_thread(self.regions.answer, values, self.name(key))
            if not answer.is_held:
                self.keys.discard(key)
            self._publishers.withdraw(answer.withdrawn)
            found.region = Raw(answer.region.encode())
        return msgspec.json.encode(found)

    async def _logged(self, event: object) -> tuple[PublishResult, Row]:
        service = self._service
        table = _usable(event, service)
        body = msgspec.json.encode(event).decode()
        published = await service.wait_for(
            service.broker.publish(self._caller.tenant, table, [body])
        )
        if published.rejected:
            raise RequestError(422, f"the event cannot be used: {published.rejected[0].reason}")
        return published, Row(table.row(0))

    def _socket_host(self) -> str:
        return self._socket.client.host if self._socket.client else ""

    async def _answer(self) -> CloseReason:
        while True:
            task = await self._answers.get()
            await self._send(await task)

    async def _tell(self) -> CloseReason:
        while not self._void:
            await self._wake.wait()
            self._wake.clear()
            withdrawn, self._withdrawn = self._withdrawn, {}
            for key, version in withdrawn.items():
                await self._send(msgspec.json.encode(schemas.Withdrawal(key, version)))
        return _AGAIN, "subscriptions were read anew; connect again"

    async def _send(self, text: bytes) -> None:
        async with self._sending:
            if not self._void:  # else an answer would say that all withdrawals were told
                await self._socket.send_text(text.decode())


async def _pong(given: object) -> bytes:
    return msgspec.json.encode({"pong": given})


def _usable(event: object, service: Service) -> EventTable:
    """A table of one event, whose geometry can be used."""
    table = event_table(
        [request_bodies.checked_event(event)], service.space, service.settings.limits.vertices
    )
    if table.bad:
        raise RequestError(422, f"the event cannot be used: {table.bad[0][1]}")
    return table


async def publish_socket(socket: WebSocket) -> None:
    """Events as frames; an answer to each, with the region in which its object may be silent."""
    publishers: Publishers = socket.app.state.publishers

    async def opened(_: Service, caller: Caller) -> SocketSession:
        return publishers.open(socket, caller, await publishers.regions(caller.tenant))

    await serve_socket(socket, "publish", opened)


@operation("POST", "/v1/safe-regions", "publish", {200: RegionOfEvent})
async def safe_region(context: RequestContext, body: SampleEvent) -> RegionOfEvent:
    """Where an object need not send its events, for some seconds: what is subscribed in the
    meantime counts for it from then on. Nothing is published.
    """
    event = Row(_usable(body.event, context.service).row(0))
    publishers: Publishers = context.request.app.state.publishers
    regions = await publishers.regions(context.caller.tenant)
    region = await asyncio.to_thread(regions.around, event)
    return RegionOfEvent(Raw(region.encode()), _VALID_S)
