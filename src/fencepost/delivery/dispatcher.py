"""Hands messages over to endpoints by itself, each endpoint at its own pace.

    commit, new endpoint ---> wake(subscriber) ---> one task for each endpoint with unread messages
                                                        read from the outbox, in order
                                                        hand over          <--- MessageSender
                                                        note how it went   ---> Outbox
                                                        wait, if it failed

A task ends when all is handed over, so nothing is asked over and over. What a task knows is in the
outbox: it begins again where it was after a restart. All of this runs in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, Protocol

from fencepost.delivery.retry_schedule import RetrySchedule
from fencepost.store.endpoint_rows import Endpoint

_LONGEST_PROBLEM = 500
_OUTBOX_PAUSE_S = 2.0
_PAGE_S = 1.0
_SCHEDULE = RetrySchedule()
_logger = logging.getLogger("fencepost")


class PendingMessage(NamedTuple):
    """A message that waits to be handed over.

    Attributes
    ----------
    position : int
    at : int
        When it was made, in nanoseconds since 1970.
    text : str
        Its envelope.
    """

    position: int
    at: int
    text: str


class Outcome(Enum):
    """How handing over went."""

    OK = "well"
    FAILED = "failed"  # nobody was reached, or they cannot take it now
    MOVED = "moved"  # it is elsewhere; a failure as well
    REFUSED = "refused"  # somebody was reached, and does not want this message
    GONE = "gone"  # nothing is wanted there any more


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """How handing over went.

    Attributes
    ----------
    went : Outcome
        How it went with the first that was not taken, if there is one.
    delivered : int
        How many messages were taken, from the first on.
    problem : str or None
        What was wrong.
    retry_after_s : float
        For how long not to try again, as the other side asked.
    """

    outcome: Outcome
    delivered: int = 0
    problem: str | None = None
    retry_after_s: float = 0.0


async def deliver_one_by_one(
    messages: Sequence[PendingMessage],
    hand_over: Callable[[PendingMessage], Awaitable[DeliveryResult]],
) -> DeliveryResult:
    """Hand messages over, each when the one before was taken; for about a second."""
    end = time.monotonic() + _PAGE_S
    for count, message in enumerate(messages):
        result = await hand_over(message)
        if result.outcome is not Outcome.OK:
            return replace(result, delivered=count)
        if time.monotonic() >= end:
            return DeliveryResult(Outcome.OK, count + 1)
    return DeliveryResult(Outcome.OK, len(messages))


class MessageSender(Protocol):
    """A way to hand messages over."""

    @property
    def is_ready(self) -> bool:
        """Whether there is anybody to hand over to; who makes that true wakes all endpoints."""

    async def deliver(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        """Hand messages over in their order."""

    def batch_size(self, endpoint: Endpoint) -> int:
        """How many messages are taken at once."""


class Outbox(Protocol):
    """What is durable: the messages, and how handing them over went."""

    def endpoint(self, subscriber: int) -> Endpoint | None:
        """Where messages go, and how that went; for any thread."""

    def pending(self, endpoint: Endpoint, limit: int) -> list[PendingMessage]:
        """The next messages that are not acknowledged; for any thread."""

    async def record(
        self, tried: Endpoint, acknowledged: int, dead_letter: PendingMessage | None
    ) -> None:
        """Keep how it went: up to where all is done, and what is a dead letter from now on."""


class Clock:
    """The time, and waiting for it; tests have one that they move by hand."""

    def now(self) -> int:
        """In nanoseconds since 1970."""
        return time.time_ns()

    async def until(self, at: int, sooner: asyncio.Event) -> None:
        """Wait until a time, or until something happens."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, (at - self.now()) / 1e9)):
                await sooner.wait()


@dataclass(slots=True)
class _Task:
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # the endpoint was set anew
    more: bool = False
    running: asyncio.Task[None] | None = None


