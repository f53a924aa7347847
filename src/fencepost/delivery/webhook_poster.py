"""`WebhookPoster` posts bodies to URLs; `WebhookSender` delivers messages to webhook endpoints.

httpcore is used without httpx, so there are no cookies that leak between endpoints, no proxies from
the environment, and no redirects. Host names are resolved here, and connections go to exactly the
addresses that the policy has checked; TLS still verifies the host name.
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
_PHASE_TIMEOUTS_S = {"connect": 5.0, "pool": 5.0}  # the total timeout bounds other phases
_MAX_RESPONSE_BYTES = 8_192
_RETRYABLE_STATUSES = frozenset({408, 425, 429})
_MAX_IDLE_CONNECTIONS, _MAX_IDLE_S = 64, 30.0


class WebhookPoster:
    """Posts bodies over pooled connections.

    Parameters
    ----------
    address_policy : AddressPolicy
        The addresses that may be connected to.
    clock_s : callable, optional
        The present in seconds since 1970, for signatures.
    tls : ssl.SSLContext, optional
        Replaces the context that trusts the system's certificates.
    timeout_s : float
        The longest time for one attempt in total.
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
            max_connections=None,  # the callers limit concurrency
            max_keepalive_connections=_MAX_IDLE_CONNECTIONS,
            keepalive_expiry=_MAX_IDLE_S,
            network_backend=_PolicyBackend(address_policy),
        )

    def parse_url(self, text: object) -> Url:
        """Parse a URL that may be posted to; raise ModelError for any other."""
        return parse_webhook_url(text, allow_any_port=self._address_policy.allow_private)

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
            The content type.
        secret : str, optional
            The secret to sign the body with.
        count : int
            Number of messages in the body. A response with a 2xx status delivers all of them.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                status, response_headers = await self._request(
                    self.parse_url(url), body, type, headers, secret
                )
        except TimeoutError:
            return _failed(f"the endpoint did not answer within {self._timeout_s:g} s")
        except FencepostError as error:
            return _failed(str(error))
        except (httpcore.TimeoutException, httpcore.NetworkError) as error:
            return _failed(f"the endpoint cannot be reached: {_error_text(error)}")
        except (httpcore.ProtocolError, httpcore.ProxyError, ssl.SSLError) as error:
            return _failed(f"the endpoint violates the HTTP or TLS protocol: {_error_text(error)}")
        return self._result(status, response_headers, count)

    async def _request(
        self, url: Url, body: bytes, type: str, headers: Mapping[str, str], secret: str | None
    ) -> tuple[int, dict[bytes, bytes]]:
        request_headers = {
            "host": url.authority,
            "user-agent": "fencepost",
            **headers,
            "content-type": f"{type}; charset=utf-8",
            "content-length": str(len(body)),
        }
        if secret is not None:
            request_headers[webhook_signature.HEADER] = webhook_signature.signature(
                secret, body, int(self._clock_s())
            )
        async with self._pool.stream(
            "POST",
            httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
            headers=[(name.encode(), value.encode()) for name, value in request_headers.items()],
            content=body,
            extensions={"timeout": _PHASE_TIMEOUTS_S},
        ) as response:
            await _read_body(response)
            return response.status, {name.lower(): value for name, value in response.headers}

    def _result(self, status: int, headers: dict[bytes, bytes], count: int) -> DeliveryResult:
        if 200 <= status < 300:
            return DeliveryResult(Outcome.OK, count)
        problem = f"the endpoint answered {status}"
        if 300 <= status < 400:
            return DeliveryResult(
                Outcome.MOVED,
                problem=f"{problem}, and redirects are not followed; set the endpoint to "
                "the new URL",
            )
        if status == 410:
            return DeliveryResult(
                Outcome.GONE, problem=f"{problem} Gone: the endpoint accepts no messages any more"
            )
        if 400 <= status < 500 and status not in _RETRYABLE_STATUSES:
            # The rejected one of several messages is unknown, so the retry posts the first alone.
            return DeliveryResult(
                Outcome.REJECTED if count == 1 else Outcome.FAILED, problem=problem
            )
        header = headers.get(b"retry-after", b"").decode("ascii", "replace")
        return DeliveryResult(
            Outcome.FAILED,
            problem=problem,
            retry_after_s=parse_retry_after(header, self._clock_s()),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()
        self._address_policy.close()


def _failed(problem: str) -> DeliveryResult:
    return DeliveryResult(Outcome.FAILED, problem=problem)


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()


async def _read_body(response: httpcore.Response) -> None:
    """Read a response if it is short; its connection can then be used again."""
    size = 0
    async for chunk in response.aiter_stream():
        size += len(chunk)
        if size > _MAX_RESPONSE_BYTES:
            return


class _PolicyBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that the policy has checked."""

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
        problem: Exception = DeliveryError("the host has no address")
        for address in addresses:
            try:
                return await self._network.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise DeliveryError("webhooks cannot post to Unix sockets")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


MAX_WEBHOOK_BATCH = 1_000
_BATCH_SIZE = 100
_MAX_HEALTHY, _MAX_HEALTHY_OF_TENANT = 96, 32
_MAX_FAILING, _MAX_FAILING_OF_TENANT = 32, 8


class WebhookSender:
    """Posts messages to webhook endpoints, within limits on concurrency."""

    is_ready = True

    def __init__(self, poster: WebhookPoster) -> None:
        self._poster = poster
        self._limits = _ConcurrencyLimits()

    def batch_size(self, endpoint: Endpoint) -> int:
        """Return how many messages are posted before they are acknowledged together."""
        count = _messages_per_request(endpoint)
        return count if count > 1 else _BATCH_SIZE

    async def deliver(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        """Post messages; a response with a 2xx status delivers them."""
        if _messages_per_request(endpoint) > 1:
            return await self._attempt(endpoint, messages)
        return await deliver_one_by_one(
            messages, lambda message: self._attempt(endpoint, [message])
        )

    async def _attempt(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        target = endpoint.target
        texts = [message.text for message in messages]
        if _messages_per_request(endpoint) == 1:
            type, body = CONTENT_TYPE, texts[0].encode()
        else:
            type, body = BATCH_CONTENT_TYPE, f"[{','.join(texts)}]".encode()
        async with self._limits.slot(endpoint.tenant, is_failing=endpoint.failures > 0):
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


def _messages_per_request(endpoint: Endpoint) -> int:
    return int(endpoint.target.get("batch", 1))


class _ConcurrencyLimits:
    """Limits on concurrent requests: apart for healthy and failing endpoints, and per tenant.

    Slow endpoints therefore delay neither healthy ones nor those of another tenant.
    """

    def __init__(self) -> None:
        self._global = {
            False: asyncio.Semaphore(_MAX_HEALTHY),
            True: asyncio.Semaphore(_MAX_FAILING),
        }
        self._tenants: dict[tuple[int, bool], asyncio.Semaphore] = {}

    @asynccontextmanager
    async def slot(self, tenant: int, *, is_failing: bool) -> AsyncIterator[None]:
        limit = _MAX_FAILING_OF_TENANT if is_failing else _MAX_HEALTHY_OF_TENANT
        of_tenant = self._tenants.setdefault((tenant, is_failing), asyncio.Semaphore(limit))
        async with of_tenant, self._global[is_failing]:
            yield
