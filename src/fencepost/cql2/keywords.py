"""The names of the language: keywords, functions and types of geometry, in small letters."""

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
"""What may stand before a bracket in text."""

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
"""What may be the "op" of CQL2 JSON, apart from the literals."""

GEOMETRY_DEPTH = {
    "point": 0,
    "linestring": 1,
    "multipoint": 1,
    "polygon": 2,
    "multilinestring": 2,
    "multipolygon": 3,
}
"""Types of geometry, and how deep the lists of positions nest in their coordinates."""

GEOJSON_TYPE = {
    "point": "Point",
    "linestring": "LineString",
    "multipoint": "MultiPoint",
    "polygon": "Polygon",
    "multilinestring": "MultiLineString",
    "multipolygon": "MultiPolygon",
}

COLLECTION_ADVICE = "give its members one by one, joined with OR"

_LONGEST_GUESS = 40


def display_name(name: str) -> str:
    """How a message calls an operation."""
    return "IS NULL" if name == "isnull" else name.upper()


def suggest_function(name: str) -> str:
    """What to do about a function that does not exist."""
    if len(name) <= _LONGEST_GUESS:
        near = get_close_matches(name.lower(), sorted(FUNCTIONS), 1, 0.75)
        if near:
            return f"did you mean {near[0].upper()}?"
    return "docs/language.md lists the functions there are"
