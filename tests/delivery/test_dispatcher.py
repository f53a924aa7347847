"""When endpoints are tried again, and what becomes of messages that they do not take.

The outbox is real, the clock is moved by hand: waiting for an hour takes no time.
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


class HandClock(Clock):
    """Stands still, but for whoever waits."""

    def __init__(self) -> None:
        self.at = START
        self.waits_s: list[float] = []

    def now(self) -> int:
        return self.at

    async def wait_until(self, time_ns: int, interrupt: asyncio.Event) -> None:
        self.waits_s.append((time_ns - self.at) / 1e9)
        self.at = max(self.at, time_ns)
        await asyncio.sleep(0)


class Scripted:
    """A carrier that does as it is told: one step of the script for each attempt."""

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
        positions = [one.position for one in messages]
        self.attempts.append((endpoint.name, positions))
        return self._script(len(self.attempts), endpoint.name, positions)


def well(positions: list[int]) -> DeliveryResult:
    return DeliveryResult(Outcome.OK, len(positions))


class Stage:
    """A service without a network, with subscribers who have an endpoint."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.clock = HandClock()
        self.service = Service(Settings(folder), self.clock.now)
        self.numbers: dict[str, int] = {}
        tenant_subscriptions = self.service.broker.tenant_subscriptions(1)
        for name in names:
            given = {"id": name, "expression": f"{name} = 1"}
            prepared = tenant_subscriptions.prepare(parse_definition(given, Limits()))
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
            found = endpoint_rows.endpoint(connection, self.numbers[name])
        assert found is not None
        return found

    def letters(self) -> list[DeadLetter]:
        with self.service.database.reader() as connection:
            return endpoint_rows.dead_letters(connection, 1)

    def run(self, carrier: Scripted, chance: Callable[[], float] = lambda: 1.0) -> Dispatcher:
        """Wake all, and wait until nothing is under way."""

        async def run() -> Dispatcher:
            outbox = Outbox(self.service)
            posting = Dispatcher(outbox, {"webhook": carrier}, RetrySchedule(), self.clock, chance)
            for number in self.numbers.values():
                posting.wake(number)
            while len(posting):
                await asyncio.sleep(0.001)
            return posting

        return asyncio.run(asyncio.wait_for(run(), WAIT_S))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_all_is_handed_over_in_order(folder: Path) -> None:
    stage = Stage(folder, "a", "b")
    stage.publish(*[{"a": 1, "b": n % 2} for n in range(20)])
    carrier = Scripted(lambda _, __, positions: well(positions), batch_size=3)
    posting = stage.run(carrier)
    for name, count in (("a", 20), ("b", 10)):
        seen = [at for who, positions in carrier.attempts if who == name for at in positions]
        assert seen == sorted(set(seen))
        assert len(seen) == count
        assert stage.endpoint(name).acknowledged == seen[-1]
    assert posting.counts == {"delivered": 30, "delivery_failures": 0, "dead_lettered": 0}
    assert stage.service.broker.depth == {}
    stage.service.close()


def test_waits_double_up_to_a_bound_and_are_spread_by_chance(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return well(positions) if attempt == 13 else DeliveryResult(Outcome.FAILED, problem="down")

    stage.run(Scripted(script))
    assert stage.clock.waits_s == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert stage.endpoint("a").failures == 0
    assert stage.endpoint("a").problem is None
    assert stage.letters() == []
    stage.publish({"a": 1})
    stage.clock.waits_s.clear()
    rng, again = random.Random(7), random.Random(7)
    stage.run(Scripted(script), rng.random)
    bounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    expected = [again.random() * bound for bound in bounds]
    assert stage.clock.waits_s == pytest.approx(expected)
    stage.service.close()


@given(st.integers(1, 10_000), st.floats(0, 1e12), st.floats(0, 1))
def test_waits_are_within_bounds(failures: int, retry_after_s: float, jitter: float) -> None:
    schedule = RetrySchedule()
    wait_s = schedule.wait_s(failures, retry_after_s, jitter)
    assert 0 <= wait_s <= schedule.max_retry_after_s
    assert wait_s >= min(retry_after_s, schedule.max_retry_after_s)


def test_an_endpoint_that_asks_for_time_gets_it_within_bounds(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})
    steps = [DeliveryResult(Outcome.FAILED, retry_after_s=wait) for wait in (30, 1e9, 0)]

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return steps[attempt - 1] if attempt <= 3 else well(positions)

    stage.run(Scripted(script))
    assert stage.clock.waits_s == [30, 3600, 4]
    stage.service.close()


