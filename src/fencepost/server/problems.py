"""What is said when something is refused: RFC 9457, one shape for all."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from fencepost.errors import DeliveryError, FencepostError, LanguageError, StoreError
from fencepost.server.broker import Busy

CONTENT_TYPE = "application/problem+json"


class Refusal(FencepostError):
    """A request that is not carried out.

    Attributes
    ----------
    status : int
        Of HTTP.
    headers : dict
    more : dict
        Further members of the problem.
    """

    def __init__(
        self, status: int, detail: str, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}
        self.more = more


def not_found(what: str, name: object) -> Refusal:
    """What there is not."""
    return Refusal(404, f"there is no {what} {name!r:.80}")


def refusal_of(error: FencepostError) -> Refusal:
    """What an error means to whoever asked."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, Busy):
        return Refusal(503, str(error), {"retry-after": "1"})
    if isinstance(error, StoreError):
        return Refusal(503, str(error), {"retry-after": "5"})
    if isinstance(error, DeliveryError):
        return Refusal(502, str(error))
    more: dict[str, Any] = {}
    if isinstance(error, LanguageError) and error.position is not None:
        more["position"] = error.position
    return Refusal(422, str(error), **more)


def problem(refusal: Refusal) -> dict[str, Any]:
    """A refusal as JSON."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "detail": str(refusal),
        **refusal.more,
    }


def response(refusal: Refusal) -> JSONResponse:
    """A refusal as a response."""
    return JSONResponse(
        problem(refusal), refusal.status, headers=refusal.headers, media_type=CONTENT_TYPE
    )
