"""`Transport`: the interface of transports: settings, views of endpoints, and a sender."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from fencepost.delivery.dispatcher import MessageSender
from fencepost.events.times import format_instant
from fencepost.server.http.schemas import Endpoint, Json
from fencepost.server.service import Service
from fencepost.store.endpoint_rows import Endpoint as StoredEndpoint

S = TypeVar("S", bound=Json)


class Transport(ABC, Generic[S]):
    """A transport of messages, from `start` to `stop`.

    Attributes
    ----------
    Settings : Struct type
        Body of a request that sets an endpoint; its tag is the kind of the endpoint.
    EndpointView : Struct type
        An endpoint as JSON shows it. `public_target` returns the members that `Endpoint` lacks.
    """

    Settings: ClassVar[type[Json]]
    EndpointView: ClassVar[type[Endpoint]]

    def __init__(self, service: Service) -> None:
        """Prepare for a service that is not started yet."""

    @classmethod
    def kind(cls) -> str:
        """Return the kind of its endpoints."""
        return str(cls.Settings.__struct_config__.tag)

    @abstractmethod
    async def target(self, settings: S, tenant: str, subscriber: str) -> dict[str, Any]:
        """Check the settings of an endpoint. Return its target, as it is stored.

        Raises
        ------
        RequestError, FencepostError
            If messages cannot be delivered with these settings.
        """

    @abstractmethod
    def public_target(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a target that a subscriber may read."""

    def show_once(self, settings: S, target: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members that only the response to setting the endpoint shows."""
        return {}

    @abstractmethod
    async def start(self, wake_all: Callable[[], None]) -> MessageSender | None:
        """Return the sender of messages; None if the server is not configured for this transport.

        The sender calls `wake_all` when it is ready again after a failure.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Close all connections."""

    def counts(self) -> Mapping[str, int]:
        """Return counts since the start."""
        return {}

    def view(self, stored: StoredEndpoint, **members: Any) -> Endpoint:
        """Return an endpoint as JSON shows it."""
        has_retry = stored.failures and not stored.disabled
        return self.EndpointView(
            **self.public_target(stored.target),
            **members,
            failures=stored.failures,
            retry_at=format_instant(stored.retry_at_ns) if has_retry else None,
            problem=stored.problem,
            disabled=bool(stored.disabled),
        )
