"""`BrowserSafety`: protects a server without keys from other sites' pages. Routes of the console.

A server without keys lets every client do everything, and a browser on the same machine sends
requests for any page that it shows. There are two attacks. A page of another site can send
requests; the browser only keeps it from reading the responses. And a page whose host name is
pointed at this machine (DNS rebinding) counts as a page of this server. The header `Host` must
therefore name this machine, and a request that changes something or opens a WebSocket must come
from a page of this server or from no page. Servers with keys need no such checks, because a browser
does not add the key by itself.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from fencepost.server.http.problems import RequestError, response

_STATIC_FOLDER = Path(__file__).parents[1] / "static"

_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "worker-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class _ConsoleFiles(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file with the security headers."""
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


async def _page(_: Request) -> Response:
    return FileResponse(_STATIC_FOLDER / "index.html", headers=_HEADERS)


def routes() -> list[BaseRoute]:
    """Return the routes of the console: the page at the root, and its files."""
    return [Route("/", _page), Mount("/console", _ConsoleFiles(directory=_STATIC_FOLDER))]


_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_FORBIDDEN = 4403


class BrowserSafety:
    """Middleware that rejects requests from pages of other sites.

    Parameters
    ----------
    app : ASGI application
    local_only : bool
        Whether the server has no keys; otherwise no request is rejected.
    """

    def __init__(self, app: ASGIApp, *, local_only: bool) -> None:
        self._app = app
        self._local_only = local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
        problem = None
        if self._local_only and scope["type"] in ("http", "websocket"):
            problem = _rejection_reason(Headers(scope=scope), scope.get("method"))
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await response(RequestError(403, problem))(scope, receive, send)
        else:
            await WebSocket(scope, receive, send).close(_FORBIDDEN, problem[:120])


def _rejection_reason(headers: Headers, method: str | None) -> str | None:
    """Return why a request is rejected, or None.

    Parameters
    ----------
    headers : Headers
    method : str or None
        None for a WebSocket.
    """
    host = headers.get("host", "").lower()
    if not _is_this_machine(host):
        return (
            f"{host!r:.60} does not name this machine; use 127.0.0.1 or localhost, "
            "or serve with keys instead of --open"
        )
    if method in _SAFE_METHODS:
        return None
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
        return f"a page of {origin!r:.60} may not use a server without keys; serve with keys"
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return "a page of another site may not use a server without keys; serve with keys"
    return None


def _is_this_machine(host: str) -> bool:
    name = host.lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    else:
        name = name.partition(":")[0].removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
