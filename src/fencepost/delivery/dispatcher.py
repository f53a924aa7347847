"""`Dispatcher`: delivers messages from the outbox to endpoints, each endpoint at its own pace.

    commit, new endpoint ---> wake(subscriber) ---> one task for each endpoint with pending messages
                                                        read from the outbox, in order
                                                        deliver            <--- MessageSender
                                                        record the result  ---> Outbox
                                                        wait after a failure

A task ends when nothing is pending, so nothing polls. The state of a task is in the outbox, from
which a restarted server continues. Everything here runs in the event loop.
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

_MAX_PROBLEM_LENGTH = 500
_OUTBOX_RETRY_S = 2.0
_MAX_PAGE_S = 1.0
_SCHEDULE = RetrySchedule()
_logger = logging.getLogger("fencepost")


class PendingMessage(NamedTuple):
    """A message that is to be delivered.

    Attributes
    ----------
    position : int
    created_ns : int
        When the message was created, in nanoseconds since 1970.
    text : str
        The message's envelope.
    """

    position: int
    created_ns: int
    text: str


class Outcome(Enum):
    """The outcome of a delivery attempt."""

    OK = "ok"
    FAILED = "failed"  # the endpoint was not reached, or cannot accept messages now
    MOVED = "moved"  # the endpoint redirects; a failure as well
    REJECTED = "rejected"  # the endpoint was reached and does not accept this message
    GONE = "gone"  # the endpoint accepts no messages any more


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of a delivery attempt.

    Attributes
    ----------
    outcome : Outcome
        `OK`, or the outcome of the first message that was not delivered.
    delivered : int
        Number of messages that were delivered, from the first on.
    problem : str or None
        What went wrong.
    retry_after_s : float
        The wait that the endpoint asked for.
    """

    outcome: Outcome
    delivered: int = 0
    problem: str | None = None
    retry_after_s: float = 0.0


async def deliver_one_by_one(
    messages: Sequence[PendingMessage],
    deliver: Callable[[PendingMessage], Awaitable[DeliveryResult]],
) -> DeliveryResult:
    """Deliver each message after the one before it has been delivered, for about a second."""
    end_s = time.monotonic() + _MAX_PAGE_S
    for count, message in enumerate(messages):
        result = await deliver(message)
        if result.outcome is not Outcome.OK:
            return replace(result, delivered=count)
        if time.monotonic() >= end_s:
            return DeliveryResult(Outcome.OK, count + 1)
    return DeliveryResult(Outcome.OK, len(messages))