def test_after_a_failure_messages_go_alone_until_one_is_taken(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 10)

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return well(positions) if attempt > 2 else DeliveryResult(Outcome.FAILED)

    carrier = Scripted(script, batch_size=4)
    stage.run(carrier)
    sizes = [len(positions) for _, positions in carrier.attempts]
    assert sizes == [4, 1, 1, 4, 4, 1]
    stage.service.close()


def test_a_message_that_is_refused_becomes_a_dead_letter_and_the_next_goes_on(
    folder: Path,
) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 5)

    def script(_: int, __: str, positions: list[int]) -> DeliveryResult:
        if 3 not in positions:
            return well(positions)
        outcome = Outcome.REJECTED if positions == [3] else Outcome.FAILED
        return DeliveryResult(outcome, problem="it answered 400")

    carrier = Scripted(script, batch_size=10)
    posting = stage.run(carrier)
    # Together, refused; then alone; then the rest together, refused; 8 times alone; the others.
    sent = [positions for _, positions in carrier.attempts]
    assert sent == [[1, 2, 3, 4, 5], [1], [2, 3, 4, 5], [2], [3, 4, 5], *[[3]] * 8, [4, 5]]
    [letter] = stage.letters()
    assert (letter.subscriber, letter.message, letter.source) == ("a", 3, "webhook")
    assert letter.reason == "it answered 400"
    assert unwrap(letter.body) == ("match", '{"subscriptions":["a"],"position":3,"event":{}}')
    assert stage.endpoint("a").acknowledged == 5
    assert posting.counts["dead_lettered"] == 1
    assert stage.service.broker.depth == {}
    stage.service.close()


def test_messages_that_were_taken_before_one_that_was_not_are_acknowledged(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 5)

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        return DeliveryResult(Outcome.REJECTED, 2, "no") if attempt == 1 else well(positions)

    carrier = Scripted(script, batch_size=10)
    stage.run(carrier)
    assert [positions for _, positions in carrier.attempts] == [[1, 2, 3, 4, 5], [3], [4, 5]]
    assert stage.endpoint("a").acknowledged == 5
    stage.service.close()


def test_messages_become_dead_letters_only_after_a_day_where_nobody_is_there(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish(*[{"a": 1}] * 2)
    back = START + 25 * 3_600 * 10**9

    def script(_: int, __: str, positions: list[int]) -> DeliveryResult:
        there = stage.clock.at > back
        return (
            well(positions) if there else DeliveryResult(Outcome.FAILED, problem="nobody is there")
        )

    carrier = Scripted(script)
    stage.run(carrier)
    letters = stage.letters()
    assert [one.message for one in letters] == [1, 2]
    assert all(one.at >= START + 86_400 * 10**9 for one in letters)
    tries = [positions for _, positions in carrier.attempts]
    assert tries[-1] == [2]
    assert tries.count([1]) >= 86_400 / 300
    stage.service.close()


def test_what_is_gone_is_not_tried_until_it_is_set_anew(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})
    gone = Scripted(lambda *_: DeliveryResult(Outcome.GONE, problem="410"))
    stage.run(gone)
    stage.publish({"a": 1})
    stage.run(gone)
    assert len(gone.attempts) == 1
    assert stage.endpoint("a").disabled
    stage.set("a", "another")
    well_again = Scripted(lambda _, __, positions: well(positions))
    stage.run(well_again)
    assert [positions for _, positions in well_again.attempts] == [[1], [2]]
    stage.service.close()


