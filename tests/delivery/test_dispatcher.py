"""Retries of deliveries, and messages that become dead letters.

The outbox is real; the clock is manual, so waiting takes no time.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.delivery import (
    DeliveryResult,
    Dispatcher,
    EnvelopeFormatter,
    Outcome,
    PendingMessage,
    RetrySchedule,
    unwrap,
)
from fencepost.delivery.dispatcher import Clock
from fencepost.errors import StoreError
from fencepost.events import EventTable
from fencepost.server import Limits, Outbox, Service, Settings, parse_definition
from fencepost.store import endpoint_rows
from fencepost.store.endpoint_rows import DeadLetter, Endpoint
from tests.waiting import WAIT_S

START = 1_800_000_000 * 10**9


class ManualClock(Clock):
    """A clock that advances only when code waits."""

    def __init__(self) -> None:
        self.at = START
        self.waits_s: list[float] = []

    def now(self) -> int:
        return self.at

    async def wait_until(self, time_ns: int, interrupt: asyncio.Event) -> None:
        self.waits_s.append((time_ns - self.at) / 1e9)
        self.at = max(self.at, time_ns)
        await asyncio.sleep(0)


class ScriptedSender:
    """A sender whose script decides the result of each attempt."""

    is_ready = True

    def __init__(
        self, script: Callable[[int, str, list[int]], DeliveryResult], batch_size: int = 1
    ) -> None:
        self.attempts: list[tuple[str, list[int]]] = []
        self._script = script
        self._batch_size = batch_size

    def batch_size(self, endpoint: Endpoint) -> int:
        return self._batch_size

    async def deliver(
        self, endpoint: Endpoint, messages: Sequence[PendingMessage]
    ) -> DeliveryResult:
        positions = [message.position for message in messages]
        self.attempts.append((endpoint.name, positions))
        return self._script(len(self.attempts), endpoint.name, positions)


def delivered(positions: list[int]) -> DeliveryResult:
    return DeliveryResult(Outcome.OK, len(positions))


class Stage:
    """A service without a network, whose subscribers have endpoints."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.clock = ManualClock()
        self.service = Service(Settings(folder), self.clock.now)
        self.numbers: dict[str, int] = {}
        tenant_subscriptions = self.service.broker.tenant_subscriptions(1)
        for name in names:
            definition = {"id": name, "expression": f"{name} = 1"}
            prepared = tenant_subscriptions.prepare(parse_definition(definition, Limits()))
            self.service.broker.change(lambda w, p=prepared: w.put(1, [p])).result(WAIT_S)  # type: ignore[misc]
            self.numbers[name] = tenant_subscriptions.subscribers[name]
            self.set(name)

    def set(self, name: str, url: str = "x") -> None:
        number = self.numbers[name]
        self.service.broker.change(
            lambda w: endpoint_rows.put_endpoint(w.connection, number, "webhook", {"url": url})
        ).result(WAIT_S)

    def publish(self, *events: dict[str, Any]) -> None:
        bodies = ["{}" for _ in events]
        table = EventTable.read(events, self.service.space)
        self.service.broker.publish(1, table, bodies).result(WAIT_S)

    def endpoint(self, name: str) -> Endpoint:
        with self.service.database.reader() as connection:
            endpoint = endpoint_rows.endpoint(connection, self.numbers[name])
        assert endpoint is not None
        return endpoint

    def letters(self) -> list[DeadLetter]:
        with self.service.database.reader() as connection:
            return endpoint_rows.dead_letters(connection, 1)

    def run(self, sender: ScriptedSender, chance: Callable[[], float] = lambda: 1.0) -> Dispatcher:
        """Wake all subscribers, and wait until the dispatcher is idle."""

        async def run() -> Dispatcher:
            outbox = Outbox(self.service)
            dispatcher = Dispatcher(
                outbox, {"webhook": sender}, RetrySchedule(), self.clock, chance
            )
            for number in self.numbers.values():
                dispatcher.wake(number)
            while len(dispatcher):
                await asyncio.sleep(0.001)
            return dispatcher

        return asyncio.run(asyncio.wait_for(run(), WAIT_S))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_messages_are_delivered_in_order(folder: Path) -> None:
    stage = Stage(folder, "a", "b")
    stage.publish(*[{"a": 1, "b": n % 2} for n in range(20)])
    sender = ScriptedSender(lambda _, __, positions: delivered(positions), batch_size=3)
    dispatcher = stage.run(sender)
    for name, count in (("a", 20), ("b", 10)):
        positions = [p for who, batch in sender.attempts if who == name for p in batch]
        assert positions == sorted(set(positions))
        assert len(positions) == count
        assert stage.endpoint(name).acknowledged == positions[-1]
    assert dispatcher.counts == {"delivered": 30, "delivery_failures": 0, "dead_lettered": 0}
    assert stage.service.broker.depth == {}
    stage.service.close()


