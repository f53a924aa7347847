"""`Notification`: what a moving object did to a subscription; kinds and order of notifications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from fencepost.errors import ModelError
from fencepost.events.times import SECOND
from fencepost.geometry.readers.raw_shapes import short_repr

NotificationKind: TypeAlias = Literal["enter", "exit", "cross", "dwell", "inside", "outside"]
KINDS: tuple[NotificationKind, ...] = get_args(NotificationKind)
Cause: TypeAlias = Literal["movement", "rule"]
MOVEMENT: Final = "movement"
RULE: Final = "rule"
Key: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Notification:
    """Something that a moving object did to a subscription, or a subscription to the object.

    Attributes
    ----------
    kind : str
        "enter", "exit", "cross", "dwell", "inside" or "outside".
    key : str or int
        Key of the object.
    subscription, subscriber : str
    time : int
        When it happened, in nanoseconds since 1970. For "enter" and "exit", the time of the first
        position inside or outside.
    since : int
        When the stay began; for "outside", when the stay ended; for "cross", the time of the
        previous position.
    reported : int
        Time of the position or tick that caused the notification. It is later than `time` if the
        change had to hold for a while.
    cause : str
        "movement", or "rule" if a subscription was added, removed or changed under the object.
    event : mapping, optional
        Attributes of the position that caused the notification; None if no position did.
    """

    kind: NotificationKind
    key: Key
    subscription: str
    subscriber: str
    time: int
    since: int
    reported: int
    cause: Cause = MOVEMENT
    event: Mapping[str, object] | None = field(default=None, compare=False, repr=False)

    @property
    def duration_s(self) -> float:
        """Seconds from `since` to `time`; for "exit" and "dwell", the length of the stay."""
        return (self.time - self.since) / SECOND


def sort_notifications(notifications: Iterable[Notification]) -> list[Notification]:
    """Sort notifications by the time of their report, then by object, subscription and kind."""
    return sorted(
        notifications,
        key=lambda notification: (
            notification.reported,
            str(notification.key),
            isinstance(notification.key, str),
            notification.subscription,
            KINDS.index(notification.kind),
            notification.time,
        ),
    )


def parse_kinds(on: object) -> frozenset[NotificationKind]:
    """Return the requested kinds of notification; raise ModelError unless all are known."""
    kinds = (on,) if isinstance(on, str) else on
    if not isinstance(kinds, Iterable):
        raise ModelError(f"on must be a list of kinds; saw {short_repr(on)}")
    requested = list(kinds)
    unknown = [kind for kind in requested if kind not in KINDS]
    if unknown or not requested:
        seen = short_repr(unknown[0]) if unknown else "none"
        raise ModelError(f"on must name some of {', '.join(KINDS)}; saw {seen}")
    return frozenset(requested)
