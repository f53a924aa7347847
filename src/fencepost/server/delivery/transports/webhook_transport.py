"""Messages posted to an address of the subscriber's."""

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

_OURS = frozenset(
    {
        *("host", "content-type", "content-length", "content-encoding", "transfer-encoding"),
        *("connection", "keep-alive", "te", "trailer", "upgrade", "expect"),
    }
)
_OURS_TOO = ("fencepost-", "proxy-")
_LOOKUP_S = 5.0


class Webhook(Json, tag_field="kind", tag="webhook"):
    """Messages are posted to an address."""

    url: Annotated[str, Meta(max_length=2_000)]
    secret: (
        Annotated[
            str,
            Meta(
                min_length=16,
                max_length=200,
                pattern=r"^[!-~]*$(?!\n)",
                description="What signs requests, without spaces; made and told once if left out.",
            ),
        ]
        | UnsetType
    ) = UNSET
    headers: Annotated[
        dict[
            Annotated[str, Meta(max_length=100, pattern=r"^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$(?!\n)")],
            Annotated[str, Meta(max_length=1_000, pattern=r"^[ -~]*$(?!\n)")],
        ],
        Meta(max_length=20, description="At most 20, in ASCII, sent with every request."),
    ] = msgspec.field(default_factory=dict)
    batch: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_WEBHOOK_BATCH,
            description="1: a request holds one message. More: a list of so many.",
        ),
    ] = 1


class WebhookEndpoint(Endpoint, tag_field="kind", tag="webhook", kw_only=True):
    """The webhook."""

    url: str
    headers: Annotated[list[str], description("The names of further headers.")]
    batch: Count
    secret: Annotated[
        str | UnsetType, description("What signs requests; told once, if the server made it.")
    ] = UNSET


class WebhookTransport(Transport[Webhook]):
    """Posts messages."""

    Settings = Webhook
    EndpointView = WebhookEndpoint

    def __init__(self, service: Service) -> None:
        self._address_policy = AddressPolicy(allow_private=service.settings.allow_private_webhooks)
        self._webhooks = WebhookSender(WebhookPoster(self._address_policy))

    async def start(self, wake_all: Callable[[], None]) -> WebhookSender:
        """What posts."""
        return self._webhooks

    async def stop(self) -> None:
        """Close all connections."""
        await self._webhooks.close()

    async def target(self, given: Webhook, tenant: str, subscriber: str) -> dict[str, Any]:
        """Check the address, and that it is no private one; make a secret if none is given."""
        url = parse_webhook_url(given.url, allow_any_port=self._address_policy.allow_private)
        try:
            async with asyncio.timeout(_LOOKUP_S):
                await self._address_policy.resolve(url.host, url.port)
        except TimeoutError:
            pass  # as with a name that is not known yet: each connection looks again
        except DeliveryError as error:
            if not isinstance(error.__cause__, OSError):
                raise RequestError(422, str(error)) from None
        return {
            "url": str(url),
            "secret": f"fps_{secrets.token_urlsafe(32)}" if given.secret is UNSET else given.secret,
            "headers": _checked(given.headers),
            "batch": given.batch,
        }

    def shown(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """All but the secret, and what further headers hold."""
        names = sorted(target["headers"])
        return {"url": target["url"], "headers": names, "batch": target["batch"]}

    def told_once(self, given: Webhook, target: Mapping[str, Any]) -> dict[str, Any]:
        """The secret that was made."""
        return {"secret": target["secret"]} if given.secret is UNSET else {}


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    found = {name.lower(): value.strip() for name, value in headers.items()}
    for name in found:
        if name in _OURS or name.startswith(_OURS_TOO):
            raise RequestError(422, f"`headers`: {name} is not yours to set; leave it out")
    return found
