"""Cases in which JSON libraries differ: all requests treat them alike and explain errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.server.serving import Running, running
from tests.waiting import WAIT_S

SUBSCRIPTION = ("PUT", "/v1/subscriptions/a", '{"expression": "a = 1", "payload": %s}')
EVENT = ("POST", "/v1/events", '{"a": 1, "b": %s}')
BODIES = (
    SUBSCRIPTION,
    ("POST", "/v1/subscriptions", '{"id": "b", "expression": "a = 1", "payload": %s}'),
    ("POST", "/v1/try", '{"expression": "a = 1", "events": [{"a": 1, "b": %s}]}'),
    ("POST", "/v1/subscriptions/there/explanation", '{"event": {"a": 1, "b": %s}}'),
    ("POST", "/v1/safe-regions", '{"event": {"a": 1, "b": %s}}'),
    ("POST", "/v1/keys", '{"scopes": ["publish"], "name": %s}'),
    ("POST", "/v1/subscribers/there/acknowledgement", '{"position": %s}'),
    ("PUT", "/v1/subscribers/there/endpoint", '{"kind": "webhook", "url": %s}'),
    EVENT,
)
MAX_DEPTH = 136


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a server with a subscription."""
    with running(tmp_path_factory.mktemp("data")) as server:
        server.http.put("/v1/subscriptions/there", json={"expression": "a = 1"})
        yield server


def send(
    server: Running, method: str, path: str, body: bytes, type: str = "application/json"
) -> httpx.Response:
    return server.http.request(method, path, content=body, headers={"content-type": type})


@pytest.mark.parametrize("case", BODIES, ids=lambda case: f"{case[0]} {case[1]}")
@pytest.mark.parametrize(
    "value",
    [
        rb'"\ud800"', rb'"\udfff"', rb'"a\ud800b"', rb'{"\ud800": 1}', b"NaN", b"Infinity",
        b"-Infinity", b"1" * 5_000, b"[" * 100_000, b"[" * 500 + b"]" * 500,
        b'{"a":' * 500 + b"1" + b"}" * 500, b"[1,]", b"01", b'"\t"', b"1 2", b"", b"'a'",
        b'"\xff"', b'"\xed\xa0\x80"', b'{"\xff": 1}', b"tru", b"1.", b".5", b"+1", b'"\\x"',
    ],
    ids=lambda value: repr(value[:20]),
)  # fmt: skip
def test_invalid_json_is_rejected(
    server: Running, case: tuple[str, str, str], value: bytes
) -> None:
    method, path, form = case
    answer = send(server, method, path, form.encode().replace(b"%s", value))
    assert answer.status_code in (400, 422), answer.text[:300]
    assert answer.status_code == 400 or path == "/v1/events"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert 10 < len(problem["detail"]) < 300
    assert "Traceback" not in problem["detail"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"a": "\xff"}', "byte 8 of the body is not UTF-8"),
        (b"[" * 5_000, "nest"),
        (b'{"expression": "a = 1", "payload": NaN}', "NaN"),
        (rb'{"expression": "a = 1", "payload": "\ud83d"}', "surrogate"),
        (b'{"expression": "a = 1",}', "no JSON"),
        (b"[]", "must be a JSON object"),
        (b"7", "must be a JSON object"),
    ],
)
def test_reasons_are_specific(server: Running, body: bytes, message: str) -> None:
    answer = send(server, "PUT", "/v1/subscriptions/a", body)
    assert answer.status_code == 400
    assert message in answer.json()["detail"]


@pytest.mark.parametrize("case", [SUBSCRIPTION, EVENT], ids=("subscription", "event"))
def test_numbers_beyond_the_range_of_floats(server: Running, case: tuple[str, str, str]) -> None:
    method, path, form = case
    answer = send(server, method, path, (form % "1e999").encode())
    assert answer.status_code < 500
    server.http.post("/v1/events", json={"a": 1})
    for path in ("/v1/subscriptions", "/v1/events", "/v1/subscribers/there/messages"):
        assert server.http.get(path).status_code == 200


@pytest.mark.parametrize(
    "value",
    [
        "1", "1.0", "0", "-0.0", "0.1", "9007199254740993", "9223372036854775808",
        "18446744073709551616", "-170141183460469231731687303715884105728", "5e-324",
        "1.7976931348623157e+308", "true", "null", '"1.0"', '"\\u0000"', '"\\ud83d\\ude00"',
        '"\u2028"', '{"a": [1, 1.0, {}]}', "[]", '"[[[[{{{{"',
    ],
)  # fmt: skip
def test_payloads_are_returned_unchanged(server: Running, value: str) -> None:
    body = f'{{"expression": "a = 1", "payload": {value}}}'.encode()
    assert send(server, "PUT", "/v1/subscriptions/a", body).status_code in (200, 201)
    server.http.post("/v1/events", json={"a": 1})
    expected = json.loads(value)
    subscription = server.http.get("/v1/subscriptions/a").json()
    message = server.http.get("/v1/subscribers/a/messages").json()[-1]
    if expected is None:
        assert "payload" not in subscription
        assert "payloads" not in message["data"]
        return
    for payload in (subscription["payload"], message["data"]["payloads"]["a"]):
        assert repr(payload) == repr(expected)  # distinguishes 1 from 1.0, and 0.0 from -0.0


