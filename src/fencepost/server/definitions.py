"""What a subscriber asks: a JSON object, checked and compiled before anything is changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.errors import ModelError
from fencepost.match.catalogue import checked_id, expiry
from fencepost.model.raw_shapes import shown
from fencepost.server.settings import Limits

MEMBERS = ("id", "subscriber", "expression", "composite", "track", "expires", "payload")
_PAYLOAD_CHARS = 4_096


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
        return next((kind for kind in ("composite", "track") if kind in self.asked), "expression")

    def text(self) -> str:
        """What is kept, as JSON."""
        return json.dumps(self.asked, ensure_ascii=False)


def definition_of(given: object, limits: Limits, id: str | None = None) -> Definition:
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
    if not isinstance(given, Mapping):
        raise ModelError(f"a subscription is a JSON object; saw {shown(given)}")
    unknown = [name for name in given if name not in MEMBERS]
    if unknown:
        raise ModelError(
            f"a subscription has the members {', '.join(MEMBERS)}; saw {unknown[0]!r:.60}"
        )
    name = checked_id(given.get("id", id))
    if id is not None and name != id:
        raise ModelError(f"the address says {id!r:.60} and the body {name!r:.60}; say one of them")
    if ("expression" in given) == ("composite" in given):
        raise ModelError("give `expression` or `composite`, one of them")
    if "track" in given and "composite" in given:
        raise ModelError("`track` goes with `expression`, not with `composite`")
    subscriber = given.get("subscriber")
    subscriber = name if subscriber is None else checked_id(subscriber, "subscriber")
    if not {name, subscriber}.isdisjoint((".", "..")):
        raise ModelError("an id or subscriber is not `.` or `..`, which no address can name")
    asked = {
        key: given[key]
        for key in ("expression", "composite", "track", "payload")
        if given.get(key) is not None
    }
    if not asked.keys() & {"expression", "composite"}:
        raise ModelError("`expression` or `composite` is null; give one of them")
    _check_sizes(asked, limits)
    return Definition(name, subscriber, asked, _expiry(given.get("expires")))


def _check_sizes(asked: Mapping[str, Any], limits: Limits) -> None:
    for name, most in (
        ("expression", limits.expression_chars),
        ("composite", limits.expression_chars),
        ("track", _PAYLOAD_CHARS),
        ("payload", _PAYLOAD_CHARS),
    ):
        value = asked.get(name)
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) > most:
            raise ModelError(
                f"`{name}` has {len(text):,} characters and {most:,} are the most; simplify it"
            )
        if text.count(",") > 2 * limits.vertices:  # a vertex has one before it, or two in JSON
            raise ModelError(
                f"`{name}` has more than {limits.vertices:,} vertices; simplify its geometries"
            )


def _expiry(given: object) -> int | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise ModelError(f"`expires` is a text as in 2026-01-31T12:00:00Z; saw {shown(given)}")
    return expiry(given)
