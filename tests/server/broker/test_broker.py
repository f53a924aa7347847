"""The broker's thread survives cancelled requests and failed entries."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from fencepost.errors import StoreError
from fencepost.events import EventTable
from fencepost.server import Limits, Service, Settings, Transaction, parse_definition
from tests.waiting import WAIT_S


def test_cancelled_requests_do_not_stop_the_broker(tmp_path: Path) -> None:
    service = Service(Settings(tmp_path))
    begun, resume = threading.Event(), threading.Event()

    def wait(_: Transaction) -> str:
        begun.set()
        resume.wait(WAIT_S)
        return "done"

    running = service.broker.change(wait)
    assert begun.wait(WAIT_S)
    waiting = service.broker.publish(1, EventTable.read([{"n": 1}], service.space), ["{}"])
    assert waiting.cancel()
    assert not running.cancel()
    resume.set()
    assert running.result(WAIT_S) == "done"
    published = service.broker.publish(
        1, EventTable.read([{"n": 2}], service.space), ["{}"]
    ).result(WAIT_S)
    assert (published.accepted, published.first) == (1, 1)
    service.close()


def test_a_failing_entry_does_not_fail_its_group(tmp_path: Path) -> None:
    service = Service(Settings(tmp_path, space="planar"))
    broker = service.broker
    begun, resume = threading.Event(), threading.Event()

    def wait(_: Transaction) -> None:
        begun.set()
        resume.wait(WAIT_S)

    def subscribe(transaction: Transaction) -> list[bool]:
        definition = parse_definition({"id": "a", "expression": "n > 0"}, Limits())
        return transaction.put(1, [broker.tenant_subscriptions(1).prepare(definition)])

    def fail(transaction: Transaction) -> None:
        transaction.connection.execute("INSERT INTO nothing VALUES (1)")

    broker.change(wait)
    assert begun.wait(WAIT_S)
    entries: list[Any] = [
        broker.change(subscribe),
        broker.publish(1, EventTable.read([{"n": 1}]), ['{"n": 1}']),
        broker.change(fail),
        broker.publish(1, EventTable.read([{"n": 2}]), ['{"n": 2}']),
    ]  # one group
    resume.set()
    assert entries[0].result(WAIT_S) == [True]
    with pytest.raises(StoreError, match="nothing"):
        entries[2].result(WAIT_S)
    first, second = (entries[k].result(WAIT_S) for k in (1, 3))
    assert (first.first, second.first, first.messages, second.messages) == (1, 2, 1, 1)
    assert broker.depth == {broker.tenant_subscriptions(1).subscribers["a"]: 2}
    service.close()
    again = Service(Settings(tmp_path, space="planar"))
    assert again.broker.counters == broker.counters
    assert again.broker.depth == broker.depth
    again.close()


def test_the_old_state_is_visible_during_a_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed commit memory is reloaded while requests continue."""
    service = Service(Settings(tmp_path, space="planar"))
    broker = service.broker

    def subscribe(transaction: Transaction) -> list[bool]:
        definition = parse_definition({"id": "a", "expression": "n > 0"}, Limits())
        return transaction.put(1, [broker.tenant_subscriptions(1).prepare(definition)])

    broker.change(subscribe).result(WAIT_S)
    known = dict(broker.names)
    assert known
    visible: list[dict[int, tuple[int, str]]] = []
    empty = broker.new_tenant_subscriptions

    def recording() -> Any:
        visible.append(dict(broker.names))
        return empty()

    monkeypatch.setattr(broker, "new_tenant_subscriptions", recording)
    broker.load()
    assert visible == [known]
    assert broker.names == known
    assert [envelope.position for envelope in service.messages_after(min(known), 0)] == []
    service.close()
