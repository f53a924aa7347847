"""The console, and what a server that needs no key must refuse of browsers.

The console is one page, its scripts and its styles, all from this server.

Whoever reaches a server without keys may do everything, and a browser on the same machine reaches
it on behalf of any page that it shows. Two ways lead in: a page of another site sends requests (the
browser only keeps it from reading the answers), and a page whose name is made to point at this
machine (DNS rebinding) is of the same site as far as the browser knows. So the name must be one of
this machine, and what changes something, or is a WebSocket, must come from a page of this server or
from no page at all. A key is in no browser unless somebody put it there, so servers with keys need
none of this.
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

FOLDER = Path(__file__).parents[1] / "static"

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


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, with what a browser must keep to."""
        found = await super().get_response(path, scope)
        found.headers.update(_HEADERS)
        return found


async def _page(_: Request) -> Response:
    return FileResponse(FOLDER / "index.html", headers=_HEADERS)


def routes() -> list[BaseRoute]:
    """The page at the root, and what it loads."""
    return [Route("/", _page), Mount("/console", _Files(directory=FOLDER))]


_READING = ("GET", "HEAD", "OPTIONS")
_REFUSED = 4403


class BrowserSafety:
    """Middleware that refuses what pages of other sites ask.

    Parameters
    ----------
    app : ASGI application
    local_only : bool
        Whether the server needs no key; else nothing is refused.
    """

    def __init__(self, app: ASGIApp, *, local_only: bool) -> None:
        self._app = app
        self._local_only = local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        problem = None
        if self._local_only and scope["type"] in ("http", "websocket"):
            problem = refused(Headers(scope=scope), scope.get("method"))
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await response(RequestError(403, problem))(scope, receive, send)
        else:
            await WebSocket(scope, receive, send).close(_REFUSED, problem[:120])


def refused(headers: Headers, method: str | None) -> str | None:
    """Why a request is refused, or None.

    Parameters
    ----------
    headers : Headers
    method : str or None
        None for a WebSocket.
    """
    host = headers.get("host", "").lower()
    if not _is_this_machine(host):
        return (
            f"{host!r:.60} is no name of this machine; use 127.0.0.1 or localhost, "
            "or serve with keys instead of --open"
        )
    if method in _READING:
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