class MessageSender(Protocol):
    """A transport that delivers messages to endpoints."""

    @property
    def is_ready(self) -> bool:
        """Whether messages can be delivered; the code that makes it true wakes all endpoints."""

    async def deliver(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        """Deliver messages in order."""

    def batch_size(self, endpoint: Endpoint) -> int:
        """Return how many messages one call of `deliver` takes."""


class Outbox(Protocol):
    """The durable state: pending messages and the results of delivery attempts."""

    def endpoint(self, subscriber: int) -> Endpoint | None:
        """Return the endpoint of a subscriber; callable from any thread."""

    def pending(self, endpoint: Endpoint, limit: int) -> list[PendingMessage]:
        """Return the next unacknowledged messages; callable from any thread."""

    async def record(
        self, endpoint: Endpoint, acknowledged: int, dead_letter: PendingMessage | None
    ) -> None:
        """Store the result of an attempt.

        Parameters
        ----------
        endpoint : Endpoint
            The endpoint with its new failure counts.
        acknowledged : int
            The position up to which messages are acknowledged; 0 to acknowledge none.
        dead_letter : PendingMessage or None
            A message to store as a dead letter.
        """


class Clock:
    """The system's clock; tests use one that they advance."""

    def now(self) -> int:
        """Return the time in nanoseconds since 1970."""
        return time.time_ns()

    async def wait_until(self, time_ns: int, interrupt: asyncio.Event) -> None:
        """Wait until a time, or until the event is set."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, (time_ns - self.now()) / 1e9)):
                await interrupt.wait()


@dataclass(slots=True)
class _EndpointTask:
    endpoint_changed: asyncio.Event = field(default_factory=asyncio.Event)
    was_woken: bool = False
    running: asyncio.Task[None] | None = None


class Dispatcher:
    """The delivery tasks of all endpoints.

    Parameters
    ----------
    outbox : Outbox
    senders : mapping of str to MessageSender
        By the kind of endpoint.
    schedule : RetrySchedule
    clock : Clock, optional
    jitter : callable, optional
        Returns a random factor in [0, 1).

    Attributes
    ----------
    counts : dict
        Numbers of delivered messages, failed attempts and dead letters since the start.
    """

    def __init__(
        self,
        outbox: Outbox,
        senders: Mapping[str, MessageSender],
        schedule: RetrySchedule = _SCHEDULE,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.counts = {"delivered": 0, "delivery_failures": 0, "dead_lettered": 0}
        self._outbox = outbox
        self._senders = senders
        self._schedule = schedule
        self._clock = clock or Clock()
        self._jitter = jitter
        self._tasks: dict[int, _EndpointTask] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def wake(self, subscriber: int, *, endpoint_changed: bool = False) -> None:
        """Start the task of a subscriber, who has new messages or a changed endpoint.

        A changed endpoint also ends the wait after a failure.
        """
        if self._closed:
            return
        task = self._tasks.get(subscriber)
        if task is None:
            task = self._tasks[subscriber] = _EndpointTask()
            task.running = asyncio.create_task(self._run(subscriber, task))
        task.was_woken = True
        if endpoint_changed:
            task.endpoint_changed.set()

    async def close(self) -> None:
        """Cancel all tasks. Unacknowledged messages are delivered again after a restart."""
        self._closed = True
        running = [task.running for task in self._tasks.values() if task.running is not None]
        for asyncio_task in running:
            asyncio_task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, subscriber: int, task: _EndpointTask) -> None:
        try:
            while task.was_woken:
                task.was_woken = False
                task.endpoint_changed.clear()
                try:
                    await self._drain(subscriber, task)
                except Exception as error:  # the outbox cannot be read or written now
                    _logger.warning("cannot use the outbox, and will try again: %r", error)
                    retry_ns = self._clock.now() + round(_OUTBOX_RETRY_S * 1e9)
                    await self._clock.wait_until(retry_ns, task.endpoint_changed)
                    task.was_woken = True
        finally:
            del self._tasks[subscriber]

    async def _drain(self, subscriber: int, task: _EndpointTask) -> None:
        """Deliver until nothing is pending."""
        while True:
            endpoint = await asyncio.to_thread(self._outbox.endpoint, subscriber)
            if endpoint is None or endpoint.disabled:
                return
            sender = self._senders.get(endpoint.kind)
            if sender is None or not sender.is_ready:
                return
            if endpoint.retry_at_ns > self._clock.now():
                await self._clock.wait_until(endpoint.retry_at_ns, task.endpoint_changed)
                task.endpoint_changed.clear()
                continue
            # After a failure, messages are sent singly, to find the one at fault.
            limit = 1 if endpoint.failures else sender.batch_size(endpoint)
            messages = await asyncio.to_thread(self._outbox.pending, endpoint, limit)
            if not messages:
                return
            await self._record(endpoint, messages, await self._deliver(sender, endpoint, messages))

    @staticmethod
    async def _deliver(
        sender: MessageSender, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        try:
            return await sender.deliver(endpoint, messages)
        except (
            Exception
        ) as error:  # a bug of the sender counts as a failure, which is retried later
            _logger.exception("a message could not be delivered")
            return DeliveryResult(Outcome.FAILED, problem=f"{type(error).__name__}: {error}")

    async def _record(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage], result: DeliveryResult
    ) -> None:
        self.counts["delivered"] += result.delivered
        acknowledged = messages[result.delivered - 1].position if result.delivered else 0
        if result.outcome is Outcome.OK:
            healthy = replace(endpoint, failures=0, rejections=0, retry_at_ns=0, problem=None)
            await self._outbox.record(healthy, acknowledged, None)
            return
        now = self._clock.now()
        before = endpoint if not result.delivered else replace(endpoint, failures=0, rejections=0)
        failures = before.failures + 1
        rejections = before.rejections + (result.outcome is Outcome.REJECTED)
        wait_s = self._schedule.wait_s(failures, result.retry_after_s, self._jitter())
        tried = replace(
            before,
            failures=failures,
            rejections=rejections,
            retry_at_ns=now + round(wait_s * 1e9),
            problem=(result.problem or "")[:_MAX_PROBLEM_LENGTH],
            disabled=int(result.outcome is Outcome.GONE),
        )
        self.counts["delivery_failures"] += 1
        undelivered = messages[result.delivered]
        age_s = (now - undelivered.created_ns) / 1e9
        gives_up = self._schedule.should_give_up(failures, rejections, age_s)
        if result.outcome is Outcome.GONE or not gives_up:
            await self._outbox.record(tried, acknowledged, None)
            return
        self.counts["dead_lettered"] += 1
        if result.outcome is Outcome.REJECTED:  # says nothing about the next message
            tried = replace(tried, failures=0, retry_at_ns=0)
        await self._outbox.record(replace(tried, rejections=0), undelivered.position, undelivered)
