"""The names of the language in lower case: keywords, functions, operators and geometry types."""

from __future__ import annotations

from difflib import get_close_matches

from fencepost.cql2.ast import (
    ArithmeticOp,
    ArrayFunction,
    ComparisonOp,
    NearFunction,
    SpatialFunction,
    StringFold,
    TemporalFunction,
)

KEYWORDS = frozenset(
    {"and", "between", "div", "false", "in", "is", "like", "not", "null", "or", "true"}
)

COMPARISON_OPS = {op.value: op for op in ComparisonOp}
ARITHMETIC_OPS = {op.value: op for op in ArithmeticOp}
STRING_FOLDS = {fold.value: fold for fold in StringFold}
SPATIAL_FUNCTIONS = {function.value: function for function in SpatialFunction}
NEAR_FUNCTIONS = {function.value: function for function in NearFunction}
TEMPORAL_FUNCTIONS = {function.value: function for function in TemporalFunction}
ARRAY_FUNCTIONS = {function.value: function for function in ArrayFunction}
LITERAL_NAMES = frozenset({"bbox", "date", "interval", "timestamp"})

FUNCTIONS = frozenset(
    {
        *STRING_FOLDS,
        *SPATIAL_FUNCTIONS,
        *NEAR_FUNCTIONS,
        *TEMPORAL_FUNCTIONS,
        *ARRAY_FUNCTIONS,
        *LITERAL_NAMES,
    }
)
"""Names that may stand before an opening bracket in text."""

OPERATIONS = frozenset(
    {
        *FUNCTIONS,
        *COMPARISON_OPS,
        *ARITHMETIC_OPS,
        "and",
        "or",
        "not",
        "between",
        "in",
        "isnull",
        "like",
    }
)
"""Names of calls in a parse tree. In CQL2 JSON the "op" is one of them, unless it is a literal."""

GEOMETRY_DEPTH = {
    "point": 0,
    "linestring": 1,
    "multipoint": 1,
    "polygon": 2,
    "multilinestring": 2,
    "multipolygon": 3,
}
"""By geometry type: how deep lists of positions nest in its coordinates."""

GEOJSON_TYPE = {
    "point": "Point",
    "linestring": "LineString",
    "multipoint": "MultiPoint",
    "polygon": "Polygon",
    "multilinestring": "MultiLineString",
    "multipolygon": "MultiPolygon",
}

COLLECTION_ADVICE = "give its members one by one, joined with OR"

_MAX_SUGGESTED_LENGTH = 40


def display_name(name: str) -> str:
    """Return the name of an operation for a message."""
    return "IS NULL" if name == "isnull" else name.upper()


def suggest_function(name: str) -> str:
    """Return the advice for a function that does not exist: a similar name, or where to look."""
    if len(name) <= _MAX_SUGGESTED_LENGTH:
        similar = get_close_matches(name.lower(), sorted(FUNCTIONS), 1, 0.75)
        if similar:
            return f"did you mean {similar[0].upper()}?"
    return "docs/language.md lists the functions"
