"""`to_filters`: the number and the checks of the filters, and equal filters of equal conditions."""

from __future__ import annotations

import pytest
from hypothesis import given

from fencepost.cql2 import ast, parse
from fencepost.errors import LanguageError
from fencepost.events import EventValues
from fencepost.filters import Term, evaluate_condition, to_filters
from fencepost.filters.filter_conditions import condition_of_term
from fencepost.filters.normal_form import MAX_FILTERS
from fencepost.reference import evaluate as by_reference
from tests.engine.strategies import EVENTS, TEXT_EXPRESSIONS, Event, examples


@given(TEXT_EXPRESSIONS, EVENTS)
@examples(300)
def test_the_truth_of_a_condition_is_that_of_the_reference(text: str, event: Event) -> None:
    condition = parse(text)
    assert evaluate_condition(condition, EventValues(event)) is by_reference(condition, event)


@given(TEXT_EXPRESSIONS)
def test_double_negation(text: str) -> None:
    condition = parse(text)
    assert to_filters(ast.Not(ast.Not(condition))) == to_filters(condition)


@given(TEXT_EXPRESSIONS, TEXT_EXPRESSIONS)
def test_the_laws_of_de_morgan(first: str, second: str) -> None:
    a, b = parse(first), parse(second)
    try:
        both = to_filters(ast.Not(ast.And((a, b))))
    except LanguageError:
        return
    assert both == to_filters(ast.Or((ast.Not(a), ast.Not(b))))


@given(TEXT_EXPRESSIONS)
def test_a_repeated_alternative_is_dropped(text: str) -> None:
    condition = parse(text)
    assert to_filters(ast.Or((condition, condition))) == to_filters(condition)


@pytest.mark.parametrize(
    ("text", "mirrored"),
    [
        ("1 < n", "n > 1"),
        ("'a' = s", "s = 'a'"),
        ("DATE('2020-01-01') >= t", "t <= DATE('2020-01-01')"),
        ("S_WITHIN(POINT(1 1), g)", "S_CONTAINS(g, POINT(1 1))"),
        ("EH_COVERS(BBOX(0,0,1,1), g)", "EH_COVEREDBY(g, BBOX(0,0,1,1))"),
        ("EH_MEET(BBOX(0,0,1,1), g)", "EH_MEET(g, BBOX(0,0,1,1))"),
        ("S_DWITHIN(POINT(1 1), g, 2)", "S_DWITHIN(g, POINT(1 1), 2)"),
        ("T_AFTER(DATE('2020-01-01'), t)", "T_BEFORE(t, DATE('2020-01-01'))"),
        ("T_MEETS(INTERVAL('..', '2020-01-01'), i)", "T_METBY(i, INTERVAL('..', '2020-01-01'))"),
        ("A_CONTAINS((1, 2), l)", "A_CONTAINEDBY(l, (1, 2))"),
        ("A_EQUALS((1, 2), l)", "A_EQUALS(l, (1, 2))"),
        ("n BETWEEN 1 AND 2", "n >= 1 AND n <= 2"),
        ("n <> 1", "NOT (n = 1)"),
        ("n IN (1)", "n = 1"),
    ],
)
def test_a_constant_may_stand_on_either_side(text: str, mirrored: str) -> None:
    assert to_filters(parse(text)) == to_filters(parse(mirrored))
    assert to_filters(parse(f"NOT ({text})")) == to_filters(parse(f"NOT ({mirrored})"))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("TRUE", 1), ("FALSE", 0), ("NOT FALSE", 1), ("1 / 0 = 1", 0), ("NOT (1 / 0 = 1)", 0)),
        *(
            ("n > 1 OR TRUE", 2),
            ("n > 1 AND FALSE", 0),
            ("1 = 1 AND n > 1", 1),
            ("s IN ('a','b')", 1),
        ),
        *(("(a OR b) AND (c OR d)", 4), ("NOT (a AND b AND c)", 3), ("n IN (1, 2, 3)", 3)),
        *(("T_DISJOINT(t, DATE('2020-01-01'))", 2), ("T_INTERSECTS(t, DATE('2020-01-01'))", 1)),
    ],
)
def test_the_number_of_filters(text: str, count: int) -> None:
    assert len(to_filters(parse(text))) == count


def test_too_many_filters_are_refused() -> None:
    pairs = " AND ".join(f"(a{k} OR b{k})" for k in range(10))
    assert len(to_filters(parse(pairs))) == MAX_FILTERS
    with pytest.raises(LanguageError, match=r"2,048 or more alternatives.*split it"):
        to_filters(parse(pairs + " AND (a OR b)"))


@given(TEXT_EXPRESSIONS)
def test_the_columns_are_of_the_properties(text: str) -> None:
    condition = parse(text)
    names = {p.name for p in ast.properties(condition)}
    for terms in to_filters(condition):
        for term in terms:
            assert {p.name for p in ast.properties(term.check.column.source)} <= names


@pytest.mark.parametrize("function", list(ast.NearFunction))
def test_a_distance_function_and_its_negation_are_one_check(function: ast.NearFunction) -> None:
    text = f"{function.name}(g, POINT(1 1), 2)"
    [[term]], [[contrary]] = to_filters(parse(text)), to_filters(parse(f"NOT {text}"))
    assert contrary == Term(term.check, not term.negated)
    assert condition_of_term(term) == parse(text)
    assert to_filters(condition_of_term(contrary)) == [(contrary,)]


def test_farther_than_is_not_within() -> None:
    for far, near in (("", "NOT "), ("NOT ", "")):
        assert to_filters(parse(f"{far}S_BEYOND(g, POINT(1 1), 2)")) == to_filters(
            parse(f"{near}S_DWITHIN(g, POINT(1 1), 2)")
        )
