"""Siena Fast Forwarding: the paper's example, and random expressions against the reference."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fencepost.cql2 import parse
from fencepost.cql2.ast import Property
from fencepost.errors import IndexingError, LanguageError
from fencepost.events import EventValues, attributes, to_double_double
from fencepost.filters import Column, ColumnKind, Filter, Term, evaluate_near, normal_form
from fencepost.filters.checks import NearCheck, RangeCheck
from fencepost.geometry import Space
from fencepost.papers.regions.constraint_indexes import Family
from fencepost.papers.regions.sff import ForwardingTable
from fencepost.papers.table_engine import read_column
from fencepost.reference import matches
from tests.engine.strategies import EVENTS, TEXT_EXPRESSIONS
from tests.papers.regions.figures import FIGURE_1, FIGURE_3


def _filters(text: str) -> list[Filter]:
    return normal_form.to_filters(parse(text))


def _event(values: Mapping[str, object]) -> EventValues:
    return EventValues(attributes(values))


def _table(texts: Mapping[int, str], **options: Any) -> ForwardingTable:
    table = ForwardingTable(**options)
    for number, text in texts.items():
        table.add(number, f"I{number % 2}", _filters(text))
    return table


# ------------------------------------------------------------------------- the paper's own example


@pytest.mark.parametrize("region_index", ["cr-tree", "list"])
@pytest.mark.parametrize(("relation", "density"), [("exact", 0.0), ("sampled", 10.0)])
def test_forwards_the_message_of_figure_1_by_the_table_of_figure_3(
    region_index: Any, relation: Any, density: float
) -> None:
    table = ForwardingTable(region_index, relation, density)
    for number, (interface, text) in FIGURE_3.items():
        table.add(number, interface, _filters(text))
    assert table.match(_event(FIGURE_1)) == {22}
    assert table.match_interfaces(_event(FIGURE_1)) == {"I2"}
    assert table.match(_event({**FIGURE_1, "hazard": 3})) == set()
    touching = "POLYGON ((15 40, 30 50, 30 40, 15 40))"
    assert table.match(_event({**FIGURE_1, "area": touching})) == set()


# --------------------------------------------------------------------------- against the reference


@settings(max_examples=60)
@given(
    st.lists(TEXT_EXPRESSIONS, min_size=2, max_size=8),
    st.lists(EVENTS, min_size=2, max_size=6),
    st.sampled_from(["cr-tree", "list"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_agrees_with_the_reference_as_subscriptions_come_and_go(
    texts: list[str],
    events: list[dict[str, object]],
    region_index: Any,
    packed: bool,
    rng: random.Random,
) -> None:
    table = ForwardingTable(region_index, packed=packed)
    kept = {}
    for number, text in enumerate(texts):
        condition = parse(text)
        try:
            filters = normal_form.to_filters(condition)
        except LanguageError:
            continue
        table.add(number, f"I{number % 2}", filters)
        kept[number] = condition
    for event in events:
        expected = {number for number, condition in kept.items() if matches(condition, event)}
        assert table.match(_event(event)) == expected
        assert table.match_interfaces(_event(event)) == {f"I{n % 2}" for n in expected}
        if kept and rng.random() < 0.5:
            number = rng.choice(sorted(kept))
            table.remove(number)
            del kept[number]
    for number in kept:
        table.remove(number)
    assert (len(table), table.constraint_count, len(table.attributes)) == (0, 0, 0)


WORDS = ["", "a", "ab", "abc", "bc", "c", "cab", "hail", "Hail", "a%", "日本", "\ud800"]
PATTERNS = ["%", "a%", "%c", "%b%", "ab", "", "_b%", "%a%c%", "\\%", "a\\%", "%本", "_", "%%", "%b"]


@pytest.mark.parametrize("negated", [False, True])
def test_strings_of_every_form(negated: bool) -> None:
    texts = {k: f"s LIKE '{pattern}'" for k, pattern in enumerate(PATTERNS)}
    texts |= {100 + k: f"s {op} 'ab'" for k, op in enumerate(("<", "<=", ">", ">=", "=", "<>"))}
    texts |= {200: "s IN ('a', 'hail', 'ab')", 201: "s BETWEEN 'ab' AND 'c'"}
    if negated:
        texts = {k: f"NOT ({text})" for k, text in texts.items()}
    table = _table(texts)
    for word in WORDS:
        expected = {k for k, text in texts.items() if matches(parse(text), {"s": word})}
        assert table.match(_event({"s": word})) == expected, word


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("low_closed", [False, True])
@pytest.mark.parametrize("high_closed", [False, True])
def test_a_range_between_two_ends(negated: bool, low_closed: bool, high_closed: bool) -> None:
    check = RangeCheck(
        Column(ColumnKind.NUMBER, Property("n")),
        to_double_double(1),
        to_double_double(3),
        low_closed,
        high_closed,
    )
    table = ForwardingTable()
    table.add(1, "I", [(Term(check, negated),)])
    for value in (0, 1, 2, 3, 4):
        within = (value >= 1 if low_closed else value > 1) and (
            value <= 3 if high_closed else value < 3
        )
        assert (table.match(_event({"n": value})) == {1}) is (within is not negated)
    assert table.match(_event({"n": "2"})) == set()


# ------------------------------------------------------------------------------------- the table


def test_keeps_a_constraint_once_however_many_filters_have_it() -> None:
    texts = {k: f"n > 5 AND s = 'a' AND m = {k % 3}" for k in range(60)}
    table = _table(texts)
    assert table.constraint_count == 5
    assert table.match(_event({"n": 6, "s": "a", "m": 1})) == set(range(1, 60, 3))
    for number in range(1, 60, 3):
        table.remove(number)
    assert table.constraint_count == 4
    assert table.match(_event({"n": 6, "s": "a", "m": 1})) == set()
    assert table.match(_event({"n": 6, "s": "a", "m": 2})) == set(range(2, 60, 3))


def test_counts_a_constraint_once_in_a_filter_that_repeats_it() -> None:
    (terms,) = _filters("n > 5")
    table = ForwardingTable()
    table.add(1, "I", [terms + terms])
    assert table.match(_event({"n": 6})) == {1}


def test_a_filter_without_constraints_always_holds_and_no_filter_never() -> None:
    table = _table({1: "TRUE", 2: "FALSE", 3: "n > 5 OR TRUE"})
    assert table.match(_event({})) == {1, 3}
    assert table.match_interfaces(_event({})) == {"I1"}
    table.remove(1)
    table.remove(3)
    assert table.match(_event({})) == set()


class _RecordingIndex:
    """An index that evaluates `NearCheck` and records the values that it matches."""

    values: list[object]

    def __init__(self) -> None:
        self.values = []
        self._checks: dict[int, Term] = {}

    def add(self, constraint: int, term: Term) -> None:
        self._checks[constraint] = term

    def remove(self, constraint: int) -> None:
        del self._checks[constraint]

    def match(self, value: Any) -> NDArray[np.int64]:
        self.values.append(value)
        numbers = []
        for number, term in self._checks.items():
            check = term.check
            assert isinstance(check, NearCheck)
            region = EventValues({"g": check.geometry.value}).shapes("g")
            assert region is not None
            if (
                evaluate_near(Space.PLANAR, check.function, value, region, check.distance)
                is not term.negated
            ):
                numbers.append(number)
        return np.array(numbers, np.int64)

    def __len__(self) -> int:
        return len(self._checks)


def test_a_custom_family_is_used_and_the_short_cut_skips_it() -> None:
    index = _RecordingIndex()
    family = Family("near", lambda: index, read_column)
    table = ForwardingTable(families={NearCheck: family})
    table.add(1, "I", _filters("n > 5"))
    table.add(2, "I", _filters("S_DWITHIN(g, POINT (0 0), 2)"))
    event = {"n": 6, "g": shapely.Point(1, 1)}
    assert table.match(_event(event)) == {1, 2}
    assert len(index.values) == 1
    # The interface's first filter is complete, so the other attributes are not looked up.
    assert table.match_interfaces(_event(event)) == {"I"}
    assert len(index.values) == 1
    assert table.match_interfaces(_event({**event, "n": 5})) == {"I"}
    assert len(index.values) == 2
    assert table.match(_event({"g": shapely.Point(3, 3)})) == set()


def test_numbers_of_subscriptions_and_interfaces_are_reused() -> None:
    table = ForwardingTable()
    rng = random.Random(5)
    kept: dict[int, tuple[str, int]] = {}
    for step in range(600):
        if rng.random() < 0.6 or not kept:
            number, interface = step * 7919, f"I{rng.randrange(5)}"
            kept[number] = interface, rng.randrange(8)
            table.add(number, interface, _filters(f"n = {kept[number][1]} OR m = 1"))
        else:
            number = rng.choice(list(kept))
            del kept[number]
            table.remove(number)
        value = rng.randrange(8)
        expected = {n for n, (_, threshold) in kept.items() if threshold == value}
        assert table.match(_event({"n": value})) == expected
        assert table.match_interfaces(_event({"n": value})) == {kept[n][0] for n in expected}
    assert len(table) == len(kept)


def test_refuses_invalid_changes_and_options() -> None:
    table = _table({1: "n > 5"})
    with pytest.raises(IndexingError, match="subscription 1 exists already"):
        table.add(1, "I", [])
    with pytest.raises(IndexingError, match="no subscription 2"):
        table.remove(2)
    with pytest.raises(IndexingError, match="region_index must be"):
        ForwardingTable("grid")  # type: ignore[arg-type]
    with pytest.raises(IndexingError, match="relation"):
        ForwardingTable(relation="guessed")  # type: ignore[arg-type]
    assert 1 in table
    assert 2 not in table