def test_delays_double_up_to_a_limit_with_jitter(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return (
            delivered(positions)
            if attempt == 13
            else DeliveryResult(Outcome.FAILED, problem="down")
        )

    stage.run(ScriptedSender(script))
    assert stage.clock.waits_s == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert stage.endpoint("a").failures == 0
    assert stage.endpoint("a").problem is None
    assert stage.letters() == []
    stage.publish({"a": 1})
    stage.clock.waits_s.clear()
    rng, again = random.Random(7), random.Random(7)
    stage.run(ScriptedSender(script), rng.random)
    bounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    expected = [again.random() * bound for bound in bounds]
    assert stage.clock.waits_s == pytest.approx(expected)
    stage.service.close()


@given(st.integers(1, 10_000), st.floats(0, 1e12), st.floats(0, 1))
def test_delays_are_within_bounds(failures: int, retry_after_s: float, jitter: float) -> None:
    schedule = RetrySchedule()
    wait_s = schedule.wait_s(failures, retry_after_s, jitter)
    assert 0 <= wait_s <= schedule.max_retry_after_s
    assert wait_s >= min(retry_after_s, schedule.max_retry_after_s)


def test_retry_after_is_respected_within_bounds(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})
    steps = [DeliveryResult(Outcome.FAILED, retry_after_s=wait) for wait in (30, 1e9, 0)]

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return steps[attempt - 1] if attempt <= 3 else delivered(positions)

    stage.run(ScriptedSender(script))
    assert stage.clock.waits_s == [30, 3600, 4]
    stage.service.close()


def test_after_a_failure_messages_are_sent_singly_until_a_success(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 10)

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return delivered(positions) if attempt > 2 else DeliveryResult(Outcome.FAILED)

    sender = ScriptedSender(script, batch_size=4)
    stage.run(sender)
    sizes = [len(positions) for _, positions in sender.attempts]
    assert sizes == [4, 1, 1, 4, 4, 1]
    stage.service.close()


def test_a_rejected_message_becomes_a_dead_letter(
    folder: Path,
) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 5)

    def script(_: int, __: str, positions: list[int]) -> DeliveryResult:
        if 3 not in positions:
            return delivered(positions)
        outcome = Outcome.REJECTED if positions == [3] else Outcome.FAILED
        return DeliveryResult(outcome, problem="it answered 400")

    sender = ScriptedSender(script, batch_size=10)
    dispatcher = stage.run(sender)
    # A failed batch; single; a failed batch; single; a failed batch; 8 single attempts; the rest.
    sent = [positions for _, positions in sender.attempts]
    assert sent == [[1, 2, 3, 4, 5], [1], [2, 3, 4, 5], [2], [3, 4, 5], *[[3]] * 8, [4, 5]]
    [letter] = stage.letters()
    assert (letter.subscriber, letter.message, letter.source) == ("a", 3, "webhook")
    assert letter.reason == "it answered 400"
    assert unwrap(letter.body) == ("match", '{"subscriptions":["a"],"position":3,"event":{}}')
    assert stage.endpoint("a").acknowledged == 5
    assert dispatcher.counts["dead_lettered"] == 1
    assert stage.service.broker.depth == {}
    stage.service.close()


def test_messages_delivered_before_a_rejected_one_are_acknowledged(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 5)

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return DeliveryResult(Outcome.REJECTED, 2, "no") if attempt == 1 else delivered(positions)

    sender = ScriptedSender(script, batch_size=10)
    stage.run(sender)
    assert [positions for _, positions in sender.attempts] == [[1, 2, 3, 4, 5], [3], [4, 5]]
    assert stage.endpoint("a").acknowledged == 5
    stage.service.close()


def test_messages_to_an_unreachable_endpoint_become_dead_letters_after_a_day(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 2)
    back = START + 25 * 3_600 * 10**9

    def script(_: int, __: str, positions: list[int]) -> DeliveryResult:
        is_back = stage.clock.at > back
        return (
            delivered(positions)
            if is_back
            else DeliveryResult(Outcome.FAILED, problem="unreachable")
        )

    sender = ScriptedSender(script)
    stage.run(sender)
    letters = stage.letters()
    assert [letter.message for letter in letters] == [1, 2]
    assert all(letter.at >= START + 86_400 * 10**9 for letter in letters)
    attempts = [positions for _, positions in sender.attempts]
    assert attempts[-1] == [2]
    assert attempts.count([1]) >= 86_400 / 300
    stage.service.close()


def test_a_gone_endpoint_is_not_tried_until_it_is_set_again(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})
    gone = ScriptedSender(lambda *_: DeliveryResult(Outcome.GONE, problem="410"))
    stage.run(gone)
    stage.publish({"a": 1})
    stage.run(gone)
    assert len(gone.attempts) == 1
    assert stage.endpoint("a").disabled
    stage.set("a", "another")
    recovered = ScriptedSender(lambda _, __, positions: delivered(positions))
    stage.run(recovered)
    assert [positions for _, positions in recovered.attempts] == [[1], [2]]
    stage.service.close()


