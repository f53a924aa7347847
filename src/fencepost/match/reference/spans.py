"""Spans of time and how they relate, by the OGC's definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Final, TypeAlias

from fencepost.language.ast import Temporal
from fencepost.match.reference.values import normal, time_of

__all__ = ["Span", "are_spans_related", "nanoseconds_of", "span_between", "span_of"]

# Start and end in nanoseconds, exact integers; -inf is a start and inf an end without bound.
Span: TypeAlias = tuple[float, float]

# s, e are the ends of the left span, S, E those of the right.
_DEFINITIONS: Final[dict[Temporal, Callable[[float, float, float, float], bool]]] = {
    Temporal.T_AFTER: lambda s, e, S, E: s > E,
    Temporal.T_BEFORE: lambda s, e, S, E: e < S,
    Temporal.T_CONTAINS: lambda s, e, S, E: s < S and e > E,
    Temporal.T_DISJOINT: lambda s, e, S, E: not (s <= E and e >= S),
    Temporal.T_EQUALS: lambda s, e, S, E: s == S and e == E,
    Temporal.T_FINISHES: lambda s, e, S, E: s > S and e == E,
    Temporal.T_INTERSECTS: lambda s, e, S, E: s <= E and e >= S,
    Temporal.T_MEETS: lambda s, e, S, E: e == S,
    Temporal.T_METBY: lambda s, e, S, E: s == E,
    Temporal.T_OVERLAPS: lambda s, e, S, E: s < S and e > S and e < E,
    Temporal.T_STARTS: lambda s, e, S, E: s == S and e < E,
}
_CONVERSES: Final = {
    Temporal.T_DURING: Temporal.T_CONTAINS,
    Temporal.T_FINISHEDBY: Temporal.T_FINISHES,
    Temporal.T_OVERLAPPEDBY: Temporal.T_OVERLAPS,
    Temporal.T_STARTEDBY: Temporal.T_STARTS,
}


def are_spans_related(function: Temporal, left: Span, right: Span) -> bool:
    """Whether a temporal function holds of two spans."""
    if function in _CONVERSES:
        return _DEFINITIONS[_CONVERSES[function]](*right, *left)
    return _DEFINITIONS[function](*left, *right)


def span_of(value: object) -> Span | None:
    """
    The span that a value in normal form is; None if it is none.

    A time, also as an ISO 8601 string, is a span of no length. A mapping with the one member
    ``interval``, a list of two times, is a span, in which ``".."`` is an end without bound.
    """
    if not isinstance(value, Mapping):
        instant = nanoseconds_of(value)
        return span_between(instant, instant)
    ends = value.get("interval")
    if len(value) != 1 or not isinstance(ends, list | tuple) or len(ends) != 2:
        return None
    start, end = map(normal, ends)
    return span_between(
        -inf if _is_unbounded(start) else nanoseconds_of(start),
        inf if _is_unbounded(end) else nanoseconds_of(end),
    )


def span_between(start: float | None, end: float | None) -> Span | None:
    """The span between two ends; None if one of them is, or the start is after the end."""
    return None if start is None or end is None or start > end else (start, end)


def nanoseconds_of(value: object) -> int | None:
    """The time that a value in normal form is or tells, in nanoseconds since 1970."""
    time = time_of(value)
    return None if time is None else time.nanoseconds


def _is_unbounded(value: object) -> bool:
    return isinstance(value, str) and value == ".."
