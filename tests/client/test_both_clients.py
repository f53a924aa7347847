"""Both clients against a real server."""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shapely

import fencepost as fp
from fencepost.client import Operations, RetryPolicy
from fencepost.client.network_effects import Request
from fencepost.server import Limits, RateLimiter
from tests.client.cutting import Cutting
from tests.client.driving import Driven
from tests.server.serving import Running, running
from tests.waiting import WAIT_S

TAXI = "kind = 'taxi'"


@pytest.fixture
def client(make_client: Any, server: Running) -> Iterator[Any]:
    with make_client(server.url) as found:
        yield found


def taxis(*numbers: int) -> list[dict[str, Any]]:
    return [{"kind": "taxi", "number": number} for number in numbers]


def numbers(messages: Any) -> list[int]:
    return [message.event["number"] for message in messages]


def test_both_have_the_same_methods() -> None:
    def public(client: type) -> dict[str, Any]:
        return {
            name: [*inspect.signature(member).parameters]
            for name, member in inspect.getmembers(client, callable)
            if not name.startswith("_")
        }

    assert public(fp.Client) == public(fp.AsyncClient)
    assert all(inspect.getdoc(getattr(fp.AsyncClient, name)) for name in public(fp.AsyncClient))


def test_importing_a_client_needs_no_engine() -> None:
    program = (
        "import sys, fencepost as fp; fp.Client, fp.AsyncClient; "
        "print(sorted({'numba', 'numpy', 'pyarrow', 'shapely', 'starlette'} & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_a_story(client: Any) -> None:
    end = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    made = client.subscribe("a/1", TAXI, subscriber="me", payload={"colour": "red"}, expires=end)
    assert made["expires"] == "2100-01-01T00:00:00Z"
    client.subscribe("...", {"op": "=", "args": [{"property": "kind"}, "bus"]})
    done = client.publish(taxis(1, 2))
    assert (done.accepted, done.messages, done.first, done.last) == (2, 2, 1, 2)
    first, second = islice(client.messages("me"), 2)
    assert first.subscriptions == ["a/1"]
    assert first.data["payloads"] == {"a/1": {"colour": "red"}}
    assert first.type == "fencepost.match"
    assert second.as_dict()["source"] == "urn:fencepost:default:me"
    assert [one["id"] for one in client.subscriptions()] == ["...", "a/1"]
    assert [one["id"] for one in client.subscriptions(subscriber="me")] == ["a/1"]
    assert client.unsubscribe("...") is True
    assert client.unsubscribe("...") is False
    assert client.explain({"kind": "bus"}, "a/1").matches is False
    yes, no = client.try_expression("n > 3", [{"n": 4}, {"n": 3}])
    assert (yes.matches, no.matches) == (True, False)
    assert "n is 3" in str(no)
    assert client.stats()["subscriptions"] == 1


def test_what_was_read_is_acknowledged_and_not_read_again(client: Any) -> None:
    client.subscribe("me", TAXI)
    client.publish(taxis(*range(1_000)))
    reading = client.messages("me")
    assert numbers(islice(reading, 701)) == [*range(701)]
    reading.close()  # the last one was handed out, and no next one asked for
    assert client.acknowledge("me", 0).depth == 300
    again = client.messages("me")
    assert numbers(islice(again, 300)) == [*range(700, 1_000)]
    again.close()
    everything = client.messages("me", since=0, acknowledge=False)
    assert numbers(islice(everything, 1_000)) == [*range(1_000)]
    everything.close()
    assert client.acknowledge("me", 0).depth == 1
    assert client.acknowledge("me", 2**40).depth == 0


def test_many_events_go_in_parts_and_bad_ones_are_told(client: Any) -> None:
    client.subscribe("me", TAXI)
    events = taxis(*range(12_001))
    for row in (3, 5_000, 12_000):
        events[row] = {"geometry": {"type": "Point"}}
    done = client.publish(iter(events))
    assert (done.accepted, done.messages, done.first, done.last) == (11_998, 11_998, 1, 11_998)
    assert [one.row for one in done.rejected] == [3, 5_000, 12_000]
    assert all("coordinates" in one.reason for one in done.rejected)
    assert client.publish([]).accepted == 0
    last = client.publish([{"geometry": {"type": "Point"}}])
    assert [one.row for one in last.rejected] == [0]


def test_parts_that_are_too_large_are_halved(make_client: Any, tmp_path: Path) -> None:
    from fencepost.server import Limits

    with (
        running(tmp_path / "data", limits=Limits(body_bytes=2_000)) as server,
        make_client(server.url) as client,
    ):
        client.subscribe("me", "n >= 0")
        events: list[dict[str, Any]] = [{"n": n} for n in range(700)]
        events[5]["text"] = "x" * 3_000
        done = client.publish(events)
        assert [one.row for one in done.rejected] == [5]
        found = [one.event["n"] for one in islice(client.messages("me"), 699)]
        assert found == [n for n in range(700) if n != 5]


def test_values_of_other_libraries(client: Any) -> None:
    client.subscribe("me", "S_INTERSECTS(geometry, BBOX(0, 0, 2, 2)) AND n = 3")
    where = {"geometry": shapely.Point(1, 1)}
    event = {
        **where,
        "n": np.int64(3),
        "when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    }
    assert client.publish(event).messages == 1
    (message,) = islice(client.messages("me"), 1)
    assert message.event["geometry"] == {"type": "Point", "coordinates": [1.0, 1.0]}
    with pytest.raises(fp.ModelError, match=r"row 0 .*set"):
        client.publish({"a": {1}})
    with pytest.raises(fp.ModelError, match="row 1 must be a mapping"):
        client.publish([{}, 7])
    with pytest.raises(fp.ModelError, match="row 0"):
        client.publish({"a": float("inf")})
    assert client.publish({"n": 3, "a": [float("nan"), 1.5], "b": pd.NA, **where}).messages == 1
    _, message = islice(client.messages("me", since=0), 2)
    assert (message.event["a"], message.event["b"]) == ([None, 1.5], None)  # they are missing


def test_many_subscriptions(client: Any) -> None:
    rows = [{"id": f"s{n}", "expression": f"n = {n}"} for n in range(1_500)]
    rows[7]["expression"] = "n ="
    done = client.subscribe_many(rows)
    assert (done.created, done.replaced, [one.row for one in done.rejected]) == (1_499, 0, [7])
    assert len([*client.subscriptions()]) == 1_499
    assert [one["id"] for one in client.subscriptions(contains="n = 999")] == ["s999"]


def test_composites_and_tracks_are_sent_as_given() -> None:
    operations = Operations("http://x", RetryPolicy(0, lambda: 0.0))
    composite = fp.Composite("ignored", {"a": "n = 1", "b": "n = 2"}, within_s=60)
    request = next(operations.subscribe("c", composite=composite, subscriber="me"))
    assert isinstance(request, Request)
    assert request.path == "/v1/subscriptions/c"
    sent = request.content or b""
    assert b'"within_s": 60' in sent
    assert b"ignored" not in sent
    with pytest.raises(fp.ModelError, match="Composite"):
        next(operations.subscribe("c", composite=7))


def test_what_is_refused(client: Any) -> None:
    with pytest.raises(fp.RequestRefused, match="expression ends") as caught:
        client.subscribe("a", "n =")
    assert (caught.value.status, caught.value.position) == (422, 3)
    assert caught.value.problem["detail"] == str(caught.value)
    with pytest.raises(fp.RequestRefused, match="no subscriber 'nobody'") as caught:
        next(client.messages("nobody"))
    assert caught.value.status == 404
    with pytest.raises(fp.RequestRefused, match="cannot be used"):
        client.publish({"geometry": {"type": "Point"}})
    with pytest.raises(fp.ModelError, match="must not be empty"):
        client.unsubscribe("")


def test_keys(make_client: Any, tmp_path: Path) -> None:
    with running(tmp_path / "data", open_access=False) as server:
        key = server.key("subscribe")
        with make_client(server.url, key) as client:
            client.subscribe("me", TAXI)
            with pytest.raises(fp.RequestRefused, match="scope 'publish'") as caught:
                client.publish(taxis(1))
            assert caught.value.status == 403
        for wrong in (None, "fp_nonsense"):
            with make_client(server.url, wrong) as client:
                with pytest.raises(fp.RequestRefused) as caught:
                    next(client.messages("me"))
                assert caught.value.status == 401
                with pytest.raises(fp.RequestRefused, match="key"):
                    client.stats()


NAMES = ["a/b c é", "100%", "x?y#z", "a//b", "/", "...", "日本", "a/socket", "%2F", "a+b&c=d", ";"]


def test_any_name_can_be_used(client: Any) -> None:
    for name in NAMES:
        client.subscribe(name, "n = 1")
        client.publish({"n": 1})
        reading = client.messages(name)
        assert next(reading).subscriptions == [name]
        reading.close()
        assert client.acknowledge(name, 0).depth == 1
        assert client.unsubscribe(name) is True


def test_addresses(make_client: Any, server: Running) -> None:
    with pytest.raises(fp.FencepostError, match="has the form http"):
        make_client("localhost:8080")
    with pytest.raises(fp.FencepostError, match="a key has the form"):
        make_client(server.url, "fp_é")
    with make_client(server.url + "/", " \n") as client:
        assert client.stats()["tenant"] == "default"


def test_a_server_of_another_kind(make_client: Any) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        with make_client(f"http://127.0.0.1:{other.server_port}", retry_timeout_s=0) as client:
            with pytest.raises(fp.RequestRefused, match="is not a Fencepost server"):
                client.subscribe("a", "n = 1")
            with pytest.raises(fp.FencepostError):
                next(client.messages("a"))
        other.shutdown()
        thread.join()


def test_a_server_that_is_not_there(make_client: Any) -> None:
    with make_client("http://127.0.0.1:9", retry_timeout_s=0) as client:
        with pytest.raises(fp.Unreachable, match=r"127\.0\.0\.1:9 cannot be reached"):
            client.publish(taxis(1))
        with pytest.raises(fp.Unreachable):
            next(client.messages("me"))


def test_an_answer_that_was_lost_is_asked_for_again_and_events_are_taken_once(
    make_client: Any, server: Running
) -> None:
    with Cutting(server.url) as line, make_client(line.url) as client:
        client.subscribe("me", TAXI)
        line.cut_after_request(b"POST /v1/events", times=2)
        done = client.publish(taxis(1, 2, 3))
        assert (done.accepted, done.messages) == (3, 3)
        assert line.cuts == 2
        assert client.stats()["server"]["events"] == 3
        line.cut_after_request(b"DELETE", times=1)
        assert client.unsubscribe("me") is True


class Hastening(logging.Handler):
    """A clock that stands still until somebody says to try again."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if "trying again" in record.getMessage():
            self.now += 10.0


def test_a_busy_server_is_waited_for(
    make_client: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Hastening()
    rates = RateLimiter(Limits(requests_per_s=1.0, burst=1), lambda: clock.now)
    logger = logging.getLogger("fencepost.client")
    logger.addHandler(clock)
    try:
        with running(tmp_path / "data") as server, make_client(server.url) as client:
            monkeypatch.setattr(server.service, "rate_limiter", rates)
            client.subscribe("me", TAXI)
            assert client.publish(taxis(1)).accepted == 1
    finally:
        logger.removeHandler(clock)
    assert "requests a second" in caplog.text
    assert "trying again in 1.0 s" in caplog.text


def test_closing_a_client_ends_its_loops(make_client: Any, server: Running) -> None:
    with make_client(server.url) as client:
        client.subscribe("me", TAXI)
        client.publish(taxis(1))
    reading = make_client(server.url)
    found: list[int] = []
    begun = threading.Event()

    def read() -> None:
        for message in reading.messages("me"):
            found.append(message.event["number"])
            begun.set()

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(WAIT_S)
    _close(reading)
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert found == [1]


def _close(client: Any) -> None:
    if isinstance(client, Driven):  # its loop runs in the other thread
        asyncio.run_coroutine_threadsafe(client.client.close(), client.loop).result(WAIT_S)
    else:
        client.close()


def test_what_to_install_is_said() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None\n"
        "import fencepost as fp\n"
        "try: fp.Client\n"
        "except fp.FencepostError as error: print(error)"
    )
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pip install 'fencepost[client]'" in ran.stdout
