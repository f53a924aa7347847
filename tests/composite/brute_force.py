"""Detection by trying everything, in rational arithmetic: shares no code with what it judges.

Expressions are those of the tests only: a kind of event, as in ``kind = 'taxi'``.
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
    """For each event in turn, (composite, members) of what it makes complete."""
    newest = min((event["at"] for event in stream), default=0)
    numbers = []
    for number, event in enumerate(stream):
        newest = max(newest, event["at"])
        if event["at"] >= newest - lateness:
            numbers.append(number)
    seen = [stream[number] for number in numbers]
    found: list[list[tuple[str, object]]] = [[] for _ in stream]
    for composite in composites:
        for names, used in _assignments(composite, seen):
            found[numbers[max(used)]].append((composite.id, names))
    return found


def _assignments(
    composite: Composite, events: list[Event]
) -> Iterator[tuple[dict[str, Any], frozenset[int]]]:
    """Names by member and the numbers of the events, for all that the composite asks."""

    def extend(
        left: list[str], chosen: dict[str, tuple[Any, frozenset[int]]]
    ) -> Iterator[tuple[dict[str, Any], frozenset[int]]]:
        if not left:
            used: frozenset[int] = frozenset().union(*(numbers for _, numbers in chosen.values()))
            places = {name: _hull(numbers, events) for name, (_, numbers) in chosen.items()}
            if _in_window(used, events, composite.within_s) and all(
                holds(condition, places) for condition in composite.where
            ):
                yield {name: key for name, (key, _) in chosen.items()}, used
            return
        name, *rest = left
        for key, numbers in _choices(composite.members[name], events):
            if all(numbers.isdisjoint(other) for _, other in chosen.values()):
                together = frozenset().union(numbers, *(other for _, other in chosen.values()))
                if _in_window(together, events, composite.within_s):
                    yield from extend(rest, {**chosen, name: (key, numbers)})

    yield from extend([*composite.members], {})


def _choices(member: Any, events: list[Event]) -> Iterator[tuple[Any, frozenset[int]]]:
    if isinstance(member, Composite):
        yield from _assignments(member, events)
        return
    wanted = render_text(member).split("'")[1]
    for number, event in enumerate(events):
        if wanted in event["kinds"]:
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
    """The corners of a hull in order, counterclockwise."""
    found = sorted(corners(points))
    if len(found) < 3:
        return found
    first = found[0]
    rest = found[1:]
    # Every two of the rest are on different rays from the first, within half a turn.
    for one, other in combinations(range(len(rest)), 2):
        if cross(first, rest[one], rest[other]) < 0:
            rest[one], rest[other] = rest[other], rest[one]
    return [first, *rest]


def holds(condition: MemberCondition, places: Mapping[str, list[Point]]) -> bool:
    a, b = (_place(one, places) for one in (condition.left, condition.right))
    asked = condition.asked
    if asked.place.value == "in":
        return all(contains(b, p) >= 0 for p in a)
    if asked.place.value == "ovlp":
        return meet(a, b)
    if asked.place.value == "spl":
        (x, y), (u, v) = centroid(a), centroid(b)
        square = (x - u) ** 2 + (y - v) ** 2
    else:
        square = squared_distance(a, b)
    assert asked.compare is not None
    assert asked.distance is not None
    d, t = Fraction(asked.distance), Fraction(asked.tolerance)
    match asked.compare.value:
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
