"""The server as an ASGI application: operations become routes, errors become problems."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from fencepost.errors import FencepostError
from fencepost.server import console, openapi, streams
from fencepost.server.browser_safety import BrowserSafety
from fencepost.server.handlers import admin, events, subscribers, subscriptions, trying, watching
from fencepost.server.operations import Asked, Operation
from fencepost.server.problems import Refusal, refusal_of, response
from fencepost.server.service import Caller, Service
from fencepost.server.sweeping import sweep
from fencepost.server.watch import live

OPERATIONS: tuple[Operation, ...] = (
    *events.OPERATIONS,
    *subscriptions.OPERATIONS,
    *trying.OPERATIONS,
    *subscribers.OPERATIONS,
    *streams.OPERATIONS,
    *admin.OPERATIONS,
    *watching.OPERATIONS,
)
_NOBODY = Caller(0, "", frozenset(), "")


def create_app(service: Service) -> Starlette:
    """The application of a service, which it starts and stops."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.attach(asyncio.get_running_loop())
        sweeping = asyncio.create_task(sweep(service))
        try:
            yield
        finally:
            sweeping.cancel()
            service.hub.close_all()
            service.live.close_all()
            await asyncio.to_thread(service.close)

    app = Starlette(
        routes=[
            *_routes(),
            WebSocketRoute("/v1/subscribers/{id:path}/socket", streams.web_socket),
            WebSocketRoute("/v1/live", live.watch),
            Route("/openapi.json", _description),
            *console.routes(),
        ],
        middleware=[Middleware(BrowserSafety, local_only=service.settings.open_access)],
        lifespan=lifespan,
        exception_handlers={
            FencepostError: _refused,  # type: ignore[dict-item]
            HTTPException: _not_served,  # type: ignore[dict-item]
        },
    )
    app.state.service = service
    return app


def _routes() -> list[BaseRoute]:
    # The longest first: an id may hold slashes.
    ordered = sorted(OPERATIONS, key=lambda one: -len(one.path))
    return [
        Route(one.path.replace("{id}", "{id:path}"), _endpoint(one), methods=[one.method])
        for one in ordered
    ]


def _endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        service: Service = request.app.state.service
        caller = _NOBODY
        if operation.scope:
            caller = service.caller(request)
            service.rates.count(caller.key or (request.client.host if request.client else ""))
            caller.need(operation.scope)
        return await operation.handler(Asked(request, caller, service))

    return endpoint


async def _description(_: Request) -> Response:
    return JSONResponse(openapi.description(OPERATIONS))


async def _refused(_: Request, error: FencepostError) -> Response:
    return response(refusal_of(error))


async def _not_served(request: Request, error: HTTPException) -> Response:
    detail = {
        404: f"nothing is at {request.url.path!r:.80}; see /openapi.json",
        405: f"{request.method} is not for {request.url.path!r:.80}; see /openapi.json",
    }.get(error.status_code, str(error.detail))
    return response(Refusal(error.status_code, detail, dict(error.headers or {})))
