"""What is done by the way: what has expired goes, and the log is copied into the database."""

from __future__ import annotations

import asyncio
import logging

from fencepost.errors import FencepostError
from fencepost.server.service import Service
from fencepost.server.writing import Writing
from fencepost.store import endpoints, log, subscriptions

_EVERY_S = 0.5
_AT_ONCE = 1_000
_ANSWERS_KEPT_S = 86_400
_logger = logging.getLogger("fencepost")


async def sweep(service: Service) -> None:
    """Sweep every now and then, until cancelled."""
    while True:
        await asyncio.sleep(_EVERY_S)
        try:
            if service.broker.has_read:
                await service.done(service.broker.keep_read())
            more = True
            while more:
                more = await sweep_once(service)
        except FencepostError as error:
            _logger.warning("sweeping failed and is tried again: %s", error)


async def sweep_once(service: Service) -> bool:
    """Remove some of what has expired; whether there is more."""
    now = service.clock()
    before = now - round(service.settings.retention_s * 1e9)
    with service.database.reading() as connection:
        expired = subscriptions.expired_subscriptions(connection, now, _AT_ONCE)
        oldest = log.last_event_before(connection, before)
    if any(questions.tracked.has_clocks() for _, questions in service.broker.all_questions()):
        await service.changed(Writing.tick)
    if expired:
        await service.changed(lambda writing: _remove(writing, expired))
    forgotten = 0
    if oldest:
        forgotten = await service.changed(lambda writing: forget(writing, oldest))
    answers = now - _ANSWERS_KEPT_S * 10**9
    if service.broker.counts["commits"] % 64 == 0:
        await service.changed(lambda writing: _forget_kept(writing, answers, before))
    await asyncio.to_thread(service.database.checkpoint)
    return len(expired) == _AT_ONCE or forgotten == _AT_ONCE


def _remove(writing: Writing, expired: list[tuple[int, str]]) -> None:
    for tenant in {tenant for tenant, _ in expired}:
        writing.remove(tenant, [id for other, id in expired if other == tenant])


def forget(writing: Writing, up_to: int) -> int:
    writing.keep_before(up_to)
    forgotten = log.forget_events(writing.connection, up_to, _AT_ONCE)
    writing.recount = True
    return forgotten


def _forget_kept(writing: Writing, answers: int, letters: int) -> None:
    endpoints.forget_publications(writing.connection, answers)
    endpoints.forget_dead_letters(writing.connection, letters)
