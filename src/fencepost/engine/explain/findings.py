"""`find_reasons`: by how much a condition failed, or why its outcome is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar

from fencepost.cql2 import ast
from fencepost.cql2.ast import ArrayFunction, ComparisonOp, NearFunction, TemporalFunction
from fencepost.engine.explain.unusable_values import UnusableAttribute, unusable_attributes
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

_MAX_SPELLING_LENGTH = 64  # the time to compare spellings grows with the square of their length
_MIN_SIMILARITY = 0.7  # of two spellings, from 0 to 1
_INTEGER_LIMIT = 2**63  # larger integers are shown as doubles or as text
_MAX_LISTED = 5
_MAX_TIMEDELTA_S = 1e13  # a timedelta holds somewhat more


@dataclass(frozen=True, slots=True)
class Finding:
    """Details on the outcome of a condition other than AND, OR and NOT.

    An attribute that does not apply is None or empty. `off_by`, `off_by_s`, `nearest`, `missing`
    and `extra` apply only to a condition that failed: it is false, or true under a NOT.

    Attributes
    ----------
    relation : str or None
        Relation of the left geometry to the right geometry: "disjoint", "meets", ...
    distance : float or None
        Distance between the two geometries, if they are disjoint or the condition is about
        distance; for S_SAMEPLACE, between their centroids. Accurate to about 15 digits of the
        coordinates.
    unit : str or None
        Unit of `distance` and `off_by`: "m" if coordinates are lon/lat.
    off_by : int, float or None
        Difference between the number or distance and the nearest value that would satisfy the
        condition, or the bound that it would have to pass.
    off_by_s : float or None
        Difference of times, in seconds.
    nearest : str or None
        Of the strings that would satisfy the condition, the string with nearly the spelling of the
        event's string.
    missing : tuple
        Required items that the event's list or text lacks.
    extra : tuple
        Items of the event's list or text that the condition does not allow.
    unusable : tuple of UnusableAttribute
        Attributes that make the condition unknown.
    problem : str or None
        Why the condition is unknown, if no attribute is the reason.
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
        """Return the attributes that apply, for JSON."""
        members: dict[str, object] = {}
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is not None and value != ():
                members[name] = list(value) if isinstance(value, tuple) else value
        if self.unusable:
            members["unusable"] = [attribute.as_dict() for attribute in self.unusable]
        return members

    def phrases(self) -> Iterator[str]:
        """Yield the attributes that apply, in words."""
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
        yield from (str(attribute) for attribute in self.unusable if not attribute.is_missing)
        if self.problem is not None:
            yield self.problem


NO_FINDING = Finding()


def find_reasons(
    condition: ast.Condition, event: EventValues, outcome: bool | None, required: bool
) -> Finding:
    """Return why a condition has its outcome; `required` is false under a NOT."""
    if outcome is None:
        return _unknown(condition, event)
    failed = outcome is not required
    match condition:
        case ast.SpatialCondition(_, left, right):
            return _spatial(left, right, event)
        case ast.NearCondition():
            return _near(condition, event, failed)
        case _ if not failed:
            return NO_FINDING
        case ast.Comparison(op, left, right):
            return _comparison(op, left, right, event)
        case ast.Between():
            return _between(condition, event, outcome)
        case ast.In(value, items):
            return NO_FINDING if outcome else _in(value, items, event)
        case ast.TemporalCondition(function, left, right):
            return _temporal(function, left, right, event)
        case ast.ArrayCondition(function, left, right):
            return NO_FINDING if outcome else _array(function, left, right, event)
    return NO_FINDING


def _unknown(condition: ast.Condition, event: EventValues) -> Finding:
    unusable = tuple(unusable_attributes(condition, event))
    if unusable:
        return Finding(unusable=unusable)
    if isinstance(condition, ast.TemporalCondition):
        return Finding(problem="an interval starts after it ends")
    return Finding(problem="a calculation has no result")


def _read(
    read: Callable[[ast.Value, EventValues], T | None],
    left: ast.Value,
    right: ast.Value,
    event: EventValues,
) -> tuple[T, T]:
    """Read both sides of a condition whose outcome is known."""
    a, b = read(left, event), read(right, event)
    assert a is not None
    assert b is not None
    return a, b


# ------------------------------------------------------------------------------------- geometries


def _spatial(left: ast.Value, right: ast.Value, event: EventValues) -> Finding:
    a, b = _read(evaluation.as_geometry, left, right, event)
    relation = relation_between(a, b)
    if relation is not Relation.DISJOINT:
        return Finding(relation=str(relation))
    distance = _finite(measure_distance(event.space, NearFunction.S_DWITHIN, a, b))
    return Finding(str(relation), distance, event.space.unit)


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
            return NO_FINDING
        nearest = _nearest_spelling(b, [a]) if _is_literal(left) else _nearest_spelling(a, [b])
        return Finding(nearest=nearest)
    if isinstance(a, bool) or (a == b and op in (ComparisonOp.EQ, ComparisonOp.NE)):
        return NO_FINDING
    return _off_by([_gap(a, b)], isinstance(a, tuple))


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
    return _off_by(gaps, in_time, smallest=outcome)


