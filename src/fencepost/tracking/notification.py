"""`Notification`: what is told of a moving thing, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fencepost.errors import ModelError
from fencepost.events.times import SECOND
from fencepost.geometry.readers.raw_shapes import short_repr

KINDS = ("enter", "exit", "cross", "dwell", "inside", "outside")
MOVEMENT, RULE = "movement", "rule"
Key: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Notification:
    """Something that a moving object did to a subscription, or a subscription to the object.

    Attributes
    ----------
    kind : str
        "enter", "exit", "cross", "dwell", "inside" or "outside".
    key : str or int
        Which object.
    subscription, subscriber : str
    time : int
        When it happened, in nanoseconds since 1970: of an enter or exit, the first position that
        was in or out.
    since : int
        When the stay began; of "outside" when it ended, of "cross" the time of the position before.
    told : int
        The time of the position or the tick by which it became known; later than `time` where a
        change must hold for a while.
    cause : str
        "movement", or "rule" where a subscription came, went or changed under the object.
    event : mapping, optional
        The attributes of the position by which it became known; None where it was no position.
    """

    kind: str
    key: Key
    subscription: str
    subscriber: str
    time: int
    since: int
    reported: int
    cause: str = MOVEMENT
    event: Mapping[str, object] | None = field(default=None, compare=False, repr=False)

    @property
    def duration_s(self) -> float:
        """Seconds from `since` to `time`: of "exit" and "dwell", how long the object was there."""
        return (self.time - self.since) / SECOND


def sort_notifications(found: Iterable[Notification]) -> list[Notification]:
    """Notifications by when they became known, then by object, subscription and kind."""
    return sorted(
        found,
        key=lambda one: (
            one.reported,
            str(one.key),
            isinstance(one.key, str),
            one.subscription,
            KINDS.index(one.kind),
            one.time,
        ),
    )


def parse_kinds(on: object) -> frozenset[str]:
    """The kinds of notification that are wanted."""
    kinds = (on,) if isinstance(on, str) else on
    if not isinstance(kinds, Iterable):
        raise ModelError(f"on must be a list of kinds; saw {short_repr(on)}")
    wanted = list(kinds)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown or not wanted:
        seen = short_repr(unknown[0]) if unknown else "none"
        raise ModelError(f"on must name some of {', '.join(KINDS)}; saw {seen}")
    return frozenset(wanted)
