"""Publishing over a WebSocket, for things that move: each event is answered with a safe region.

When a subscription comes that wants what a region leaves out, its object is told on the same
socket. When the socket closes, the server forgets the objects and the client drops their regions:
so no region is out there that cannot be withdrawn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from contextlib import suppress
from itertools import count
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from fencepost.errors import FencepostError
from fencepost.saferegion.regions import Withdrawal
from fencepost.server import reading
from fencepost.server.operations import Asked, Body, Operation
from fencepost.server.places import unusable_places
from fencepost.server.problems import Refusal, problem, refusal_of
from fencepost.server.publications import Published
from fencepost.server.regions import Regions
from fencepost.server.schemas import ref
from fencepost.server.service import Caller, Service
from fencepost.server.sockets import BAD_FRAME, accept, refuse

_AGAIN = 1012
_WAITING = 64  # frames that are not answered yet; who sends more has to wait
_LONGEST_KEY = 256
_VALID_S = 30.0


class Publishers:
    """The open sockets of those who publish, and the regions that their objects have."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sockets: dict[int, Publisher] = {}
        self._numbers = count(1)
        self._regions: dict[int, Regions] = {}
        self._making = asyncio.Lock()
        service.broker.on_change(self._changed)
        service.broker.on_reload(self._reloaded)

    def __len__(self) -> int:
        return len(self._sockets)

    async def regions(self, tenant: int) -> Regions:
        """The regions of a tenant, made when first asked for."""
        broker, limits = self._service.broker, self._service.settings.limits
        async with self._making:
            found = self._regions.get(tenant)
            while found is None or found.questions is not broker.questions(tenant):
                found = await asyncio.to_thread(Regions, broker.questions(tenant), limits)
            self._regions[tenant] = found
        return found

    def open(self, socket: WebSocket, caller: Caller, regions: Regions) -> Publisher:
        """Take events from a socket."""
        if len(self) >= self._service.settings.limits.connections:
            raise Refusal(503, "too many connections are open; try again later")
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
                self._service.in_loop(self.withdraw, withdrawn)

    def _reloaded(self) -> None:
        """In the broker's thread: what is known was read anew, so that regions follow nothing."""
        self._service.in_loop(self.close_all)

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
        regions: Regions,
    ) -> None:
        self.number = number
        self.regions = regions
        self.keys: set[str] = set()
        self._publishers = publishers
        self._socket = socket
        self._service = service
        self._caller = caller
        self._answers: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue(_WAITING)
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

    async def run(self) -> None:
        """Take frames and answer them in order, until the socket is closed."""
        tasks = [asyncio.create_task(one()) for one in (self._receive, self._answer, self._tell)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._publishers.close(self)
            while not self._answers.empty():
                tasks.append(self._answers.get_nowait())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive(self) -> None:
        while True:
            try:
                frame = await self._socket.receive()
            except (WebSocketDisconnect, RuntimeError):
                return
            if frame["type"] == "websocket.disconnect":
                return
            try:
                answer = self._taken(frame.get("text"))
            except FencepostError as error:
                await self._close(BAD_FRAME, str(error))
                return
            if answer is not None:
                await self._answers.put(asyncio.create_task(answer))

    def _taken(self, text: str | None) -> Coroutine[Any, Any, str] | None:
        """What will answer a frame; a Refusal where it is none."""
        if text is None:
            raise Refusal(422, "a frame is a text")
        given = reading.object_of(text.encode())
        if "ping" in given:
            return _pong(given["ping"])
        if "forget" in given:
            key = _key(given["forget"])
            self.keys.discard(key)
            self.regions.forget(self.name(key))
            return None
        unknown = given.keys() - {"id", "key", "event"}
        if unknown or "event" not in given:
            raise Refusal(422, 'a frame is an object as in {"event": {...}, "key": "taxi 7"}')
        own = None if given.get("key") is None else _key(given["key"])
        return self._published(given["event"], own, given.get("id"))

    async def _published(self, event: object, key: str | None, id: object) -> str:
        about: dict[str, Any] = {} if id is None else {"id": id}
        if key is not None:
            about["key"] = key
        try:
            self._service.rates.count(self._caller.key or self._socket_host())
            published, values = await self._logged(event)
        except FencepostError as error:
            return json.dumps({**about, "problem": problem(refusal_of(error))})
        about |= {"position": published.first, "messages": published.messages}
        if key is None or self._void:
            return json.dumps(about)
        self.keys.add(key)  # before, as the socket may be closed in the meantime
        found = await asyncio.to_thread(self.regions.answer, values, self.name(key))
        if not found.is_held:
            self.keys.discard(key)
        self._publishers.withdraw(found.withdrawn)
        return f'{json.dumps(about)[:-1]}, "region": {found.region}}}'

    async def _logged(self, event: object) -> tuple[Published, dict[str, Any]]:
        service = self._service
        values = reading.event_of(event)
        bad = unusable_places([values], service.space, service.settings.limits.vertices)
        if bad:
            raise Refusal(422, f"the event cannot be used: {bad[0]}")
        body = json.dumps(values)
        published = await service.done(
            service.broker.publish(self._caller.tenant, [values], [body])
        )
        if published.rejected:
            raise Refusal(422, f"the event cannot be used: {published.rejected[0][1]}")
        return published, values

    def _socket_host(self) -> str:
        return self._socket.client.host if self._socket.client else ""

    async def _answer(self) -> None:
        while True:
            task = await self._answers.get()
            await self._send(await task)

    async def _tell(self) -> None:
        while not self._void:
            await self._wake.wait()
            self._wake.clear()
            withdrawn, self._withdrawn = self._withdrawn, {}
            for key, version in withdrawn.items():
                await self._send(json.dumps({"withdrawn": key, "version": version}))
        await self._close(_AGAIN, "subscriptions were read anew; connect again")

    async def _send(self, text: str) -> None:
        async with self._sending:
            await self._socket.send_text(text)

    async def _close(self, code: int, reason: str) -> None:
        async with self._sending:
            with suppress(RuntimeError):
                await self._socket.close(code, reason[:120])


async def _pong(given: object) -> str:
    return json.dumps({"pong": given})


def _key(given: object) -> str:
    if not isinstance(given, str) or not 0 < len(given) <= _LONGEST_KEY:
        raise Refusal(422, f"a key is a text of 1 to {_LONGEST_KEY} characters")
    return given


async def publish_socket(socket: WebSocket) -> None:
    """Events as frames; an answer to each, with the region in which its object may be silent."""
    service: Service = socket.app.state.service
    publishers: Publishers = socket.app.state.publishers
    try:
        caller = service.caller(socket)
        caller.need("publish")
        publisher = publishers.open(socket, caller, await publishers.regions(caller.tenant))
    except FencepostError as error:
        await refuse(socket, error)
        return
    await accept(socket)
    await publisher.run()


async def safe_region(asked: Asked) -> Response:
    """Where an object may be silent for a while."""
    limits = asked.service.settings.limits
    given = reading.object_of(await reading.body_of(asked.request, limits))
    event = reading.event_of(given.get("event"))
    bad = unusable_places([event], asked.service.space, limits.vertices)
    if bad:
        raise Refusal(422, f"the event cannot be used: {bad[0]}")
    publishers: Publishers = asked.request.app.state.publishers
    regions = await publishers.regions(asked.caller.tenant)
    region = await asyncio.to_thread(regions.around, event)
    return JSONResponse({"region": json.loads(region), "valid_s": _VALID_S})


OPERATIONS = (
    Operation(
        "POST",
        "/v1/safe-regions",
        "publish",
        safe_region,
        "Where an object need not send its events, for some seconds: what is subscribed in the "
        "meantime counts for it from then on. Nothing is published.",
        {200: ("The region.", {"application/json": ref("SafeRegion")})},
        body=Body({"application/json": ref("ToExplain")}),
    ),
)
