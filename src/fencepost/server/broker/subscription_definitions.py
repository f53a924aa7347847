"""What a subscriber asks: a JSON object, checked and compiled before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from fencepost.engine.subscriptions import parse_expiry, validate_id
from fencepost.errors import ModelError
from fencepost.server.http import request_bodies, schemas
from fencepost.server.settings import Limits

_PAYLOAD_CHARS = 4_096


def kind_of(asked: Mapping[str, Any]) -> str:
    """Who answers what is asked: "composite", "track" or "expression"."""
    return next((kind for kind in ("composite", "track") if kind in asked), "expression")


@dataclass(frozen=True, slots=True)
class Definition:
    """A subscription as it was given.

    Attributes
    ----------
    id, subscriber : str
    asked : dict
        What is kept: `expression` or `composite`, and `track` and `payload` where given.
    expires : int or None
        In nanoseconds since 1970.
    """

    id: str
    subscriber: str
    asked: dict[str, Any]
    expires: int | None

    @property
    def kind(self) -> str:
        """Who answers it: "composite", "track" or "expression"."""
        return kind_of(self.asked)

    def text(self) -> str:
        """What is kept, as JSON."""
        return msgspec.json.encode(self.asked).decode()


def parse_definition(given: dict[str, Any], limits: Limits, id: str | None = None) -> Definition:
    """A JSON object as a definition.

    Parameters
    ----------
    given : mapping
        With the members `id` (unless given apart) and `expression` or `composite`; `subscriber`,
        `track`, `expires` and `payload` may be left out.
    limits : Limits
    id : str, optional
        As the address of the request says.

    Raises
    ------
    ModelError
        Where it cannot be one.
    """
    asked: schemas.Definition = request_bodies.convert(
        given, schemas.NewSubscription if id is None else schemas.Definition
    )
    name = validate_id((id or "") if asked.id is UNSET else asked.id)
    if id is not None and name != id:
        raise ModelError(f"the address says {id!r:.60} and the body {name!r:.60}; say one of them")
    if (asked.expression is UNSET) == (asked.composite is UNSET):
        raise ModelError("give `expression` or `composite`, one of them")
    if asked.track is not UNSET and asked.composite is not UNSET:
        raise ModelError("`track` goes with `expression`, not with `composite`")
    subscriber = asked.subscriber or name
    if not {name, subscriber}.isdisjoint((".", "..")):
        raise ModelError("an id or subscriber is not `.` or `..`, which no address can name")
    kept = {
        key: value
        for key in ("expression", "composite", "track", "payload")
        if (value := getattr(asked, key)) is not None and value is not UNSET
    }
    if not kept.keys() & {"expression", "composite"}:
        raise ModelError("`composite` is null; give `expression` or `composite`")
    _check_sizes(kept, limits)
    expires = None if asked.expires is None else parse_expiry(asked.expires)
    return Definition(name, subscriber, kept, expires)


def _check_sizes(asked: Mapping[str, Any], limits: Limits) -> None:
    for name, most in (
        ("expression", limits.expression_chars),
        ("composite", limits.expression_chars),
        ("track", _PAYLOAD_CHARS),
        ("payload", _PAYLOAD_CHARS),
    ):
        value = asked.get(name)
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if len(text) > most:
            raise ModelError(
                f"`{name}` has {len(text):,} characters and {most:,} are the most; simplify it"
            )
        if text.count(",") > 2 * limits.vertices:  # a vertex has one before it, or two in JSON
            raise ModelError(
                f"`{name}` has more than {limits.vertices:,} vertices; simplify its geometries"
            )
