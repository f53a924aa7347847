"""Whether the geometry of an event can be used.

To a matcher, a geometry that is none is unknown, and the event answers nothing about places. Who
publishes would not hear of it; so it is looked at before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.errors import GeometryProblem
from fencepost.events.table import EventTable
from fencepost.model.space import OUTSIDE, Space


def table_of(events: Sequence[Mapping[str, Any]], space: Space, most_vertices: int) -> EventTable:
    """Events as a table, with their geometries read; what cannot be used is `bad`.

    Of Features and other objects alike the member `geometry` is looked at; null is one that is not
    known.
    """
    table = EventTable.read(events, space)
    wrong: dict[int, str] = {}
    for number, row in enumerate(table.numbers.tolist()):
        geometry = events[row].get("geometry")
        if not isinstance(geometry, dict):
            if geometry is not None and events[row].get("type") == "Feature":
                wrong[number] = "its geometry is no GeoJSON geometry; give an object or null"
        elif _positions(geometry.get("coordinates"), most_vertices) > most_vertices:
            wrong[number] = f"it has more than {most_vertices:,} vertices; simplify its geometry"
    table = table.without(wrong)
    problems = table.geometries("geometry").problems
    return table.without(
        {
            number: _unusable(problem)
            for number, problem in problems.items()
            if isinstance(events[table.numbers[number]].get("geometry"), dict)
        }
    )


def _unusable(problem: GeometryProblem) -> str:
    if problem.reason == OUTSIDE:
        return f"its geometry has {OUTSIDE}"
    return f"its geometry cannot be used: {problem}"


def _positions(given: object, most: int) -> int:
    """How many positions nested lists hold; counting stops beyond the most."""
    if not isinstance(given, list):
        return 0
    if not given or not isinstance(given[0], list):
        return 1
    if given[0] and not isinstance(given[0][0], list):
        return len(given)
    count = 0
    for one in given:
        count += _positions(one, most)
        if count > most:
            break
    return count
