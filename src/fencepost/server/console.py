"""The console: one page, its scripts and its styles, all from this server."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "static"

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
