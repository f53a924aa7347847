"""The standing questions of one tenant, and what events answer of them.

What only looks at one event at a time goes to a `Matcher`. Kinds of subscription that remember
something are asked after it; each is an `Asking`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from fencepost.errors import ModelError
from fencepost.match.catalogue import Subscription
from fencepost.match.matcher import DeadLetters, Matcher
from fencepost.model.times import format_instant
from fencepost.server.definitions import Definition

MATCH = "match"


class Found(NamedTuple):
    """What a subscriber is to be told.

    Attributes
    ----------
    row : int
        The event, counted within those that were matched.
    subscriber : str
    type : str
    data : str
        JSON.
    """

    row: int
    subscriber: str
    type: str
    data: str


class Prepared(NamedTuple):
    """A definition, and what it was compiled to."""

    definition: Definition
    compiled: Any


class Asking(Protocol):
    """Subscriptions of one kind."""

    def prepare(self, definition: Definition) -> Any:
        """Check and compile, in any thread; nothing is changed."""

    def put(self, prepared: Sequence[Prepared]) -> None:
        """Add or replace."""

    def remove(self, id: str) -> None:
        """Remove one that is there."""

    def answer(self, events: Sequence[dict[str, Any]], bad: DeadLetters) -> list[Found]:
        """What subscribers are to be told of events, by row; (row, reason) of those not usable."""


class Expressions:
    """Subscriptions that look at one event at a time."""

    def __init__(self, space: str) -> None:
        self.matcher = Matcher(space)
        self._payloads: dict[str, Any] = {}
        self._owners: dict[str, str] = {}

    def prepare(self, definition: Definition) -> Subscription:
        """See `Asking`."""
        ends = None if definition.expires is None else format_instant(definition.expires)
        return self.matcher.compiled(
            definition.id, definition.asked["expression"], definition.subscriber, ends
        )

    def put(self, prepared: Sequence[Prepared]) -> None:
        """See `Asking`."""
        self.matcher.add([one.compiled for one in prepared], replace=True)
        for definition, _ in prepared:
            self._owners[definition.id] = definition.subscriber
            self._payloads.pop(definition.id, None)
            if "payload" in definition.asked:
                self._payloads[definition.id] = definition.asked["payload"]

    def remove(self, id: str) -> None:
        """See `Asking`."""
        self.matcher.unsubscribe(id)
        self._owners.pop(id, None)
        self._payloads.pop(id, None)

    def answer(self, events: Sequence[dict[str, Any]], bad: DeadLetters) -> list[Found]:
        """See `Asking`."""
        table = self.matcher.match_batch(events, dead_letters=bad)
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
            Found(row, subscriber, MATCH, self._data(ids))
            for (row, subscriber), ids in told.items()
        ]

    def _data(self, ids: list[str]) -> str:
        found: dict[str, Any] = {"subscriptions": ids}
        if self._payloads:
            own = {id: self._payloads[id] for id in ids if id in self._payloads}
            if own:
                found["payloads"] = own
        return json.dumps(found, ensure_ascii=False)


class Questions:
    """All subscriptions of a tenant, whatever their kind.

    Attributes
    ----------
    expressions : Expressions
    subscribers : dict of str to int
        The numbers of those who were heard of.
    """

    def __init__(self, space: str) -> None:
        self.space = space
        self.expressions = Expressions(space)
        self.subscribers: dict[str, int] = {}
        self._asking: dict[str, Asking] = {"expression": self.expressions}
        self._kinds: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._kinds)

    def __contains__(self, id: str) -> bool:
        return id in self._kinds

    def kind(self, id: str) -> str:
        """Who answers a subscription."""
        return self._kinds[id]

    def prepare(self, definition: Definition) -> Prepared:
        """Check and compile a definition, in any thread.

        Raises
        ------
        FencepostError
            Where it cannot be asked.
        """
        asking = self._asking.get(definition.kind)
        if asking is None:
            raise ModelError(f"this server answers no `{definition.kind}`")
        return Prepared(definition, asking.prepare(definition))

    def put(self, prepared: Iterable[Prepared]) -> None:
        """Add or replace."""
        by_kind: dict[str, list[Prepared]] = {}
        for one in prepared:
            kind = one.definition.kind
            before = self._kinds.get(one.definition.id)
            if before is not None and before != kind:
                self._asking[before].remove(one.definition.id)
            self._kinds[one.definition.id] = kind
            by_kind.setdefault(kind, []).append(one)
        for kind, those in by_kind.items():
            self._asking[kind].put(those)

    def remove(self, id: str) -> bool:
        """Remove a subscription; whether there was one."""
        kind = self._kinds.pop(id, None)
        if kind is not None:
            self._asking[kind].remove(id)
        return kind is not None

    def answer(self, events: Sequence[dict[str, Any]], bad: DeadLetters) -> list[Found]:
        """What subscribers are to be told of events, in the order of the events."""
        found: list[Found] = []
        for asking in self._asking.values():
            found += asking.answer(events, bad)
        if len(self._asking) > 1:
            found.sort(key=lambda one: one.row)
        return found
