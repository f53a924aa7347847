"""Columns of values and keywords, in every form, compared with an evaluation row by row."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.engine import Matcher
from fencepost.errors import ModelError
from fencepost.events import tokenize
from tests.engine.strategies import examples
from tests.names import stable_name

WHOLE = [0, 1, -5, 2**53 - 1, 2**53, 2**53 + 1, 2**62, -(2**63)]
REAL = [0.0, -0.0, 1.0, 0.1, 2.0**53, 1e300, -5.0, 5e-324]
TEXTS = ["a", "", "A", "straße", "1", "true"]
ODD = [Decimal("0.5"), Fraction(1, 4), np.float32(0.1), np.int64(1), np.str_("a"), 2**70]
ANY = [*WHOLE, *REAL, *TEXTS, True, False, None, math.nan, *ODD]
COLUMNS = {
    "integers": st.sampled_from([*WHOLE, None]),
    "reals": st.sampled_from([*REAL, None, math.nan]),
    "texts": st.sampled_from([*TEXTS, None]),
    "booleans": st.sampled_from([True, False, None]),
    "all": st.sampled_from(ANY),
}
FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "a list": list,
    "a tuple": tuple,
    "objects": lambda values: pd.Series(values, dtype=object).to_numpy(),
    "a series": lambda values: pd.Series(values, dtype=object),
    "Arrow": pa.array,
    "chunks": lambda values: pa.chunked_array([pa.array(values).slice(0, 2), pa.array(values)[2:]]),
    "encoded": lambda values: pa.array(values).dictionary_encode(),
    "NumPy": np.array,
}
MIXED = (
    "a list",
    "a tuple",
    "objects",
    "a series",
)  # the forms that can hold values of several types
CASES = [(kind, form) for kind in COLUMNS for form in (MIXED if kind == "all" else FORMS)]


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def matches(bound: Any, value: Any) -> bool:
    """Follow the rule: a missing bound matches all; types do not mix; numbers are exact."""
    if is_missing(bound):
        return True
    if is_missing(value):
        return False
    are_strings = isinstance(bound, str), isinstance(value, str)
    are_flags = isinstance(bound, bool), isinstance(value, bool)
    if are_strings[0] != are_strings[1] or are_flags[0] != are_flags[1]:
        return False
    return bool(bound == value if are_strings[0] else exact(bound) == exact(value))


def exact(number: Any) -> Fraction:
    return Fraction(float(number)) if isinstance(number, np.float32) else Fraction(number)


@pytest.mark.parametrize(("kind", "form"), CASES)
@given(data=st.data())
@examples(25)
def test_values(kind: str, form: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(COLUMNS[kind], min_size=1, max_size=12))
    if form == "NumPy":  # otherwise it becomes an array of objects
        values = [value for value in values if value is not None] or [1]
    ids = [f"{row:02}" for row in range(len(values))]
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(ids, equals={"v": FORMS[form](values)})
    for value in [*values, 1, 1.0, "a", True, None]:
        expected = [id for id, bound in zip(ids, values, strict=True) if matches(bound, value)]
        assert matcher.match({"v": value}) == expected, value


@pytest.mark.parametrize(
    "values",
    [
        [1.0, math.inf],
        np.array([1.0, -math.inf]),
        pa.array([1.0, math.inf]),
        ["a", object()],
        [1, b"x"],
        [1, 2**2000],
        pa.array([b"a", b"b"]),
        [0, Fraction(1, 3)],
    ],
    ids=stable_name,
)
def test_values_that_cannot_be_compared(values: Any) -> None:
    row = 0 if isinstance(values, pa.Array) and values.type == pa.binary() else 1
    with pytest.raises(ModelError, match=rf"equals\['v'\] takes .* in row {row}"):
        Matcher(space="planar").subscribe_columns(["a", "b"], equals={"v": values})


def test_a_lone_surrogate() -> None:
    with pytest.raises(ModelError, match=r"equals\['v'\] holds a lone surrogate in row 1"):
        Matcher(space="planar").subscribe_columns(["a", "b"], equals={"v": ["a", "\ud800"]})
    with pytest.raises(ModelError, match=r"keywords\['v'\] holds a lone surrogate in row 1"):
        Matcher(space="planar").subscribe_columns(
            ["a", "b"], keywords={"v": [["a"], ["b", "\ud800"]]}
        )


WORDS = st.lists(st.sampled_from(["a", "b", "A b", "Straße", "c!", "", "a"]), max_size=4)


@given(
    rows=st.lists(st.tuples(WORDS, WORDS, st.sampled_from([1, 2, None])), min_size=1, max_size=8),
    text=st.sampled_from(["a b", "strasse c", "", "A c"]),
    items=WORDS,
)
@examples(60)
@example(rows=[([], ["a"], None), (["A b", "a"], [], 1)], text="a b", items=["a"])
def test_keywords_of_two_attributes_beside_values(
    rows: list[tuple[list[str], list[str], int | None]], text: str, items: list[str]
) -> None:
    ids = [f"{row:02}" for row in range(len(rows))]
    event = {"t": text, "l": items, "n": 1}
    expected = [
        id
        for id, (words, list_items, number) in zip(ids, rows, strict=True)
        if {token for word in words for token in tokenize(word)} <= {*tokenize(text)}
        and {*list_items} <= {*items}
        and number in (1, None)
    ]
    for as_column in (list, lambda lists: pa.array(lists, pa.list_(pa.string()))):
        matcher = Matcher(space="planar")
        keywords = {"t": as_column([r[0] for r in rows]), "l": as_column([r[1] for r in rows])}
        matcher.subscribe_columns(ids, keywords=keywords, equals={"n": [r[2] for r in rows]})
        assert matcher.match(event) == expected
