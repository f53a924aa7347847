"""What was found where a condition was looked at: by how much it failed, or why it is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar

from fencepost.cql2 import ast
from fencepost.cql2.ast import ArrayFunction, ComparisonOp, NearFunction, TemporalFunction
from fencepost.engine.explain.unusable_values import UnusableAttribute, unusable
from fencepost.events import value_types
from fencepost.events.event_values import EventValues
from fencepost.events.times import SECOND, format_instant
from fencepost.events.value_types import DoubleDouble
from fencepost.filters import evaluation
from fencepost.filters.distances import measure_distance
from fencepost.filters.normal_form import ARRAY_CONVERSES
from fencepost.filters.spatial_relations import relation_between
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.relation import Relation

T = TypeVar("T")

_LONGEST_SPELLING = 64  # comparing spellings takes time with the square of their length
_CLOSE = 0.7
_LARGE = 2**63  # integers beyond are told as doubles or in words
_LISTED = 5
_LONG_AGO = 1e13  # seconds; a timedelta holds somewhat more


@dataclass(frozen=True, slots=True)
class Finding:
    """What a condition that is not AND, OR or NOT found; what does not apply is None or empty.

    `off_by` and what follows it are there only for a condition that is not as it should be:
    false, or true under a NOT.

    Attributes
    ----------
    relation : str or None
        Of the geometry on the left to that on the right: "disjoint", "meets", ...
    distance : float or None
        Between the two geometries where they are apart or a distance is asked; of S_SAMEPLACE,
        between their centroids. Good to about 15 digits of the coordinates.
    unit : str or None
        Of the distance, and of what it is off by: "m" where coordinates are lon/lat.
    off_by : int, float or None
        How far the number, or the distance, is from the nearest that would do, or from the bound
        that must be passed.
    off_by_s : float or None
        The same of a time, in seconds.
    nearest : str or None
        The string, of those asked for, that is spelled nearly as the event's.
    missing : tuple
        What the event's list or text lacks.
    extra : tuple
        What the event's list or text should not have.
    unusable : tuple of UnusableAttribute
        The attributes for which the condition is unknown.
    problem : str or None
        Why it is unknown, where no attribute is to blame.
    """

    relation: str | None = None
    distance: float | None = None
    unit: str | None = None
    off_by: int | float | None = None
    off_by_s: float | None = None
    nearest: str | None = None
    missing: tuple[object, ...] = ()
    extra: tuple[object, ...] = ()
    unusable: tuple[UnusableAttribute, ...] = ()
    problem: str | None = None

    def as_dict(self) -> dict[str, object]:
        """What applies, for JSON."""
        found: dict[str, object] = {}
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is not None and value != ():
                found[name] = list(value) if isinstance(value, tuple) else value
        if self.unusable:
            found["unusable"] = [one.as_dict() for one in self.unusable]
        return found

    def phrases(self) -> Iterator[str]:
        """What applies, in words."""
        unit = "" if self.unit is None else f" {self.unit}"
        if self.relation is not None:
            yield f"the relation is {self.relation}"
        if self.distance is not None:
            yield f"the distance is {_rounded(self.distance)}{unit}"
        if self.off_by is not None:
            yield f"off by {_rounded(self.off_by)}{unit}"
        if self.off_by_s is not None:
            yield f"off by {_duration(self.off_by_s)}"
        if self.nearest is not None:
            yield f"close to {short_repr(self.nearest)}"
        if self.missing:
            yield f"missing {_listed(self.missing)}"
        if self.extra:
            yield f"not allowed {_listed(self.extra)}"
        yield from (str(one) for one in self.unusable if not one.is_missing)
        if self.problem is not None:
            yield self.problem


NOTHING = Finding()


def finding(
    condition: ast.Condition, event: EventValues, outcome: bool | None, wanted: bool
) -> Finding:
    """What a condition found, given its outcome and the one that an enclosing condition wants."""
    if outcome is None:
        return _unknown(condition, event)
    failed = outcome is not wanted
    match condition:
        case ast.SpatialCondition(_, left, right):
            return _spatial(left, right, event)
        case ast.NearCondition():
            return _near(condition, event, failed)
        case _ if not failed:
            return NOTHING
        case ast.Comparison(op, left, right):
            return _comparison(op, left, right, event)
        case ast.Between():
            return _between(condition, event, outcome)
        case ast.In(value, items):
            return NOTHING if outcome else _in(value, items, event)
        case ast.TemporalCondition(function, left, right):
            return _temporal(function, left, right, event)
        case ast.ArrayCondition(function, left, right):
            return NOTHING if outcome else _array(function, left, right, event)
    return NOTHING


def _unknown(condition: ast.Condition, event: EventValues) -> Finding:
    to_blame = tuple(unusable(condition, event))
    if to_blame:
        return Finding(unusable=to_blame)
    if isinstance(condition, ast.TemporalCondition):
        return Finding(problem="an interval starts after it ends")
    return Finding(problem="a calculation has no result")


def _read(
    read: Callable[[ast.Value, EventValues], T | None],
    left: ast.Value,
    right: ast.Value,
    event: EventValues,
) -> tuple[T, T]:
    """Both sides of a condition that is not unknown."""
    a, b = read(left, event), read(right, event)
    assert a is not None
    assert b is not None
    return a, b


# ----------------------------------------------------------------------------------------- places


def _spatial(left: ast.Value, right: ast.Value, event: EventValues) -> Finding:
    a, b = _read(evaluation.as_geometry, left, right, event)
    relation = relation_between(a, b)
    if relation is not Relation.DISJOINT:
        return Finding(relation=relation.value)
    distance = _finite(measure_distance(event.space, NearFunction.S_DWITHIN, a, b))
    return Finding(relation.value, distance, event.space.unit)


def _near(condition: ast.NearCondition, event: EventValues, failed: bool) -> Finding:
    a, b = _read(evaluation.as_geometry, condition.left, condition.right, event)
    distance, unit = (
        _finite(measure_distance(event.space, condition.function, a, b)),
        event.space.unit,
    )
    if distance is None or not failed:
        return Finding(distance=distance, unit=unit)
    return Finding(distance=distance, unit=unit, off_by=_gap(distance, condition.distance))


# -------------------------------------------------------------------------------- numbers, strings


def _comparison(op: ComparisonOp, left: ast.Value, right: ast.Value, event: EventValues) -> Finding:
    both = evaluation.as_common_type(left, right, event)
    assert both is not None
    a, b = both
    if isinstance(a, str):
        if op is not ComparisonOp.EQ or a == b:
            return NOTHING
        return Finding(nearest=_nearest(b, [a]) if _is_literal(left) else _nearest(a, [b]))
    if isinstance(a, bool) or (a == b and op in (ComparisonOp.EQ, ComparisonOp.NE)):
        return NOTHING
    return _off([_gap(a, b)], isinstance(a, tuple))


def _between(condition: ast.Between, event: EventValues, outcome: bool) -> Finding:
    gaps = []
    in_time = False
    for op, bound in ((ComparisonOp.GE, condition.low), (ComparisonOp.LE, condition.high)):
        both = evaluation.as_common_type(condition.value, bound, event)
        if both is None or isinstance(both[0], (str, bool)):
            continue
        in_time = isinstance(both[0], tuple)
        if outcome or not evaluation.OPERATORS[op](*both):
            gaps.append(_gap(*both))
    return _off(gaps, in_time, least=outcome)


def _in(value: ast.Value, items: Iterable[ast.Value], event: EventValues) -> Finding:
    pairs = [evaluation.as_common_type(value, item, event) for item in items]
    known = [pair for pair in pairs if pair is not None]
    texts = [b for a, b in known if isinstance(a, str)]
    if texts:
        return Finding(nearest=_nearest(known[0][0], texts))
    gaps = [_gap(a, b) for a, b in known if not isinstance(a, bool)]
    return _off(gaps, any(isinstance(a, tuple) for a, _ in known), least=True)


def _is_literal(value: ast.Value) -> bool:
    while isinstance(value, ast.FoldedString):
        value = value.value
    return isinstance(value, ast.String)


def _nearest(text: str, allowed: Iterable[str]) -> str | None:
    """The one of some strings that is spelled nearly as a text, in whatever case."""
    if len(text) > _LONGEST_SPELLING:
        return None
    spellings = {one.casefold(): one for one in allowed if len(one) <= _LONGEST_SPELLING}
    close = get_close_matches(text.casefold(), spellings, 1, _CLOSE)
    return spellings[close[0]] if close else None


# ------------------------------------------------------------------------------------ times, lists


def _temporal(
    function: TemporalFunction, left: ast.Value, right: ast.Value, event: EventValues
) -> Finding:
    first, second = _read(evaluation.as_span, left, right, event)
    ends = [(first[own], op, second[other]) for own, op, other in evaluation.SPAN_RULES[function]]
    broken = [(a, b) for a, op, b in ends if not evaluation.OPERATORS[op](a, b)]
    if broken:  # each of them must be mended
        return _off([_gap(a, b) for a, b in broken], True)
    return _off([_gap(a, b) for a, op, b in ends if op is not ComparisonOp.EQ], True, least=True)


def _array(
    function: ArrayFunction,
    left: ast.Property | ast.ListLiteral,
    right: ast.Property | ast.ListLiteral,
    event: EventValues,
) -> Finding:
    if isinstance(left, ast.ListLiteral):
        function, left, right = ARRAY_CONVERSES.get(function, function), right, left
    own, asked = evaluation.items_of(left, right, event), evaluation.items_of(right, left, event)
    assert own is not None
    assert asked is not None
    missing: tuple[object, ...] = ()
    extra: tuple[object, ...] = ()
    if function is not ArrayFunction.A_CONTAINEDBY:
        missing = _rest(asked, own)
    if function in (ArrayFunction.A_CONTAINEDBY, ArrayFunction.A_EQUALS):
        extra = _rest(own, asked)
    return Finding(missing=missing, extra=extra)


def _rest(items: dict[object, object], others: dict[object, object]) -> tuple[object, ...]:
    """The items that are not among others, in their order."""
    return tuple(_plain(item) for key, item in items.items() if key not in others)


def _plain(item: object) -> object:
    """An item of a list, for JSON."""
    if isinstance(item, ast.Time):
        return format_instant(item.nanoseconds)
    value = item.value if isinstance(item, (ast.Number, ast.String, ast.Boolean)) else item
    if isinstance(value, (str, bool)):
        return value
    number = value_types.plain_number(value)
    if isinstance(number, int) and abs(number) < _LARGE:
        return number
    return number if isinstance(number, float) and isfinite(number) else short_repr(value)


# ---------------------------------------------------------------------------------------- amounts


def _gap(a: Any, b: Any) -> int | float | None:
    """How far two numbers or instants (in nanoseconds) are apart, if that is finite."""
    if isinstance(a, tuple):
        ends = _nanoseconds(a), _nanoseconds(b)
        return None if None in ends else abs(ends[0] - ends[1])  # type: ignore[operator]
    try:
        gap = abs(a - b)
        return gap if isinstance(gap, int) and gap < _LARGE else _finite(float(gap))
    except OverflowError:
        return None


def _nanoseconds(pair: DoubleDouble) -> int | None:
    return int(pair[0]) + int(pair[1]) if isfinite(pair[0]) else None


def _off(gaps: list[int | float | None], in_time: bool, least: bool = False) -> Finding:
    """By the largest of some gaps, or by the least."""
    known = [gap for gap in gaps if gap is not None]
    if not known or (len(known) < len(gaps) and not least):
        return NOTHING
    gap = min(known) if least else max(known)
    return Finding(off_by_s=gap / SECOND) if in_time else Finding(off_by=gap)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


# ------------------------------------------------------------------------------------------ words


def _rounded(number: int | float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.10g}"


def _duration(seconds: float) -> str:
    if 60 <= seconds < _LONG_AGO:
        return str(timedelta(seconds=round(seconds)))
    return f"{_rounded(seconds)} s"


def _listed(items: tuple[object, ...]) -> str:
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(map(short_repr, items[:_LISTED])) + more
