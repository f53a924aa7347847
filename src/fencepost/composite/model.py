"""`Composite`: several events, how they are related in space, and how near they are in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Self, TypeAlias

from fencepost.composite.member_conditions import MemberCondition, is_name, read_condition
from fencepost.cql2.ast import Condition
from fencepost.cql2.expression_limits import MAX_DEPTH, check_text, too_deep_message
from fencepost.cql2.json_reader import decode_json
from fencepost.cql2.parser import parse
from fencepost.cql2.writer import render_json, render_text
from fencepost.engine.subscriptions import validate_id
from fencepost.errors import FencepostError, LanguageError, ModelError
from fencepost.geometry.readers.raw_shapes import short_repr

MAX_MEMBERS = 64
"""Members of one composite, those within nested ones not counted."""

_FIELDS = {"id", "members", "where", "within_s", "subscriber"}


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Composite:
    """A pattern of several events: a frozen value that equals another that says the same.

    Each member is matched by an event (or, where it is a composite itself, by one event for each
    of its members), and all their times lie within a window. The location of what is found is the
    convex hull of its members' points.

    Parameters
    ----------
    id : str
        Its name, by which detections are reported.
    members : mapping of str to expression or Composite
        What is asked of each event by itself: CQL2 text, CQL2 JSON, a tree, or another composite.
    where : sequence of str or mapping
        Conditions between members, all of which must hold: ``"DIST(a, b) < 500"``,
        ``"IN(a, b)"``, ``"OVLP(a, b)"``, ``"SPL(a, b) < 50"``, or their JSON.
    within_s : float
        Seconds from the earliest to the latest event at most. There is no default: what has been
        seen must be kept for that long.
    subscriber : str, optional
        To whom it belongs; the id if left out.

    Raises
    ------
    ModelError
        Where one of these is not what it should be.
    LanguageError
        Where an expression or a condition cannot be read.

    Examples
    --------
    >>> Composite(
    ...     "meeting",
    ...     members={"a": "kind = 'taxi'", "b": "kind = 'rider'"},
    ...     where=["DIST(a, b) < 500"],
    ...     within_s=600,
    ... )
    Composite('meeting', members={'a': "kind = 'taxi'", 'b': "kind = 'rider'"}, \
where=['DIST(a, b) < 500.0'], within_s=600.0)
    """

    id: str
    members: Mapping[str, Member]
    where: tuple[MemberCondition, ...]
    within_s: float
    subscriber: str

    def __init__(
        self,
        id: str,
        members: Mapping[str, object],
        where: Iterable[object] = (),
        within_s: float | None = None,
        subscriber: str | None = None,
    ) -> None:
        name = validate_id(id)
        owner = name if subscriber is None else validate_id(subscriber, "subscriber")
        parts = _members(name, members)
        fields = {
            "id": name,
            "members": MappingProxyType(parts),
            "where": _where(name, where, parts),
            "within_s": _window(name, within_s),
            "subscriber": owner,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        if _depth(self) > MAX_DEPTH:
            raise LanguageError(too_deep_message())

    @classmethod
    def from_json(cls, given: str | Mapping[str, object]) -> Self:
        """The composite that `to_json` gave, as mappings or as text.

        Raises
        ------
        ModelError, LanguageError
            Where it is none.
        """
        if isinstance(given, str):
            check_text(given)
            given = decode_json(given)  # type: ignore[assignment]
        if not isinstance(given, Mapping):
            raise ModelError(f"a composite in JSON is an object; saw {short_repr(given)}")
        unknown = sorted(map(str, {*given} - _FIELDS))
        missing = [name for name in ("id", "members", "within_s") if name not in given]
        if unknown or missing:
            what = (
                f"lacks {missing[0]!r}" if missing else f"has {unknown[0]!r}, which means nothing"
            )
            raise ModelError(
                f"the composite {what}; saw {short_repr(given)}; give id, members, within_s and, "
                "as needed, where and subscriber"
            )
        return cls(**given)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """The composite as mappings, lists, strings and numbers."""
        found: dict[str, Any] = {
            "id": self.id,
            "members": {
                name: one.to_json() if isinstance(one, Composite) else render_json(one)
                for name, one in self.members.items()
            },
            "where": [condition.to_json() for condition in self.where],
            "within_s": self.within_s,
        }
        if self.subscriber != self.id:
            found["subscriber"] = self.subscriber
        return found

    def atoms(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Condition]]:
        """The expressions on single events, each with the names that lead to it."""
        for name, member in self.members.items():
            if isinstance(member, Composite):
                yield from member.atoms((*path, name))
            else:
                yield (*path, name), member

    def _key(self) -> tuple[object, ...]:
        return self.id, frozenset(self.members.items()), self.where, self.within_s, self.subscriber

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Composite) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled.
        return Composite, (self.id, {**self.members}, self.where, self.within_s, self.subscriber)

    def __repr__(self) -> str:
        members = ", ".join(f"{name!r}: {_text(one)}" for name, one in self.members.items())
        where = [str(condition) for condition in self.where]
        owner = f", subscriber={self.subscriber!r}" if self.subscriber != self.id else ""
        return (
            f"Composite({self.id!r}, members={{{members}}}, where={where!r}, "
            f"within_s={self.within_s!r}{owner})"
        )


Member: TypeAlias = Condition | Composite


def _members(id: str, members: object) -> dict[str, Member]:
    if not isinstance(members, Mapping) or not members:
        raise ModelError(
            f"the members of {id!r:.60} are a mapping of names to expressions; saw "
            f'{short_repr(members)}; give {{"a": "kind = \'taxi\'", ...}}'
        )
    if len(members) > MAX_MEMBERS:
        raise ModelError(
            f"{id!r:.60} has {len(members):,} members and {MAX_MEMBERS} are the most; nest some"
        )
    found: dict[str, Member] = {}
    for name, given in members.items():
        if not isinstance(name, str) or not is_name(name):
            raise ModelError(
                f"the name of a member of {id!r:.60} is a word; saw {short_repr(name)}; use "
                "letters, digits, _ . and -, a letter or _ first"
            )
        found[name] = _member(id, name, given)
    return found


def _member(id: str, name: str, given: Any) -> Member:
    if isinstance(given, Composite):
        return given
    try:
        if isinstance(given, Mapping) and "members" in given:
            return Composite.from_json(given)
        return parse(given)
    except FencepostError as error:
        place = f"member {name!r:.60} of {id!r:.60}: "
        if isinstance(error, LanguageError):
            raise LanguageError(place + str(error), error.position) from None
        raise ModelError(place + str(error)) from None
    except RecursionError:
        raise LanguageError(too_deep_message()) from None


def _where(id: str, where: object, members: Mapping[str, Member]) -> tuple[MemberCondition, ...]:
    if isinstance(where, str | Mapping) or not isinstance(where, Iterable):
        raise ModelError(
            f"`where` of {id!r:.60} is a list of conditions; saw {short_repr(where)}; "
            'give ["DIST(a, b) < 500"]'
        )
    found: dict[MemberCondition, None] = {}
    for given in where:
        condition = read_condition(given)
        for name in condition.names:
            if name not in members:
                raise ModelError(
                    f"a condition of {id!r:.60} names {name!r:.60}, which is no member; saw "
                    f"{short_repr(str(condition))}; the members are {short_repr([*members])}"
                )
        if condition.left == condition.right:
            raise ModelError(
                f"a condition of {id!r:.60} relates {condition.left!r} to itself; saw "
                f"{short_repr(str(condition))}; name two members"
            )
        found[condition] = None
    return tuple(found)


def _window(id: str, within_s: object) -> float:
    advice = "give the seconds from the earliest to the latest event at most, such as within_s=600"
    if within_s is None:
        raise ModelError(f"{id!r:.60} has no window of time; {advice}")
    number = isinstance(within_s, int | float) and not isinstance(within_s, bool)
    try:
        seconds = float(within_s) if number else -1.0  # type: ignore[arg-type]
    except OverflowError:
        seconds = -1.0
    if not (isfinite(seconds) and seconds > 0):
        raise ModelError(
            f"within_s of {id!r:.60} is a number above 0; saw {short_repr(within_s)}; {advice}"
        )
    return seconds


def _depth(composite: Composite) -> int:
    nested = (one for one in composite.members.values() if isinstance(one, Composite))
    return 1 + max(map(_depth, nested), default=0)


def _text(member: Member) -> str:
    if isinstance(member, Composite):
        return repr(member)
    try:
        return repr(render_text(member))
    except LanguageError:  # JSON can say a little more
        return repr(render_json(member))
