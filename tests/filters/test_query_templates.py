"""A bound query template means the same as the parsed text."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2 import parse
from fencepost.engine import ColumnRegistry, FilterTable
from fencepost.engine.filter_table import TableArrays
from fencepost.errors import LanguageError
from fencepost.events import Tokenizer
from fencepost.filters import query_templates, to_filters
from fencepost.filters.query_templates import BoundTemplate, invalid_rows
from fencepost.geometry import Space

_STOP_WORDS = Tokenizer.without(["the"])


@pytest.fixture(autouse=True)
def _forget_templates() -> None:
    query_templates.known_templates.clear()


def bind_text(text: str, space: Space) -> BoundTemplate | None:
    """Bind a text twice: the first call notes its key, the second learns the template."""
    query_templates.bind_text(text, space)
    return query_templates.bind_text(text, space)


def _table(filters: object, columns: ColumnRegistry, compact: bool) -> list[object]:
    table = FilterTable(columns, compact)
    table.add(0, filters)  # type: ignore[arg-type]
    return list(_flat(table.arrays()))


def _flat(value: object) -> list[object]:
    if isinstance(value, np.ndarray):
        return [value.dtype, value.tolist()]
    if isinstance(value, TableArrays):
        value = tuple(getattr(value, name) for name in value.__slots__)
    if hasattr(value, "arrays"):
        value = value.arrays
    if isinstance(value, tuple):
        return [item for part in value for item in _flat(part)]
    return [value]


def _is_bound(text: str, space: Space = Space.PLANAR) -> bool:
    """Return whether a template binds a text; if so check that the filters equal the parser's.

    The shapes of a template that binds an invalid text must be invalid.
    """
    columns = ColumnRegistry(_STOP_WORDS, space)
    try:
        expected = to_filters(parse(text, space), space)
    except LanguageError:
        expected = None
    bound = bind_text(text, space)
    if bound is None:
        return False
    if expected is None:
        assert not bound.has_valid_shapes(), text
        assert invalid_rows([bound]) == {0}
        return False
    assert not invalid_rows([bound])
    for compact in (False, True):
        assert _table(bound, columns, compact) == _table(expected, columns, compact), text
    return True


_NUMBERS = st.one_of(
    st.sampled_from(
        ["0", "-0", "-0.0", "1", "1.0", "+2", "-3.5", ".5", "7.", "1e2", "1E-2", "-4e+1"]
    ),
    st.sampled_from(["9007199254740993", "1e400", "0" * 30 + "1", "- 5", "(6)", "1e999", "1" * 21]),
    st.integers(-99, 99).map(str),
    st.floats(-1e6, 1e6).map(repr),
)
_STRINGS = st.one_of(
    st.sampled_from(
        ["a", "B", "it''s", "", "The", "the end", "2024-05-01", "2024-13-01", "é", "%"]
    ),
    st.text("ab'\" é1(,.", max_size=4).map(lambda text: text.replace("'", "''")),
).map(lambda text: f"'{text}'")
_PLACES = st.integers(-20, 20).map(str) | st.floats(-180, 180).map(lambda x: f"{x:.3f}")
_POINTS = st.lists(st.tuples(_PLACES, _PLACES).map(" ".join), min_size=1, max_size=6)


@st.composite
def _geometries(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["BBOX", "BBOX", "POINT", "LINESTRING", "POLYGON", "odd"]))
    if kind == "BBOX":
        x, y, w, h = (draw(st.integers(-20, 20)) for _ in range(4))
        return f"BBOX({x}, {y},{x + w} ,{y + abs(h)})"
    if kind == "POINT":
        return f"POINT({draw(_PLACES)} {draw(_PLACES)})"
    points = draw(_POINTS)
    if kind == "LINESTRING":
        return f"LINESTRING({', '.join(points)})"
    if kind == "POLYGON":
        rings = [[*points, points[0]]]
        if draw(st.booleans()):
            rings = [["0 0", "9 0", "9 9", "0 9", "0 0"], ["1 1", "2 1", "1 2", "1 1"]]
        return f"polygon (({'),('.join(', '.join(ring) for ring in rings)}))"
    return draw(
        st.sampled_from(
            [
                "POLYGON((0 0, 4 0, 4 4, 0 4))",
                "POLYGON((0 0,4 0,4 4,0 4,0 0))",
                "MULTIPOINT((1 2), (3 4))",
                "POINT(1 2, 3 4)",
                "POINT Z(1 2 3)",
                "BBOX(0, 0, 0, 4, 4, 4)",
                "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))",
                "place",
            ]
        )
    )


@st.composite
def _conditions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["price", "size", "kind", '"quoted"', "a1"]))
    n, m, s, t = draw(_NUMBERS), draw(_NUMBERS), draw(_STRINGS), draw(_STRINGS)
    op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]))
    relation = draw(st.sampled_from(["S_INTERSECTS", "s_within", "EH_OVERLAP", "S_DISJOINT"]))
    near = draw(st.sampled_from(["S_DWITHIN", "S_BEYOND", "S_CLOSER"]))
    listed = draw(st.sampled_from(["A_CONTAINS", "A_OVERLAPS", "a_equals"]))
    g = draw(_geometries())
    return draw(
        st.sampled_from(
            [
                f"{name} {op} {n}",
                f"{name} {op} {s}",
                f"{name} BETWEEN {n} AND {m}",
                f"{name} IN ({s}, {t})",
                f"{name} IN ({s}, {n})",
                f"{name} LIKE {s}",
                f"{relation}(place, {g})",
                f"{relation}(place, {g})",
                f"{near}(place, {g}, {n})",
                f"{listed}(words, ({s}, {t}))",
                f"{listed}(words, ({s}))",
                f"{name} IS NOT NULL",
                f"flag AND {name} = {name}",
                f"{name} > DATE({s})",
                f"{n} < {name}",
                f"({name} = {n} AND kind = {s})",
                f"({name} = {n} OR kind = {s})",
                f"{name} + 1 > {n}",
            ]
        )
    )


_TEXTS = st.lists(_conditions(), min_size=1, max_size=3).map(" AND ".join)


@given(st.lists(_TEXTS, min_size=1, max_size=2), st.sampled_from(Space))
def test_a_bound_template_means_what_the_tree_means(texts: list[str], space: Space) -> None:
    for text in texts:
        _is_bound(text, space)


_COMMON = [
    "S_INTERSECTS(geometry, BBOX(1.5,2,3,4)) AND kind = 'a'",
    "S_INTERSECTS(geometry, POLYGON ((0 0, 9 1, 8 7, 0 0))) AND kind = 'k1' AND price BETWEEN 3 "
    "AND 40 AND A_CONTAINS(words, ('w1', 'w2'))",
    "A_CONTAINS(words, ('tea')) AND S_INTERSECTS(place, BBOX(-1, -1, 1, 1))",
    "A_CONTAINS(words, ('tea', 'The'))",
    "S_DWITHIN(place, POINT(1 2), 500) AND price <= 3",
    "price > -3 AND price < 4.5 AND kind IN ('a', 'b') AND flag AND size IS NULL",
]


def test_the_most_frequent_texts_have_templates() -> None:
    for text in _COMMON:
        assert _is_bound(text)
        assert _is_bound(re.sub(r"\b([0-9]+)\b", r"\g<1>0", text))
    assert len(query_templates.known_templates) == len(_COMMON)


def test_changed_texts_of_a_known_template() -> None:
    rng = random.Random(5)
    pieces = [
        "'",
        "''",
        '"',
        "(",
        ")",
        ",",
        " ",
        "-",
        "+",
        ".",
        "e",
        "1",
        "0",
        "x",
        "é",
        "AND",
        "\n",
    ]
    bound_count = 0
    for _ in range(3_000):
        text = rng.choice(_COMMON)
        bind_text(text, Space.PLANAR)
        for _ in range(rng.randint(1, 2)):
            position = rng.randrange(len(text) + 1)
            text = text[:position] + rng.choice(pieces) + text[position + rng.randint(0, 2) :]
        bound_count += _is_bound(text)
    assert bound_count > 300


def test_a_repeated_condition_has_no_template() -> None:
    bind_text("kind = 'a' AND kind = 'b'", Space.PLANAR)
    assert not _is_bound("kind = 'a' AND kind = 'a'")
    assert _is_bound("price > 3 AND price < 3")


def test_a_string_that_is_a_time_is_left_to_the_parser() -> None:
    assert _is_bound("kind = 'a'")
    assert bind_text("kind = '2024-05-01'", Space.PLANAR) is None
    assert _is_bound("kind = '2024-05-99'")


def test_half_a_surrogate_pair_is_left_to_the_parser() -> None:
    assert _is_bound("kind = 'é'")
    assert bind_text("kind = '\ud800'", Space.PLANAR) is None


def test_a_template_is_learned_from_the_second_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert query_templates.bind_text("a = 1", Space.PLANAR) is None
    assert query_templates.bind_text("b = 1", Space.PLANAR) is None
    assert query_templates.bind_text("a = 2", Space.PLANAR) is not None
    monkeypatch.setattr(query_templates, "_TemplateBuilder", None)
    assert query_templates.bind_text("a = 3", Space.PLANAR) is not None


def test_the_number_of_templates_is_bounded() -> None:
    for k in range(2 * query_templates.MAX_TEMPLATES):
        bind_text(f"a{'b' * (k % 50)}_{'c' * (k // 50)} = 1", Space.PLANAR)
    assert 0 < len(query_templates.known_templates) <= query_templates.MAX_TEMPLATES


@pytest.mark.parametrize("number", ["9007199254740993", "-0", "-0.0", "1e400", "1" * 40])
def test_numbers_that_are_not_plain_doubles_are_left_to_the_parser(number: str) -> None:
    assert _is_bound("price = 7")
    assert _is_bound("price = -7")
    assert not _is_bound(f"price = {number}")
