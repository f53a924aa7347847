"""The names of the language in lower case: keywords, functions, operators and geometry types."""

from __future__ import annotations

from collections.abc import Collection
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

COLLECTION, COLLECTION_TYPE = "geometrycollection", "GeometryCollection"

_MAX_SUGGESTED_LENGTH = 40

_IGNORE_CASE = "CASEI ignores case: write CASEI(a) = CASEI('x')"
_NO_PRESENT = (
    "an expression does not know the present: write a time, as in TIMESTAMP('2024-05-01T12:30:00Z')"
)
_BARE_GEOMETRY = "write the geometry without quotes, as in POINT(x y)"
_ONE_SPACE = "all coordinates are in one coordinate space, so write the geometry alone"
_NO_CALCULATION = "geometries cannot be calculated with"

# By a name of SQL, PostGIS or another dialect in lower case: what to write instead of it.
_FOREIGN_NAMES = {
    "ilike": "CASEI ignores case: write CASEI(a) LIKE CASEI('x%')",
    **dict.fromkeys(["lower", "upper", "lcase", "ucase"], _IGNORE_CASE),
    "unaccent": "ACCENTI ignores accents: write ACCENTI(a) = ACCENTI('x')",
    **dict.fromkeys(["now", "today", "current_date", "current_timestamp"], _NO_PRESENT),
    "isnull": "write a IS NULL",
    "==": "equal is written =",
    "eq": "equal is written =",
    "!=": "not equal is written <>",
    "neq": "not equal is written <>",
    "&&": "a conjunction is written AND",
    "||": "a disjunction is written OR",
    "st_coveredby": "did you mean S_WITHIN? What lies on the border only is not within",
    "st_covers": "did you mean S_CONTAINS? What lies on the border only is not contained",
    "st_containsproperly": "did you mean EH_CONTAINS?",
    "st_dfullywithin": "did you mean S_ALLWITHIN?",
    **dict.fromkeys(
        ["distance", "st_distance", "st_distancesphere", "st_distancespheroid"],
        "compare distances with S_DWITHIN(a, b, d), S_CLOSER(a, b, d) or S_BEYOND(a, b, d)",
    ),
    **dict.fromkeys(
        ["buffer", "st_buffer"], f"{_NO_CALCULATION}: write S_DWITHIN(a, b, d) for what is near b"
    ),
    **dict.fromkeys(["relate", "st_relate"], "docs/language.md lists the relations, S_ and EH_"),
    "st_point": "write POINT(x y)",
    "st_makepoint": "write POINT(x y)",
    "st_makeenvelope": "write BBOX(xmin, ymin, xmax, ymax)",
    **dict.fromkeys(
        ["st_geomfromtext", "st_geogfromtext", "st_geomfromewkt", "st_geomfromgeojson"],
        _BARE_GEOMETRY,
    ),
    "st_setsrid": _ONE_SPACE,
    "st_transform": _ONE_SPACE,
}

# By an operator that is no function: how to write it.
_OPERATOR_FORMS = {
    "and": "a > 1 AND b > 2",
    "between": "a BETWEEN 1 AND 2",
    "div": "a div b",
    "in": "a IN ('x', 'y')",
    "is": "a IS NULL",
    "like": "a LIKE 'x%'",
    "or": "a > 1 OR b > 2",
}


def display_name(name: str) -> str:
    """Return the name of an operation for a message."""
    return "IS NULL" if name == "isnull" else name.upper()


def suggest_function(name: str, among: Collection[str] = FUNCTIONS) -> str:
    """Return the advice for a function that does not exist.

    The advice is what to write instead of a name of another dialect, a similar name of `among`, or
    where to look.
    """
    lower_name = name.lower()
    if lower_name in _FOREIGN_NAMES:
        return _FOREIGN_NAMES[lower_name]
    if len(name) <= _MAX_SUGGESTED_LENGTH:
        # S_INTERSECTS is written ST_Intersects in PostGIS, and INTERSECTS in CQL 1.
        is_spatial = lower_name.startswith("st_")
        stem = lower_name.removeprefix("st_")
        prefixes = ("s_",) if is_spatial else ("s_", "t_", "a_")
        similar = [prefix + stem for prefix in prefixes if prefix + stem in among]
        if not similar:
            names = {n for n in among if n.startswith("s_")} if is_spatial else among
            similar = get_close_matches(
                f"s_{stem}" if is_spatial else lower_name, sorted(names), 1, 0.75
            )
        if similar:
            return f"did you mean {' or '.join(map(str.upper, similar))}?"
    return "docs/language.md lists the functions"


def advise_on_operator(name: str) -> str | None:
    """Return the advice for an operator of another dialect between operands; None if unknown."""
    return _FOREIGN_NAMES.get(name)


def operator_form(name: str) -> str | None:
    """Return how an operator is written that somebody has called like a function."""
    return _OPERATOR_FORMS.get(name)
