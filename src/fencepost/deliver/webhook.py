"""Hands messages over to webhooks."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Sequence

from fencepost.deliver.addresses import Gate
from fencepost.deliver.envelope import BATCH_CONTENT_TYPE, CONTENT_TYPE
from fencepost.deliver.poster import TIMEOUT_S, Poster
from fencepost.deliver.posting import Outcome, Waiting, one_by_one
from fencepost.store.endpoints import Endpoint

MOST_AT_ONCE = 1_000
_PAGE = 100
_STEADY, _STEADY_TENANT = 96, 32
_FAILING, _FAILING_TENANT = 32, 8


class Webhooks:
    """Posts messages, so many at once; parameters as of a `Poster`."""

    is_ready = True

    def __init__(
        self,
        gate: Gate,
        clock_s: Callable[[], float] = time.time,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._poster = Poster(gate, clock_s, tls, timeout_s)
        self._lanes = _Lanes()

    def most(self, endpoint: Endpoint) -> int:
        """How many messages are posted before all are acknowledged at once."""
        return _batch(endpoint) if _batch(endpoint) > 1 else _PAGE

    async def carry(self, endpoint: Endpoint, messages: Sequence[Waiting]) -> Outcome:
        """Post messages; they were taken where the answer has a status of 2xx."""
        if _batch(endpoint) > 1:
            return await self._attempt(endpoint, messages)
        return await one_by_one(messages, lambda one: self._attempt(endpoint, [one]))

    async def _attempt(self, endpoint: Endpoint, messages: Sequence[Waiting]) -> Outcome:
        target = endpoint.target
        texts = [one.text for one in messages]
        if _batch(endpoint) == 1:
            type, body = CONTENT_TYPE, texts[0].encode()
        else:
            type, body = BATCH_CONTENT_TYPE, f"[{','.join(texts)}]".encode()
        async with self._lanes.lane(endpoint.tenant, failing=endpoint.failures > 0):
            return await self._poster.post(
                target["url"],
                body,
                type,
                target.get("headers", {}),
                target["secret"],
                len(messages),
            )

    async def close(self) -> None:
        """Close all connections."""
        await self._poster.close()


def _batch(endpoint: Endpoint) -> int:
    return int(endpoint.target.get("batch", 1))


class _Lanes:
    """Who may post now: endpoints that failed have lanes of their own, and a tenant a part only.

    So those that let us wait hold up neither those that answer nor another tenant's.
    """

    def __init__(self) -> None:
        self._all = {False: asyncio.Semaphore(_STEADY), True: asyncio.Semaphore(_FAILING)}
        self._tenants: dict[tuple[int, bool], asyncio.Semaphore] = {}

    def lane(self, tenant: int, *, failing: bool) -> _Both:
        most = _FAILING_TENANT if failing else _STEADY_TENANT
        own = self._tenants.setdefault((tenant, failing), asyncio.Semaphore(most))
        return _Both(own, self._all[failing])


class _Both:
    """Two semaphores, taken one after the other."""

    def __init__(self, first: asyncio.Semaphore, second: asyncio.Semaphore) -> None:
        self._first, self._second = first, second

    async def __aenter__(self) -> None:
        await self._first.acquire()
        try:
            await self._second.acquire()
        except BaseException:
            self._first.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._second.release()
        self._first.release()
