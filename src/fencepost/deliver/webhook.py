"""Posts messages to webhooks.

httpcore is used without httpx: no cookies that one endpoint sets and another gets, no proxies of
the environment, no redirects. Names are resolved here, and connections go to the addresses that
were looked at; TLS still checks the name.
"""

from __future__ import annotations

import asyncio
import email.utils
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore

from fencepost.deliver import signing
from fencepost.deliver.addresses import Gate
from fencepost.deliver.envelope import BATCH_CONTENT_TYPE, CONTENT_TYPE
from fencepost.deliver.posting import Outcome, Waiting, Went, one_by_one
from fencepost.deliver.urls import Url, url_of
from fencepost.errors import DeliveryError, FencepostError
from fencepost.store.endpoints import Endpoint

TIMEOUT_S = 15.0
MOST_AT_ONCE = 1_000
_PAGE = 100
_PHASES_S = {"connect": 5.0, "write": 10.0, "read": 10.0, "pool": 5.0}
_LONGEST_ANSWER = 8_192
_LATER = frozenset({408, 425, 429})
_STEADY, _STEADY_TENANT = 96, 32
_FAILING, _FAILING_TENANT = 32, 8
_KEPT_OPEN, _KEPT_OPEN_S = 64, 30.0


class Webhooks:
    """Posts messages, so many at once.

    Parameters
    ----------
    gate : Gate
        What may be connected to.
    clock_s : callable, optional
        The present in seconds since 1970, for signatures.
    tls : ssl.SSLContext, optional
        Instead of one that trusts what the system trusts.
    timeout_s : float
        For an attempt in all.
    """

    is_ready = True

    def __init__(
        self,
        gate: Gate,
        clock_s: Callable[[], float] = time.time,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._gate = gate
        self._clock_s = clock_s
        self._timeout_s = timeout_s
        self._lanes = _Lanes()
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls or ssl.create_default_context(),
            max_connections=None,  # lanes bound them
            max_keepalive_connections=_KEPT_OPEN,
            keepalive_expiry=_KEPT_OPEN_S,
            network_backend=_Pinned(gate),
        )

    def most(self, endpoint: Endpoint) -> int:
        """How many messages are posted before all are acknowledged at once."""
        return _batch(endpoint) if _batch(endpoint) > 1 else _PAGE

    async def carry(self, endpoint: Endpoint, messages: Sequence[Waiting]) -> Outcome:
        """Post messages; they were taken where the answer has a status of 2xx."""
        if _batch(endpoint) > 1:
            return await self._attempt(endpoint, messages)
        return await one_by_one(messages, lambda one: self._attempt(endpoint, [one]))

    async def _attempt(self, endpoint: Endpoint, messages: Sequence[Waiting]) -> Outcome:
        async with self._lanes.lane(endpoint.tenant, failing=endpoint.failures > 0):
            try:
                async with asyncio.timeout(self._timeout_s):
                    status, headers = await self._post(endpoint, messages)
            except TimeoutError:
                return _failed(f"it did not answer within {self._timeout_s:g} s")
            except FencepostError as error:
                return _failed(str(error))
            except (httpcore.TimeoutException, httpcore.NetworkError) as error:
                return _failed(f"it cannot be reached: {_named(error)}")
            except (httpcore.ProtocolError, httpcore.ProxyError, ssl.SSLError) as error:
                return _failed(f"it does not speak HTTP as it should: {_named(error)}")
        return self._judged(status, headers, len(messages))

    async def _post(
        self, endpoint: Endpoint, messages: Sequence[Waiting]
    ) -> tuple[int, dict[bytes, bytes]]:
        target = endpoint.target
        url = url_of(target["url"], any_port=self._gate.allow_private)
        texts = [one.text for one in messages]
        if _batch(endpoint) == 1:
            type, body = CONTENT_TYPE, texts[0].encode()
        else:
            type, body = BATCH_CONTENT_TYPE, f"[{','.join(texts)}]".encode()
        async with self._pool.stream(
            "POST",
            _as_httpcore(url),
            headers=self._headers(endpoint, url, body, type),
            content=body,
            extensions={"timeout": _PHASES_S},
        ) as answer:
            await _read_a_little(answer)
            return answer.status, {name.lower(): value for name, value in answer.headers}

    def _headers(
        self, endpoint: Endpoint, url: Url, body: bytes, type: str
    ) -> list[tuple[bytes, bytes]]:
        target = endpoint.target
        signed = signing.signature(target["secret"], body, int(self._clock_s()))
        found = {
            "host": url.authority,
            "user-agent": "fencepost",
            **target.get("headers", {}),
            "content-type": f"{type}; charset=utf-8",
            "content-length": str(len(body)),
            signing.HEADER: signed,
        }
        return [(name.encode(), value.encode()) for name, value in found.items()]

    def _judged(self, status: int, headers: dict[bytes, bytes], count: int) -> Outcome:
        if 200 <= status < 300:
            return Outcome(Went.WELL, count)
        if 300 <= status < 400:
            return _failed(
                f"it answered {status}, and redirects are not followed; set the endpoint to where "
                "messages shall go"
            )
        problem = f"it answered {status}"
        if status == 410:
            return Outcome(Went.GONE, problem=f"{problem} Gone; set the endpoint anew to go on")
        if 400 <= status < 500 and status not in _LATER:
            # Which of several is refused is not known; the first is posted alone next.
            return Outcome(Went.REFUSED if count == 1 else Went.FAILED, problem=problem)
        wait_s = retry_after_s(headers.get(b"retry-after", b""), self._clock_s())
        return Outcome(Went.FAILED, problem=problem, wait_s=wait_s)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()
        self._gate.close()


def _batch(endpoint: Endpoint) -> int:
    return int(endpoint.target.get("batch", 1))


def retry_after_s(given: bytes, now_s: float) -> float:
    """How long the header `Retry-After` asks to wait: seconds, or a date; else 0."""
    text = given.decode("ascii", "replace").strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError):
        return 0.0


def _failed(problem: str) -> Outcome:
    return Outcome(Went.FAILED, problem=problem)


def _named(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()


def _as_httpcore(url: Url) -> httpcore.URL:
    return httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)


async def _read_a_little(answer: httpcore.Response) -> None:
    """Read an answer that is short, so that the connection can be used again."""
    size = 0
    async for part in answer.aiter_stream():
        size += len(part)
        if size > _LONGEST_ANSWER:
            return


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


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were looked at, and to nothing else."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._gate.addresses(host, port)
        problem: Exception = DeliveryError("unreachable")
        for address in addresses:
            try:
                return await self._network.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise DeliveryError("webhooks go to no sockets of this machine")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
