"""`RequestError`, and errors as responses (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fencepost.errors import DeliveryError, FencepostError, LanguageError, StoreError
from fencepost.server.http.schemas import Problem

CONTENT_TYPE = "application/problem+json"


class Busy(FencepostError):
    """Too many events are queued; try again later."""


class RequestError(FencepostError):
    """A rejected request.

    Attributes
    ----------
    status : int
        HTTP status.
    headers : dict
        Headers of the response.
    position : int or UNSET
        Offset of the error in an expression.
    """

    position: int | UnsetType = UNSET

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}


def no_such(kind: str, name: object) -> RequestError:
    """Return the error for a resource that does not exist."""
    return RequestError(404, f"there is no {kind} {name!r:.80}")


def request_error_of(error: FencepostError) -> RequestError:
    """Return an error as a `RequestError`."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, Busy):
        return RequestError(503, str(error), {"retry-after": "1"})
    if isinstance(error, StoreError):
        return RequestError(503, str(error), {"retry-after": "5"})
    if isinstance(error, DeliveryError):
        return RequestError(502, str(error))
    request_error = RequestError(422, str(error))
    if isinstance(error, LanguageError) and error.position is not None:
        request_error.position = error.position
    return request_error


def problem(error: RequestError) -> Problem:
    """Return the JSON object of an error."""
    status = HTTPStatus(error.status)
    return Problem("about:blank", status.phrase, status, str(error), error.position)


def response(error: RequestError) -> Response:
    """Return the response for an error."""
    body = msgspec.json.encode(problem(error))
    return Response(body, error.status, error.headers, CONTENT_TYPE)