def _in(value: ast.Value, items: Iterable[ast.Value], event: EventValues) -> Finding:
    pairs = [evaluation.as_common_type(value, item, event) for item in items]
    known = [pair for pair in pairs if pair is not None]
    texts = [pair for pair in known if isinstance(pair[0], str)]
    if texts:  # a string may be compared with times, too
        return Finding(nearest=_nearest_spelling(texts[0][0], [text for _, text in texts]))
    gaps = [_gap(a, b) for a, b in known if not isinstance(a, bool)]
    return _off_by(gaps, any(isinstance(a, tuple) for a, _ in known), smallest=True)


def _is_literal(value: ast.Value) -> bool:
    while isinstance(value, ast.FoldedString):
        value = value.value
    return isinstance(value, ast.String)


def _nearest_spelling(text: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed string whose spelling is close to that of a text, ignoring case."""
    if len(text) > _MAX_SPELLING_LENGTH:
        return None
    spellings = {
        string.casefold(): string for string in allowed if len(string) <= _MAX_SPELLING_LENGTH
    }
    close = get_close_matches(text.casefold(), spellings, 1, _MIN_SIMILARITY)
    return spellings[close[0]] if close else None


# ------------------------------------------------------------------------------------ times, lists


def _temporal(
    function: TemporalFunction, left: ast.Value, right: ast.Value, event: EventValues
) -> Finding:
    first, second = _read(evaluation.as_span, left, right, event)
    ends = [(first[i], op, second[j]) for i, op, j in evaluation.SPAN_RULES[function]]
    broken = [(a, b) for a, op, b in ends if not evaluation.OPERATORS[op](a, b)]
    if broken:  # all of these comparisons must become true
        return _off_by([_gap(a, b) for a, b in broken], True)
    gaps = [_gap(a, b) for a, op, b in ends if op is not ComparisonOp.EQ]
    return _off_by(gaps, True, smallest=True)


def _array(
    function: ArrayFunction,
    left: ast.Property | ast.ListLiteral,
    right: ast.Property | ast.ListLiteral,
    event: EventValues,
) -> Finding:
    if isinstance(left, ast.ListLiteral):
        function, left, right = ARRAY_CONVERSES.get(function, function), right, left
    items, required = (
        evaluation.items_of(left, right, event),
        evaluation.items_of(right, left, event),
    )
    assert items is not None
    assert required is not None
    missing: tuple[object, ...] = ()
    extra: tuple[object, ...] = ()
    if function is not ArrayFunction.A_CONTAINEDBY:
        missing = _difference(required, items)
    if function in (ArrayFunction.A_CONTAINEDBY, ArrayFunction.A_EQUALS):
        extra = _difference(items, required)
    return Finding(missing=missing, extra=extra)


def _difference(items: dict[object, object], excluded: dict[object, object]) -> tuple[object, ...]:
    """Return the items that are not excluded, in their order."""
    return tuple(_json_item(item) for key, item in items.items() if key not in excluded)


def _json_item(item: object) -> object:
    """Return an item of a list as JSON can write it."""
    if isinstance(item, ast.Time):
        return format_instant(item.nanoseconds)
    value = item.value if isinstance(item, (ast.Number, ast.String, ast.Boolean)) else item
    if isinstance(value, (str, bool)):
        return value
    number = value_types.plain_number(value)
    if isinstance(number, int) and abs(number) < _INTEGER_LIMIT:
        return number
    return number if isinstance(number, float) and isfinite(number) else short_repr(value)


# ---------------------------------------------------------------------------------------- amounts


def _gap(a: Any, b: Any) -> int | float | None:
    """Return the difference of two numbers, or of two times in nanoseconds; None if not finite."""
    if isinstance(a, tuple):
        ends = _nanoseconds(a), _nanoseconds(b)
        return None if None in ends else abs(ends[0] - ends[1])  # type: ignore[operator]
    try:
        gap = abs(a - b)
        return gap if isinstance(gap, int) and gap < _INTEGER_LIMIT else _finite(float(gap))
    except OverflowError:
        return None


def _nanoseconds(pair: DoubleDouble) -> int | None:
    return int(pair[0]) + int(pair[1]) if isfinite(pair[0]) else None


def _off_by(gaps: list[int | float | None], in_time: bool, smallest: bool = False) -> Finding:
    """Return a finding with the largest of some gaps, or with the smallest."""
    known = [gap for gap in gaps if gap is not None]
    if not known or (len(known) < len(gaps) and not smallest):
        return NO_FINDING
    gap = min(known) if smallest else max(known)
    return Finding(off_by_s=gap / SECOND) if in_time else Finding(off_by=gap)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


# ------------------------------------------------------------------------------------------- text


def _rounded(number: int | float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.10g}"


def _duration(seconds: float) -> str:
    if 60 <= seconds < _MAX_TIMEDELTA_S:
        return str(timedelta(seconds=round(seconds)))
    return f"{_rounded(seconds)} s"


def _listed(items: tuple[object, ...]) -> str:
    more = f" and {len(items) - _MAX_LISTED} more" if len(items) > _MAX_LISTED else ""
    return ", ".join(map(short_repr, items[:_MAX_LISTED])) + more
