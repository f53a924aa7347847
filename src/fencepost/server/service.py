"""`Service`: what all requests share: database, broker, connections, keys and rate limits.

`sweep` is its background task: it removes what has expired and checkpoints the database.
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
from fencepost.store.database import Database, ensure_setting

_MAX_KEYS = 10_000


class RateLimiter:
    """A token bucket for each key; the least recently used are forgotten beyond a limit."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, time

    def count(self, key: str) -> None:
        """Count a request; raise a `RequestError` if it exceeds the rate."""
        rate, burst = self._limits.requests_per_s, self._limits.burst
        if rate <= 0:
            return
        now = self._clock()
        tokens, updated = self._buckets.pop(key, (float(burst), now))
        tokens = min(burst, tokens + (now - updated) * rate)
        is_allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if is_allowed else tokens), now
        if len(self._buckets) > _MAX_KEYS:
            self._buckets.popitem(last=False)
        if not is_allowed:
            wait_s = (1 - tokens) / rate
            raise RequestError(
                429,
                f"more than {rate:g} requests a second; try again in {wait_s:.3g} s",
                {"retry-after": str(max(1, round(wait_s)))},
            )


T = TypeVar("T")
_PAGE = 500
_PAGE_CHARS = 1 << 20
_SUBPROTOCOL = "bearer."


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes
    ----------
    tenant : int
    tenant_name : str
    scopes : frozenset of str
    key : str
        Id of the key; empty if the request needs none.
    """

    tenant: int
    tenant_name: str
    scopes: frozenset[str]
    key: str

    def require(self, scope: str) -> None:
        """Raise a `RequestError` unless the caller has a scope."""
        if scope not in self.scopes:
            raise RequestError(403, f"this request needs a key with the scope {scope!r}")


class Service:
    """A server without its network.

    Attributes
    ----------
    settings : Settings
    database : Database
    broker : Broker
    hub : ConnectionHub
    live_feed : LiveFeed
    subscription_maps : SubscriptionMaps
    rate_limiter : RateLimiter
    """

    def __init__(self, settings: Settings, clock: Callable[[], int] = time.time_ns) -> None:
        self.settings = settings
        self.clock = clock
        self.started = clock()
        self.space = parse_space(settings.space)
        self.database = Database(settings.folder)
        try:
            self._check_space()
            self.broker = Broker(
                self.database, self.space, clock, settings.limits, settings.lateness_s
            )
        except BaseException:
            self.database.close()
            raise
        self.hub = ConnectionHub()
        self.live_feed = LiveFeed()
        self.subscription_maps = SubscriptionMaps(self.database, self.space)
        self.rate_limiter = RateLimiter(settings.limits)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._envelopes: dict[int, EnvelopeFormatter] = {}
        self._tenant_names: dict[int, str] = {}
        self.broker.on_commit(self._on_commit)

    def _check_space(self) -> None:
        with self.database.transaction() as connection:
            api_keys.tenant_number(connection, DEFAULT_TENANT, create=True)
            space = ensure_setting(connection, "space", self.space.value)
            if space != self.space:
                raise StoreError(
                    f"{self.settings.folder} was created for the space {space!r}, not "
                    f"{self.space.value!r}; leave the space out, or name another folder"
                )

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use an event loop for `call_in_loop`."""
        self._loop = loop

    def close(self) -> None:
        """Write everything that is queued, and close the database."""
        self.broker.close()
        self.database.close()

    # Callers

    def authenticate(self, connection: HTTPConnection) -> Caller:
        """Return the caller whose key a request has."""
        secret = _key_of_request(connection)
        if not secret and self.settings.open_access:
            number = self.database.read(api_keys.tenant_number, DEFAULT_TENANT)
            return Caller(number, DEFAULT_TENANT, frozenset(SCOPES), "")
        key = self.database.read(api_keys.find_key, secret, self.clock()) if secret else None
        if key is None:
            problem = (
                "this key is unknown, revoked or expired" if secret else "this request needs a key"
            )
            raise RequestError(
                401,
                f"{problem}; send a valid key as `Authorization: Bearer fp_...`",
                {"www-authenticate": "Bearer"},
            )
        return Caller(key.tenant, key.tenant_name, key.scopes, key.id)

    # State

    def tenant_subscriptions(self, caller: Caller) -> TenantSubscriptions:
        """Return the subscriptions of the caller's tenant."""
        return self.broker.tenant_subscriptions(caller.tenant)

    def subscriber_number(self, caller: Caller, name: str) -> int:
        """Return the number of a subscriber; raise a `RequestError` if there is none."""
        number = self.tenant_subscriptions(caller).subscribers.get(name)
        if number is None:
            raise no_such("subscriber", name)
        return number

    async def change(self, work: Callable[[Transaction], T]) -> T:
        """Apply a change, and wait until it is committed."""
        return await asyncio.wrap_future(self.broker.change(work))

    @staticmethod
    async def wait_for(future: Future[T]) -> T:
        """Wait for a result of the broker."""
        return await asyncio.wrap_future(future)

    def check_connection_limit(self, count: int) -> None:
        """Raise a `RequestError` if this many connections are open and no more are allowed."""
        if count >= self.settings.limits.connections:
            raise RequestError(
                503, "too many connections are open; try again later", {"retry-after": "5"}
            )

    def age_s(self, at: int | None) -> float:
        """Return the seconds since a time; 0 for None."""
        return 0.0 if at is None else max(0.0, (self.clock() - at) / 1e9)

    # Messages

    def envelopes(self, subscriber: int) -> EnvelopeFormatter:
        """Return the formatter of a subscriber's envelopes."""
        formatter = self._envelopes.get(subscriber)
        if formatter is None:
            tenant, name = self.broker.names[subscriber]
            if tenant not in self._tenant_names:
                self._tenant_names = self.database.read(api_keys.tenant_names)
            formatter = EnvelopeFormatter(self._tenant_names[tenant], name)
            self._envelopes[subscriber] = formatter
        return formatter

    def messages_after(self, subscriber: int, position: int, limit: int = _PAGE) -> list[Envelope]:
        """Return a page of messages after a position, from the database."""
        envelopes = self.envelopes(subscriber)
        page = self.database.read(
            event_log.messages_after, subscriber, position, limit, _PAGE_CHARS
        )
        return [
            Envelope(
                row.position,
                envelopes.wrap(row.position, row.at, row.type, row.data, row.event, row.body),
            )
            for row in page
        ]

    def acknowledged(self, subscriber: int) -> int:
        """Return the position up to which a subscriber has read."""
        return self.database.read(event_log.acknowledged, subscriber)

    def _on_commit(self, changes: CommittedChanges) -> None:
        """Pass committed messages to connected subscribers, in the broker's thread."""
        self.subscription_maps.note_changes(changes.subscriptions)
        self.live_feed.push(changes)
        envelopes: dict[int, list[Envelope]] = {}
        for (number, position, at, event, type, data), body in changes.messages:
            if self.hub.is_connected(number):
                text = self.envelopes(number).wrap(position, at, type, data, event, body)
                envelopes.setdefault(number, []).append(Envelope(position, text))
        if envelopes:
            self.call_in_loop(self.hub.push, envelopes)

    def call_in_loop(self, work: Callable[..., None], *arguments: Any) -> None:
        """Call a function in the event loop, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *arguments)


def json_array(envelopes: Iterable[Envelope]) -> str:
    """Return messages as one JSON array."""
    return f"[{','.join(envelope.text for envelope in envelopes)}]"


def _key_of_request(connection: HTTPConnection) -> str:
    """Return the key of a request, from its header or, for WebSockets, from a subprotocol.

    Browsers allow no headers when they open a WebSocket.
    """
    scheme, _, credentials = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    for offered in connection.headers.get("sec-websocket-protocol", "").split(","):
        if offered.strip().startswith(_SUBPROTOCOL):
            return offered.strip().removeprefix(_SUBPROTOCOL)
    return ""


_INTERVAL_S = 0.5
_BATCH = 1_000
_RESULT_RETENTION_S = 86_400
_logger = logging.getLogger("fencepost")


async def sweep(service: Service) -> None:
    """Remove what has expired at regular intervals, until cancelled."""
    while True:
        await asyncio.sleep(_INTERVAL_S)
        try:
            if service.broker.has_unsaved_acknowledgements:
                await service.wait_for(service.broker.save_acknowledged())
            more = True
            while more:
                more = await sweep_once(service)
        except FencepostError as error:
            _logger.warning("removing expired rows failed and is tried again: %s", error)


async def sweep_once(service: Service) -> bool:
    """Remove a batch of what has expired. Return whether there may be more."""
    now = service.clock()
    retained_since = now - round(service.settings.retention_s * 1e9)
    with service.database.reader() as connection:
        expired = subscription_rows.expired_subscriptions(connection, now, _BATCH)
        last_expired_event = event_log.last_event_before(connection, retained_since)
    if any(
        subscriptions.tracked.has_clocks()
        for _, subscriptions in service.broker.all_tenant_subscriptions()
    ):
        await service.change(Transaction.tick)
    if expired:
        await service.change(lambda transaction: _remove(transaction, expired))
    deleted = 0
    if last_expired_event:
        deleted = await service.change(
            lambda transaction: delete_events(transaction, last_expired_event)
        )
    results_since = now - _RESULT_RETENTION_S * 10**9
    if service.broker.counts["commits"] % 64 == 0:
        await service.change(
            lambda transaction: _delete_records(transaction, results_since, retained_since)
        )
    await asyncio.to_thread(service.database.checkpoint)
    return len(expired) == _BATCH or deleted == _BATCH


def _remove(transaction: Transaction, expired: list[tuple[int, str]]) -> None:
    for tenant in {tenant for tenant, _ in expired}:
        transaction.remove(tenant, [id for owner, id in expired if owner == tenant])


def delete_events(transaction: Transaction, up_to: int) -> int:
    """Delete a batch of events up to a position from the log. Return their number."""
    transaction.checkpoint_before(up_to)
    deleted = event_log.remove_events(transaction.connection, up_to, _BATCH)
    transaction.must_recount_unread = True
    return deleted


def _delete_records(transaction: Transaction, results_since: int, dead_letters_since: int) -> None:
    """Delete the results of publications and the dead letters that are older than these times."""
    endpoint_rows.remove_publication_results_before(transaction.connection, results_since)
    endpoint_rows.remove_dead_letters_before(transaction.connection, dead_letters_since)
