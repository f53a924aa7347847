"""The simplifier: its three rules by example, against brute force, and that matches stay."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from shapely import affinity
from shapely.geometry import LineString, Point
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import ast, parse
from fencepost.cql2.ast import SpatialFunction
from fencepost.filters import Filter, to_filters
from fencepost.filters.covering import (
    CONFLICTS,
    COVERS,
    TermTable,
    conflicts,
    covering_index,
    covers,
    filter_rows,
)
from fencepost.filters.simplifier import MAX_TERMS, SimplifiedFilters, simplify
from fencepost.reference import matches
from tests.engine.strategies import DAYS, STRANGE
from tests.geometry_families import FAMILIES

A, INNER, FAR = "BBOX(0, 0, 4, 4)", "BBOX(1, 1, 3, 3)", "BBOX(7, 7, 9, 9)"


def of(text: str) -> SimplifiedFilters:
    return simplify(to_filters(parse(text)))


def rules(text: str) -> list[int]:
    """Return the rules that drop a filter or a term, in the order of the filters."""
    return [removal.rule for removal in of(text).dropped]


# ------------------------------------------------------------------------------------- by example


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        # Rule 1: a filter with terms that conflict.
        ("n > 5 AND n < 3", "FALSE"),
        ("n > 5 AND n < 3 OR m = 1", "m = 1"),
        ("n BETWEEN 5 AND 3", "FALSE"),
        ("n = 1 AND n <> 1 AND m = 1", "FALSE"),
        ("s = 'a' AND s LIKE 'b%' OR b", "b"),
        ("b AND NOT b", "FALSE"),
        ("b < FALSE", "FALSE"),
        ("n IS NULL AND n > 3", "FALSE"),
        ("n = 1 AND n = 'a'", "FALSE"),
        (f"EH_INSIDE(g, {A}) AND EH_INSIDE(g, {FAR})", "FALSE"),
        (f"S_DISJOINT(g, {A}) AND S_WITHIN(g, {INNER})", "FALSE"),
        ("S_DWITHIN(g, POINT(1 1), 2) AND S_BEYOND(g, POINT(1 1), 3)", "FALSE"),
        ("A_CONTAINS(l, ('a', 'b')) AND A_CONTAINEDBY(l, ('a'))", "FALSE"),
        # Rule 2: a term that another implies.
        ("n > 10 AND n <> 0", "n > 10"),
        ("n > 5 AND n > 7 AND n > 6", "n > 7"),
        ("n >= 5 AND NOT (n < 5)", "n >= 5"),
        ("n IS NOT NULL AND n > 3", "n > 3"),
        ("s LIKE 'ab%' AND s LIKE 'a%' AND s > '0'", "s LIKE 'ab%'"),
        ("s IN ('a', 'b') AND s = 'a'", "s = 'a'"),
        (f"S_INTERSECTS(g, {A}) AND EH_INSIDE(g, {INNER})", f"EH_INSIDE(g, {INNER})"),
        (f"EH_DISJOINT(g, {A}) AND EH_INSIDE(g, {FAR})", f"EH_INSIDE(g, {FAR})"),
        ("A_CONTAINS(l, ('a')) AND A_CONTAINS(l, ('a', 'b'))", "A_CONTAINS(l, ('a', 'b'))"),
        # Rule 3: a filter that another covers.
        ("n > 5 OR n > 7", "n > 5"),
        ("n > 7 OR n > 5", "n > 5"),
        ("n <> 3 OR n > 5 OR n < 2 OR n = 7", "n <> 3"),
        (
            "NOT T_METBY(i, DATE('2020-01-02')) OR NOT T_AFTER(i, INTERVAL('..', '..'))",
            "NOT T_AFTER(i, INTERVAL('..', '..'))",
        ),
        ("n > 5 OR n > 5 AND m = 1", "n > 5"),
        ("n > 5 AND m < 3 OR n > 7 AND m < 2 AND b", "n > 5 AND m < 3"),
        ("TRUE OR n > 5 OR b", "TRUE"),
        ("n IN (1, 2) OR n > 0", "n > 0"),
        ("s IN ('a', 'b') OR s = 'a' OR s LIKE 'a'", "s IN ('a', 'b')"),
        ("s LIKE 'a%' OR s LIKE 'ab%' OR s IN ('a', 'ac')", "s LIKE 'a%'"),
        ("s < 'm' OR s = 'b' OR s < 'k' OR s LIKE 'c%'", "s < 'm'"),
        ("s <> 'a' OR s = 'b' OR s LIKE 'c%'", "s <> 'a'"),
        ("b OR b AND n > 5", "b"),
        ("n IS NOT NULL OR n > 5 OR n < 3", "n IS NOT NULL"),
        (
            "S_DWITHIN(g, POINT(1 1), 5) OR S_DWITHIN(g, POINT(1 1), 4)",
            "S_DWITHIN(g, POINT(1 1), 5)",
        ),
        ("A_CONTAINS(l, ('a')) OR A_CONTAINS(l, ('b', 'a'))", "A_CONTAINS(l, ('a'))"),
        (f"S_INTERSECTS(g, {A}) OR EH_INSIDE(g, {INNER})", f"S_INTERSECTS(g, {A})"),
        (f"EH_INSIDE(g, {FAR}) OR EH_DISJOINT(g, {A})", f"EH_DISJOINT(g, {A})"),
        (f"NOT S_WITHIN(g, {A}) OR EH_OVERLAP(g, {FAR})", f"NOT S_WITHIN(g, {A})"),
        (
            f"EH_INSIDE(g, {FAR}) AND n > 3 OR EH_DISJOINT(g, {A}) AND n > 2",
            f"EH_DISJOINT(g, {A}) AND n > 2",
        ),
        ("EH_MEET(g, POINT(1 1)) OR S_INTERSECTS(g, POINT(1 1))", "S_INTERSECTS(g, POINT(1 1))"),
        # All of them.
        ("n > 5 AND n < 3 OR n > 6 AND n > 2 OR n > 8 AND b", "n > 6"),
        # None: different attributes, or nothing that follows.
        ("n > 10 AND m <> 0", "n > 10 AND m <> 0"),
        ("n > 10 OR m > 12", "n > 10 OR m > 12"),
        ("n < 5 AND n > 3", "n < 5 AND n > 3"),
        (
            f"EH_COVEREDBY(g, {A}) AND EH_DISJOINT(g, BBOX(3, 3, 6, 6))",
            f"EH_COVEREDBY(g, {A}) AND EH_DISJOINT(g, BBOX(3, 3, 6, 6))",
        ),
    ],
)
def test_the_remaining_filters(text: str, same_as: str) -> None:
    assert list(of(text).filters) == to_filters(parse(same_as))


def test_the_reasons() -> None:
    filters = to_filters(parse("n > 5 AND n < 3 OR n > 6 AND n > 2 OR n > 8 AND b"))
    (low, high), (six, two), eight = filters[0], filters[1], filters[2]
    assert [
        (removal.rule, removal.filter, removal.terms, removal.because)
        for removal in simplify(filters).dropped
    ] == [
        (1, 0, (low, high), (low, high)),
        (2, 1, (two,), (six,)),
        (3, 2, eight, (six,)),
    ]
    assert simplify(filters).indexes == (1,)


def test_one_of_two_equal_filters_stays() -> None:
    first, second = to_filters(parse("n > 5 AND m > 3 OR n > 5 AND m > 4"))
    assert simplify([first, first, first]).filters == (first,)
    assert simplify([first, first[::-1]]).filters == (first,)
    assert simplify([(*first, *first)]).filters == (first,)
    assert simplify([(*first, *first)]).dropped[0].rule == 2
    assert simplify([second, first, second]).indexes == (1,)


def test_the_first_of_filters_that_cover_each_other_stays() -> None:
    first, second = parse("NOT (n < 4)"), parse("n >= 4")
    assert simplify(to_filters(ast.Or((first, second)))).filters == tuple(to_filters(first))
    assert simplify(to_filters(ast.Or((second, first)))).filters == tuple(to_filters(second))
    assert simplify(to_filters(ast.And((first, second)))).filters == tuple(to_filters(first))
    assert simplify(to_filters(ast.And((second, first)))).filters == tuple(to_filters(second))
    square, again = (
        "POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))",
        "POLYGON((1 1, 0 1, 0 0.5, 0 0, 1 0, 1 1))",
    )
    both = of(f"EH_MEET(g, {square}) OR EH_MEET(g, {again}) OR S_TOUCHES(g, {square})")
    assert both.indexes == (0,)


def test_nothing_and_everything() -> None:
    assert simplify([]) == SimplifiedFilters((), (), ())
    (some,) = to_filters(parse("n > 5"))
    assert simplify([some, (), some, ()]).filters == ((),)


def test_a_filter_of_too_many_terms_is_left_as_it_is() -> None:
    text = " AND ".join(f"n > {k}" for k in range(MAX_TERMS + 1))
    assert of(text).dropped == ()
    assert of(f"{text} OR TRUE").filters == ((),)
    assert rules(" AND ".join(f"n > {k}" for k in range(MAX_TERMS))) == [2] * (MAX_TERMS - 1)


# ------------------------------------------------------------------------------ against brute force

SIMPLE = [
    *("n > {k}", "n < {k}", "n = {k}", "n <> {k}", "NOT (n < {k})", "NOT (n > {k})"),
    *("m >= {k}", "m <> {k}", "n + m > {k}", "n < m"),
    *("s = '{w}'", "s <> '{w}'", "s IN ('{w}', 'b')", "s LIKE '{w}%'", "s LIKE '%{w}'"),
    *("NOT s LIKE '{w}%'", "s < '{w}'", "s >= '{w}'", "CASEI(s) = '{w}'", "s NOT IN ('{w}', 'b')"),
    *("b", "NOT b", "b >= FALSE", "n IS NULL", "n IS NOT NULL", "s IS NOT NULL", "g IS NULL"),
    *("t > DATE('{d}')", "t <= DATE('{d}')", "T_AFTER(t, DATE('{d}'))", "T_MEETS(i, DATE('{d}'))"),
    *("A_CONTAINS(l, ('{w}'))", "A_CONTAINS(l, ('{w}', 'b'))", "NOT A_CONTAINS(l, ('{w}'))"),
    *("A_OVERLAPS(l, ('{w}', 'b', '!'))", "A_CONTAINEDBY(l, ('{w}', 'b'))", "A_EQUALS(l, ('{w}'))"),
    *("S_DWITHIN(g, {p}, {k})", "S_BEYOND(g, {p}, {k})", "S_SAMEPLACE(g, {p}, {k})"),
]


class TermPool:
    """Terms, which of them cover or conflict, and events that satisfy some of them.

    The terms are about few attributes and about geometries that share coordinates. The reference
    decides whether an event satisfies the condition that a term comes from.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        places = self._places(rng)
        texts = [self._text(rng, [place.wkt for place in places]) for _ in range(120)]
        text_of_term = {}
        for text in texts:
            ((term,),) = to_filters(parse(text))
            text_of_term[term] = text
        self.terms = list(text_of_term)
        rows = np.arange(len(self.terms))
        first, second = np.repeat(rows, len(rows)), np.tile(rows, len(rows))
        table = TermTable(self.terms)
        square = len(rows), len(rows)
        self.covers = table.test(COVERS, first, second).reshape(square)
        self.conflicts = table.test(CONFLICTS, first, second).reshape(square)
        events = [self._event(rng, places) for _ in range(60)]
        conditions = [parse(text) for text in text_of_term.values()]
        self.truth = np.array(
            [[matches(condition, event) for event in events] for condition in conditions]
        )

    @staticmethod
    def _places(rng: random.Random) -> list[BaseGeometry]:
        family = FAMILIES[rng.choice(("lattice", "tilings", "rewritten"))]
        geometries: list[BaseGeometry] = []
        while len(geometries) < 8:
            geometries += [
                geometry for geometry in family(rng) if geometry.geom_type != "LinearRing"
            ]
        return geometries + [affinity.translate(geometry, 100, 100) for geometry in geometries[:3]]

    @staticmethod
    def _text(rng: random.Random, places: Sequence[str]) -> str:
        if rng.random() < 0.5:
            function = rng.choice(list(SpatialFunction)).name
            negation = rng.choice(("", "", "NOT "))
            return f"{negation}{function}({rng.choice('ggh')}, {rng.choice(places)})"
        return rng.choice(SIMPLE).format(
            k=rng.randint(0, 5),
            w=rng.choice(("a", "ab", "b", "B", "!", "a b")),
            d=rng.choice(DAYS[:4]),
            p=rng.choice(places),
        )

    @staticmethod
    def _event(rng: random.Random, places: Sequence[BaseGeometry]) -> dict[str, object]:
        def place() -> BaseGeometry:
            geometry = rng.choice(places)
            corner = Point(rng.choice(shapely.get_coordinates(geometry).tolist()))
            nearby = [
                geometry,
                corner,
                geometry.representative_point(),
                shapely.boundary(geometry),
                geometry.envelope,
            ]
            nearby += [LineString([corner, geometry.representative_point()]), corner.buffer(0.5, 1)]
            return rng.choice([shape for shape in nearby if not shape.is_empty and shape.is_valid])

        event: dict[str, object] = {
            **{name: rng.choice((*range(7), 2.5, -1)) for name in "nm"},
            "s": rng.choice(("a", "ab", "b", "abc", "B", "", "zb", "a b", "!")),
            "b": rng.choice((True, False)),
            "t": rng.choice((*DAYS, dt.date(2020, 1, 2))),
            "i": {"interval": sorted(rng.sample(DAYS, 2))},
            "l": rng.choice((["a"], ["a", "b"], [], ["B"], ["!"], "a b", "b", "ab", [1, "a"])),
            "g": place(),
            "h": place(),
        }
        for name in rng.sample(list(event), rng.choice((0, 0, 1, 2))):
            event[name] = rng.choice(STRANGE)
        return event

    def filters(self, rng: random.Random, count: int) -> list[tuple[int, ...]]:
        """Return filters as tuples of term numbers, many of them about one column."""
        numbers = range(len(self.terms))
        filters = []
        for _ in range(count):
            column = self.terms[rng.choice(numbers)].check.column
            same_column = [k for k in numbers if self.terms[k].check.column == column]
            size = rng.choice((1, 2, 2, 2, 3, 4))
            candidates = same_column if rng.random() < 0.3 and len(same_column) >= size else numbers
            filters.append(tuple(rng.sample(candidates, size)))
        return filters

    def matched(self, filters: Iterable[Iterable[int]]) -> NDArray[np.bool_]:
        """Return which events satisfy one of the filters."""
        matched = np.zeros(self.truth.shape[1], bool)
        for terms in filters:
            matched |= self.truth[list(terms)].all(axis=0)
        return matched


