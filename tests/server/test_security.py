"""Keys, isolation of tenants, limits, and malicious requests."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from fencepost.errors import FencepostError
from fencepost.server import (
    OPERATIONS,
    Limits,
    RateLimiter,
    Service,
    Settings,
    check_access,
    is_loopback,
)
from fencepost.server import server_process as process
from fencepost.store import api_keys
from tests.server.serving import Running, running
from tests.waiting import WAIT_S

SCOPES = ("publish", "subscribe", "admin")
LOCKED = {"open_access": False}


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Running]:
    """Yield a server that requires keys."""
    with running(tmp_path / "data", **LOCKED) as server:
        yield server


@pytest.fixture
def tenants(locked: Running) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Yield a tenant with a subscription and messages, and a tenant without any."""
    with (
        locked.client(locked.key(*SCOPES, tenant="acme")) as acme,
        locked.client(locked.key(*SCOPES, tenant="evil")) as evil,
    ):
        made = acme.put("/v1/subscriptions/s", json={"expression": "a = 1", "subscriber": "me"})
        assert made.status_code == 201
        assert acme.post("/v1/events", json={"a": 1, "secret": "x"}).json()["messages"] == 1
        yield acme, evil


# Keys


def test_every_operation_needs_a_key_of_its_scope(locked: Running) -> None:
    for operation in OPERATIONS:
        if not operation.scope:
            continue
        path = re.sub(r"{\w+}", "1", operation.path)
        others = [scope for scope in SCOPES if scope != operation.scope]
        for key, status in (
            (None, 401),
            ("fp_000000000000_" + "A" * 43, 401),
            ("nonsense", 401),
            (locked.key(*others), 403),
        ):
            with locked.client(key) as client:
                assert client.request(operation.method, path).status_code == status, path


def test_revoked_and_expired_keys_are_rejected(locked: Running) -> None:
    with locked.client(locked.key("admin")) as admin:
        made = admin.post("/v1/keys", json={"scopes": ["publish"], "name": "p"}).json()
        old = {"scopes": ["publish"], "expires": "2020-01-01T00:00:00Z"}
        expired = admin.post("/v1/keys", json=old).json()["key"]
        listed = admin.get("/v1/keys").json()["keys"]
        assert len(listed) == 3
        assert all("key" not in key for key in listed)
        with locked.client(made["key"]) as publisher, locked.client(expired) as late:
            assert publisher.post("/v1/events", json={"a": 1}).status_code == 200
            assert late.post("/v1/events", json={"a": 1}).status_code == 401
            assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204
            assert publisher.post("/v1/events", json={"a": 1}).status_code == 401
    stored = (locked.service.settings.folder / "fencepost.db").read_bytes()
    assert made["key"].split("_", 2)[2].encode() not in stored


# Tenants


def test_another_tenant_sees_and_changes_nothing(
    tenants: tuple[httpx.Client, httpx.Client],
) -> None:
    acme, evil = tenants
    assert evil.get("/v1/subscriptions").json()["subscriptions"] == []
    assert evil.get("/v1/subscribers").json()["subscribers"] == []
    assert evil.get("/v1/events").json()["events"] == []
    assert evil.get("/v1/events", params={"since": 0}).json()["events"] == []
    assert evil.get("/v1/dead-letters").json()["dead_letters"] == []
    assert {key["tenant"] for key in evil.get("/v1/keys").json()["keys"]} == {"evil"}
    for path in (
        "/v1/subscriptions/s",
        "/v1/events/1",
        "/v1/subscribers/me",
        "/v1/subscribers/me/messages",
        "/v1/subscribers/me/messages?since=0",
        "/v1/subscribers/me/stream?since=0",
        "/v1/subscriptions/s/explanation?event=1",
    ):
        answer = evil.get(path)
        assert answer.status_code == 404, path
        assert "secret" not in answer.text
    assert evil.delete("/v1/subscriptions/s").status_code == 404
    body = {"position": 1}
    assert evil.post("/v1/subscribers/me/acknowledgement", json=body).status_code == 404
    [own_key] = acme.get("/v1/keys").json()["keys"]
    assert evil.delete(f"/v1/keys/{own_key['id']}").status_code == 404
    assert "secret" not in evil.get("/metrics").text + evil.get("/v1/stats").text
    assert 'subscriber="me"' not in evil.get("/metrics").text
    # Equal names of different tenants are independent.
    evil.put("/v1/subscriptions/s", json={"expression": "a = 1", "subscriber": "me"})
    assert evil.get("/v1/subscribers/me/messages", params={"since": 0}).json() == []
    assert acme.post("/v1/events", json={"a": 1}).json()["messages"] == 1
    assert evil.get("/v1/subscribers/me/messages", params={"since": 0}).json() == []
    evil.delete("/v1/subscriptions/s")
    assert acme.get("/v1/subscriptions/s").status_code == 200
    assert len(acme.get("/v1/subscribers/me/messages").json()) == 2


