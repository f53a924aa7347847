"""Events and expressions at the edges of the semantics: every index agrees with the oracle."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum, StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fencepost.cql2 import parse
from fencepost.engine import Matcher
from fencepost.errors import ModelError
from fencepost.reference import evaluate


class Colour(str, Enum):  # noqa: UP042
    RED = "red"


class Shade(StrEnum):
    RED = "red"


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    # --- numbers
    ("an exact product beyond doubles", "n * m > 1", {"n": 10**200, "m": 10**200}),
    ("an exact sum beyond doubles", "n + m > 1", {"n": 10**308, "m": 10**308}),
    ("a double overflow is unknown", "NOT (n * m > 1)", {"n": 1e200, "m": 1e200}),
    ("integers too large for doubles differ", f"n = {10**400}", {"n": 10**401}),
    ("integers too large for doubles in order", f"n < {10**401}", {"n": 10**400}),
    ("a decimal between two doubles", "n = 0.1", {"n": Decimal("0.1")}),
    ("a third", "n > 0.3333333333333333", {"n": Fraction(1, 3)}),
    ("a long double", "n = 0.1", {"n": np.longdouble(1) / np.longdouble(10)}),
    ("a signalling NaN is missing", "n IS NULL", {"n": Decimal("sNaN")}),
    ("a signalling NaN is no number", "n > 1", {"n": Decimal("sNaN")}),
    ("a signalling NaN in a list", "NOT A_OVERLAPS(l, (1))", {"l": [Decimal("sNaN")]}),
    ("an array without dimensions", "n = 3", {"n": np.array(3)}),
    ("NaN in an array without dimensions", "n IS NULL", {"n": np.array(np.nan)}),
    ("infinity is above every number", f"n > {10**300}", {"n": float("inf")}),
    ("an integer added", "n + 1 = 9007199254740994", {"n": 9007199254740993}),
    (
        "an integer and a double added",
        "n + 1 = 9007199254740994 AND NOT n + 1.0 = 9007199254740994",
        {"n": 9007199254740993},
    ),
    ("division by zero", "NOT (n / 0 = 1)", {"n": 1}),
    # --- what is missing
    ("no span of time", "n IS NULL", {"n": np.timedelta64("NaT")}),
    ("masked", "n IS NULL", {"n": np.ma.masked}),
    ("pandas' NA", "n IS NULL", {"n": pd.NA}),
    # --- strings
    ("a string that is an enumeration's", "s = 'red'", {"s": Colour.RED}),
    ("and its form", "s LIKE 'r%'", {"s": Colour.RED}),
    ("a string enumeration", "s = 'red'", {"s": Shade.RED}),
    ("a lone surrogate has one character", "s LIKE '_'", {"s": "\ud800"}),
    ("a lone surrogate in order", "s >= 'a'", {"s": "\ud800"}),
    ("a character beyond the plane", "s LIKE '_'", {"s": "𝔄"}),
    # --- IN
    ("an item folded", "s IN ('a', CASEI('B'))", {"s": "b"}),
    ("not an item folded", "s NOT IN ('a', CASEI('B'))", {"s": "a"}),
    ("nor the folded one", "s NOT IN ('a', CASEI('B'))", {"s": "b"}),
    ("neither", "s NOT IN ('a', CASEI('B'))", {"s": "c"}),
    (
        "not in times and strings",
        "t NOT IN ('2020-01-01', TIMESTAMP('2021-01-01T00:00:00Z'))",
        {"t": "2020-01-01"},
    ),
    (
        "not in strings and times",
        "t NOT IN ('x', TIMESTAMP('2021-01-01T00:00:00Z'))",
        {"t": "2021-01-01T00:00:00Z"},
    ),
    ("items of other types", "n NOT IN (1, 'a', TRUE)", {"n": 2}),
    ("no item of its type", "n NOT IN ('a', TRUE)", {"n": 2}),
    ("in nothing", {"op": "in", "args": [{"property": "n"}, []]}, {"n": 1}),
    (
        "not in nothing",
        {"op": "not", "args": [{"op": "in", "args": [{"property": "n"}, []]}]},
        {"n": 1},
    ),
    # --- times
    ("a time beside a string", "t = '2020-01-02'", {"t": dt.date(2020, 1, 2)}),
    ("a time after a string", "t > '2020-01-01'", {"t": dt.date(2020, 1, 2)}),
    ("a time among strings", "t IN ('2020-01-02')", {"t": dt.date(2020, 1, 2)}),
    (
        "a time and an attribute that is a string",
        "t = s",
        {"t": dt.date(2020, 1, 2), "s": "2020-01-02"},
    ),
    (
        "an interval of numbers",
        "T_AFTER(i, DATE('2020-01-01'))",
        {"i": {"interval": [np.array([1, 2]), ".."]}},
    ),
    (
        "an interval of nothing",
        "T_AFTER(i, DATE('2020-01-01'))",
        {"i": {"interval": [pd.NA, ".."]}},
    ),
    (
        "an interval in another mapping",
        "T_AFTER(i, DATE('2020-01-01'))",
        {"i": MappingProxyType({"interval": ["2021-01-01", ".."]})},
    ),
    # --- lists
    ("an array of two dimensions", "NOT A_OVERLAPS(l, ('a'))", {"l": np.array([["a", "b"]])}),
    ("a list in a list", "A_EQUALS(l, l)", {"l": [[1]]}),
    ("keys of a mapping are a set", "A_CONTAINS(l, (1))", {"l": {1: 2}.keys()}),
    ("keywords without words", "A_OVERLAPS(l, ('!'))", {"l": "a"}),
    ("no keywords", "A_OVERLAPS(l, ())", {"l": "a"}),
    ("no keywords and no list", "A_OVERLAPS(l, ())", {"l": 5}),
    # --- places
    ("a lone surrogate is no place", "NOT S_CROSSES(g, POINT(1 1))", {"g": "POINT(1 1)\ud800"}),
    ("a list is no place", "NOT S_CROSSES(g, POINT(1 1))", {"g": ["POINT(1 1)"]}),
    ("a far coordinate", "NOT S_CROSSES(g, POINT(1 1))", {"g": "POINT(1e999 1)"}),
    # --- the expression
    (
        "a mapping that is no dict",
        MappingProxyType({"op": "=", "args": [{"property": "n"}, 1]}),
        {"n": 1},
    ),
    ("a number of NumPy", {"op": "=", "args": [{"property": "n"}, np.int64(1)]}, {"n": 1}),
    ("tuples", {"op": "=", "args": ({"property": "n"}, 1)}, {"n": 1}),
]


@pytest.mark.parametrize(
    ("expression", "event"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_every_index_agrees_with_the_oracle(expression: Any, event: dict[str, Any]) -> None:
    outcome = evaluate(parse(expression), event)
    for index in ("auto", "sff", "cr-tree", "rt", "rt+", "rt++", "ops4st"):
        matcher = Matcher(index=index, space="planar")
        matcher.subscribe("s", expression)
        assert matcher.match(event) == (["s"] if outcome else []), index
        assert matcher.match_batch([event]).num_rows == (outcome is True), index
    assert matcher.explain(event, "s").outcome is outcome
    assert matcher.explain(event, "s").matches is (outcome is True)


@pytest.mark.parametrize("value", [1, 0.5, 2**53 + 1, 10**30, Decimal("0.5"), -(2**63)])
def test_a_number_of_a_column_equals_the_number_of_its_expression(value: Any) -> None:
    for index in ("auto", "sff", "cr-tree", "rt", "rt+", "rt++", "ops4st"):
        matcher = Matcher(index=index, space="planar")
        matcher.subscribe_columns(["s"], equals={"n": [value]})
        assert matcher.match({"n": value}) == ["s"], index
        assert matcher.match({"n": 0}) == [], index
    assert matcher.explain({"n": value}, "s").outcome is True
    assert evaluate(parse(matcher.expression("s")), {"n": 0}) is False


@pytest.mark.parametrize("value", [Decimal("0.1"), float("inf"), 10**400, Fraction(1, 3)])
def test_a_number_beyond_two_doubles_is_refused_as_a_column(value: Any) -> None:
    matcher = Matcher(space="planar")
    with pytest.raises(ModelError, match="106 bits"):
        matcher.subscribe_columns(["s"], equals={"n": [value]})
    assert len(matcher) == 0


def test_a_row_with_a_column_called_type_is_no_feature() -> None:
    table = pa.table({"type": ["Feature"], "n": [5]})
    for index in ("auto", "reference", "sff", "cr-tree", "rt", "rt+", "rt++"):
        matcher = Matcher(index=index, space="planar")
        matcher.subscribe("s", "n = 5 AND type = 'Feature'")
        assert matcher.match_batch(table).num_rows == 1, index


def test_an_event_in_the_dead_letters_matches_nothing() -> None:
    for index in ("auto", "reference", "sff", "cr-tree", "rt", "rt+", "rt++"):
        matcher = Matcher(index=index, space="planar")
        matcher.subscribe("always", "TRUE")
        matcher.subscribe("missing", "n IS NULL")
        letters: list[tuple[int, str]] = []
        matches_table = matcher.match_batch([{"n": 1}, 5, {}], dead_letters=letters, sort=True)
        assert matches_table["event"].to_pylist() == [0, 2, 2], index
        assert [row for row, _ in letters] == [1]
