"""`publish_batch`: events of several publications matched and logged together."""

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
    """Queued events, and the future of their result; see `Broker.publish`."""

    tenant: int
    events: EventTable
    bodies: Sequence[str]
    idempotency_key: str | None
    source: str | None
    done: Future[PublishResult] = field(default_factory=Future)


def previous_result(publication: Publication, transaction: Transaction) -> PublishResult | None:
    """Return the stored result of an earlier publication with this idempotency key, or None."""
    if publication.idempotency_key is None:
        return None
    stored = endpoint_rows.publication_result(
        transaction.connection, publication.tenant, publication.idempotency_key
    )
    if stored is None:
        return None
    return msgspec.json.decode(stored, type=PublishResult)


def publish_batch(
    batch: Sequence[Publication], transaction: Transaction
) -> list[tuple[Future[Any], Any, None]]:
    """Match and log publications of one tenant. Return each future with its result."""
    tenant = batch[0].tenant
    subscriptions = transaction.broker.tenant_subscriptions(tenant)
    events = EventTable.concatenate([publication.events for publication in batch])
    bodies = [body for publication in batch for body in publication.bodies]
    dead_letters: DeadLetters = []
    first = transaction.counters.event + 1
    pending = subscriptions.process(events, dead_letters, first)
    transaction.touched_tenants.add(tenant)
    reasons = dict(dead_letters)
    position, message_number = transaction.counters
    rows: list[tuple[str, int]] = []
    messages: list[NewMessage] = []
    message_counts: list[int] = []
    next_pending = 0
    for row, body in enumerate(bodies):
        number_before = message_number
        is_accepted = row not in reasons
        position += is_accepted
        while next_pending < len(pending) and pending[next_pending].row == row:
            message = pending[next_pending]
            next_pending += 1
            if is_accepted:
                message_number += 1
                subscriber = subscriptions.subscribers[message.subscriber]
                about = message.event_position
                event = position if about == OWN_EVENT else None if about == NO_EVENT else about
                messages.append(
                    NewMessage(
                        subscriber,
                        message_number,
                        transaction.now,
                        event,
                        message.type,
                        message.data,
                    )
                )
        message_counts.append(message_number - number_before)
        if is_accepted:
            rows.append((body, message_number))
    if rows:
        event_log.append_events(transaction.connection, tenant, transaction.now, first, rows)
    if messages:
        event_log.append_messages(transaction.connection, messages)
    transaction.counters = Counters(position, message_number)
    texts = [body for body, _ in rows]
    transaction.changes.messages.extend(
        CommittedMessage(message, _body(transaction, tenant, message.event, first, texts))
        for message in messages
    )
    accepted_counts = [n for row, n in enumerate(message_counts) if row not in reasons]
    transaction.changes.events.extend(
        (tenant, first + offset, text, count)
        for offset, (text, count) in enumerate(zip(texts, accepted_counts, strict=True))
    )
    return _results(batch, transaction, first, message_counts, reasons)


def _results(
    batch: Sequence[Publication],
    transaction: Transaction,
    first: int,
    message_counts: Sequence[int],
    reasons: dict[int, str],
) -> list[tuple[Future[Any], Any, None]]:
    """Return the result of each publication; store dead letters, and results by idempotency key."""
    results: list[tuple[Future[Any], Any, None]] = []
    start = 0
    for publication in batch:
        stop = start + len(publication.events)
        rejected = [RejectedRow(r - start, reasons[r]) for r in range(start, stop) if r in reasons]
        accepted = len(publication.events) - len(rejected)
        result = PublishResult(
            accepted=accepted,
            first=first if accepted else UNSET,
            last=first + accepted - 1 if accepted else UNSET,
            messages=sum(message_counts[start:stop]),
            rejected=rejected,
        )
        transaction.broker.counts["rejected"] += len(rejected)
        if publication.source is not None:
            for row, reason in map(msgspec.structs.astuple, rejected):
                endpoint_rows.add_dead_letter(
                    transaction.connection,
                    publication.tenant,
                    transaction.now,
                    publication.source,
                    reason,
                    publication.bodies[row],
                )
        if publication.idempotency_key is not None:
            endpoint_rows.store_publication_result(
                transaction.connection,
                publication.tenant,
                publication.idempotency_key,
                transaction.now,
                msgspec.json.encode(result).decode(),
            )
        results.append((publication.done, result, None))
        first += accepted
        start = stop
    return results


def _body(
    transaction: Transaction, tenant: int, event: int | None, first: int, texts: Sequence[str]
) -> str | None:
    """Return the JSON of a message's event, from this batch or from the log."""
    if event is None:
        return None
    if event >= first:
        return texts[event - first]
    row = event_log.event(transaction.connection, tenant, event)
    return None if row is None else row[1]