@pytest.mark.parametrize(
    "value",
    ["1", "1.0", "-0", "-0.0", "1e2", "1E+2", "0.10", "123456789012345678901234567890", "[ 1 ]"],
)
def test_the_text_of_an_event_is_kept(server: Running, value: str) -> None:
    body = f'{{"a": 1,"b":  {value}}}'
    answer = send(server, "POST", "/v1/events", body.encode()).json()
    assert answer["accepted"] == 1
    assert body in server.http.get(f"/v1/events/{answer['first']}").text
    query = {"limit": 1_000}
    assert body in server.http.get("/v1/subscribers/there/messages", params=query).text


def test_of_duplicate_names_the_last_counts(server: Running) -> None:
    body = b'{"expression": "a = 2", "payload": {"x": 1, "x": 2}, "expression": "a = 1"}'
    assert send(server, "PUT", "/v1/subscriptions/a", body).status_code in (200, 201)
    subscription = server.http.get("/v1/subscriptions/a").json()
    assert (subscription["expression"], subscription["payload"]) == ("a = 1", {"x": 2})
    body = b'{"position": 99, "position": 0}'
    answer = send(server, "POST", "/v1/subscribers/there/acknowledgement", body)
    assert answer.json()["acknowledged"] == 0


@pytest.mark.parametrize("case", [SUBSCRIPTION, EVENT], ids=("subscription", "event"))
def test_the_depth_of_brackets_is_limited(server: Running, case: tuple[str, str, str]) -> None:
    method, path, form = case

    def of_depth(depth: int) -> int:
        value = "[" * (depth - 1) + "]" * (depth - 1)
        return send(server, method, path, (form % value).encode()).status_code

    assert of_depth(MAX_DEPTH) in (200, 201)
    assert of_depth(MAX_DEPTH + 1) in (400, 422)
    text = json.dumps("[{" * 500)
    assert send(server, method, path, (form % text).encode()).status_code in (200, 201)


@pytest.mark.parametrize("case", BODIES[:5], ids=lambda case: case[1])
def test_a_byte_order_mark_is_ignored(server: Running, case: tuple[str, str, str]) -> None:
    method, path, form = case
    body = b"\xef\xbb\xbf" + (form % "2").encode()
    assert send(server, method, path, body).status_code in (200, 201)


