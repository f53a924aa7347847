"""`WebhookTransport`: posts messages to URLs of subscribers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fencepost.delivery.address_policy import AddressPolicy, parse_webhook_url
from fencepost.delivery.webhook_poster import MAX_WEBHOOK_BATCH, WebhookPoster, WebhookSender
from fencepost.errors import DeliveryError
from fencepost.server.delivery.transports.transport import Transport
from fencepost.server.http.problems import RequestError
from fencepost.server.http.schemas import Count, Endpoint, Json, description
from fencepost.server.service import Service

_RESERVED_HEADERS = frozenset(
    {
        *("host", "content-type", "content-length", "content-encoding", "transfer-encoding"),
        *("connection", "keep-alive", "te", "trailer", "upgrade", "expect"),
    }
)
_RESERVED_PREFIXES = ("fencepost-", "proxy-")
_LOOKUP_TIMEOUT_S = 5.0


class Webhook(Json, tag_field="kind", tag="webhook"):
    """Delivery of messages to a URL."""

    url: Annotated[str, Meta(max_length=2_000)]
    secret: (
        Annotated[
            str,
            Meta(
                min_length=16,
                max_length=200,
                pattern=r"^[!-~]*$(?!\n)",
                description="Secret that signs requests, without spaces; created if left out.",
            ),
        ]
        | UnsetType
    ) = UNSET
    headers: Annotated[
        dict[
            Annotated[str, Meta(max_length=100, pattern=r"^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$(?!\n)")],
            Annotated[str, Meta(max_length=1_000, pattern=r"^[ -~]*$(?!\n)")],
        ],
        Meta(
            max_length=20, description="Additional headers of every request: at most 20, in ASCII."
        ),
    ] = msgspec.field(default_factory=dict)
    batch: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_WEBHOOK_BATCH,
            description="1 for one message per request; otherwise the maximum length of a list.",
        ),
    ] = 1


class WebhookEndpoint(Endpoint, tag_field="kind", tag="webhook", kw_only=True):
    """A webhook."""

    url: str
    headers: Annotated[list[str], description("The names of additional headers.")]
    batch: Count
    secret: Annotated[
        str | UnsetType,
        description("Secret that signs requests; shown once, if the server created it."),
    ] = UNSET


class WebhookTransport(Transport[Webhook]):
    """Posts messages to webhooks."""

    Settings = Webhook
    EndpointView = WebhookEndpoint

    def __init__(self, service: Service) -> None:
        self._address_policy = AddressPolicy(allow_private=service.settings.allow_private_webhooks)
        self._sender = WebhookSender(WebhookPoster(self._address_policy))

    async def start(self, wake_all: Callable[[], None]) -> WebhookSender:
        """Return the sender."""
        return self._sender

    async def stop(self) -> None:
        """Close all connections."""
        await self._sender.close()

    async def target(self, settings: Webhook, tenant: str, subscriber: str) -> dict[str, Any]:
        """Check the URL against the address policy; create a secret if there is none."""
        url = parse_webhook_url(settings.url, allow_any_port=self._address_policy.allow_private)
        try:
            async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
                await self._address_policy.resolve(url.host, url.port)
        except TimeoutError:
            pass  # as for an unknown name: each connection resolves it again
        except DeliveryError as error:
            if not isinstance(error.__cause__, OSError):
                raise RequestError(422, str(error)) from None
        return {
            "url": str(url),
            "secret": f"fps_{secrets.token_urlsafe(32)}"
            if settings.secret is UNSET
            else settings.secret,
            "headers": _check_headers(settings.headers),
            "batch": settings.batch,
        }

    def public_target(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """Return the target without its secret and without the values of headers."""
        names = sorted(target["headers"])
        return {"url": target["url"], "headers": names, "batch": target["batch"]}

    def show_once(self, settings: Webhook, target: Mapping[str, Any]) -> dict[str, Any]:
        """Return the secret if the server created it."""
        return {"secret": target["secret"]} if settings.secret is UNSET else {}


def _check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    lowercase = {name.lower(): value.strip() for name, value in headers.items()}
    for name in lowercase:
        if name in _RESERVED_HEADERS or name.startswith(_RESERVED_PREFIXES):
            raise RequestError(422, f"`headers`: the server sets {name} itself; leave it out")
    return lowercase
