"""Everything that requests share: the database, the broker, who is connected, who may ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import HTTPConnection

from fencepost.deliver.envelope import Envelopes
from fencepost.deliver.hub import Envelope, Hub
from fencepost.errors import StoreError
from fencepost.model.space import space_of
from fencepost.server.broker import Broker
from fencepost.server.problems import Refusal, not_found
from fencepost.server.questions import Questions
from fencepost.server.rates import Rates
from fencepost.server.settings import Settings
from fencepost.server.watch.live import Watching
from fencepost.server.watch.places import Places
from fencepost.server.writing import Committed, Writing
from fencepost.store import keys, log
from fencepost.store.database import Database, setting
from fencepost.store.keys import DEFAULT_TENANT, SCOPES

T = TypeVar("T")
_PAGE = 500
_PAGE_CHARS = 1 << 20
_SUBPROTOCOL = "bearer."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes
    ----------
    tenant : int
    tenant_name : str
    scopes : frozenset of str
    key : str
        The id of their key; empty where none is needed.
    """

    tenant: int
    tenant_name: str
    scopes: frozenset[str]
    key: str

    def need(self, scope: str) -> None:
        """Refuse unless they have a scope."""
        if scope not in self.scopes:
            raise Refusal(403, f"this needs a key with the scope {scope!r}")


class Service:
    """A server without its network.

    Attributes
    ----------
    settings : Settings
    database : Database
    broker : Broker
    hub : Hub
    live : Watching
    places : Places
    """

    def __init__(self, settings: Settings, clock: Callable[[], int] = time.time_ns) -> None:
        self.settings = settings
        self.clock = clock
        self.started = clock()
        self.space = space_of(settings.space)
        self.database = Database(settings.folder)
        try:
            self._settle_space()
            self.broker = Broker(
                self.database, settings.space, clock, settings.limits, settings.lateness_s
            )
        except BaseException:
            self.database.close()
            raise
        self.hub = Hub()
        self.live = Watching()
        self.places = Places(self.database, self.space)
        self.rates = Rates(settings.limits)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._envelopes: dict[int, Envelopes] = {}
        self._tenant_names: dict[int, str] = {}
        self.broker.on_commit(self._committed)

    def _settle_space(self) -> None:
        with self.database.transaction() as connection:
            keys.tenant_number(connection, DEFAULT_TENANT, create=True)
            space = setting(connection, "space", self.settings.space)
            if space != self.settings.space:
                raise StoreError(
                    f"{self.settings.folder} was made for the space {space!r}, and "
                    f"{self.settings.space!r} is asked for; leave it out, or name another folder"
                )

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand messages over in an event loop from now on."""
        self._loop = loop

    def close(self) -> None:
        """Write what waits, and give the folder back."""
        self.broker.close()
        self.database.close()

    # Who asks

    def caller(self, connection: HTTPConnection) -> Caller:
        """Who asks, by their key."""
        given = _key_in(connection)
        if not given and self.settings.open_access:
            number = self.database.read(keys.tenant_number, DEFAULT_TENANT)
            return Caller(number, DEFAULT_TENANT, frozenset(SCOPES), "")
        key = self.database.read(keys.key_of, given, self.clock()) if given else None
        if key is None:
            what = "this key opens nothing" if given else "this needs a key"
            raise Refusal(
                401,
                f"{what}; send one as `Authorization: Bearer fp_...`",
                {"www-authenticate": "Bearer"},
            )
        return Caller(key.tenant, key.tenant_name, key.scopes, key.id)

    # What is there

    def questions(self, caller: Caller) -> Questions:
        """The subscriptions of a tenant."""
        return self.broker.questions(caller.tenant)

    def subscriber(self, caller: Caller, name: str) -> int:
        """The number of a subscriber who was heard of."""
        number = self.questions(caller).subscribers.get(name)
        if number is None:
            raise not_found("subscriber", name)
        return number

    async def changed(self, work: Callable[[Writing], T]) -> T:
        """Have something changed, and wait until it is committed."""
        return await asyncio.wrap_future(self.broker.change(work))

    @staticmethod
    async def done(future: Future[T]) -> T:
        """Wait for what the broker does."""
        return await asyncio.wrap_future(future)

    def check_connections(self, count: int) -> None:
        """Refuse one more than so many."""
        if count >= self.settings.limits.connections:
            raise Refusal(
                503, "too many connections are open; try again later", {"retry-after": "5"}
            )

    def age(self, at: int | None) -> float:
        """How many seconds ago something was; 0 where there is nothing."""
        return 0.0 if at is None else max(0.0, (self.clock() - at) / 1e9)

    # Messages

    def envelopes(self, subscriber: int) -> Envelopes:
        """What makes the envelopes of a subscriber."""
        found = self._envelopes.get(subscriber)
        if found is None:
            tenant, name = self.broker.names[subscriber]
            if tenant not in self._tenant_names:
                self._tenant_names = self.database.read(keys.tenant_names)
            found = self._envelopes[subscriber] = Envelopes(self._tenant_names[tenant], name)
        return found

    def messages_after(self, subscriber: int, position: int, limit: int = _PAGE) -> list[Envelope]:
        """A page of messages after a position, from the database."""
        envelopes = self.envelopes(subscriber)
        page = self.database.read(log.messages_after, subscriber, position, limit, _PAGE_CHARS)
        return [
            Envelope(
                one.position,
                envelopes.wrap(one.position, one.at, one.type, one.data, one.event, one.body),
            )
            for one in page
        ]

    def acknowledged(self, subscriber: int) -> int:
        """Up to which position a subscriber has read."""
        return self.database.read(log.acknowledged, subscriber)

    def _committed(self, committed: Committed) -> None:
        """In the broker's thread: put what was committed into envelopes for who is connected."""
        self.places.note(committed.subscriptions)
        self.live.committed(committed)
        found: dict[int, list[Envelope]] = {}
        for (number, position, at, event, type, data), body in committed.messages:
            if self.hub.is_connected(number):
                text = self.envelopes(number).wrap(position, at, type, data, event, body)
                found.setdefault(number, []).append(Envelope(position, text))
        if found:
            self.in_loop(self.hub.hand, found)

    def in_loop(self, work: Callable[..., None], *given: Any) -> None:
        """Have something done by the event loop, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *given)


def as_list(envelopes: Iterable[Envelope]) -> str:
    """Messages as one JSON array."""
    return f"[{','.join(one.text for one in envelopes)}]"


def _key_in(connection: HTTPConnection) -> str:
    """The key of a request: in its header, or in a subprotocol where a browser allows no header."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    for offered in connection.headers.get("sec-websocket-protocol", "").split(","):
        if offered.strip().startswith(_SUBPROTOCOL):
            return offered.strip().removeprefix(_SUBPROTOCOL)
    return ""