def test_another_tenant_gets_no_socket(
    locked: Running, tenants: tuple[httpx.Client, httpx.Client]
) -> None:
    _, evil = tenants
    url = locked.url.replace("http", "ws") + "/v1/subscribers/me/socket?since=0"
    headers = {"authorization": evil.headers["authorization"]}
    for sent_headers, code in (({}, 4401), (headers, 4404)):
        with (
            connect(url, additional_headers=sent_headers, open_timeout=WAIT_S) as sock,
            pytest.raises(ConnectionClosed) as closed,
        ):
            sock.recv(timeout=WAIT_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == code


def test_tenants_have_separate_idempotency_keys(
    tenants: tuple[httpx.Client, httpx.Client],
) -> None:
    acme, evil = tenants
    headers = {"idempotency-key": "one"}
    first = acme.post("/v1/events", json=[{"a": 1}] * 3, headers=headers).json()
    other = evil.post("/v1/events", json={"a": 1}, headers=headers).json()
    assert (first["accepted"], other["accepted"]) == (3, 1)


# Network access


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_loopback_hosts(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_other_hosts_require_keys(tmp_path: Path) -> None:
    service = Service(Settings(tmp_path))
    try:
        check_access(service, "127.0.0.1")
        with pytest.raises(FencepostError, match="fencepost keys add"):
            check_access(service, "0.0.0.0")
        with service.database.transaction() as connection:
            api_keys.add_key(connection, "default", ["admin"], "", 0)
        check_access(service, "0.0.0.0")
    finally:
        service.close()
    unlocked = Service(Settings(tmp_path, open_access=True))
    try:
        with pytest.raises(FencepostError, match="needs keys"):
            check_access(unlocked, "0.0.0.0")
    finally:
        unlocked.close()


# Limits


def test_large_requests_are_rejected(tmp_path: Path) -> None:
    limits = Limits(body_bytes=10_000, expression_chars=2_000, vertices=50, subscriptions=2)
    with running(tmp_path, limits=limits) as server:
        assert server.http.post("/v1/events", content=b" " * 10_001).status_code == 413

        def parts() -> Iterator[bytes]:
            for _ in range(100):
                yield b" " * 1_000

        assert server.http.post("/v1/events", content=parts()).status_code == 413
        long = {"id": "a", "expression": "a = 1 OR " * 400 + "a = 2"}
        assert server.http.post("/v1/subscriptions", json=long).status_code == 422
        ring = [[float(n % 7), float(n)] for n in range(60)]
        line = {"type": "LineString", "coordinates": ring}
        event = {"type": "Feature", "geometry": line, "properties": {}}
        refused = server.http.post("/v1/events", json=event)
        assert refused.status_code == 422
        assert "vertices" in refused.json()["detail"]
        for id, status in (("a", 201), ("b", 201), ("c", 403), ("a", 200)):
            answer = server.http.put(f"/v1/subscriptions/{id}", json={"expression": "a = 1"})
            assert answer.status_code == status
        assert server.http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "expression",
    [
        " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(40)),
        " OR ".join(f"a = {n}" for n in range(1_000)),
        "(" * 5_000 + "a = 1" + ")" * 5_000,
        "NOT " * 5_000 + "a = 1",
        "a LIKE '" + "%a" * 2_000 + "'",
        "S_INTERSECTS(geometry, LINESTRING("
        + ", ".join(f"{n % 90} {n % 45}" for n in range(8_000))
        + "))",
        "a = " + "9" * 5_000,
    ],
    ids=["product", "ors", "brackets", "nots", "like", "vertices", "digits"],
)
def test_expensive_subscriptions_are_accepted_or_rejected(server: Running, expression: str) -> None:
    answer = server.http.put("/v1/subscriptions/a", json={"expression": expression})
    assert answer.status_code in (201, 422), answer.text[:300]
    published = server.http.post("/v1/events", json={"a": 5, "geometry": None})
    assert published.json()["accepted"] == 1


def test_a_million_vertices_are_rejected(server: Running) -> None:
    ring = ", ".join(f"{n % 180} {n % 90}" for n in range(1_000_000))
    body = {"expression": f"S_INTERSECTS(geometry, LINESTRING({ring}))"}
    answer = server.http.put("/v1/subscriptions/a", json=body)
    assert answer.status_code in (413, 422)
    assert server.http.get("/healthz").status_code == 200


def test_the_rate_limit_of_a_key() -> None:
    now = [0.0]
    rates = RateLimiter(Limits(requests_per_s=2, burst=3), lambda: now[0])
    for _ in range(3):
        rates.count("a")
    with pytest.raises(FencepostError, match="requests a second") as refused:
        rates.count("a")
    assert refused.value.headers == {"retry-after": "1"}  # type: ignore[attr-defined]
    rates.count("b")
    now[0] = 0.5
    rates.count("a")
    with pytest.raises(FencepostError):
        rates.count("a")


# Malicious connections


def _raw(server: Running, sent: bytes) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=WAIT_S)
    made.sendall(sent)
    return made


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/eve", b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-"]
)
def test_headers_that_do_not_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    with running(tmp_path) as server:
        with monkeypatch.context() as patched:  # only for this connection
            patched.setattr(process, "HEADER_TIMEOUT_S", 0.2)
            with _raw(server, sent) as slow, pytest.raises(ConnectionError):
                _until_closed(slow)
        assert server.http.get("/healthz").status_code == 200


