"""Hypothesis strategies for the trees that `parse` can return, with every kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import shapely
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fencepost.cql2 import ast
from fencepost.cql2.ast import Condition, Value

DAY = 86_400 * 10**9  # in nanoseconds
FIRST, LAST = -719_162 * DAY, 2_932_897 * DAY - 1  # of the years 0001 to 9999

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TRICKY = [
    "",
    "'",
    "''",
    '"',
    "\\",
    "\\\\",
    "it's",
    "a\nb",
    "\0",
    "%_",
    "é日本",
    "𝔄",
    "--",
    "/*",
    "{",
]
STRINGS = (TEXT | st.sampled_from(TRICKY)).map(ast.String)
NAMES = st.one_of(
    st.sampled_from(
        ["a", "b", "speed", "eo:cloud_cover", "properties.id", "_x", "Z", "m", "empty"]
    ),
    st.sampled_from(
        ["and", "NOT", "Between", "div", "null", "TRUE", "point", "POLYGON", "date", "is"]
    ),
    st.sampled_from(
        ["a b", 'a"b', "a'b", "1a", "ü", "日本", "x.", "notable", "order", "a-b", "pointz"]
    ),
    TEXT.filter(bool),
)
PROPERTIES = NAMES.map(ast.Property)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(
    st.integers(-10, 10),
    st.integers(-(10**40), 10**40),
    st.sampled_from(
        [2**53 + 1, -(2**53) - 1, 10**999, 0.1, 1e22, 1e-7, 5e-324, 1.7e308, -0.0, 1.0]
    ),
    FLOATS,
).map(ast.Number)
BOOLEANS = st.booleans().map(ast.Boolean)
INSTANTS = st.integers(FIRST, LAST).map(ast.Time) | st.integers(-(10**18), 10**18).map(ast.Time)
DATES = st.integers(FIRST // DAY, LAST // DAY).map(lambda day: ast.Time(day * DAY, date_only=True))
TIMES = INSTANTS | DATES
LITERALS = NUMBERS | STRINGS | BOOLEANS | TIMES


# ------------------------------------------------------------------------------------- geometries

COORDINATES = FLOATS.map(lambda x: x + 0.0)  # never -0.0
SMALL = st.integers(-1_000, 1_000).map(lambda n: n / 8)


def _ascending(count: int, numbers: SearchStrategy[float]) -> SearchStrategy[list[float]]:
    return st.lists(numbers, min_size=count, max_size=count, unique=True).map(sorted)


def _box(x: list[float], y: list[float]) -> shapely.Polygon:
    return shapely.Polygon([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])])


POINTS = st.tuples(COORDINATES, COORDINATES).map(shapely.Point)
LINES = _ascending(3, SMALL).map(lambda x: shapely.LineString([(v, v * v) for v in x]))
BOXES = st.builds(_box, _ascending(2, SMALL), _ascending(2, SMALL))
HOLED = st.builds(
    lambda x, y: shapely.Polygon(
        _box([x[0], x[3]], [y[0], y[3]]).exterior.coords,
        [_box([x[1], x[2]], [y[1], y[2]]).exterior.coords],
    ),
    _ascending(4, SMALL),
    _ascending(4, SMALL),
)
TWO_BOXES = st.builds(
    lambda x, y: shapely.MultiPolygon([_box(x[:2], y), _box(x[2:], y)]),
    _ascending(4, SMALL),
    _ascending(2, SMALL),
)
SHAPES = st.one_of(
    POINTS,
    LINES,
    BOXES,
    HOLED,
    TWO_BOXES,
    st.lists(POINTS, min_size=1, max_size=3).map(shapely.MultiPoint),
    st.lists(LINES, min_size=1, max_size=3).map(shapely.MultiLineString),
)
GEOMETRIES = SHAPES.map(ast.Geometry)
PLACES = PROPERTIES | GEOMETRIES


# ----------------------------------------------------------------------------------------- values


def identity(item: Value) -> tuple[object, ...]:
    """Return the key by which items of a list are distinct: 1 repeats 1.0, TRUE does not."""
    match item:
        case ast.FoldedString(fold, value):
            return fold, *identity(value)
        case ast.Time(nanoseconds):
            return ast.Time, nanoseconds
        case ast.Number(value) | ast.String(value) | ast.Boolean(value):
            return type(item), value
    raise AssertionError(item)


def _items(items: SearchStrategy[Any], min_size: int) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, min_size=min_size, max_size=5, unique_by=identity).map(tuple)


LISTS = st.builds(ast.ListLiteral, _items(LITERALS, 0))
SETS = PROPERTIES | LISTS

NUMERIC = st.recursive(
    NUMBERS | PROPERTIES,
    lambda inner: st.builds(ast.Arithmetic, st.sampled_from(ast.ArithmeticOp), inner, inner),
    max_leaves=5,
)


def _folded(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.recursive(
        inner,
        lambda deeper: st.builds(ast.FoldedString, st.sampled_from(ast.StringFold), deeper),
        max_leaves=3,
    )


TEXTUAL = _folded(STRINGS | PROPERTIES)
FOLDED_STRINGS = _folded(STRINGS)
PATTERNS = _folded(STRINGS.filter(lambda s: (len(s.value) - len(s.value.rstrip("\\"))) % 2 == 0))
LOGICAL = BOOLEANS | PROPERTIES
TEMPORAL = TIMES | PROPERTIES
OF_ONE_KIND = st.sampled_from([NUMERIC, TEXTUAL, LOGICAL, TEMPORAL])
"""Values that can be compared with each other."""


def _interval(start: Any, end: Any) -> ast.Interval:
    if isinstance(start, ast.Time) and isinstance(end, ast.Time):
        start, end = sorted((start, end), key=lambda time: time.nanoseconds)
    return ast.Interval(start, end)


INTERVAL_ENDS = st.none() | TEMPORAL
INTERVALS = st.builds(_interval, INTERVAL_ENDS, INTERVAL_ENDS)
SPANS = PROPERTIES | TIMES | INTERVALS


# ------------------------------------------------------------------------------------- conditions


def _alike(build: Callable[..., Condition], count: int) -> SearchStrategy[Condition]:
    return OF_ONE_KIND.flatmap(lambda kind: st.tuples(*[kind] * count)).map(
        lambda values: build(*values)
    )


def _memberships(min_size: int) -> SearchStrategy[Condition]:
    return st.one_of(
        st.builds(ast.In, PROPERTIES, _items(LITERALS | FOLDED_STRINGS, min_size)),
        st.builds(ast.In, NUMERIC, _items(NUMBERS, min_size)),
        st.builds(ast.In, TEXTUAL, _items(FOLDED_STRINGS, min_size)),
        st.builds(ast.In, TEMPORAL, _items(TIMES, min_size)),
        st.builds(ast.In, LOGICAL, _items(BOOLEANS, min_size)),
    )


COMPARISONS = st.sampled_from(ast.ComparisonOp).flatmap(
    lambda op: _alike(lambda left, right: ast.Comparison(op, left, right), 2)
)
DISTANCES = st.floats(0, allow_infinity=False).map(lambda x: x + 0.0)


def _simple(min_size: int) -> SearchStrategy[Condition]:
    return st.one_of(
        COMPARISONS,
        _alike(ast.Between, 3),
        _memberships(min_size),
        st.builds(ast.Like, TEXTUAL, PATTERNS),
        st.builds(ast.IsNull, PROPERTIES),
        st.builds(ast.IsTrue, PROPERTIES),
        BOOLEANS,
        st.builds(ast.SpatialCondition, st.sampled_from(ast.SpatialFunction), PLACES, PLACES),
        st.builds(ast.NearCondition, st.sampled_from(ast.NearFunction), PLACES, PLACES, DISTANCES),
        st.builds(ast.TemporalCondition, st.sampled_from(ast.TemporalFunction), SPANS, SPANS),
        st.builds(ast.ArrayCondition, st.sampled_from(ast.ArrayFunction), SETS, SETS),
    )


def _flat(kind: type[ast.And | ast.Or], parts: list[Condition]) -> Condition:
    flat: list[Condition] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    return kind(tuple(flat))


def _compound(inner: SearchStrategy[Condition]) -> SearchStrategy[Condition]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda parts: _flat(ast.And, parts)),
        several.map(lambda parts: _flat(ast.Or, parts)),
        inner.map(ast.Not),
    )


CONDITIONS = st.recursive(_simple(1), _compound, max_leaves=6)
"""Conditions that text can express."""

CONDITIONS_IN_JSON = st.recursive(_simple(0), _compound, max_leaves=6)
"""Conditions that JSON can express, IN with an empty list included."""
