"""Everything that requests share: the database, the broker, who is connected, who may ask.

Here is also what it does by the way: what has expired goes, and the log is copied into the
database.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import HTTPConnection

from fencepost.delivery.cloud_events import EnvelopeFormatter
from fencepost.delivery.connection_hub import ConnectionHub, Envelope
from fencepost.errors import FencepostError, StoreError
from fencepost.geometry.space import parse_space
from fencepost.server.broker.broker import Broker
from fencepost.server.broker.tenant_subscriptions import TenantSubscriptions
from fencepost.server.broker.transaction import CommittedChanges, Transaction
from fencepost.server.console.live_feed import LiveFeed
from fencepost.server.console.subscription_map import SubscriptionMaps
from fencepost.server.http.problems import RequestError, no_such
from fencepost.server.settings import Limits, Settings
from fencepost.store import api_keys, endpoint_rows, event_log, subscription_rows
from fencepost.store.api_keys import DEFAULT_TENANT, SCOPES
from fencepost.store.database import Database, setting

_MOST_REMEMBERED = 10_000


class RateLimiter:
    """Counts requests by key; the oldest are forgotten beyond a bound."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, key: str) -> None:
        """Count a request; a Refusal where it is one too many."""
        rate, burst = self._limits.requests_per_s, self._limits.burst
        if rate <= 0:
            return
        now = self._clock()
        left, then = self._left.pop(key, (float(burst), now))
        left = min(burst, left + (now - then) * rate)
        allowed = left >= 1
        self._left[key] = (left - 1 if allowed else left), now
        if len(self._left) > _MOST_REMEMBERED:
            self._left.popitem(last=False)
        if not allowed:
            wait = (1 - left) / rate
            raise RequestError(
                429,
                f"more than {rate:g} requests a second; try again in {wait:.3g} s",
                {"retry-after": str(max(1, round(wait)))},
            )


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
            raise RequestError(403, f"this needs a key with the scope {scope!r}")