class Dispatcher:
    """The tasks of all endpoints.

    Parameters
    ----------
    outbox : Outbox
    carriers : mapping of str to MessageSender
        By the kind of an endpoint.
    schedule : RetrySchedule
    clock : Clock, optional
    chance : callable, optional
        A number at random from 0 to 1.

    Attributes
    ----------
    counts : dict
        Messages that were handed over, attempts that failed, and dead letters, since the start.
    """

    def __init__(
        self,
        outbox: Outbox,
        carriers: Mapping[str, MessageSender],
        schedule: RetrySchedule = _SCHEDULE,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.counts = {"posted": 0, "post_failures": 0, "given_up": 0}
        self._outbox = outbox
        self._carriers = carriers
        self._schedule = schedule
        self._clock = clock or Clock()
        self._chance = chance
        self._tasks: dict[int, _Task] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def wake(self, subscriber: int, *, changed: bool = False) -> None:
        """Say that there are messages for a subscriber, or that the endpoint was set anew."""
        if self._closed:
            return
        task = self._tasks.get(subscriber)
        if task is None:
            task = self._tasks[subscriber] = _Task()
            task.running = asyncio.create_task(self._run(subscriber, task))
        task.more = True
        if changed:
            task.changed.set()

    async def close(self) -> None:
        """Stop; what is under way is handed over again when a server runs again."""
        self._closed = True
        running = [one.running for one in self._tasks.values() if one.running is not None]
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, subscriber: int, task: _Task) -> None:
        try:
            while task.more:
                task.more = False
                task.changed.clear()
                try:
                    await self._empty(subscriber, task)
                except Exception as error:  # the outbox cannot be read or written now
                    _logger.warning("messages could not be posted, and will be: %r", error)
                    at = self._clock.now() + round(_OUTBOX_PAUSE_S * 1e9)
                    await self._clock.until(at, task.changed)
                    task.more = True
        finally:
            del self._tasks[subscriber]

    async def _empty(self, subscriber: int, task: _Task) -> None:
        """Hand over until nothing waits."""
        while True:
            endpoint = await asyncio.to_thread(self._outbox.endpoint, subscriber)
            if endpoint is None or endpoint.disabled:
                return
            carrier = self._carriers.get(endpoint.kind)
            if carrier is None or not carrier.is_ready:
                return
            if endpoint.retry_at > self._clock.now():
                await self._clock.until(endpoint.retry_at, task.changed)
                task.changed.clear()
                continue
            # After a failure one at a time, so that it is known which message is at fault.
            most = 1 if endpoint.failures else carrier.batch_size(endpoint)
            waiting = await asyncio.to_thread(self._outbox.pending, endpoint, most)
            if not waiting:
                return
            await self._note(endpoint, waiting, await self._carry(carrier, endpoint, waiting))

    @staticmethod
    async def _carry(
        carrier: MessageSender, endpoint: Endpoint, waiting: Sequence[PendingMessage]
    ) -> DeliveryResult:
        try:
            return await carrier.deliver(endpoint, waiting)
        except Exception as error:  # one endpoint must not end the task, nor be tried at once
            _logger.exception("a message could not be posted")
            return DeliveryResult(Outcome.FAILED, problem=f"{type(error).__name__}: {error}")

    async def _note(
        self, endpoint: Endpoint, waiting: Sequence[PendingMessage], result: DeliveryResult
    ) -> None:
        self.counts["posted"] += result.delivered
        acknowledged = waiting[result.delivered - 1].position if result.delivered else 0
        if result.outcome is Outcome.OK:
            well = replace(endpoint, failures=0, refusals=0, retry_at=0, problem=None)
            await self._outbox.record(well, acknowledged, None)
            return
        now = self._clock.now()
        before = endpoint if not result.delivered else replace(endpoint, failures=0, refusals=0)
        failures = before.failures + 1
        refusals = before.refusals + (result.outcome is Outcome.REFUSED)
        wait_s = self._schedule.wait_s(failures, result.retry_after_s, self._chance())
        tried = replace(
            before,
            failures=failures,
            refusals=refusals,
            retry_at=now + round(wait_s * 1e9),
            problem=(result.problem or "")[:_LONGEST_PROBLEM],
            disabled=int(result.outcome is Outcome.GONE),
        )
        self.counts["post_failures"] += 1
        first = waiting[result.delivered]
        gives_up = self._schedule.gives_up(failures, refusals, (now - first.at) / 1e9)
        if result.outcome is Outcome.GONE or not gives_up:
            await self._outbox.record(tried, acknowledged, None)
            return
        self.counts["given_up"] += 1
        if result.outcome is Outcome.REFUSED:  # the next message has nothing to do with it
            tried = replace(tried, failures=0, retry_at=0)
        await self._outbox.record(replace(tried, refusals=0), first.position, first)
