"""`TenantSubscriptions`: all subscriptions of one tenant, and the messages that events cause.

A `Matcher` holds subscriptions to single events. Kinds of subscription that keep state run after
it; each is a `StatefulKind`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.engine.subscriptions import Subscription, compile_subscription
from fencepost.errors import ModelError
from fencepost.events.table import EventTable
from fencepost.events.times import format_instant
from fencepost.geometry.space import SpaceName
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.server.settings import Limits
from fencepost.server.stateful.composite_subscriptions import CompositeSubscriptions
from fencepost.server.stateful.subscription_kind import (
    PreparedSubscription,
    StatefulKind,
    SubscriptionKind,
    SubscriptionMessage,
    accepted_events,
)
from fencepost.server.stateful.tracked_subscriptions import TrackedSubscriptions
from fencepost.store.database import Connection
from fencepost.store.stateful_state import Change

MATCH = "match"
_logger = logging.getLogger("fencepost")


class ExpressionSubscriptions:
    """Subscriptions to single events, in a `Matcher`."""

    def __init__(self, space: SpaceName) -> None:
        self.matcher = Matcher(space)
        self.matcher.send_warnings_to(_logger.warning)
        self._payloads: dict[str, Any] = {}
        self._owners: dict[str, str] = {}

    def prepare(self, definition: Definition) -> Subscription:
        """See `SubscriptionKind`."""
        expires = None if definition.expires is None else format_instant(definition.expires)
        return compile_subscription(
            self.matcher.view().columns.space,
            definition.id,
            definition.fields["expression"],
            definition.subscriber,
            expires,
        )

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """See `SubscriptionKind`."""
        self.matcher.add([each.compiled for each in prepared], replace=True)
        for definition, _ in prepared:
            self._owners[definition.id] = definition.subscriber
            self._payloads.pop(definition.id, None)
            if "payload" in definition.fields:
                self._payloads[definition.id] = definition.fields["payload"]

    def remove(self, id: str) -> None:
        """See `SubscriptionKind`."""
        self.matcher.unsubscribe(id)
        self._owners.pop(id, None)
        self._payloads.pop(id, None)

    def match(self, events: EventTable, dead_letters: DeadLetters) -> list[SubscriptionMessage]:
        """Match events. Return one message for each event and matching subscriber."""
        matches = self.matcher.match_batch(events, dead_letters=dead_letters, sort=True)
        if not matches.num_rows:
            return []
        rows = matches.column("event").to_pylist()
        codes = matches.column("subscription").combine_chunks()
        ids = codes.dictionary.to_pylist()
        owners = [self._owners[id] for id in ids]
        ids_by_message: dict[tuple[int, str], list[str]] = {}
        for row, code in zip(rows, codes.indices.to_pylist(), strict=True):
            ids_by_message.setdefault((row, owners[code]), []).append(ids[code])
        return [
            SubscriptionMessage(row, subscriber, MATCH, self._data(matched_ids))
            for (row, subscriber), matched_ids in ids_by_message.items()
        ]

    def attributes_not_found(self) -> list[str]:
        """Return the attributes that subscriptions name, and that none of many events had."""
        return self.matcher.attributes_not_found()

    def _data(self, ids: list[str]) -> str:
        data: dict[str, Any] = {"subscriptions": ids}
        if self._payloads:
            payloads = {id: self._payloads[id] for id in ids if id in self._payloads}
            if payloads:
                data["payloads"] = payloads
        return msgspec.json.encode(data).decode()


class SubscriptionListener(Protocol):
    """Receiver of changes of subscriptions."""

    def subscription_put(self, id: str, kind: str) -> None:
        """Note that a subscription was added or replaced."""

    def subscription_removed(self, id: str) -> None:
        """Note that a subscription was removed."""


class TenantSubscriptions:
    """All subscriptions of a tenant, of every kind.

    Attributes
    ----------
    expressions : ExpressionSubscriptions
    tracked : TrackedSubscriptions
    composites : CompositeSubscriptions
    subscribers : dict of str to int
        Numbers of the known subscribers.
    """

    def __init__(
        self,
        space: SpaceName,
        limits: Limits | None = None,
        lateness_s: float = 60.0,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        limits = limits or Limits()
        self.space = space
        self.expressions = ExpressionSubscriptions(space)
        self.tracked = TrackedSubscriptions(space, limits)
        self.subscribers: dict[str, int] = {}
        self.composites = CompositeSubscriptions(space, limits, lateness_s, clock)
        self._stateful_kinds: tuple[StatefulKind, ...] = (self.tracked, self.composites)
        self._kinds: dict[str, SubscriptionKind] = {
            "expression": self.expressions,
            "track": self.tracked,
            "composite": self.composites,
        }
        self._kind_names: dict[str, str] = {}  # by id of subscription
        self._listener: SubscriptionListener | None = None

    def __len__(self) -> int:
        return len(self._kind_names)

    def __contains__(self, id: str) -> bool:
        return id in self._kind_names

    def kind_name(self, id: str) -> str:
        """Return the kind of a subscription: "expression", "track" or "composite"."""
        return self._kind_names[id]

    def prepare(self, definition: Definition) -> PreparedSubscription:
        """Check and compile a definition, in any thread.

        Raises
        ------
        FencepostError
            If the definition is invalid.
        """
        kind = self._kinds.get(definition.kind)
        if kind is None:
            raise ModelError(f"this server has no subscriptions of the kind `{definition.kind}`")
        return PreparedSubscription(definition, kind.prepare(definition))

    def kind_names(self) -> list[tuple[str, str]]:
        """Return the id and the kind of each subscription."""
        return [*self._kind_names.items()]

    def set_listener(self, listener: SubscriptionListener) -> None:
        """Report changes of tracked and composite subscriptions, with the matcher's lock held."""
        self._listener = listener

    def put(self, prepared: Iterable[PreparedSubscription]) -> None:
        """Add or replace subscriptions."""
        by_kind: dict[str, list[PreparedSubscription]] = {}
        with self.expressions.matcher.view().lock:
            for each in prepared:
                id, kind = each.definition.id, each.definition.kind
                previous_kind = self._kind_names.get(id)
                if previous_kind is not None and previous_kind != kind:
                    self.remove(id)
                self._kind_names[id] = kind
                by_kind.setdefault(kind, []).append(each)
            for kind, prepared_of_kind in by_kind.items():
                self._kinds[kind].put(prepared_of_kind)
                if self._listener is not None and kind != "expression":
                    for each in prepared_of_kind:
                        self._listener.subscription_put(each.definition.id, kind)

    def remove(self, id: str) -> bool:
        """Remove a subscription. Return whether it existed."""
        with self.expressions.matcher.view().lock:
            kind = self._kind_names.pop(id, None)
            if kind is not None:
                self._kinds[kind].remove(id)
                if self._listener is not None:
                    self._listener.subscription_removed(id)
        return kind is not None

    def process(
        self, events: EventTable, dead_letters: DeadLetters, first: int = 1
    ) -> list[SubscriptionMessage]:
        """Match events and advance the state. Return the messages, ordered by event.

        Parameters
        ----------
        events : EventTable
            Events, numbered from 0.
        dead_letters : list
            Collects (row, reason) of rejected events.
        first : int
            Position in the log of the first accepted event.
        """
        messages = self.expressions.match(events, dead_letters)
        stateful_kinds = [kind for kind in self._stateful_kinds if len(kind)]
        if stateful_kinds:
            accepted = accepted_events(events, dead_letters, first)
            for kind in stateful_kinds:
                messages += kind.process(accepted)
            messages.sort(key=lambda message: message.row)
        return messages

    def after_changes(self) -> list[SubscriptionMessage]:
        """Return the messages that changes of subscriptions caused."""
        return [message for kind in self._stateful_kinds for message in kind.after_changes()]

    # State

    def changes(self, position: int) -> list[Change]:
        """Return the state to write, once all events up to a position are processed."""
        return [change for kind in self._stateful_kinds for change in kind.changes(position)]

    def restore(self, connection: Connection, tenant: int) -> None:
        """Restore the state that was written, then replay the log."""
        for kind in self._stateful_kinds:
            kind.restore(connection, tenant)

    def must_publish(self, values: Mapping[str, object]) -> bool:
        """Return whether events with these attributes must be published, wherever they are."""
        return any(kind.must_publish(values) for kind in self._stateful_kinds)
