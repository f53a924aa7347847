"""A server without keys rejects requests from pages of other sites."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import websockets.sync.client as sockets
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.server.serving import Running, running
from tests.waiting import WAIT_S

EVENT = {"kind": "taxi"}


@pytest.mark.parametrize(
    "host", ["evil.example", "10.0.0.1", "127.0.0.1.evil.example", "[::2]", ""]
)
def test_other_host_names_are_rejected(server: Running, host: str) -> None:
    for path in ("/", "/v1/stats", "/v1/events"):
        answer = server.http.get(path, headers={"host": host})
        assert answer.status_code in (400, 403), answer.text


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "127.8.9.1", "[::1]:80", "a.localhost"]
)
def test_local_host_names_are_accepted(server: Running, host: str) -> None:
    assert server.http.get("/v1/stats", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_change_nothing(server: Running, headers: dict[str, str]) -> None:
    for method, path in (
        ("POST", "/v1/events"),
        ("PUT", "/v1/subscriptions/a"),
        ("DELETE", "/v1/dead-letters"),
    ):
        answer = server.http.request(method, path, json=EVENT, headers=headers)
        assert answer.status_code == 403
        assert answer.headers["content-type"] == "application/problem+json"
    assert server.http.get("/v1/events").json() == {"events": []}


def test_the_console_and_programs_are_accepted(server: Running) -> None:
    same_origin = {"origin": server.url, "sec-fetch-site": "same-origin"}
    assert server.http.post("/v1/events", json=EVENT, headers=same_origin).status_code == 200
    assert server.http.post("/v1/events", json=EVENT).status_code == 200


@pytest.mark.parametrize("path", ["/v1/live", "/v1/subscribers/a/socket"])
def test_websockets_of_other_sites_are_rejected(server: Running, path: str) -> None:
    url = f"ws{server.url.removeprefix('http')}{path}"
    with (
        pytest.raises(InvalidStatus),
        sockets.connect(url, origin=Origin("https://evil.example"), open_timeout=WAIT_S),
    ):
        pass
    with sockets.connect(url, origin=Origin(server.url), open_timeout=WAIT_S):
        pass


def test_servers_with_keys_accept_every_site(tmp_path: Path) -> None:
    with running(tmp_path, open_access=False) as server:
        key = server.key("publish")
        headers = {"origin": "https://else.example", "host": "fence.example"}
        answer = server.client(key).post("/v1/events", json=EVENT, headers=headers)
        assert answer.status_code == 200


def test_the_page_keeps_the_browser_to_this_server(server: Running) -> None:
    for path in ("/", "/console/js/app.js", "/console/vendor/leaflet/leaflet.js"):
        answer = server.http.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert server.http.get("/console/../app.py").status_code == 404
    assert server.http.get("/console/%2e%2e/app.py").status_code == 404
    raw = httpx.get(f"{server.url}/console/js/nothing.js", timeout=WAIT_S)
    assert raw.status_code == 404