def test_lines_are_rejected_individually(server: Running) -> None:
    lines = [
        b'{"id": "1", "expression": "a = 1", "payload": %s}' % value
        for value in (b"1", rb'"\ud800"', b"NaN", b"[" * 500, b'"\xff"', b"1" * 5_000, b"2.0")
    ]
    lines += [b"7", b'{"id": "x", "expression": 7}', b'{"id": "x"}', b'{"id": 3}']
    answer = send(
        server, "POST", "/v1/subscriptions", b"\n".join(lines), "application/x-ndjson"
    ).json()
    assert answer["created"] + answer["replaced"] == 2
    assert [rejected["row"] for rejected in answer["rejected"]] == [1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert all(10 < len(rejected["reason"]) < 300 for rejected in answer["rejected"])


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PUT", "/v1/subscriptions/a", {"expression": "a = 1", "expires": 3}, "expires"),
        ("PUT", "/v1/subscriptions/a", {"expression": "a = 1", "expires": "soon"}, "soon"),
        ("PUT", "/v1/subscriptions/a", {"expression": "a = 1", "subscriber": 3}, "subscriber"),
        ("PUT", "/v1/subscriptions/a", {"expression": "a = 1", "colour": 3}, "colour"),
        ("PUT", "/v1/subscriptions/a", {"expression": "a = 1", "track": 3}, "track"),
        ("PUT", "/v1/subscriptions/a", {"composite": 3}, "composite"),
        ("PUT", "/v1/subscriptions/a", {"expression": None}, "expression"),
        ("PUT", "/v1/subscriptions/a", {}, "expression"),
        ("PUT", "/v1/subscriptions/a", {"expression": "a = 1", "composite": {}}, "composite"),
        ("PUT", "/v1/subscriptions/a", {"composite": {}, "track": {}}, "track"),
        ("POST", "/v1/subscriptions", {"expression": "a = 1"}, "id"),
        ("POST", "/v1/subscriptions", {"id": 7, "expression": "a = 1"}, "id"),
        ("PUT", "/v1/subscriptions/a", {"expression": "a", "payload": "x" * 5_000}, "payload"),
        ("POST", "/v1/try", {"expression": "a = 1"}, "events"),
        ("POST", "/v1/try", {"expression": "a = 1", "events": {}}, "events"),
        ("POST", "/v1/try", {"expression": "a = 1", "events": [{}] * 1_001}, "1000"),
        ("POST", "/v1/try", {"expression": "a = 1", "events": [3]}, "object"),
        ("POST", "/v1/keys", {"name": "x"}, "scopes"),
        ("POST", "/v1/keys", {"scopes": "publish"}, "scopes"),
        ("POST", "/v1/keys", {"scopes": []}, "scopes"),
        ("POST", "/v1/keys", {"scopes": ["fly"]}, "scopes"),
        ("POST", "/v1/keys", {"scopes": ["publish"], "name": "x" * 201}, "200"),
        ("POST", "/v1/keys", {"scopes": ["publish"], "name": "a\nb"}, "name"),
        ("POST", "/v1/keys", {"scopes": ["publish"], "expires": 3}, "expires"),
        ("POST", "/v1/subscribers/there/acknowledgement", {}, "position"),
        ("POST", "/v1/subscribers/there/acknowledgement", {"position": -1}, "position"),
        ("POST", "/v1/subscribers/there/acknowledgement", {"position": 1.5}, "position"),
        ("POST", "/v1/subscribers/there/acknowledgement", {"position": True}, "position"),
        ("POST", "/v1/subscribers/there/acknowledgement", {"position": 2**63}, "position"),
        ("PUT", "/v1/subscribers/there/endpoint", {"kind": "pigeon"}, "pigeon"),
        ("PUT", "/v1/subscribers/there/endpoint", {"url": "https://a.example"}, "kind"),
        ("PUT", "/v1/subscribers/there/endpoint", {"kind": "webhook"}, "url"),
        ("PUT", "/v1/subscribers/there/endpoint", {"kind": "webhook", "url": "gopher://a"}, "url"),
    ],
)
def test_errors_name_the_member(
    server: Running, method: str, path: str, body: Any, field: str
) -> None:
    answer = server.http.request(method, path, json=body)
    assert answer.status_code == 422, answer.text
    assert field in answer.json()["detail"].replace(",", "")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("batch", 0), ("batch", 1_001), ("batch", True), ("batch", "1"), ("batch", 1.5),
        ("secret", "short"), ("secret", "x" * 201), ("secret", "with a space in it"),
        ("secret", 3), ("headers", []), ("headers", {"x": 3}), ("headers", {"x": "\n"}),
        ("headers", {"x y": "z"}), ("headers", {"Host": "z"}), ("headers", {"proxy-x": "z"}),
        ("headers", {f"x{n}": "" for n in range(21)}), ("colour", "red"), ("topic", "a"),
    ],
)  # fmt: skip
def test_invalid_members_of_a_webhook(server: Running, member: str, value: Any) -> None:
    body = {"kind": "webhook", "url": "https://93.184.216.34/x", member: value}
    answer = server.http.put("/v1/subscribers/there/endpoint", json=body)
    assert answer.status_code == 422, answer.text
    assert member in answer.json()["detail"]


def test_a_position_may_be_a_whole_float(server: Running) -> None:
    server.http.post("/v1/events", json={"a": 1})
    body = b'{"position": 1.0}'
    answer = send(server, "POST", "/v1/subscribers/there/acknowledgement", body)
    assert answer.json()["acknowledged"] == 1


@pytest.mark.parametrize(
    "frame",
    ['{"event": {"a": NaN}}', '{"event": {"a": "\\ud800"}}', "[" * 500, '{"event": {}} x', "7",
     '{"event": {}, "colour": 1}', '{"key": "a"}', '{"event": {}, "key": ""}',
     '{"event": {}, "key": 3}', '{"forget": 3}', '{"forget": "%s"}' % ("x" * 257)],
)  # fmt: skip
def test_invalid_frames_of_a_publisher(server: Running, frame: str) -> None:
    with connect(
        server.url.replace("http", "ws") + "/v1/publish/socket", open_timeout=WAIT_S
    ) as sock:
        sock.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            sock.recv(timeout=WAIT_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4422
    assert len(closed.value.rcvd.reason) > 10


def test_replies_repeat_the_id_and_the_key(server: Running) -> None:
    with connect(
        server.url.replace("http", "ws") + "/v1/publish/socket", open_timeout=WAIT_S
    ) as sock:
        for id in (1, 1.5, "x", [None, {"a": 2**80}]):
            sock.send(json.dumps({"event": {"a": 1}, "id": id}))
            assert json.loads(sock.recv(timeout=WAIT_S))["id"] == id
        sock.send(json.dumps({"event": 3, "id": 7, "key": "k"}))
        reply = json.loads(sock.recv(timeout=WAIT_S))
        assert (reply["id"], reply["key"], reply["problem"]["status"]) == (7, "k", 422)
        sock.send('{"ping": [1.0]}')
        assert json.loads(sock.recv(timeout=WAIT_S)) == {"pong": [1.0]}
