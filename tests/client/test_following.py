"""Messages without a gap, whatever happens to connections: against a made-up server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.client import Backoff, RetryPolicy
from fencepost.client.client_operations import MessageFollower
from fencepost.client.network_effects import (
    ConnectionLost,
    IterationStopped,
    OpenSocket,
    ReceiveFrame,
    Request,
    Response,
    SendFrame,
    Sleep,
    YieldValue,
)


def envelope(position: int) -> dict[str, Any]:
    texts = dict.fromkeys(("source", "type", "time"), "")
    return {"position": position, "id": str(position), "data": {"n": position}, **texts}


class Pretended:
    """A server with some messages, of which the network loses what it likes.

    `luck` says of each step on the network whether it fails, and how many messages a frame has.
    """

    def __init__(self, positions: list[int], luck: list[int]) -> None:
        self.positions = positions
        self.luck = iter([*luck, *[3] * 10_000])
        self.acknowledged = 0
        self.at: int | None = None
        self.now = 0.0

    def answer(self, effect: Any) -> Any:
        if isinstance(effect, Sleep):
            self.now += effect.seconds
            return None
        if isinstance(effect, Request):
            self.acknowledged = max(
                self.acknowledged, json.loads(effect.content or b"")["position"]
            )
            return Response(200, {}, b"{}")
        lucky = next(self.luck)
        if isinstance(effect, OpenSocket):
            assert effect.path == "/v1/subscribers/me/socket"
            self.at = int(effect.query.get("since", self.acknowledged)) if lucky else None
        elif not lucky:
            if isinstance(effect, SendFrame) and next(self.luck) > 1:
                self._take(effect.text)  # it arrived, and then the connection broke
            self.at = None
        if self.at is None:
            return ConnectionLost("the network is gone")
        if isinstance(effect, SendFrame):
            self._take(effect.text)
        if not isinstance(effect, ReceiveFrame):
            return None
        rest = [one for one in self.positions if one > self.at][:lucky]
        if not rest:
            raise TimeoutError
        self.at = rest[-1]
        return json.dumps([envelope(one) for one in rest])

    def _take(self, told: str | bytes) -> None:
        self.acknowledged = max(self.acknowledged, json.loads(told)["position"])


def handed(
    server: Pretended, since: int | None, tell: bool, stop_after: int | None = None
) -> list[int]:
    retry_policy = RetryPolicy(1e9, lambda: server.now, lambda: 0.5)
    steps = MessageFollower("http://x", retry_policy, "me", since, tell).steps()
    found: list[int] = []
    before = server.acknowledged
    came: Any = None
    try:
        while True:
            effect = steps.send(came)
            came = None
            if not isinstance(effect, YieldValue):
                came = server.answer(effect)
                continue
            # What is acknowledged was handed out, and the next one asked for.
            assert server.acknowledged <= max([before, *found])
            found.append(effect.value.position)
            if len(found) == stop_after:
                effect = steps.throw(IterationStopped())
                while True:
                    effect = steps.send(server.answer(effect))
    except (TimeoutError, StopIteration):
        return found


@given(
    st.lists(st.integers(1, 5), max_size=30),
    st.lists(st.integers(0, 3), max_size=40),
    st.booleans(),
    st.booleans(),
)
def test_each_once_and_in_order_whatever_breaks(
    gaps: list[int], luck: list[int], tell: bool, replay: bool
) -> None:
    positions = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    server = Pretended(positions, luck)
    assert handed(server, 0 if replay else None, tell) == positions
    assert server.acknowledged == (positions[-1] if tell and positions else 0)


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 20))
def test_who_stops_has_read_all_but_the_last(luck: list[int], stop: int) -> None:
    server = Pretended([*range(1, 21)], luck)
    assert handed(server, None, True, stop) == [*range(1, stop + 1)]
    assert server.acknowledged == stop - 1
    assert handed(server, None, True) == [*range(stop, 21)]


def test_refusals_are_told_and_others_waited_out() -> None:
    steps = MessageFollower("http://x", RetryPolicy(60, lambda: 0.0), "me", None, True).steps()
    assert isinstance(next(steps), OpenSocket)
    assert isinstance(steps.send(ConnectionLost("too many connections", 4503)), Sleep)
    assert isinstance(steps.send(None), OpenSocket)
    with pytest.raises(fp.RequestRefused, match="no subscriber") as caught:
        steps.send(ConnectionLost("there is no subscriber 'me'", 4404))
    assert caught.value.status == 404


def test_who_was_there_once_is_waited_for_without_end() -> None:
    now = 0.0
    retry_policy = RetryPolicy(10, lambda: now, lambda: 0.75)
    steps = MessageFollower("http://x", retry_policy, "me", None, True).steps()
    next(steps)
    assert isinstance(steps.send(None), ReceiveFrame)
    effect = steps.send(ConnectionLost("closed", 1001))
    for _ in range(100):
        assert isinstance(effect, Sleep)
        now += effect.seconds
        assert isinstance(steps.send(None), OpenSocket)
        effect = steps.send(ConnectionLost("refused"))
    assert now > 500


def test_waits_double_up_to_a_bound_and_patience_ends() -> None:
    now = 0.0
    backoff = Backoff(RetryPolicy(30.0, lambda: now, lambda: 1.0))
    waits = []
    while (wait := backoff.failed()) is not None:
        waits.append(wait)
        now += wait
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 4.25]
    backoff.succeeded()
    assert backoff.failed() == 0.25
    assert backoff.failed(requested_wait_s=7.0) == 7.0
    assert backoff.failed(requested_wait_s=60.0) is None
    now += 100.0
    assert backoff.failed() == 0.25