def test_a_failure_is_remembered_over_a_restart(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    class Stopping(HandClock):
        async def wait_until(self, time_ns: int, interrupt: asyncio.Event) -> None:
            await asyncio.Event().wait()

    stopping = Stopping()

    async def fail_once() -> None:
        down = Scripted(lambda *_: DeliveryResult(Outcome.FAILED, problem="down"))
        posting = Dispatcher(
            Outbox(stage.service), {"webhook": down}, RetrySchedule(), stopping, lambda: 1.0
        )
        posting.wake(stage.numbers["a"])
        while not stage.endpoint("a").failures:
            await asyncio.sleep(0.001)
        await posting.close()

    asyncio.run(asyncio.wait_for(fail_once(), WAIT_S))
    stage.service.close()

    again = Stage.__new__(Stage)
    again.clock = HandClock()
    again.service = Service(Settings(folder), again.clock.now)
    again.numbers = stage.numbers
    assert (again.endpoint("a").failures, again.endpoint("a").problem) == (1, "down")
    carrier = Scripted(lambda _, __, positions: well(positions))
    again.run(carrier)
    assert again.clock.waits_s == [1]
    assert carrier.attempts == [("a", [1])]
    again.service.close()


def test_setting_an_endpoint_anew_ends_its_wait(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    def script(_: int, __: str, positions: list[int]) -> DeliveryResult:
        good = stage.endpoint("a").target == {"url": "good"}
        return well(positions) if good else DeliveryResult(Outcome.FAILED, retry_after_s=3_000)

    async def run() -> None:
        carrier = Scripted(script)
        posting = Dispatcher(Outbox(stage.service), {"webhook": carrier})  # with a clock that goes
        posting.wake(stage.numbers["a"])
        while not stage.endpoint("a").failures:
            await asyncio.sleep(0.001)
        posting.wake(stage.numbers["a"])  # a message alone does not
        stage.set("a", "good")
        posting.wake(stage.numbers["a"], endpoint_changed=True)
        while len(posting):
            await asyncio.sleep(0.001)
        assert len(carrier.attempts) == 2

    asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert stage.endpoint("a").acknowledged == 1
    stage.service.close()


def test_how_an_old_endpoint_went_is_not_held_against_a_new_one(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})

    def script(attempt: int, _: str, positions: list[int]) -> DeliveryResult:
        if attempt == 1:
            stage.set("a", "another")
            return DeliveryResult(Outcome.GONE)
        return well(positions)

    carrier = Scripted(script)
    stage.run(carrier)
    assert len(carrier.attempts) == 2
    assert stage.endpoint("a").acknowledged == 1
    stage.service.close()


def test_what_a_carrier_does_wrong_is_a_failure_like_any_other(folder: Path) -> None:
    stage = Stage(folder, "a", "b")
    stage.publish({"a": 1, "b": 1})

    def script(attempt: int, who: str, positions: list[int]) -> DeliveryResult:
        if who == "a" and attempt < 5:
            raise RuntimeError("a mistake")
        return well(positions)

    stage.run(Scripted(script))
    assert stage.endpoint("a").acknowledged == 1
    assert stage.endpoint("b").acknowledged == 2
    stage.service.close()


def test_an_outbox_that_cannot_be_written_is_tried_again(folder: Path) -> None:
    stage = Stage(folder, "a")
    stage.publish({"a": 1})
    outbox = Outbox(stage.service)
    broken = [True]

    class Breaking(Outbox):
        async def record(self, *given: Any) -> None:
            if broken.pop() if broken else False:
                raise StoreError("the disk is full")
            await outbox.record(*given)

    async def run() -> list[tuple[str, list[int]]]:
        carrier = Scripted(lambda _, __, positions: well(positions))
        posting = Dispatcher(
            Breaking(stage.service), {"webhook": carrier}, RetrySchedule(), stage.clock, lambda: 1.0
        )
        posting.wake(stage.numbers["a"])
        while len(posting):
            await asyncio.sleep(0.001)
        return carrier.attempts

    assert asyncio.run(asyncio.wait_for(run(), WAIT_S)) == [("a", [1])] * 2
    assert stage.endpoint("a").acknowledged == 1
    stage.service.close()


@given(
    st.text(max_size=20), st.text(max_size=20), st.sampled_from(["match", "detection"]), st.text()
)
def test_what_is_in_an_envelope_comes_out(tenant: str, name: str, type: str, value: str) -> None:
    data = f'{{"n":1e400,"text":{json.dumps(value)}}}'
    try:
        envelopes = EnvelopeFormatter(tenant, name)
    except UnicodeEncodeError:
        return  # a surrogate, which no name has
    text = envelopes.wrap(7, START, type, data, None, None)
    assert unwrap(text) == (type, data)
