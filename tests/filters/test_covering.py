"""Covering and conflict of terms: sound against the reference, and found in most cases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest
import shapely
from shapely.geometry import LineString, MultiPoint, MultiPolygon, Point, Polygon, box
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import parse
from fencepost.cql2.ast import SpatialFunction
from fencepost.filters import Term, to_filters
from fencepost.filters.covering import CONFLICTS, COVERS, TermTable, conflicts, covers
from fencepost.reference import evaluate
from tests.engine.strategies import DAYS, ITEMS, LATTICE, NUMERIC, STRANGE, TIMES, WORDS

A, B = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON((3 3, 6 3, 6 6, 3 6, 3 3))"


def term(text: str) -> Term:
    """Return the term of a condition that has one term only."""
    ((only,),) = to_filters(parse(text))
    return only


# -------------------------------------------------------------------------------------- soundness

ORDER = ("=", "<>", "<", "<=", ">", ">=")
SOME_NUMBERS = ("0", "1", "2", "2.5", "-7", "9007199254740992", "9007199254740993", "1e300")
SOME_WORDS = ("''", "'a'", "'ab'", "'b'", "'é'", "'x%y'")
PATTERNS = (
    *("%", "a%", "ab%", "a%b", "%b", "%a%", "_", "__", "a_", "_b", "a_b", "ab", "", "a\\_b"),
    *("x\\%y", "%%", "_%", "%_", "é%", "a%b%"),
)
LISTS = (
    *("()", "('a')", "('a', 'b')", "('b')", "('a', 1)", "(1)", "(1, 2)", "('A')", "('!')"),
    *("('a b')", "('a', 'b', 'hail')", "('a', 'a!')", "(TRUE)", "('!', 'a')"),
)
INSTANTS = tuple(f"DATE('{day}')" for day in DAYS[:4])

POOLS: dict[str, tuple[list[str], list[object]]] = {
    "numbers": (
        [f"v {op} {number}" for op, number in product(ORDER, SOME_NUMBERS)],
        [*NUMERIC, 1.5, 2.25, -8, 9007199254740994],
    ),
    "strings": (
        [f"v {op} {word}" for op, word in product(ORDER, SOME_WORDS)]
        + [f"v LIKE '{pattern}'" for pattern in PATTERNS]
        + ["v IN ('a', 'b')", "v IN ('a', 'ab', 'é')", "v IN ('x%y', 'a_b')"],
        [*WORDS, "aab", "abb", "aXb", "bb", "ba", "a%", "é!", "zz", "a_bc", "Ab", "a\ud800"],
    ),
    "folded strings": (
        [f"CASEI(v) {op} {word}" for op, word in product(ORDER, SOME_WORDS[1:4])]
        + [f"CASEI(v) LIKE '{pattern}'" for pattern in PATTERNS[:6]],
        [*WORDS, "AB", "aB"],
    ),
    "booleans": (
        ["v", *(f"v {op} {flag}" for op, flag in product(ORDER, ("TRUE", "FALSE")))],
        [True, False],
    ),
    "times": (
        [f"v {op} {instant}" for op, instant in product(ORDER, INSTANTS)],
        [*TIMES, "2020-01-01T12:00:00Z"],
    ),
    "spans": (
        [
            f"{function}(v, {instant})"
            for function in ("T_AFTER", "T_BEFORE", "T_MEETS", "T_METBY")
            for instant in (*INSTANTS, "INTERVAL('..', '2020-01-02')", "INTERVAL('..', '..')")
        ],
        [
            *({"interval": [a, b]} for a in ("..", *DAYS[:4]) for b in (*DAYS[:4], "..")),
            *TIMES,
        ],
    ),
    "lists": (
        [
            f"{function}(v, {items})"
            for function in ("A_CONTAINS", "A_CONTAINEDBY", "A_EQUALS", "A_OVERLAPS")
            for items in LISTS
        ],
        [
            *([], ["a"], ["b"], ["a", "b"], ["a", 1], [1], [1, 2], ["!"], ["a", "!"], [object()]),
            *(["A"], ["a b"], ["hail", "a", "b"], [True], [None], ["a", "a!"], [1.0, "a", "b"]),
            *("a", "b", "a b", "", "!", "hail a b", "A", "c", "1", ITEMS),
        ],
    ),
    "truths": (["v = w", "NOT (v = w)", "v < w"], [0, 1, 2, "a"]),
}


def related_areas() -> list[BaseGeometry]:
    """Return areas that share edges and corners, contain each other, have holes or parts."""
    return [
        box(0, 0, 4, 4),
        box(1, 1, 3, 3),
        box(0, 0, 2, 4),
        box(2, 0, 4, 4),
        box(3, 3, 6, 6),
        box(7, 7, 9, 9),
        box(0, 0, 4, 4).difference(box(1, 1, 3, 3)),
        MultiPolygon([box(0, 0, 1, 1), box(3, 3, 4, 4)]),
        Polygon([(0, 0), (4, 0), (0, 4)]),
        Polygon([(4, 4), (0, 4), (0, 2), (0, 0), (4, 0)]),
    ]


def events_around() -> list[BaseGeometry]:
    """Return points, lines and areas in and around `related_areas`."""
    rng = random.Random(5)
    lines = [
        LineString(rng.sample(list(product(range(6), repeat=2)), rng.randint(2, 3)))
        for _ in range(25)
    ]
    return [
        *(Point(x / 2, y / 2) for x, y in product(range(-1, 13, 2), repeat=2)),
        *(Point(x, y) for x, y in ((0, 0), (2, 0), (4, 4), (3, 3), (1, 2), (5, 5))),
        *(MultiPoint(rng.sample(list(product(range(6), repeat=2)), 2)) for _ in range(10)),
        *lines,
        *related_areas(),
        *(box(x, y, x + w, y + w) for x, y, w in product((0, 2, 3), (0, 1), (1, 4))),
        *(
            geometry
            for geometry in LATTICE[16::6]
            if geometry.geom_type in ("Polygon", "MultiPolygon")
        ),
    ]


THIN = ("POINT(1 1)", "LINESTRING(0 0, 4 4)", "MULTIPOINT((0 0), (4 4))", "LINESTRING(4 4, 0 0)")
FUNCTIONS = tuple(function.name for function in SpatialFunction)
POOLS["areas"] = (
    [f"{function}(v, {area.wkt})" for function in FUNCTIONS for area in related_areas()],
    [*events_around()],
)
POOLS["points and lines"] = (
    [f"{function}(v, {wkt})" for function, wkt in product(FUNCTIONS, (*THIN, A))],
    [*events_around()[::2], *map(shapely.from_wkt, THIN)],
)
POOLS["distances"] = (
    [
        f"{function}(v, {place}, {distance})"
        for function in ("S_DWITHIN", "S_BEYOND", "S_SAMEPLACE", "S_CLOSER", "S_ALLWITHIN")
        for place in ("POINT(1 1)", A)
        for distance in (0, 1, 2, 1e308)
        if function != "S_CLOSER" or distance  # closer than 0 is not a single term
    ]
    + ["S_INTERSECTS(v, POINT(1 1))"],
    [*events_around()[::4]],
)


@cache
def evaluated(pool: str) -> tuple[list[Term], np.ndarray]:
    """Return the terms of a pool and their negations, and which events satisfy each term."""
    texts, values = POOLS[pool]
    events = [{"v": value, "w": 1} for value in (*values, *STRANGE)]
    true, false = [], []
    for condition in map(parse, [*texts, "v IS NULL"]):
        outcomes = [evaluate(condition, event) for event in events]
        true.append([outcome is True for outcome in outcomes])
        false.append([outcome is False for outcome in outcomes])
    terms = [term(text) for text in (*texts, "v IS NULL")]
    terms += [Term(negated.check, not negated.negated) for negated in terms]
    return terms, np.array(true + false)


def every_pair(terms: Sequence[Term], kind: int) -> np.ndarray:
    rows = np.arange(len(terms))
    first, second = np.repeat(rows, len(rows)), np.tile(rows, len(rows))
    return TermTable(terms).test(kind, first, second).reshape(len(rows), len(rows))


@pytest.mark.parametrize("pool", POOLS)
def test_covering_is_sound(pool: str) -> None:
    """Each event of a pool that satisfies a covered term satisfies the covering term."""
    terms, truth = evaluated(pool)
    covering = every_pair(terms, COVERS)
    # refutations[i, j]: the number of events that satisfy j and not i.
    refutations = (~truth).astype(int) @ truth.T.astype(int)
    wrong = np.argwhere(covering & (refutations > 0))
    assert [(terms[i], terms[j]) for i, j in wrong[:3]] == []
    assert covering.diagonal().all()


@pytest.mark.parametrize("pool", POOLS)
def test_conflict_is_sound(pool: str) -> None:
    """No event satisfies two terms that conflict."""
    terms, truth = evaluated(pool)
    conflicting = every_pair(terms, CONFLICTS)
    refutations = truth.astype(int) @ truth.T.astype(int)
    wrong = np.argwhere(conflicting & (refutations > 0))
    assert [(terms[i], terms[j]) for i, j in wrong[:3]] == []
    assert (conflicting == conflicting.T).all()


def test_most_coverings_and_conflicts_are_found() -> None:
    """Most coverings and conflicts that no event of a pool refutes are found."""
    found_share = {}
    for pool in ("numbers", "times", "booleans", "strings", "lists", "areas"):
        terms, truth = evaluated(pool)
        covered = (~truth).astype(int) @ truth.T.astype(int) == 0
        disjoint = truth.astype(int) @ truth.T.astype(int) == 0
        found_share[pool] = (
            (every_pair(terms, COVERS) & covered).sum() / covered.sum(),
            (every_pair(terms, CONFLICTS) & disjoint).sum() / disjoint.sum(),
        )
    assert all(min(found_share[pool]) > 0.9 for pool in ("numbers", "times", "booleans", "strings"))
    assert min(found_share["lists"]) > 0.85
    # Fewer are found for areas, since many follow from the relations of three areas only.
    assert min(found_share["areas"]) > 0.5


# ------------------------------------------------------------------------------------- by example

COVERING = [  # the first term covers the second
    ("v <> 0", "v > 10"),
    ("v > 5", "v > 7"),
    ("v >= 5", "v > 5"),
    ("v < 8", "v = 3"),
    ("v <> 3", "v < 3"),
    ("NOT (v > 5)", "v < 5"),
    ("v > 9007199254740992", "v >= 9007199254740993"),
    ("v < TIMESTAMP('2020-01-02T00:00:00Z')", "v < DATE('2020-01-01')"),
    ("T_AFTER(v, DATE('2020-01-01'))", "T_AFTER(v, DATE('2020-01-02'))"),
    ("v IN ('a', 'b')", "v = 'a'"),
    ("v <> 'a'", "v IN ('b', 'c')"),
    ("v <> 'a'", "v LIKE 'b%'"),
    ("v LIKE 'ab%'", "v LIKE 'abc%'"),
    ("v LIKE 'ab%'", "v IN ('ab', 'abc')"),
    ("v LIKE '%b'", "v LIKE 'a%b'"),
    ("v LIKE '%b%'", "v LIKE '_b_'"),
    ("v = 'a%'", "v LIKE 'a\\%'"),
    ("v LIKE 'a'", "v = 'a'"),
    ("NOT v LIKE 'a%'", "v LIKE 'b%'"),
    ("NOT v LIKE 'ab%'", "NOT v LIKE 'a%'"),
    ("v < 'm'", "v = 'b'"),
    ("v < 'm'", "v LIKE 'b%'"),
    ("v < 'm'", "v <= 'k'"),
    ("CASEI(v) < 'm'", "CASEI(v) = 'b'"),
    ("v >= FALSE", "v"),
    ("v IS NOT NULL", "v > 5"),
    ("v IS NOT NULL", f"EH_INSIDE(v, {A})"),
    ("S_DWITHIN(v, POINT(1 1), 5)", "S_DWITHIN(v, POINT(1 1), 4)"),
    ("S_BEYOND(v, POINT(1 1), 4)", "S_BEYOND(v, POINT(1 1), 5)"),
    ("NOT S_DWITHIN(v, POINT(1 1), 4)", "S_BEYOND(v, POINT(1 1), 4)"),
    ("S_SAMEPLACE(v, POINT(1 1), 5)", "S_SAMEPLACE(v, POINT(1 1), 4)"),
    ("A_CONTAINS(v, ('a'))", "A_CONTAINS(v, ('a', 'b'))"),
    ("A_CONTAINS(v, ('a'))", "A_EQUALS(v, ('a', 'b'))"),
    ("A_CONTAINEDBY(v, ('a', 'b'))", "A_CONTAINEDBY(v, ('a'))"),
    ("A_OVERLAPS(v, ('a', 'b'))", "A_OVERLAPS(v, ('b'))"),
    ("A_OVERLAPS(v, ('a', 'b'))", "A_CONTAINS(v, ('b', 'c'))"),
    ("NOT A_CONTAINS(v, ('a', 'b'))", "NOT A_CONTAINS(v, ('a'))"),
    (f"S_INTERSECTS(v, {A})", "EH_INSIDE(v, BBOX(1, 1, 3, 3))"),
    (f"EH_INSIDE(v, {A})", "EH_COVEREDBY(v, BBOX(1, 1, 3, 3))"),
    (f"EH_DISJOINT(v, {A})", "EH_INSIDE(v, BBOX(7, 7, 9, 9))"),
    (f"EH_CONTAINS(v, {A})", "EH_COVERS(v, BBOX(-1, -1, 5, 5))"),
    (f"EH_OVERLAP(v, {A})", "EH_OVERLAP(v, POLYGON((4 4, 0 4, 0 2, 0 0, 4 0, 4 4)))"),
    (f"NOT EH_INSIDE(v, {A})", "EH_MEET(v, BBOX(7, 7, 9, 9))"),
    ("NOT S_CONTAINS(v, BBOX(7, 7, 9, 9))", f"S_CROSSES(v, {A})"),
    ("S_INTERSECTS(v, POINT(1 1))", "EH_CONTAINS(v, POINT(1 1))"),
    ("S_TOUCHES(v, LINESTRING(0 0, 1 1))", "S_TOUCHES(v, LINESTRING(0 0, 1 1))"),
]
CONFLICTING = [
    ("v > 5", "v < 3"),
    ("v > 5", "v <= 5"),
    ("v = 5", "v <> 5"),
    ("v < DATE('2020-01-01')", "v = DATE('2020-01-01')"),
    ("v = 'a'", "v = 'b'"),
    ("v = 'a'", "v LIKE 'b%'"),
    ("v LIKE 'a%'", "v LIKE 'b%'"),
    ("v LIKE '%a'", "v LIKE '%b'"),
    ("v LIKE '__'", "v LIKE '___'"),
    ("v LIKE 'a%'", "NOT v LIKE 'a%'"),
    ("v LIKE 'ab%'", "NOT v LIKE 'a%'"),
    ("v > 'm'", "v LIKE 'b%'"),
    ("v > 'm'", "v < 'k'"),
    ("v", "NOT v"),
    ("v IS NULL", "v > 5"),
    ("v IS NULL", "NOT v LIKE 'a%'"),
    ("v IS NULL", f"NOT EH_INSIDE(v, {A})"),
    ("v IS NULL", "v IS NOT NULL"),
    ("v > 5", "v = 'a'"),
    ("v", "v = 'a'"),
    ("v < FALSE", "v < FALSE"),
    ("NOT v LIKE '%'", "NOT v LIKE '%'"),
    ("S_DWITHIN(v, POINT(1 1), 4)", "S_BEYOND(v, POINT(1 1), 4)"),
    ("A_CONTAINS(v, ('a', 'b'))", "A_CONTAINEDBY(v, ('a'))"),
    ("A_EQUALS(v, ('a'))", "A_EQUALS(v, ('b'))"),
    ("A_OVERLAPS(v, ('a'))", "A_CONTAINEDBY(v, ('b'))"),
    ("A_CONTAINS(v, ('a', 'b'))", "NOT A_CONTAINS(v, ('a'))"),
    (f"EH_INSIDE(v, {A})", "EH_INSIDE(v, BBOX(7, 7, 9, 9))"),
    (f"EH_COVEREDBY(v, {A})", "EH_DISJOINT(v, BBOX(-1, -1, 5, 5))"),
    (f"EH_OVERLAP(v, {A})", f"EH_MEET(v, {A})"),
    (f"S_OVERLAPS(v, {A})", f"S_CROSSES(v, {A})"),
    ("EH_MEET(v, LINESTRING(0 0, 1 1))", "S_DISJOINT(v, LINESTRING(0 0, 1 1))"),
]
NEITHER = [
    # The published example says that these conflict; x = [0, 1]^2 satisfies both.
    (f"EH_COVEREDBY(v, {A})", f"EH_DISJOINT(v, {B})"),
    ("v > 10", "w <> 0"),
    ("v > 10", "w < 3"),
    ("v IS NOT NULL", "w > 5"),
    ("v IS NULL", "w > 5"),
    ("v > 5", "v + 1 < 3"),
    ("v > 5", "v < 7"),
    ("v <> 5", "v <> 7"),
    ("v LIKE 'a%'", "v LIKE '%b'"),
    ("v LIKE '_%'", "v LIKE '%'"),
    ("v = 'a'", "CASEI(v) = 'b'"),
    ("v LIKE 'a\\_b'", "v LIKE 'a_b%'"),
    ("A_CONTAINS(v, ('a'))", "A_CONTAINS(v, ('b'))"),
    # Every text has all words of '!', since there are none; a list may lack the item '!'.
    ("A_OVERLAPS(v, ('a', '!'))", "A_OVERLAPS(v, ('!', 'b'))"),
    # The first term is unknown for a text.
    ("A_OVERLAPS(v, (1, 'a'))", "A_OVERLAPS(v, ('a'))"),
    ("S_DWITHIN(v, POINT(1 1), 5)", "S_DWITHIN(v, POINT(2 2), 4)"),
    ("S_DWITHIN(v, POINT(1 1), 5)", "S_SAMEPLACE(v, POINT(1 1), 4)"),
    # Relations to points and lines do not compose like relations to areas.
    ("EH_INSIDE(v, LINESTRING(0 0, 4 0))", "EH_INSIDE(v, LINESTRING(1 0, 2 0))"),
    (f"EH_DISJOINT(v, {A})", "EH_EQUALS(v, POINT(9 9))"),
]


@pytest.mark.parametrize(("first", "second"), COVERING)
def test_a_term_covers_another(first: str, second: str) -> None:
    assert covers(term(first), term(second))


@pytest.mark.parametrize(("first", "second"), CONFLICTING)
def test_two_terms_conflict(first: str, second: str) -> None:
    assert conflicts(term(first), term(second))
    assert conflicts(term(second), term(first))


@pytest.mark.parametrize(("first", "second"), NEITHER)
def test_two_terms_do_neither(first: str, second: str) -> None:
    a, b = term(first), term(second)
    assert not covers(a, b)
    assert not conflicts(a, b)


def test_the_published_example_of_a_conflict_is_refuted_by_an_event() -> None:
    condition = parse(f"EH_COVEREDBY(v, {A}) AND EH_DISJOINT(v, {B})")
    assert evaluate(condition, {"v": box(0, 0, 1, 1)}) is True
