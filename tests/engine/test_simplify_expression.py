"""`fencepost.simplify`: the simplified expression is equivalent, and dropped parts are listed."""

from __future__ import annotations

import datetime as dt
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.cql2 import parse
from fencepost.errors import LanguageError
from fencepost.reference import matches
from tests.engine.strategies import EVENTS, SIMPLE, TEXT_EXPRESSIONS, Event, examples

# Conditions on the same few attributes, so that some are redundant.
ALIKE = st.one_of(
    st.lists(SIMPLE, min_size=2, max_size=3).map(" AND ".join), SIMPLE, TEXT_EXPRESSIONS
)
PREDICATES = st.lists(ALIKE, min_size=2, max_size=5).map(
    lambda parts: " OR ".join(f"({part})" for part in parts)
)


@given(PREDICATES, st.lists(EVENTS, min_size=3, max_size=6))
@examples(250)
def test_the_simplified_expression_matches_the_same_events(text: str, events: list[Event]) -> None:
    try:
        result = fp.simplify(text, space="planar")
    except LanguageError:  # too many filters
        return
    before, after = parse(text), parse(result.expression)
    for event in events:
        assert matches(after, event) == matches(before, event)


SPELLINGS = ("2020-01-02", "2020-01-03", "2020-01-02T00:00:00Z", "2020-01-03T01:00:00+02:00")
MOMENTS: list[object] = [
    *SPELLINGS,
    *("2020-01-01", "2020-01-02T12:00:00Z", "2020-01-04", "", "2020", "a", "3"),
    *(dt.date(2020, 1, day) for day in (1, 2, 3, 4)),
    *(dt.datetime(2020, 1, 2, hour, tzinfo=dt.UTC) for hour in (0, 12, 23)),
    *(5, True, None),
]


@pytest.mark.parametrize("spellings", [SPELLINGS[:2], SPELLINGS], ids=["one each", "several"])
def test_strings_that_read_as_times(spellings: tuple[str, ...]) -> None:
    """Strings are compared with them as strings, and times as times."""
    rng = random.Random(3)
    forms = ["t {o} '{a}'", "t {o} '{a}'", "NOT (t {o} '{a}')", "t IN ('{a}', '{b}')"]
    forms += ["t NOT IN ('{a}', '{b}')", "t BETWEEN '{a}' AND '{b}'", "t LIKE '2020-01-0%'"]
    forms += ["t {o} DATE('2020-01-02')", "u {o} '{a}'", "t IS NOT NULL", "n > 1", "n > 2"]
    changed = 0
    for _ in range(250):
        alternatives = []
        for _ in range(rng.randint(1, 3)):
            parts = [
                rng.choice(forms).format(
                    o=rng.choice(("=", "<>", "<", "<=", ">", ">=")),
                    a=rng.choice(spellings),
                    b=rng.choice(spellings),
                )
                for _ in range(rng.randint(1, 3))
            ]
            alternatives.append(" AND ".join(parts))
        text = " OR ".join(alternatives)
        result = fp.simplify(text, space="planar")
        before, after = parse(text), parse(result.expression)
        changed += before != after
        for moment in MOMENTS:
            for n in (0, 2, 3):
                event = {"t": moment, "u": rng.choice(MOMENTS), "n": n}
                assert matches(after, event) == matches(before, event), (text, result.expression)
    assert changed > 50


