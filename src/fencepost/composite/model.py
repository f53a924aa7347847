"""`Composite`: a pattern of several events that are related in space and close in time."""

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
"""The largest number of members of a composite; members of nested composites do not count."""

_FIELDS = {"id", "members", "where", "within_s", "subscriber"}


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Composite:
    """A pattern of several events: a frozen value, compared by its content.

    Each member is matched by an event or, if it is a composite itself, by one event for each of its
    members. The times of all events lie within a window. The location of a match is the convex hull
    of the points of all its events.

    Parameters
    ----------
    id : str
        Detections are reported under this id.
    members : mapping of str to expression or Composite
        The pattern of each event by itself: CQL2 text, CQL2 JSON, a tree, or a nested composite.
    where : sequence of str or mapping
        Conditions between members, all of which must hold: ``"DIST(a, b) < 500"``,
        ``"IN(a, b)"``, ``"OVLP(a, b)"``, ``"SPL(a, b) < 50"``, or their JSON.
    within_s : float
        The maximum seconds from the earliest to the latest event. It has no default, because it
        determines how long events are kept.
    subscriber : str, optional
        The subscriber that owns the composite; the id if left out.

    Raises
    ------
    ModelError
        If an argument is invalid.
    LanguageError
        If an expression or a condition cannot be read.

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
        parsed_members = _members(name, members)
        fields = {
            "id": name,
            "members": MappingProxyType(parsed_members),
            "where": _where(name, where, parsed_members),
            "within_s": _window(name, within_s),
            "subscriber": owner,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        if _depth(self) > MAX_DEPTH:
            raise LanguageError(too_deep_message())

    @classmethod
    def from_json(cls, source: str | Mapping[str, object]) -> Self:
        """Return the composite that `to_json` wrote, given as mappings or as text.

        Raises
        ------
        ModelError, LanguageError
            If the JSON is not a composite.
        """
        if isinstance(source, str):
            check_text(source)
            source = decode_json(source)  # type: ignore[assignment]
        if not isinstance(source, Mapping):
            raise ModelError(f"a composite in JSON must be an object; saw {short_repr(source)}")
        unknown = sorted(map(str, {*source} - _FIELDS))
        missing = [name for name in ("id", "members", "within_s") if name not in source]
        if unknown or missing:
            problem = (
                f"lacks {missing[0]!r}" if missing else f"has the unknown field {unknown[0]!r}"
            )
            raise ModelError(
                f"the composite {problem}; saw {short_repr(source)}; give id, members, within_s "
                "and, if needed, where and subscriber"
            )
        return cls(**source)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """Return the composite as mappings, lists, strings and numbers."""
        fields: dict[str, Any] = {
            "id": self.id,
            "members": {
                name: member.to_json() if isinstance(member, Composite) else render_json(member)
                for name, member in self.members.items()
            },
            "where": [condition.to_json() for condition in self.where],
            "within_s": self.within_s,
        }
        if self.subscriber != self.id:
            fields["subscriber"] = self.subscriber
        return fields

    def atoms(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Condition]]:
        """Yield the expressions on single events, each with the path of member names to it."""
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
        members = ", ".join(f"{name!r}: {_text(member)}" for name, member in self.members.items())
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
            f"the members of {id!r:.60} must be a mapping of names to expressions; saw "
            f'{short_repr(members)}; give {{"a": "kind = \'taxi\'", ...}}'
        )
    if len(members) > MAX_MEMBERS:
        raise ModelError(
            f"{id!r:.60} has {len(members):,} members, and {MAX_MEMBERS} are allowed; nest some"
        )
    parsed_members: dict[str, Member] = {}
    for name, source in members.items():
        if not isinstance(name, str) or not is_name(name):
            raise ModelError(
                f"the name of a member of {id!r:.60} must be a word; saw {short_repr(name)}; use "
                "letters, digits, _ . and -, a letter or _ first"
            )
        parsed_members[name] = _member(id, name, source)
    return parsed_members


def _member(id: str, name: str, source: Any) -> Member:
    if isinstance(source, Composite):
        return source
    try:
        if isinstance(source, Mapping) and "members" in source:
            return Composite.from_json(source)
        return parse(source)
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
            f"`where` of {id!r:.60} must be a list of conditions; saw {short_repr(where)}; "
            'give ["DIST(a, b) < 500"]'
        )
    conditions: dict[MemberCondition, None] = {}
    for source in where:
        condition = read_condition(source)
        for name in condition.names:
            if name not in members:
                raise ModelError(
                    f"a condition of {id!r:.60} names {name!r:.60}, which is not a member; saw "
                    f"{short_repr(str(condition))}; the members are {short_repr([*members])}"
                )
        if condition.left == condition.right:
            raise ModelError(
                f"a condition of {id!r:.60} relates {condition.left!r} to itself; saw "
                f"{short_repr(str(condition))}; name two members"
            )
        conditions[condition] = None
    return tuple(conditions)


def _window(id: str, within_s: object) -> float:
    advice = "give the maximum seconds from the earliest to the latest event, such as within_s=600"
    if within_s is None:
        raise ModelError(f"{id!r:.60} has no time window; {advice}")
    is_number = isinstance(within_s, int | float) and not isinstance(within_s, bool)
    try:
        seconds = float(within_s) if is_number else -1.0  # type: ignore[arg-type]
    except OverflowError:
        seconds = -1.0
    if not (isfinite(seconds) and seconds > 0):
        raise ModelError(
            f"within_s of {id!r:.60} must be a number above 0; saw {short_repr(within_s)}; {advice}"
        )
    return seconds


def _depth(composite: Composite) -> int:
    nested = (member for member in composite.members.values() if isinstance(member, Composite))
    return 1 + max(map(_depth, nested), default=0)


def _text(member: Member) -> str:
    if isinstance(member, Composite):
        return repr(member)
    try:
        return repr(render_text(member))
    except LanguageError:  # JSON can express conditions that text cannot
        return repr(render_json(member))
