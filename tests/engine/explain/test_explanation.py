"""Tests of explanations: by how much each kind of condition failed, or why it is unknown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.cql2 import parse
from fencepost.cql2.ast import NearFunction
from fencepost.engine.explain.explanation import Explanation, explain
from fencepost.events import EventValues
from fencepost.filters import measure_distance
from fencepost.geometry import Shapes, Space

EVENT: dict[str, object] = {
    "wind": 26.5,
    "level": 3,
    "kind": "Taxy",
    "flag": True,
    "geometry": "POINT (7 8)",
    "broken": "POLYGON ((0 0, 1 1, 0 1, 1 0, 0 0))",
    "words": ["ipad", "shop"],
    "sizes": [1, 2.5, np.int64(9)],
    "text": "The iPad shop",
    "at": datetime(2024, 5, 1, 12, tzinfo=UTC),
    "during": {"interval": ["2024-01-01", "2024-02-01"]},
    "endless": float("inf"),
    "enormous": 10**5000,
}
BOX = "BBOX(0, 0, 4, 4)"


def explained(expression: str, **event: object) -> Explanation:
    return explain(parse(expression), EventValues(EVENT | event))


def finding_of(expression: str) -> dict[str, object]:
    """Return the finding of an expression, after a round trip through JSON."""
    members: Any = json.loads(json.dumps(explained(expression).as_dict(), allow_nan=False))
    return members["finding"]  # type: ignore[no-any-return]


HOUR, DAY = 3600.0, 86400.0

FAILED: list[tuple[str, dict[str, object]]] = [
    ("wind > 30", {"off_by": 3.5}),
    ("30 <= wind", {"off_by": 3.5}),
    ("wind = 26", {"off_by": 0.5}),
    ("wind <> 26.5", {}),
    ("level > 3", {"off_by": 0}),
    ("level + 1 >= 9", {"off_by": 5}),
    ("wind BETWEEN 30 AND 40", {"off_by": 3.5}),
    ("wind BETWEEN 2 AND 4", {"off_by": 22.5}),
    ("wind BETWEEN 40 AND 20", {"off_by": 13.5}),
    ("wind IN (1, 25, 30)", {"off_by": 1.5}),
    ("level IN ('three', 2)", {"off_by": 1}),
    ("endless < 3", {}),
    ("enormous < 3", {}),
    ("kind = 'taxi'", {"nearest": "taxi"}),
    ("'TAXI' = kind", {"nearest": "TAXI"}),
    ("kind = 'aeroplane'", {}),
    ("kind IN ('bus', 'taxi', 'tram')", {"nearest": "taxi"}),
    ("CASEI(kind) = CASEI('Taxi')", {"nearest": "taxi"}),
    ("kind < 'A'", {}),
    ("kind LIKE 'taxi%'", {}),
    ("flag = FALSE", {}),
    ("flag IN (FALSE)", {}),
    ("wind IS NULL", {}),
    ("FALSE", {}),
    (f"S_INTERSECTS(geometry, {BOX})", {"relation": "disjoint", "distance": 5.0}),
    (f"EH_CONTAINS({BOX}, geometry)", {"relation": "disjoint", "distance": 5.0}),
    ("S_DISJOINT(geometry, BBOX(0, 0, 7, 8))", {"relation": "meets"}),
    ("S_TOUCHES(geometry, BBOX(0, 0, 9, 9))", {"relation": "inside"}),
    (f"S_DWITHIN(geometry, {BOX}, 4.5)", {"distance": 5.0, "off_by": 0.5}),
    ("S_BEYOND(geometry, POINT(4 4), 8)", {"distance": 5.0, "off_by": 3.0}),
    ("S_SAMEPLACE(geometry, BBOX(3, 3, 5, 5), 1)", {"distance": 5.0, "off_by": 4.0}),
    ("A_CONTAINS(words, ('repair', 'ipad', 'now'))", {"missing": ["repair", "now"]}),
    ("A_CONTAINS(text, ('ipad repair'))", {"missing": ["repair"]}),
    ("A_CONTAINEDBY(('ipad', 'repair'), words)", {"missing": ["repair"]}),
    ("A_OVERLAPS(words, ('repair', 'now'))", {"missing": ["repair", "now"]}),
    ("A_CONTAINEDBY(words, ('ipad'))", {"extra": ["shop"]}),
    ("A_EQUALS(words, ('ipad', 'now'))", {"missing": ["now"], "extra": ["shop"]}),
    ("A_CONTAINS(sizes, (1, 3, TRUE))", {"missing": [3, True]}),
    ("A_CONTAINS(sizes, (DATE('2024-05-01')))", {"missing": ["2024-05-01T00:00:00Z"]}),
    ("A_CONTAINEDBY(sizes, (1, 2.5))", {"extra": [9]}),
    ("at > TIMESTAMP('2024-05-03T15:00:00Z')", {"off_by_s": 2 * DAY + 3 * HOUR}),
    ("at < '2024-04-30'", {"off_by_s": DAY + 12 * HOUR}),
    ("at BETWEEN DATE('2024-05-03') AND DATE('2024-05-05')", {"off_by_s": DAY + 12 * HOUR}),
    ("at IN (DATE('2024-05-01'), DATE('2024-05-03'))", {"off_by_s": 12 * HOUR}),
    ("T_AFTER(at, DATE('2024-05-02'))", {"off_by_s": 12 * HOUR}),
    ("T_DURING(at, INTERVAL('2024-05-02', '..'))", {"off_by_s": 12 * HOUR}),
    ("T_DURING(during, INTERVAL('2024-01-03', '2024-02-02'))", {"off_by_s": 2 * DAY}),
    ("T_EQUALS(during, INTERVAL('2024-01-02', '2024-02-08'))", {"off_by_s": 7 * DAY}),
    ("T_DISJOINT(during, INTERVAL('2024-01-25', '..'))", {"off_by_s": 7 * DAY}),
    ("T_EQUALS(at, INTERVAL('..', '2024-05-02'))", {}),
]


@pytest.mark.parametrize(("expression", "expected"), FAILED)
def test_by_how_much_a_condition_failed(expression: str, expected: dict[str, object]) -> None:
    assert explained(expression).outcome is False
    assert finding_of(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("wind > 20", {}),
        ("kind = 'Taxy'", {}),
        ("wind IN (26.5)", {}),
        ("flag", {}),
        ("nothing IS NULL", {}),
        ("kind LIKE 'T%'", {}),
        ("wind BETWEEN 20 AND 30", {}),
        ("A_CONTAINS(words, ('ipad'))", {}),
        ("at > DATE('2024-05-01')", {}),
        ("T_DURING(at, INTERVAL('2024-05-01', '..'))", {}),
        ("S_INTERSECTS(geometry, BBOX(0, 0, 7, 9))", {"relation": "meets"}),
        ("S_DISJOINT(geometry, POINT(4 4))", {"relation": "disjoint", "distance": 5.0}),
        ("S_DWITHIN(geometry, POINT(4 4), 5)", {"distance": 5.0}),
        ("S_SAMEPLACE(geometry, POINT(4 4), 6)", {"distance": 5.0}),
    ],
)
def test_a_true_condition_is_off_by_nothing(expression: str, expected: dict[str, object]) -> None:
    assert explained(expression).outcome is True
    assert finding_of(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("wind < 30", {"off_by": 3.5}),
        ("wind BETWEEN 20 AND 27", {"off_by": 0.5}),
        ("wind = 26.5", {}),
        ("kind = 'Taxy'", {}),
        ("wind IN (26.5, 3)", {}),
        ("A_CONTAINS(words, ('ipad'))", {}),
        ("S_DWITHIN(geometry, POINT(4 4), 7)", {"distance": 5.0, "off_by": 2.0}),
        ("T_BEFORE(at, DATE('2024-05-03'))", {"off_by_s": DAY + 12 * HOUR}),
        ("T_DURING(during, INTERVAL('2023-12-30', '2024-02-02'))", {"off_by_s": DAY}),
        ("T_EQUALS(at, at)", {}),
    ],
)
def test_a_true_condition_under_a_not_is_off(expression: str, expected: dict[str, object]) -> None:
    for negated in (f"NOT ({expression})", f"NOT NOT NOT ({expression})"):
        inner = explained(negated)
        assert inner.outcome is False
        while inner.parts:
            [inner] = inner.parts
        assert (inner.outcome, inner.finding.as_dict()) == (True, expected)


@pytest.mark.parametrize(
    ("expression", "attribute", "seen", "expected"),
    [
        ("gone > 3", "gone", "missing", "a number"),
        ("kind > 3", "kind", "a string", "a number"),
        ("wind = 'x'", "wind", "a number", "a string"),
        ("wind = gone", "gone", "missing", "a boolean or a number or a string or a time"),
        ("wind = kind", "wind", "a number", "a string"),
        ("kind + 1 > 3", "kind", "a string", "a number"),
        ("wind < kind * 2", "kind", "a string", "a number"),
        ("CASEI(wind) = 'x'", "wind", "a number", "a string"),
        ("kind = DATE('2024-05-01')", "kind", "a string", "a time"),
        ("at = 'noon'", "at", "a time", "a string"),
        ("flag BETWEEN 1 AND 2", "flag", "a boolean", "a number"),
        ("flag IN ('a', 2)", "flag", "a boolean", "a string or a number"),
        ("wind LIKE 'x'", "wind", "a number", "a string"),
        ("wind", "wind", "a number", "a boolean"),
        ("words = 1", "words", "a list", "a number"),
        ("during = 1", "during", "a span of time", "a number"),
        ("S_INTERSECTS(wind, POINT(1 1))", "wind", "a number", "a geometry"),
        ("S_BEYOND(gone, POINT(1 1), 2)", "gone", "missing", "a geometry"),
        ("A_CONTAINS(wind, ('a'))", "wind", "a number", "a list or a string"),
        ("A_CONTAINS(text, (1))", "text", "a string", "a list"),
        ("A_EQUALS(words, text)", "text", "a string", "a list"),
        ("T_AFTER(wind, DATE('2024-05-02'))", "wind", "a number", "a time or a span of time"),
        ("T_AFTER(INTERVAL(at, gone), DATE('2024-05-02'))", "gone", "missing", "a time"),
    ],
)
def test_why_a_condition_is_unknown(
    expression: str, attribute: str, seen: str, expected: str
) -> None:
    assert explained(expression).outcome is None
    assert finding_of(expression) == {
        "unusable": [{"attribute": attribute, "seen": seen, "expected": expected}]
    }


def test_problem_of_an_unusable_geometry() -> None:
    [attribute] = explained("S_INTERSECTS(broken, POINT(1 1))").finding.unusable
    assert (attribute.seen, attribute.expected) == ("a string", "a geometry")
    assert attribute.problem == "a ring touches or crosses itself at (0.5, 0.5)"
    [attribute] = explained("S_INTERSECTS(kind, POINT(1 1))").finding.unusable
    assert "no WKT" in attribute.problem


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("wind / 0 > 3", "a calculation has no result"),
        ("T_AFTER(INTERVAL(at, '2024-01-01'), DATE('2024-05-02'))", "starts after it ends"),
    ],
)
def test_unknown_without_an_unusable_attribute(expression: str, problem: str) -> None:
    assert explained(expression).outcome is None
    assert problem in str(finding_of(expression)["problem"])
    assert problem in str(explained(expression))


def test_lines_of_an_explanation() -> None:
    text = (
        "wind > 30 AND kind = 'taxi' AND A_EQUALS(words, ('a', 'b', 'c', 'd', 'e', 'f', 'ipad')) "
        "AND at > DATE('2024-06-01') AND T_AFTER(at, TIMESTAMP('2024-05-01T12:00:02.5Z')) "
        "AND S_DWITHIN(geometry, POINT(4 4), 2) AND S_TOUCHES(geometry, POINT(4 4)) "
        "AND level > 'x' AND gone = 1"
    )
    lines = str(explained(text)).splitlines()
    assert [line.rpartition("(")[2].rstrip(")").partition("; ")[2] for line in lines[1:]] == [
        "off by 3.5",
        "close to 'taxi'",
        "missing 'a', 'b', 'c', 'd', 'e' and 1 more; not allowed 'shop'",
        "off by 30 days, 12:00:00",
        "off by 2.5 s",
        "the distance is 5; off by 3",
        "the relation is disjoint; the distance is 5",
        "level is a number, not a string",
        "",
    ]
    assert lines[9].endswith("(gone is missing)")


def test_spellings_of_long_strings_are_not_compared() -> None:
    assert explained(f"kind = '{'a' * 65}'", kind="a" * 64).finding.nearest is None
    assert explained(f"kind = '{'a' * 63}'", kind="a" * 65).finding.nearest is None
    assert explained(f"kind = '{'a' * 63}'", kind="a" * 64).finding.nearest == "a" * 63


def test_explain_of_a_matcher() -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("storm", "wind > 30 AND S_DWITHIN(geometry, POINT(4 4), 2)")
    wind, place = matcher.explain(EVENT, "storm").parts
    assert wind.finding.off_by == 3.5
    assert place.finding.off_by == pytest.approx(3.0)


# No tiny coordinates: Shapely returns infinite distances for lengths near 1e-199.
COORDINATES = (st.integers(-20, 20) | st.integers(-9999, 9999)).map(lambda n: n / 8)
POSITIONS = st.tuples(COORDINATES, COORDINATES)
GEOMETRIES = st.one_of(
    POSITIONS.map(shapely.Point),
    st.lists(POSITIONS, min_size=2, max_size=5, unique=True).map(shapely.LineString),
    st.lists(POSITIONS, min_size=2, max_size=5, unique=True).map(shapely.MultiPoint),
    st.tuples(POSITIONS, st.integers(1, 9), st.integers(1, 9)).map(
        lambda box: shapely.box(*box[0], box[0][0] + box[1], box[0][1] + box[2])
    ),
)


@given(GEOMETRIES, GEOMETRIES)
def test_distances_against_shapely(a: Any, b: Any) -> None:
    left, right = Shapes.read_one(a), Shapes.read_one(b)
    expected = shapely.distance(a, b)
    assert measure_distance(Space.PLANAR, NearFunction.S_DWITHIN, left, right) == pytest.approx(
        expected, 1e-9, 1e-9
    )
    expected = shapely.distance(shapely.centroid(a), shapely.centroid(b))
    assert measure_distance(Space.PLANAR, NearFunction.S_SAMEPLACE, left, right) == pytest.approx(
        expected, 1e-9, 1e-9
    )


def test_the_nearest_string_beside_times() -> None:
    m = fp.Matcher()
    m.subscribe("a", "t IN (DATE('2020-01-01'), '2020-13-03')")
    assert m.explain({"t": "2020-12-03"}, "a").finding.nearest == "2020-13-03"
