"""Hands messages over to webhooks: posts bodies to URLs, and says what the answers mean.

httpcore is used without httpx: no cookies that one endpoint sets and another gets, no proxies of
the environment, no redirects. Names are resolved here, and connections go to the addresses that
were looked at; TLS still checks the name.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpcore

from fencepost.delivery import webhook_signature
from fencepost.delivery.address_policy import AddressPolicy, Url, parse_webhook_url
from fencepost.delivery.cloud_events import BATCH_CONTENT_TYPE, CONTENT_TYPE
from fencepost.delivery.dispatcher import (
    DeliveryResult,
    Outcome,
    PendingMessage,
    deliver_one_by_one,
)
from fencepost.delivery.retry_schedule import parse_retry_after
from fencepost.errors import DeliveryError, FencepostError
from fencepost.store.endpoint_rows import Endpoint

TIMEOUT_S = 15.0
_PHASES_S = {"connect": 5.0, "pool": 5.0}  # the timeout in all bounds the others
_LONGEST_ANSWER = 8_192
_LATER = frozenset({408, 425, 429})
_KEPT_OPEN, _KEPT_OPEN_S = 64, 30.0


class WebhookPoster:
    """Posts bodies, over connections that are kept open for a while.

    Parameters
    ----------
    address_policy : AddressPolicy
        What may be connected to.
    clock_s : callable, optional
        The present in seconds since 1970, for signatures.
    tls : ssl.SSLContext, optional
        Instead of one that trusts what the system trusts.
    timeout_s : float
        For an attempt in all.
    """

    def __init__(
        self,
        address_policy: AddressPolicy,
        clock_s: Callable[[], float] = time.time,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._address_policy = address_policy
        self._clock_s = clock_s
        self._timeout_s = timeout_s
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls or ssl.create_default_context(),
            max_connections=None,  # who posts bounds them
            max_keepalive_connections=_KEPT_OPEN,
            keepalive_expiry=_KEPT_OPEN_S,
            network_backend=_Pinned(address_policy),
        )

    def parse_url(self, given: object) -> Url:
        """A URL that may be posted to; raises ModelError where it is none."""
        return parse_webhook_url(given, allow_any_port=self._address_policy.allow_private)

    async def post(
        self,
        url: object,
        body: bytes,
        type: str,
        headers: Mapping[str, str],
        secret: str | None,
        count: int = 1,
    ) -> DeliveryResult:
        """Post a body once.

        Parameters
        ----------
        type : str
            Of the content.
        secret : str, optional
            What to sign the body with.
        count : int
            How many messages the body has; all were taken where the answer has a status of 2xx.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                status, told = await self._answer(self.parse_url(url), body, type, headers, secret)
        except TimeoutError:
            return _failed(f"it did not answer within {self._timeout_s:g} s")
        except FencepostError as error:
            return _failed(str(error))
        except (httpcore.TimeoutException, httpcore.NetworkError) as error:
            return _failed(f"it cannot be reached: {_named(error)}")
        except (httpcore.ProtocolError, httpcore.ProxyError, ssl.SSLError) as error:
            return _failed(f"it does not speak HTTP as it should: {_named(error)}")
        return self._judged(status, told, count)

    async def _answer(
        self, url: Url, body: bytes, type: str, headers: Mapping[str, str], secret: str | None
    ) -> tuple[int, dict[bytes, bytes]]:
        sent = {
            "host": url.authority,
            "user-agent": "fencepost",
            **headers,
            "content-type": f"{type}; charset=utf-8",
            "content-length": str(len(body)),
        }
        if secret is not None:
            sent[webhook_signature.HEADER] = webhook_signature.signature(
                secret, body, int(self._clock_s())
            )
        async with self._pool.stream(
            "POST",
            httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
            headers=[(name.encode(), value.encode()) for name, value in sent.items()],
            content=body,
            extensions={"timeout": _PHASES_S},
        ) as answer:
            await _read_a_little(answer)
            return answer.status, {name.lower(): value for name, value in answer.headers}

    def _judged(self, status: int, headers: dict[bytes, bytes], count: int) -> DeliveryResult:
        if 200 <= status < 300:
            return DeliveryResult(Outcome.OK, count)
        problem = f"it answered {status}"
        if 300 <= status < 400:
            return DeliveryResult(
                Outcome.MOVED,
                problem=f"{problem}, and redirects are not followed; give the address where "
                "messages shall go",
            )
        if status == 410:
            return DeliveryResult(
                Outcome.GONE, problem=f"{problem} Gone: nothing is wanted there any more"
            )
        if 400 <= status < 500 and status not in _LATER:
            # Which of several is refused is not known; the first is posted alone next.
            return DeliveryResult(
                Outcome.REFUSED if count == 1 else Outcome.FAILED, problem=problem
            )
        asked = headers.get(b"retry-after", b"").decode("ascii", "replace")
        return DeliveryResult(
            Outcome.FAILED, problem=problem, retry_after_s=parse_retry_after(asked, self._clock_s())
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()
        self._address_policy.close()


def _failed(problem: str) -> DeliveryResult:
    return DeliveryResult(Outcome.FAILED, problem=problem)


def _named(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()


async def _read_a_little(answer: httpcore.Response) -> None:
    """Read an answer that is short, so that the connection can be used again."""
    size = 0
    async for part in answer.aiter_stream():
        size += len(part)
        if size > _LONGEST_ANSWER:
            return


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were looked at, and to nothing else."""

    def __init__(self, address_policy: AddressPolicy) -> None:
        self._address_policy = address_policy
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._address_policy.resolve(host, port)
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


MAX_WEBHOOK_BATCH = 1_000
_PAGE = 100
_STEADY, _STEADY_TENANT = 96, 32
_FAILING, _FAILING_TENANT = 32, 8


class WebhookSender:
    """Posts messages, so many at once."""

    is_ready = True

    def __init__(self, poster: WebhookPoster) -> None:
        self._poster = poster
        self._lanes = _Lanes()

    def batch_size(self, endpoint: Endpoint) -> int:
        """How many messages are posted before all are acknowledged at once."""
        return _batch(endpoint) if _batch(endpoint) > 1 else _PAGE

    async def deliver(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        """Post messages; they were taken where the answer has a status of 2xx."""
        if _batch(endpoint) > 1:
            return await self._attempt(endpoint, messages)
        return await deliver_one_by_one(messages, lambda one: self._attempt(endpoint, [one]))

    async def _attempt(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
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

    @asynccontextmanager
    async def lane(self, tenant: int, *, failing: bool) -> AsyncIterator[None]:
        most = _FAILING_TENANT if failing else _STEADY_TENANT
        own = self._tenants.setdefault((tenant, failing), asyncio.Semaphore(most))
        async with own, self._all[failing]:
            yield
