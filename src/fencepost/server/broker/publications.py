"""Publications: events that are matched and logged together, and what each publisher is told."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from fencepost.engine.matcher import DeadLetters
from fencepost.events.table import EventTable
from fencepost.server.broker.transaction import CommittedMessage, Transaction
from fencepost.server.http.schemas import PublishResult, RejectedRow
from fencepost.server.stateful.subscription_kind import NO_EVENT, OWN_EVENT
from fencepost.store import endpoint_rows, event_log
from fencepost.store.event_log import Counters, NewMessage


@dataclass(slots=True)
class Publication:
    """Events of a publisher who waits; see `Broker.publish`."""

    tenant: int
    events: EventTable
    bodies: Sequence[str]
    name: str | None
    source: str | None
    done: Future[PublishResult] = field(default_factory=Future)


def previous_result(entry: Publication, transaction: Transaction) -> PublishResult | None:
    """The answer that a publication of its name got, if there was one."""
    if entry.name is None:
        return None
    found = endpoint_rows.publication(transaction.connection, entry.tenant, entry.name)
    if found is None:
        return None
    return msgspec.json.decode(found, type=PublishResult)


def publish_batch(
    together: Sequence[Publication], transaction: Transaction
) -> list[tuple[Future[Any], Any, None]]:
    """Match and write publications of one tenant; the answer to each."""
    tenant = together[0].tenant
    tenant_subscriptions = transaction.broker.tenant_subscriptions(tenant)
    events = EventTable.concatenated([one.events for one in together])
    bodies = [body for one in together for body in one.bodies]
    bad: DeadLetters = []
    first = transaction.last.event + 1
    found = tenant_subscriptions.answer(events, bad, first)
    transaction.touched_tenants.add(tenant)
    reasons = dict(bad)
    position, message = transaction.last
    rows: list[tuple[str, int]] = []
    new: list[NewMessage] = []
    counts: list[int] = []
    at = 0
    for row, body in enumerate(bodies):
        before = message
        good = row not in reasons
        position += good
        while at < len(found) and found[at].row == row:
            one = found[at]
            at += 1
            if good:
                message += 1
                number = tenant_subscriptions.subscribers[one.subscriber]
                about = position if one.about == OWN_EVENT else one.about
                event = None if about == NO_EVENT else about
                new.append(NewMessage(number, message, transaction.now, event, one.type, one.data))
        counts.append(message - before)
        if good:
            rows.append((body, message))
    if rows:
        event_log.append_events(transaction.connection, tenant, transaction.now, first, rows)
    if new:
        event_log.append_messages(transaction.connection, new)
    transaction.last = Counters(position, message)
    texts = [body for body, _ in rows]
    transaction.committed.messages.extend(
        CommittedMessage(one, _body(transaction, tenant, one.event, first, texts)) for one in new
    )
    kept = [count for row, count in enumerate(counts) if row not in reasons]
    transaction.committed.events.extend(
        (tenant, first + offset, text, count)
        for offset, (text, count) in enumerate(zip(texts, kept, strict=True))
    )
    return _answers(together, transaction, first, counts, reasons)


def _answers(
    together: Sequence[Publication],
    transaction: Transaction,
    first: int,
    counts: Sequence[int],
    reasons: dict[int, str],
) -> list[tuple[Future[Any], Any, None]]:
    answers: list[tuple[Future[Any], Any, None]] = []
    start = 0
    for one in together:
        stop = start + len(one.events)
        rejected = [RejectedRow(r - start, reasons[r]) for r in range(start, stop) if r in reasons]
        accepted = len(one.events) - len(rejected)
        published = PublishResult(
            accepted=accepted,
            first=first if accepted else UNSET,
            last=first + accepted - 1 if accepted else UNSET,
            messages=sum(counts[start:stop]),
            rejected=rejected,
        )
        transaction.broker.counts["rejected"] += len(rejected)
        if one.source is not None:
            for row, reason in map(msgspec.structs.astuple, rejected):
                endpoint_rows.add_dead_letter(
                    transaction.connection,
                    one.tenant,
                    transaction.now,
                    one.source,
                    reason,
                    one.bodies[row],
                )
        if one.name is not None:
            endpoint_rows.note_publication(
                transaction.connection,
                one.tenant,
                one.name,
                transaction.now,
                msgspec.json.encode(published).decode(),
            )
        answers.append((one.done, published, None))
        first += accepted
        start = stop
    return answers


def _body(
    transaction: Transaction, tenant: int, event: int | None, first: int, texts: Sequence[str]
) -> str | None:
    """The event that a message is about: one of those that just came, or an earlier one."""
    if event is None:
        return None
    if event >= first:
        return texts[event - first]
    row = event_log.event(transaction.connection, tenant, event)
    return None if row is None else row[1]