def test_failures_survive_a_restart(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    class StoppedClock(ManualClock):
        async def wait_until(self, time_ns: int, interrupt: asyncio.Event) -> None:
            await asyncio.Event().wait()

    stopped = StoppedClock()

    async def fail_once() -> None:
        down = ScriptedSender(lambda *_: DeliveryResult(Outcome.FAILED, problem="down"))
        dispatcher = Dispatcher(
            Outbox(stage.service), {"webhook": down}, RetrySchedule(), stopped, lambda: 1.0
        )
        dispatcher.wake(stage.numbers["a"])
        while not stage.endpoint("a").failures:
            await asyncio.sleep(0.001)
        await dispatcher.close()

    asyncio.run(asyncio.wait_for(fail_once(), WAIT_S))
    stage.service.close()

    again = Stage.__new__(Stage)
    again.clock = ManualClock()
    again.service = Service(Settings(folder), again.clock.now)
    again.numbers = stage.numbers
    assert (again.endpoint("a").failures, again.endpoint("a").problem) == (1, "down")
    sender = ScriptedSender(lambda _, __, positions: delivered(positions))
    again.run(sender)
    assert again.clock.waits_s == [1]
    assert sender.attempts == [("a", [1])]
    again.service.close()


def test_setting_an_endpoint_again_ends_its_delay(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    def script(_: int, __: str, positions: list[int]) -> DeliveryResult:
        good = stage.endpoint("a").target == {"url": "good"}
        return delivered(positions) if good else DeliveryResult(Outcome.FAILED, retry_after_s=3_000)

    async def run() -> None:
        sender = ScriptedSender(script)
        dispatcher = Dispatcher(Outbox(stage.service), {"webhook": sender})  # with the real clock
        dispatcher.wake(stage.numbers["a"])
        while not stage.endpoint("a").failures:
            await asyncio.sleep(0.001)
        dispatcher.wake(stage.numbers["a"])  # a new message does not end the delay
        stage.set("a", "good")
        dispatcher.wake(stage.numbers["a"], endpoint_changed=True)
        while len(dispatcher):
            await asyncio.sleep(0.001)
        assert len(sender.attempts) == 2

    asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert stage.endpoint("a").acknowledged == 1
    stage.service.close()


def test_the_state_of_an_old_endpoint_does_not_affect_a_new_one(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        if attempt == 1:
            stage.set("a", "another")
            return DeliveryResult(Outcome.GONE)
        return delivered(positions)

    sender = ScriptedSender(script)
    stage.run(sender)
    assert len(sender.attempts) == 2
    assert stage.endpoint("a").acknowledged == 1
    stage.service.close()


def test_exceptions_of_a_sender_are_failures(folder: Path) -> None:
    stage = Stage(folder, "a", "b")
    stage.publish({"a": 1, "b": 1})

    def script(attempt: int, who: str, positions: list[int]) -> DeliveryResult:
        if who == "a" and attempt < 5:
            raise RuntimeError("a bug")
        return delivered(positions)

    stage.run(ScriptedSender(script))
    assert stage.endpoint("a").acknowledged == 1
    assert stage.endpoint("b").acknowledged == 2
    stage.service.close()


def test_a_failed_write_of_the_outbox_is_retried(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})
    outbox = Outbox(stage.service)
    broken = [True]

    class FailingOutbox(Outbox):
        async def record(self, *args: Any) -> None:
            if broken.pop() if broken else False:
                raise StoreError("the disk is full")
            await outbox.record(*args)

    async def run() -> list[tuple[str, list[int]]]:
        sender = ScriptedSender(lambda _, __, positions: delivered(positions))
        dispatcher = Dispatcher(
            FailingOutbox(stage.service),
            {"webhook": sender},
            RetrySchedule(),
            stage.clock,
            lambda: 1.0,
        )
        dispatcher.wake(stage.numbers["a"])
        while len(dispatcher):
            await asyncio.sleep(0.001)
        return sender.attempts

    assert asyncio.run(asyncio.wait_for(run(), WAIT_S)) == [("a", [1])] * 2
    assert stage.endpoint("a").acknowledged == 1
    stage.service.close()


@given(
    st.text(max_size=20), st.text(max_size=20), st.sampled_from(["match", "detection"]), st.text()
)
def test_envelopes_are_unwrapped(tenant: str, name: str, type: str, value: str) -> None:
    data = f'{{"n":1e400,"text":{json.dumps(value)}}}'
    try:
        envelopes = EnvelopeFormatter(tenant, name)
    except UnicodeEncodeError:
        return  # names have no surrogates
    text = envelopes.wrap(7, START, type, data, None, None)
    assert unwrap(text) == (type, data)