@pytest.mark.parametrize(
    ("expression", "simplified"),
    [
        ("wind > 30 AND wind > 20", "wind > 30"),
        ("wind > 20.5 AND wind <> 7", "wind > 20.5"),
        ("n > 9007199254740993 AND n > 5", "n > 9007199254740993"),
        ("NOT (n < 5) OR n > 7", "n >= 5"),
        ("n <> 5 AND n <> 5.0 OR n > 7", "n <> 5"),
        ("b OR b AND n > 1", "b"),
        ("NOT b OR NOT b AND n > 1", "b = FALSE"),
        ("s IN ('a', 'b') OR s = 'a'", "s IN ('a', 'b')"),
        ("NOT s IN ('a', 'b') OR s = 'c'", "NOT s IN ('a', 'b')"),
        ("s LIKE 'a\\%%' OR s LIKE 'a\\%b%'", "s LIKE 'a\\%%'"),
        ("CASEI(s) = CASEI('A') OR CASEI(s) IN ('a', 'b')", "CASEI(s) IN ('a', 'b')"),
        ("s IS NOT NULL OR s = 'a'", "NOT s IS NULL"),
        ("n + m > 3 OR n + m > 4", "n + m > 3"),
        ("n < m OR n < m AND b", "n < m"),
        ("NOT (n < m) OR b AND NOT (n < m)", "NOT n < m"),
        ("t > DATE('2020-01-02') OR t > DATE('2020-01-03')", "t > DATE('2020-01-02')"),
        ("t > '2020-01-02' AND t > '2020-01-02'", "t > '2020-01-02'"),
        ("t > '2020-01-02' AND t <> '2020-01-01'", "t > '2020-01-02'"),
        (
            "t > '2020-01-01T00:00:00+14:00' AND t < '2020-01-02' AND t <> '2020-01-01'",
            "t > '2020-01-01T00:00:00+14:00' AND t < '2020-01-02' AND t LIKE '%' OR "
            "t > '2020-01-01T00:00:00+14:00' AND t < '2020-01-02' AND t <> '2020-01-01'",
        ),
        ("s = '2020-01-02' AND s LIKE '2020%'", "s = '2020-01-02' AND s LIKE '%'"),
        ("T_AFTER(t, DATE('2020-01-02')) OR T_AFTER(t, DATE('2020-01-03'))", None),
        ("T_BEFORE(t, DATE('2020-01-03')) OR T_BEFORE(t, DATE('2020-01-02'))", None),
        ("T_MEETS(t, DATE('2020-01-03')) OR T_MEETS(t, DATE('2020-01-03')) AND b", None),
        ("A_CONTAINS(l, ('a')) OR A_CONTAINS(l, ('a', 'b'))", "A_CONTAINS(l, ('a'))"),
        ("S_DWITHIN(g, POINT(1 1), 5.0) OR S_DWITHIN(g, POINT(1 1), 4)", None),
        ("NOT EH_MEET(g, POINT(1 1)) OR EH_INSIDE(g, POINT(1 1))", "NOT EH_MEET(g, POINT(1 1))"),
        ("n > 5 AND n < 3", "FALSE"),
        ("1 = 2", "FALSE"),
        ("TRUE OR n > 5", "TRUE"),
        ("n > 5 OR (m > 1 AND (b OR n > 6))", "n > 5 OR m > 1 AND b"),
    ],
)
def test_simplified_expressions(expression: str, simplified: str | None) -> None:
    """`None` stands for the first filter of the expression."""
    assert fp.simplify(expression, space="planar").expression == (
        simplified or expression.partition(" OR ")[0]
    )


def test_an_expression_without_redundancy_is_unchanged() -> None:
    text = "n>5  and (m < 3 or b)"
    assert fp.simplify(text, space="planar").expression == text
    assert fp.simplify({"op": ">", "args": [{"property": "n"}, 5]}, space="planar").expression == (
        '{"op": ">", "args": [{"property": "n"}, 5]}'
    )


def test_numbers_and_reasons() -> None:
    text = "n > 5 AND n < 3 OR n > 6 AND n > 2 OR n > 8 AND b OR s < '' OR m IS NULL AND m = 1"
    result = fp.simplify(text, space="planar")
    assert result.expression == "n > 6"
    assert (result.filters_before, result.filters_after) == (5, 1)
    assert (result.constraints_before, result.constraints_after) == (9, 1)
    assert not result.never_matches
    assert [(part.rule, part.what, part.why) for part in result.dropped] == [
        (1, "n > 5 AND n < 3", "n > 5 and n < 3 cannot both hold"),
        (2, "n > 2", "n > 6 implies it"),
        (3, "n > 8 AND b", "n > 6 covers it"),
        (1, "s < ''", "s < '' never holds"),
        (1, "m IS NULL AND m = 1", "m IS NULL and m = 1 cannot both hold"),
    ]
    assert str(result).splitlines() == [
        "n > 6",
        "filters: 5 -> 1; constraints: 9 -> 1",
        "rule 1 drops n > 5 AND n < 3: n > 5 and n < 3 cannot both hold",
        "rule 2 drops n > 2: n > 6 implies it",
        "rule 3 drops n > 8 AND b: n > 6 covers it",
        "rule 1 drops s < '': s < '' never holds",
        "rule 1 drops m IS NULL AND m = 1: m IS NULL and m = 1 cannot both hold",
    ]
    members = json.loads(json.dumps(result.as_dict()))
    assert members["filters"] == {"before": 5, "after": 1}
    assert members["dropped"][1] == {"rule": 2, "what": "n > 2", "why": "n > 6 implies it"}


def test_an_expression_that_never_matches() -> None:
    result = fp.simplify("n > 5 AND n < 3", space="planar")
    assert result.never_matches
    assert "no event can match" in str(result)


def test_long_conditions_are_shortened_in_lines_only() -> None:
    corners = ", ".join(f"{k} {k * k}" for k in range(40))
    area = f"POLYGON(({corners}, 0 0))"
    result = fp.simplify(f"EH_INSIDE(g, {area}) OR S_INTERSECTS(g, {area})", space="planar")
    assert len(result.dropped[0].what) > 200
    assert max(map(len, list(result.lines())[1:])) < 200


def test_two_types_of_one_value_conflict() -> None:
    (part, *_) = fp.simplify("t > '2020-01-02' AND t < '2020-01-03'", space="planar").dropped
    assert part.why == (
        "t > '2020-01-02' (of a string) and t < DATE('2020-01-03') (of a time) cannot both hold"
    )
