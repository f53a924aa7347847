"""The standing questions of one tenant, and what events answer of them.

What only looks at one event at a time goes to a `Matcher`. Kinds of subscription that remember
something are asked after it; each is a `Remembering`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.engine.subscriptions import Subscription, compile_subscription
from fencepost.errors import ModelError
from fencepost.events.table import EventTable
from fencepost.events.times import format_instant
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.server.settings import Limits
from fencepost.server.stateful.composite_subscriptions import CompositeSubscriptions
from fencepost.server.stateful.subscription_kind import (
    PendingMessage,
    PreparedSubscription,
    StatefulKind,
    SubscriptionKind,
    accepted,
)
from fencepost.server.stateful.tracked_subscriptions import TrackedSubscriptions
from fencepost.store.database import Connection
from fencepost.store.stateful_state import Change

MATCH = "match"


class ExpressionSubscriptions:
    """Subscriptions that look at one event at a time."""

    def __init__(self, space: str) -> None:
        self.matcher = Matcher(space)
        self._payloads: dict[str, Any] = {}
        self._owners: dict[str, str] = {}

    def prepare(self, definition: Definition) -> Subscription:
        """See `Asking`."""
        ends = None if definition.expires is None else format_instant(definition.expires)
        return compile_subscription(
            self.matcher.view().columns.space,
            definition.id,
            definition.fields["expression"],
            definition.subscriber,
            ends,
        )

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """See `Asking`."""
        self.matcher.add([one.compile_subscription for one in prepared], replace=True)
        for definition, _ in prepared:
            self._owners[definition.id] = definition.subscriber
            self._payloads.pop(definition.id, None)
            if "payload" in definition.fields:
                self._payloads[definition.id] = definition.fields["payload"]

    def remove(self, id: str) -> None:
        """See `Asking`."""
        self.matcher.unsubscribe(id)
        self._owners.pop(id, None)
        self._payloads.pop(id, None)

    def answer(self, events: EventTable, bad: DeadLetters) -> list[PendingMessage]:
        """See `Asking`."""
        table = self.matcher.match_batch(events, dead_letters=bad, sort=True)
        if not table.num_rows:
            return []
        rows = table.column("event").to_pylist()
        codes = table.column("subscription").combine_chunks()
        names = codes.dictionary.to_pylist()
        owners = [self._owners[name] for name in names]
        told: dict[tuple[int, str], list[str]] = {}
        for row, code in zip(rows, codes.indices.to_pylist(), strict=True):
            told.setdefault((row, owners[code]), []).append(names[code])
        return [
            PendingMessage(row, subscriber, MATCH, self._data(ids))
            for (row, subscriber), ids in told.items()
        ]

    def _data(self, ids: list[str]) -> str:
        found: dict[str, Any] = {"subscriptions": ids}
        if self._payloads:
            own = {id: self._payloads[id] for id in ids if id in self._payloads}
            if own:
                found["payloads"] = own
        return msgspec.json.encode(found).decode()


class SubscriptionListener(Protocol):
    """Who is told which subscriptions came, changed or went."""

    def want(self, id: str, kind: str) -> None:
        """One was added or replaced."""

    def want_no_more(self, id: str) -> None:
        """One went."""


class TenantSubscriptions:
    """All subscriptions of a tenant, whatever their kind.

    Attributes
    ----------
    expressions : Expressions
    tracked : Tracked
    composites : Composites
    subscribers : dict of str to int
        The numbers of those who were heard of.
    """

    def __init__(
        self,
        space: str,
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
        self._kinds_by_name: dict[str, SubscriptionKind] = {
            "expression": self.expressions,
            "track": self.tracked,
            "composite": self.composites,
        }
        self._kinds: dict[str, str] = {}
        self._follower: SubscriptionListener | None = None

    def __len__(self) -> int:
        return len(self._kinds)

    def __contains__(self, id: str) -> bool:
        return id in self._kinds

    def kind(self, id: str) -> str:
        """Who answers a subscription."""
        return self._kinds[id]

    def prepare(self, definition: Definition) -> PreparedSubscription:
        """Check and compile a definition, in any thread.

        Raises
        ------
        FencepostError
            Where it cannot be asked.
        """
        asking = self._kinds_by_name.get(definition.kind)
        if asking is None:
            raise ModelError(f"this server answers no `{definition.kind}`")
        return PreparedSubscription(definition, asking.prepare(definition))

    def kinds(self) -> list[tuple[str, str]]:
        """The ids, and who answers each."""
        return [*self._kinds.items()]

    def followed_by(self, follower: SubscriptionListener) -> None:
        """Have somebody told of what is no plain expression, with the matcher's lock held."""
        self._follower = follower

    def put(self, prepared: Iterable[PreparedSubscription]) -> None:
        """Add or replace."""
        by_kind: dict[str, list[PreparedSubscription]] = {}
        with self.expressions.matcher.view().lock:
            for one in prepared:
                id, kind = one.definition.id, one.definition.kind
                before = self._kinds.get(id)
                if before is not None and before != kind:
                    self.remove(id)
                self._kinds[id] = kind
                by_kind.setdefault(kind, []).append(one)
            for kind, those in by_kind.items():
                self._kinds_by_name[kind].put(those)
                if self._follower is not None and kind != "expression":
                    for one in those:
                        self._follower.want(one.definition.id, kind)

    def remove(self, id: str) -> bool:
        """Remove a subscription; whether there was one."""
        with self.expressions.matcher.view().lock:
            kind = self._kinds.pop(id, None)
            if kind is not None:
                self._kinds_by_name[kind].remove(id)
                if self._follower is not None:
                    self._follower.want_no_more(id)
        return kind is not None

    def answer(self, events: EventTable, bad: DeadLetters, first: int = 1) -> list[PendingMessage]:
        """What subscribers are to be told of events, in the order of the events.

        Parameters
        ----------
        events : EventTable
            Numbered from 0.
        bad : list
            Collects (row, reason) of events that are not taken.
        first : int
            The position that the first of the others has in the log.
        """
        found = self.expressions.answer(events, bad)
        remembering = [one for one in self._stateful_kinds if len(one)]
        if remembering:
            taken = accepted(events, bad, first)
            for asking in remembering:
                found += asking.answer(taken)
            found.sort(key=lambda one: one.row)
        return found

    def after_changes(self) -> list[PendingMessage]:
        """What subscribers are to be told after subscriptions were added or removed."""
        return [found for one in self._stateful_kinds for found in one.after_changes()]

    # What is remembered

    def changes(self, position: int) -> list[Change]:
        """What is to be written: all events up to a position were answered."""
        return [change for one in self._stateful_kinds for change in one.changes(position)]

    def restore(self, connection: Connection, tenant: int) -> None:
        """Know what was written, and what follows from the log since."""
        for one in self._stateful_kinds:
            one.restore(connection, tenant)

    def needs_all(self, values: Mapping[str, object]) -> bool:
        """Whether events like this must be sent wherever their object is."""
        return any(one.needs_all(values) for one in self._stateful_kinds)