class Service:
    """A server without its network.

    Attributes
    ----------
    settings : Settings
    database : Database
    broker : Broker
    hub : ConnectionHub
    live : Watching
    places : Places
    """

    def __init__(self, settings: Settings, clock: Callable[[], int] = time.time_ns) -> None:
        self.settings = settings
        self.clock = clock
        self.started = clock()
        self.space = parse_space(settings.space)
        self.database = Database(settings.folder)
        try:
            self._settle_space()
            self.broker = Broker(
                self.database, settings.space, clock, settings.limits, settings.lateness_s
            )
        except BaseException:
            self.database.close()
            raise
        self.hub = ConnectionHub()
        self.live = LiveFeed()
        self.places = SubscriptionMaps(self.database, self.space)
        self.rates = RateLimiter(settings.limits)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._envelopes: dict[int, EnvelopeFormatter] = {}
        self._tenant_names: dict[int, str] = {}
        self.broker.on_commit(self._committed)

    def _settle_space(self) -> None:
        with self.database.transaction() as connection:
            api_keys.tenant_number(connection, DEFAULT_TENANT, create=True)
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
            number = self.database.read(api_keys.tenant_number, DEFAULT_TENANT)
            return Caller(number, DEFAULT_TENANT, frozenset(SCOPES), "")
        key = self.database.read(api_keys.key_of, given, self.clock()) if given else None
        if key is None:
            what = "this key opens nothing" if given else "this needs a key"
            raise RequestError(
                401,
                f"{what}; send one as `Authorization: Bearer fp_...`",
                {"www-authenticate": "Bearer"},
            )
        return Caller(key.tenant, key.tenant_name, key.scopes, key.id)

    # What is there

    def tenant_subscriptions(self, caller: Caller) -> TenantSubscriptions:
        """The subscriptions of a tenant."""
        return self.broker.tenant_subscriptions(caller.tenant)

    def subscriber(self, caller: Caller, name: str) -> int:
        """The number of a subscriber who was heard of."""
        number = self.tenant_subscriptions(caller).subscribers.get(name)
        if number is None:
            raise no_such("subscriber", name)
        return number

    async def changed(self, work: Callable[[Transaction], T]) -> T:
        """Have something changed, and wait until it is committed."""
        return await asyncio.wrap_future(self.broker.change(work))

    @staticmethod
    async def done(future: Future[T]) -> T:
        """Wait for what the broker does."""
        return await asyncio.wrap_future(future)

    def check_connection_limit(self, count: int) -> None:
        """Refuse one more than so many."""
        if count >= self.settings.limits.connections:
            raise RequestError(
                503, "too many connections are open; try again later", {"retry-after": "5"}
            )

    def age(self, at: int | None) -> float:
        """How many seconds ago something was; 0 where there is nothing."""
        return 0.0 if at is None else max(0.0, (self.clock() - at) / 1e9)

    # Messages

    def envelopes(self, subscriber: int) -> EnvelopeFormatter:
        """What makes the envelopes of a subscriber."""
        found = self._envelopes.get(subscriber)
        if found is None:
            tenant, name = self.broker.names[subscriber]
            if tenant not in self._tenant_names:
                self._tenant_names = self.database.read(api_keys.tenant_names)
            found = self._envelopes[subscriber] = EnvelopeFormatter(
                self._tenant_names[tenant], name
            )
        return found

    def messages_after(self, subscriber: int, position: int, limit: int = _PAGE) -> list[Envelope]:
        """A page of messages after a position, from the database."""
        envelopes = self.envelopes(subscriber)
        page = self.database.read(
            event_log.messages_after, subscriber, position, limit, _PAGE_CHARS
        )
        return [
            Envelope(
                one.position,
                envelopes.wrap(one.position, one.at, one.type, one.data, one.event, one.body),
            )
            for one in page
        ]

    def acknowledged(self, subscriber: int) -> int:
        """Up to which position a subscriber has read."""
        return self.database.read(event_log.acknowledged, subscriber)

    def _committed(self, committed: CommittedChanges) -> None:
        """In the broker's thread: put what was committed into envelopes for who is connected."""
        self.places.note(committed.subscriptions)
        self.live.committed(committed)
        found: dict[int, list[Envelope]] = {}
        for (number, position, at, event, type, data), body in committed.messages:
            if self.hub.is_connected(number):
                text = self.envelopes(number).wrap(position, at, type, data, event, body)
                found.setdefault(number, []).append(Envelope(position, text))
        if found:
            self.call_in_loop(self.hub.push, found)

    def call_in_loop(self, work: Callable[..., None], *given: Any) -> None:
        """Have something done by the event loop, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *given)


def json_array(envelopes: Iterable[Envelope]) -> str:
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


_EVERY_S = 0.5
_AT_ONCE = 1_000
_ANSWERS_KEPT_S = 86_400
_logger = logging.getLogger("fencepost")


async def sweep(service: Service) -> None:
    """Sweep every now and then, until cancelled."""
    while True:
        await asyncio.sleep(_EVERY_S)
        try:
            if service.broker.has_unsaved_acknowledgements:
                await service.done(service.broker.save_acknowledged())
            more = True
            while more:
                more = await sweep_once(service)
        except FencepostError as error:
            _logger.warning("sweeping failed and is tried again: %s", error)


async def sweep_once(service: Service) -> bool:
    """Remove some of what has expired; whether there is more."""
    now = service.clock()
    before = now - round(service.settings.retention_s * 1e9)
    with service.database.reading() as connection:
        expired = subscription_rows.expired_subscriptions(connection, now, _AT_ONCE)
        oldest = event_log.last_event_before(connection, before)
    if any(
        tenant_subscriptions.tracked.has_clocks()
        for _, tenant_subscriptions in service.broker.all_tenant_subscriptions()
    ):
        await service.changed(Transaction.tick)
    if expired:
        await service.changed(lambda transaction: _remove(transaction, expired))
    forgotten = 0
    if oldest:
        forgotten = await service.changed(lambda transaction: forget(transaction, oldest))
    answers = now - _ANSWERS_KEPT_S * 10**9
    if service.broker.counts["commits"] % 64 == 0:
        await service.changed(lambda transaction: _forget_kept(transaction, answers, before))
    await asyncio.to_thread(service.database.checkpoint)
    return len(expired) == _AT_ONCE or forgotten == _AT_ONCE


def _remove(transaction: Transaction, expired: list[tuple[int, str]]) -> None:
    for tenant in {tenant for tenant, _ in expired}:
        transaction.remove(tenant, [id for other, id in expired if other == tenant])


def forget(transaction: Transaction, up_to: int) -> int:
    transaction.checkpoint_before(up_to)
    forgotten = event_log.forget_events(transaction.connection, up_to, _AT_ONCE)
    transaction.recount = True
    return forgotten


def _forget_kept(transaction: Transaction, answers: int, letters: int) -> None:
    endpoint_rows.forget_publications(transaction.connection, answers)
    endpoint_rows.forget_dead_letters(transaction.connection, letters)
