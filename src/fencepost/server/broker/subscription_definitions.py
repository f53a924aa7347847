"""`parse_definition`: the JSON object of a subscription, checked, as a `Definition`."""

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

_MAX_PAYLOAD_CHARS = 4_096


def kind_of(fields: Mapping[str, Any]) -> str:
    """Return the kind of a subscription: "composite", "track" or "expression"."""
    return next((kind for kind in ("composite", "track") if kind in fields), "expression")


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a subscription.

    Attributes
    ----------
    id, subscriber : str
    fields : dict
        The members that are stored as JSON: `expression` or `composite`, and `track` and `payload`
        where they were given.
    expires : int or None
        In nanoseconds since 1970.
    """

    id: str
    subscriber: str
    fields: dict[str, Any]
    expires: int | None

    @property
    def kind(self) -> str:
        """Kind of the subscription: "composite", "track" or "expression"."""
        return kind_of(self.fields)

    def text(self) -> str:
        """Return the stored members as JSON."""
        return msgspec.json.encode(self.fields).decode()


def parse_definition(value: dict[str, Any], limits: Limits, id: str | None = None) -> Definition:
    """Check the JSON object of a subscription, and return its definition.

    Parameters
    ----------
    value : dict
        With the members `expression` or `composite`, and `id` unless it is given apart;
        `subscriber`, `track`, `expires` and `payload` are optional.
    limits : Limits
    id : str, optional
        The id in the address of the request.

    Raises
    ------
    ModelError
        If the object is not a valid subscription.
    """
    request: schemas.Definition = request_bodies.convert(
        value, schemas.NewSubscription if id is None else schemas.Definition
    )
    name = validate_id((id or "") if request.id is UNSET else request.id)
    if id is not None and name != id:
        raise ModelError(
            f"the address says {id!r:.60} but the body says {name!r:.60}; leave `id` out of the "
            "body"
        )
    if (request.expression is UNSET) == (request.composite is UNSET):
        raise ModelError("give either `expression` or `composite`")
    if request.track is not UNSET and request.composite is not UNSET:
        raise ModelError("`track` goes with `expression`, not with `composite`")
    subscriber = request.subscriber or name
    if not {name, subscriber}.isdisjoint((".", "..")):
        raise ModelError(
            "an id or subscriber cannot be `.` or `..`, because no address can contain them"
        )
    fields = {
        name: member
        for name in ("expression", "composite", "track", "payload")
        if (member := getattr(request, name)) is not None and member is not UNSET
    }
    if not fields.keys() & {"expression", "composite"}:
        raise ModelError("`composite` is null; give `expression` or `composite`")
    _check_sizes(fields, limits)
    expires = None if request.expires is None else parse_expiry(request.expires)
    return Definition(name, subscriber, fields, expires)


def _check_sizes(fields: Mapping[str, Any], limits: Limits) -> None:
    for name, max_chars in (
        ("expression", limits.expression_chars),
        ("composite", limits.expression_chars),
        ("track", _MAX_PAYLOAD_CHARS),
        ("payload", _MAX_PAYLOAD_CHARS),
    ):
        value = fields.get(name)
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if len(text) > max_chars:
            raise ModelError(
                f"`{name}` has {len(text):,} characters, more than {max_chars:,}; simplify it"
            )
        if text.count(",") > 2 * limits.vertices:  # one comma per vertex in text, two in JSON
            raise ModelError(
                f"`{name}` has more than {limits.vertices:,} vertices; simplify its geometries"
            )
