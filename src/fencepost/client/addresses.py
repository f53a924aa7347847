"""Addresses of a server and of what is there, and what a client says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode, urlsplit

from fencepost.errors import FencepostError, ModelError


def checked_url(url: str) -> str:
    """The address of a server, without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise FencepostError(
            f"a server is at an address as in http://127.0.0.1:8080; saw {url!r:.80}"
        )
    return url.rstrip("/")


def socket_url(url: str, path: str, query: Mapping[str, str]) -> str:
    """The address of a WebSocket below that of a server."""
    asked = f"?{urlencode(query)}" if query else ""
    return f"ws{url.removeprefix('http')}{path}{asked}"


def headers_of(key: str | None) -> dict[str, str]:
    """What each request says."""
    given = (key or "").strip()
    if not given.isascii() or not given.isprintable():
        raise FencepostError("a key is a text as in fp_..., as `fencepost keys add` printed it")
    return {"authorization": f"Bearer {given}"} if given else {}


def quoted(name: str) -> str:
    """A name as one segment of a path."""
    if not name:
        raise ModelError("an id is a text that is not empty")
    # A segment of dots would be taken for a folder.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")