def test_endless_headers(server: Running) -> None:
    with _raw(server, b"GET / HTTP/1.1\r\n") as flood, pytest.raises(ConnectionError):
        _flood(flood)
    assert server.http.get("/healthz").status_code == 200


def _flood(raw: socket.socket) -> None:
    for _ in range(200):
        raw.sendall(b"x-more: " + b"y" * 10_000 + b"\r\n")
    _until_closed(raw)


def test_a_body_that_does_not_arrive(tmp_path: Path) -> None:
    head = b"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{"
    with running(tmp_path, limits=Limits(body_timeout_s=0.2)) as server, _raw(server, head) as slow:
        assert slow.recv(1_000).startswith(b"HTTP/1.1 408")


def _until_closed(raw: socket.socket) -> None:
    while raw.recv(1_000):
        pass
    raise ConnectionError("closed")


@pytest.mark.parametrize(
    "frame",
    ["", "nonsense", "[]", "1", '{"position": -1}', '{"position": "1"}', '{"position": 1e999}',
     "[" * 4_000, "x" * 5_000, b"\x00\xff", json.dumps({"position": 2**70})],
)  # fmt: skip
def test_invalid_frames_close_the_socket(server: Running, frame: str | bytes) -> None:
    server.http.put("/v1/subscriptions/a", json={"expression": "a = 1"})
    url = server.url.replace("http", "ws") + "/v1/subscribers/a/socket"
    with connect(url, open_timeout=WAIT_S) as sock:
        sock.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            sock.recv(timeout=WAIT_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4422
    with connect(url, open_timeout=WAIT_S) as sock:
        server.http.post("/v1/events", json={"a": 1})
        assert len(json.loads(sock.recv(timeout=WAIT_S))) == 1
