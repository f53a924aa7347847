"""What is said when something is refused: RFC 9457, one shape for all."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fencepost.errors import DeliveryError, FencepostError, LanguageError, StoreError
from fencepost.server.http.schemas import Problem

CONTENT_TYPE = "application/problem+json"


class Busy(FencepostError):
    """More waits to be written than may wait; to be tried again."""


class RequestError(FencepostError):
    """A request that is not carried out.

    Attributes
    ----------
    status : int
        Of HTTP.
    headers : dict
    position : int, or UNSET
        Where in an expression it goes wrong.
    """

    position: int | UnsetType = UNSET

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}


def no_such(what: str, name: object) -> RequestError:
    """What there is not."""
    return RequestError(404, f"there is no {what} {name!r:.80}")


def request_error_of(error: FencepostError) -> RequestError:
    """What an error means to whoever asked."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, Busy):
        return RequestError(503, str(error), {"retry-after": "1"})
    if isinstance(error, StoreError):
        return RequestError(503, str(error), {"retry-after": "5"})
    if isinstance(error, DeliveryError):
        return RequestError(502, str(error))
    refusal = RequestError(422, str(error))
    if isinstance(error, LanguageError) and error.position is not None:
        refusal.position = error.position
    return refusal


def problem(refusal: RequestError) -> Problem:
    """A refusal as JSON."""
    status = HTTPStatus(refusal.status)
    return Problem("about:blank", status.phrase, status, str(refusal), refusal.position)


def response(refusal: RequestError) -> Response:
    """A refusal as a response."""
    body = msgspec.json.encode(problem(refusal))
    return Response(body, refusal.status, refusal.headers, CONTENT_TYPE)