pools = cache(TermPool)
SEEDS = range(6)


def with_terms(pool: TermPool, filters: Iterable[Iterable[int]]) -> list[Filter]:
    return [tuple(pool.terms[term] for term in terms) for terms in filters]


@pytest.mark.parametrize("seed", SEEDS)
def test_matches_stay_the_same(seed: int) -> None:
    pool = pools(seed)
    rng = random.Random(seed)
    numbers = {term: number for number, term in enumerate(pool.terms)}
    changed = matched = 0
    for _ in range(100):
        filters = pool.filters(rng, rng.choice((1, 2, 4, 8, 20)))
        result = simplify(with_terms(pool, filters))
        remaining = [[numbers[term] for term in terms] for terms in result.filters]
        assert (pool.matched(remaining) == pool.matched(filters)).all()
        changed += remaining != [list(terms) for terms in filters]
        matched += bool(pool.matched(filters).any())
    assert changed > 30
    assert matched > 30


@pytest.mark.parametrize("blocks", [(64, 4), (3, 2)], ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_simplify_drops_the_same_as_brute_force(
    seed: int, blocks: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covering_index, "_FIRST_BLOCK", blocks[0])
    monkeypatch.setattr(covering_index, "_GROWTH", blocks[1])
    monkeypatch.setattr(covering_index, "_ROWS", 7)
    monkeypatch.setattr(filter_rows, "_CELLS", 50)
    pool = pools(seed)
    rng = random.Random(seed)
    dropped = {1: 0, 2: 0, 3: 0}
    for count in (5, 20, 60, 100):
        filters = pool.filters(rng, count)
        result = simplify(with_terms(pool, filters))
        remaining, kept = simplified_by_brute_force(pool, filters)
        assert result.indexes == tuple(kept)
        assert list(result.filters) == with_terms(pool, (remaining[k] for k in kept))
        for removal in result.dropped:
            dropped[removal.rule] += 1
    assert min(dropped.values()) > 10, dropped


def simplified_by_brute_force(
    pool: TermPool, filters: Sequence[tuple[int, ...]]
) -> tuple[dict[int, list[int]], list[int]]:
    """Apply the three rules to all pairs. Return the remaining terms, and the filters that stay."""
    remaining: dict[int, list[int]] = {}
    for k, terms in enumerate(filters):
        if not any(pool.conflicts[first, second] for first in terms for second in terms):
            remaining[k] = list(terms)
            for term in reversed(terms):
                if any(pool.covers[term, second] for second in remaining[k] if second != term):
                    remaining[k].remove(term)
    kept = list(remaining)
    for k in reversed(list(remaining)):
        if any(covers_filter(pool, remaining[other], remaining[k]) for other in kept if other != k):
            kept.remove(k)
    return remaining, kept


def covers_filter(pool: TermPool, first: Iterable[int], second: Iterable[int]) -> bool:
    return all(any(pool.covers[a, b] for b in second) for a in first)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_reason_holds(seed: int) -> None:
    pool = pools(seed)
    filters = with_terms(pool, pool.filters(random.Random(seed), 80))
    result = simplify(filters)
    for removal in result.dropped:
        if removal.rule == 1:
            assert removal.terms == filters[removal.filter]
            assert {*removal.because} <= {*removal.terms}
            assert conflicts(removal.because[0], removal.because[-1])
        elif removal.rule == 2:
            assert {*removal.terms, *removal.because} <= {*filters[removal.filter]}
            assert covers(removal.terms[0], removal.because[0])
        else:
            assert removal.terms == filters[removal.filter]
            assert removal.because in result.filters
            assert all(any(covers(a, b) for b in removal.terms) for a in removal.because)
