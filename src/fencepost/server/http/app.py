"""`create_app`: the server as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from fencepost.errors import FencepostError
from fencepost.server.console import live_feed
from fencepost.server.delivery.outbox import EndpointDelivery
from fencepost.server.http import asyncapi, browser_safety, message_streams, publish_socket
from fencepost.server.http.browser_safety import BrowserSafety
from fencepost.server.http.handlers import (
    admin,
    console_data,
    endpoints,
    events,
    preview,
    subscribers,
    subscription_requests,
)
from fencepost.server.http.operations import (
    Operation,
    RequestContext,
    json_response,
    openapi_document,
)
from fencepost.server.http.problems import RequestError, request_error_of, response
from fencepost.server.service import Caller, Service, sweep

OPERATIONS = tuple(
    operation
    for module in (
        events, subscription_requests, preview, subscribers, message_streams, endpoints,
        publish_socket, admin, console_data
    )
    for operation in vars(module).values()
    if isinstance(operation, Operation)
)  # fmt: skip
_CLIENT_SCRIPT = Path(__file__).parents[1] / "static" / "client.js"
_ANONYMOUS = Caller(0, "", frozenset(), "")


def create_app(service: Service) -> Starlette:
    """Return the application of a service; its lifespan starts and closes the service."""
    endpoint_delivery = EndpointDelivery(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.attach(asyncio.get_running_loop())
        await endpoint_delivery.start()
        sweeper = asyncio.create_task(sweep(service))
        try:
            yield
        finally:
            sweeper.cancel()
            service.hub.close_all()
            app.state.publishers.close_all()
            service.live_feed.close_all()
            await endpoint_delivery.stop()
            if service.broker.has_unsaved_acknowledgements:
                await service.wait_for(service.broker.save_acknowledged())
            await asyncio.to_thread(service.close)

    app = Starlette(
        routes=[
            *_routes(),
            WebSocketRoute("/v1/subscribers/{id}/socket", message_streams.web_socket),
            WebSocketRoute("/v1/publish/socket", publish_socket.publish_socket),
            WebSocketRoute("/v1/live", live_feed.watch),
            Route("/openapi.json", _openapi),
            Route("/asyncapi.json", _asyncapi),
            Route("/client.js", _client_script),
            *browser_safety.routes(),
        ],
        lifespan=lifespan,
        middleware=[
            Middleware(BrowserSafety, local_only=service.settings.open_access),
            Middleware(RawPathMiddleware),
        ],
        exception_handlers={
            FencepostError: _error_response,  # type: ignore[dict-item]
            HTTPException: _routing_error_response,  # type: ignore[dict-item]
        },
    )
    app.state.service = service
    app.state.endpoint_delivery = endpoint_delivery
    app.state.publishers = publish_socket.Publishers(service)
    return app


class RawPathMiddleware:
    """Routes requests by their encoded path, so that `%2F` in an id separates no segments."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its encoded path."""
        if "raw_path" in scope:
            scope = {**scope, "path": scope["raw_path"].decode("ascii", "replace")}
        await self._app(scope, receive, send)


def _routes() -> list[BaseRoute]:
    return [
        Route(operation.path, _endpoint(operation), methods=[operation.method])
        for operation in OPERATIONS
    ]


def _endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        service: Service = request.app.state.service
        caller = _ANONYMOUS
        if operation.scope:
            caller = service.authenticate(request)
            service.rate_limiter.count(
                caller.key or (request.client.host if request.client else "")
            )
            caller.require(operation.scope)
        return await operation.respond(RequestContext(request, caller, service))

    return endpoint


async def _openapi(_: Request) -> Response:
    return json_response(openapi_document(OPERATIONS))


async def _asyncapi(request: Request) -> Response:
    return json_response(asyncapi.asyncapi_document(request.url.netloc))


async def _client_script(_: Request) -> Response:
    return FileResponse(
        _CLIENT_SCRIPT, media_type="text/javascript", headers={"cache-control": "no-cache"}
    )


async def _error_response(_: Request, error: FencepostError) -> Response:
    return response(request_error_of(error))


async def _routing_error_response(request: Request, error: HTTPException) -> Response:
    detail = {
        404: f"there is no {request.url.path!r:.80}; see /openapi.json for all paths",
        405: f"{request.url.path!r:.80} does not allow {request.method}; see /openapi.json",
    }.get(error.status_code, str(error.detail))
    return response(RequestError(error.status_code, detail, dict(error.headers or {})))
