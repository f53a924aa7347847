"""What a transport is: what a subscriber sets, what is told of it, and a carrier of messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from fencepost.delivery.dispatcher import MessageSender
from fencepost.events.times import format_instant
from fencepost.server.http.schemas import Endpoint, Json
from fencepost.server.service import Service
from fencepost.store.endpoint_rows import Endpoint as StoredEndpoint

Set = TypeVar("Set", bound=Json)


class Transport(ABC, Generic[Set]):
    """A way to hand messages over, from `start` to `stop`.

    Attributes
    ----------
    Settings : Struct type
        What a request says to set an endpoint; its tag is the kind of the endpoint.
    Shown : Struct type
        What is told of an endpoint. Members that an `Endpoint` does not have come from `shown`.
    """

    Settings: ClassVar[type[Json]]
    EndpointView: ClassVar[type[Endpoint]]

    def __init__(self, service: Service) -> None:
        """Of a service that is not started yet."""

    @classmethod
    def kind(cls) -> str:
        """The kind of its endpoints."""
        return str(cls.Settings.__struct_config__.tag)

    @abstractmethod
    async def target(self, given: Set, tenant: str, subscriber: str) -> dict[str, Any]:
        """What is stored for an endpoint; what was given is checked as far as it can be.

        Raises
        ------
        Refusal, FencepostError
            If messages cannot be handed over to what was given.
        """

    @abstractmethod
    def shown(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """Of what is stored, all that a subscriber may see again."""

    def told_once(self, given: Set, target: Mapping[str, Any]) -> dict[str, Any]:
        """What is told of a new endpoint, and never again."""
        return {}

    @abstractmethod
    async def start(self, wake_all: Callable[[], None]) -> MessageSender | None:
        """What hands messages over; None where the server is not set up for it.

        Whatever makes the carrier ready again calls `wake_all`.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Close what is open."""

    def counts(self) -> Mapping[str, int]:
        """What was counted since the start."""
        return {}

    def endpoint(self, stored: StoredEndpoint, **more: Any) -> Endpoint:
        """What is told of an endpoint."""
        waits = stored.failures and not stored.disabled
        return self.EndpointView(
            **self.shown(stored.target),
            **more,
            failures=stored.failures,
            retry_at=format_instant(stored.retry_at_ns) if waits else None,
            problem=stored.problem,
            disabled=bool(stored.disabled),
        )
