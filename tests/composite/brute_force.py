"""Finds detections by trying all combinations, in rational arithmetic; shares no code with the
detector.

The expressions are the tests' own: a kind of event, as in ``kind = 'taxi'``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

from fencepost.composite import Composite, MemberCondition
from fencepost.cql2 import render_text
from tests.kernels.exact_hulls import (
    Point,
    centroid,
    contains,
    corners,
    cross,
    exact,
    meet,
    squared_distance,
)

Event = Mapping[str, Any]  # id, kinds (a list), at (whole seconds), points


def detections(
    composites: list[Composite], stream: Sequence[Event], lateness: int
) -> list[list[tuple[str, object]]]:
    """Return, for each event, (composite, members) of the detections that it completes."""
    newest = min((event["at"] for event in stream), default=0)
    numbers = []
    for number, event in enumerate(stream):
        newest = max(newest, event["at"])
        if event["at"] >= newest - lateness:
            numbers.append(number)
    on_time = [stream[number] for number in numbers]
    completed: list[list[tuple[str, object]]] = [[] for _ in stream]
    for composite in composites:
        for names, used in _assignments(composite, on_time):
            completed[numbers[max(used)]].append((composite.id, names))
    return completed


def _assignments(
    composite: Composite, events: list[Event]
) -> Iterator[tuple[dict[str, Any], frozenset[int]]]:
    """Yield keys by member and the numbers of the events, for each match of a composite."""

    def extend(
        unbound: list[str], chosen: dict[str, tuple[Any, frozenset[int]]]
    ) -> Iterator[tuple[dict[str, Any], frozenset[int]]]:
        if not unbound:
            used: frozenset[int] = frozenset().union(*(numbers for _, numbers in chosen.values()))
            places = {name: _hull(numbers, events) for name, (_, numbers) in chosen.items()}
            if _in_window(used, events, composite.within_s) and all(
                holds(condition, places) for condition in composite.where
            ):
                yield {name: key for name, (key, _) in chosen.items()}, used
            return
        name, *rest = unbound
        for key, numbers in _choices(composite.members[name], events):
            if all(numbers.isdisjoint(other) for _, other in chosen.values()):
                all_numbers = frozenset().union(numbers, *(other for _, other in chosen.values()))
                if _in_window(all_numbers, events, composite.within_s):
                    yield from extend(rest, {**chosen, name: (key, numbers)})

    yield from extend([*composite.members], {})


def _choices(member: Any, events: list[Event]) -> Iterator[tuple[Any, frozenset[int]]]:
    if isinstance(member, Composite):
        yield from _assignments(member, events)
        return
    kind = render_text(member).split("'")[1]
    for number, event in enumerate(events):
        if kind in event["kinds"]:
            yield event["id"], frozenset((number,))


def _in_window(numbers: frozenset[int], events: list[Event], within_s: float) -> bool:
    times = [events[number]["at"] for number in numbers]
    return bool(max(times) - min(times) <= Fraction(within_s))


def _hull(numbers: frozenset[int], events: list[Event]) -> list[Point]:
    points = {point for number in numbers for point in events[number]["points"]}
    return [*_ring_of(frozenset(points))]


@cache
def _ring_of(points: frozenset[tuple[float, float]]) -> tuple[Point, ...]:
    return tuple(ring(exact([*points])))


def ring(points: list[Point]) -> list[Point]:
    """Return the corners of a hull in counterclockwise order."""
    hull = sorted(corners(points))
    if len(hull) < 3:
        return hull
    first = hull[0]
    rest = hull[1:]
    # The other corners lie on different rays from the first, within half a turn.
    for i, j in combinations(range(len(rest)), 2):
        if cross(first, rest[i], rest[j]) < 0:
            rest[i], rest[j] = rest[j], rest[i]
    return [first, *rest]


def holds(condition: MemberCondition, places: Mapping[str, list[Point]]) -> bool:
    a, b = (_place(operand, places) for operand in (condition.left, condition.right))
    predicate = condition.predicate
    if predicate.operator.value == "in":
        return all(contains(b, p) >= 0 for p in a)
    if predicate.operator.value == "ovlp":
        return meet(a, b)
    if predicate.operator.value == "spl":
        (x, y), (u, v) = centroid(a), centroid(b)
        square = (x - u) ** 2 + (y - v) ** 2
    else:
        square = squared_distance(a, b)
    assert predicate.compare is not None
    assert predicate.distance is not None
    d, t = Fraction(predicate.distance), Fraction(predicate.tolerance)
    match predicate.compare.value:
        case "<":
            return square < d**2
        case "<=":
            return square <= d**2
        case ">":
            return square > d**2
        case ">=":
            return square >= d**2
    return max(d - t, Fraction(0)) ** 2 <= square <= (d + t) ** 2


def _place(operand: Any, places: Mapping[str, list[Point]]) -> list[Point]:
    if isinstance(operand, str):
        return places[operand]
    return ring(exact([*operand.geometry.value.envelope.exterior.coords]))
