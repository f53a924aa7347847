"""Hypothesis strategies for expressions with every operator, and for events.

Pools are small, so that events match: few attributes, few values of each, and geometries on a
lattice. Pools also hold odd values: missing, of the wrong type, very large.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import ast, parse, render_json
from fencepost.errors import LanguageError
from tests.geometry_families import FAMILIES, suspect

Event = dict[str, object]


def examples(count: int) -> settings:
    """Return settings with this many examples, scaled by the Hypothesis profile."""
    return settings(max_examples=count * settings().max_examples // 100)


# ------------------------------------------------------------------------------------- geometries


def _pool(families: Sequence[str], scenes: int) -> list[BaseGeometry]:
    """Return distinct geometries of some families, at most 20 of each type."""
    geometries: dict[str, BaseGeometry] = {}
    for family in families:
        rng = random.Random(f"{family}")
        for _ in range(scenes):
            for geometry in FAMILIES[family](rng):
                geometries[geometry.wkt] = geometry
    by_type: dict[str, list[BaseGeometry]] = {}
    for geometry in geometries.values():
        by_type.setdefault(geometry.geom_type, []).append(geometry)
    return [geometry for same_type in by_type.values() for geometry in same_type[:20]]


def _text(geometry: BaseGeometry) -> str:
    return str(shapely.to_wkt(geometry, rounding_precision=-1))


LATTICE = [shapely.Point(x, y) for x in range(4) for y in range(4)] + _pool(
    ("lattice", "lines", "tilings", "rewritten", "collections"), 12
)
BROKEN = [
    polygon
    for polygon in (suspect(random.Random(seed)) for seed in range(60))
    if not shapely.is_valid(polygon)
][:12]
UNUSABLE = (
    *("POINT EMPTY", "POLYGON EMPTY", "MULTIPOINT (EMPTY, 1 1)", "LINESTRING (1 1, 1 1)"),
    *("GEOMETRYCOLLECTION EMPTY", "POINT (NaN 1)", "POINT (1 inf)", "POINT", "junk", ""),
    *("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", "POLYGON ((0 0, 1 1, 2 2, 0 0))"),
)


def _pick(pool: Sequence[Any]) -> SearchStrategy[Any]:
    """Return a strategy that picks from a pool, whose repr does not list the pool."""
    return st.integers(0, len(pool) - 1).map(lambda k: pool[k])


GEOMETRIES = _pick(LATTICE)
LITERALS = [_text(geometry) for geometry in LATTICE if geometry.geom_type != "LinearRing"]
LITERAL_GEOMETRIES = st.one_of(
    _pick(LITERALS),
    st.sampled_from(["BBOX(0, 0, 2, 2)", "BBOX(1, 1, 3, 4)", "BBOX(-9, -9, 9, 9)"]),
)


def _geojson(geometry: BaseGeometry) -> object:
    return shapely.geometry.mapping(geometry)


VALID_FORMS: list[Callable[[BaseGeometry], object]] = [
    lambda g: g,
    _text,
    lambda g: g.wkb,
    lambda g: bytearray(shapely.to_wkb(g, byte_order=0)),
    _geojson,
    lambda g: shapely.force_3d(g, 7.0),
    lambda g: shapely.to_wkb(shapely.set_srid(g, 4326), include_srid=True),
]
GEOMETRY_VALUES = st.one_of(
    st.builds(lambda form, g: form(g), _pick(VALID_FORMS), GEOMETRIES),
    st.builds(lambda form, g: form(g), _pick(VALID_FORMS[:5]), _pick(BROKEN)),
    _pick(UNUSABLE),
    st.sampled_from([b"", b"\x01\x02", {"type": "Point"}, {"type": "Point", "coordinates": []}]),
)

# ----------------------------------------------------------------------------------------- values

DAYS = [f"2020-01-0{day}" for day in range(1, 7)]
STAMPS = [f"{day}T00:00:00Z" for day in DAYS] + [
    "2020-01-02T00:00:00.000000001Z",
    "2020-01-03T12:30:00.5Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
]
WORDS = ["a", "b", "A", "é", "É", "e", "ab", "", "hail", "Hail storm", "x%y", "a_b", "ß", "日本"]
WORDS += ["𝔄", "a\nb", "it's", "\\", "straße", "STRASSE"]
NUMBERS = [0, 1, 2, 3, -1, -7, 2.5, 0.1, 0.5, 2**53, 2**53 + 1, 2**63, 2**64 - 1, 1e300, 5e-324]
NUMBERS += [10**30, 10**30 + 1]

STRANGE: list[object] = [
    *(None, float("nan"), Decimal("NaN"), np.float32("nan"), np.datetime64("NaT"), pd.NaT, pd.NA),
    *(
        True,
        False,
        0,
        1,
        2.5,
        "a",
        "1",
        "true",
        "2020-01-02",
        "POINT (1 1)",
        b"a",
        [],
        {},
        object(),
    ),
    *(dt.date(2020, 1, 2), dt.time(1), dt.timedelta(1), 1j, [1], ["a"], {"interval": 5}, ["b", 1]),
    *(
        float("inf"),
        float("-inf"),
        Decimal("Infinity"),
        Fraction(1, 2),
        np.int8(1),
        np.float32(0.1),
    ),
    *("a\ud800", "\udfff", "\0", {"interval": ["2020-01-03", "2020-01-02"]}, {"a": 1}, ("a",)),
]
NUMERIC: list[object] = [
    *NUMBERS,
    *(Decimal("2.5"), Decimal("0.1"), Fraction(5, 2), np.int64(2), np.uint8(3), np.float64(0.1)),
    *(np.float32(2.5), -0.0, 1.0, 3.0, 2.0**53, float("inf"), float("-inf")),
]
BOOLEANS: list[object] = [True, False, np.bool_(True), np.bool_(False)]
TIMES: list[object] = [
    *STAMPS,
    *DAYS,
    *("2020-01-02T02:00:00+02:00", "2020-01-02 00:00", "2020-01-02T00:00:60Z", "2020-1-2", "nope"),
    *(dt.date(2020, 1, 3), dt.datetime(2020, 1, 3, tzinfo=dt.UTC), dt.datetime(2020, 1, 2)),  # noqa: DTZ001
    dt.datetime(2020, 1, 3, 1, tzinfo=ZoneInfo("Europe/Berlin")),
    dt.datetime(2020, 1, 2, 19, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    *(np.datetime64("2020-01-04"), np.datetime64("2020-01-02T00:00:00.000000001"), pd.NaT),
    *(np.datetime64("2020"), pd.Timestamp("2020-01-03", tz="Asia/Tokyo"), pd.Timestamp(0)),
]
INTERVALS = st.builds(
    lambda ends: {"interval": list(ends)},
    st.one_of(
        st.tuples(st.sampled_from(DAYS), st.sampled_from(DAYS)).map(sorted),
        st.tuples(st.sampled_from(["..", *DAYS]), st.sampled_from(["..", *DAYS])),
        st.tuples(_pick(TIMES), _pick(TIMES)),
    ),
)
ITEMS: list[object] = ["a", "b", "A", "é", 1, 2, 1.0, 2.5, True, False, 2**53 + 1, None]
ITEMS += [Decimal(1), dt.date(2020, 1, 2), "2020-01-02", np.int32(2), [1], float("nan"), -0.0, 0]
LISTS = st.one_of(
    st.lists(_pick(WORDS), max_size=3),
    st.lists(st.sampled_from(NUMBERS), max_size=3),
    st.lists(_pick(ITEMS), max_size=4),
    st.lists(st.sampled_from(["a", "b", 1, True]), max_size=3).map(tuple),
    st.frozensets(st.sampled_from(["a", "b", 1, 2.5]), max_size=3),
    st.lists(_pick(WORDS), max_size=3).map(lambda items: np.array(items, object)),
    st.lists(st.integers(0, 3), max_size=3).map(lambda items: np.array(items, np.int64)),
)
TEXTS = st.one_of(
    _pick(WORDS),
    st.lists(_pick(WORDS), max_size=4).map(" ".join),
    st.text(st.characters(codec=None), max_size=4),
)

BY_NAME: dict[str, SearchStrategy[Any]] = {
    "n": _pick(NUMERIC),
    "m": _pick(NUMERIC),
    "s": TEXTS,
    "r": TEXTS,
    "b": st.sampled_from(BOOLEANS),
    "g": GEOMETRY_VALUES,
    "h": GEOMETRY_VALUES,
    "t": _pick(TIMES),
    "u": _pick(TIMES),
    "i": INTERVALS,
    "l": LISTS | TEXTS,
    "k": LISTS | TEXTS,
}
NAMES = tuple(BY_NAME)


def _named(name: str) -> SearchStrategy[Any]:
    usual = BY_NAME[name]
    return st.integers(0, 9).flatmap(lambda k: usual if k < 8 else _pick(STRANGE))


EVENTS: SearchStrategy[Event] = st.fixed_dictionaries(
    {}, optional={name: _named(name) for name in NAMES}
) | st.fixed_dictionaries({name: BY_NAME[name] for name in NAMES})
"""Events as mappings; any value may be missing or of the wrong type."""


def as_feature(event: Event) -> Event:
    """Return an event as a GeoJSON Feature: `g` is its geometry, the rest its properties."""
    rest = {name: value for name, value in event.items() if name != "g"}
    return {"type": "Feature", "id": "f", "geometry": event.get("g"), "properties": rest}


# ------------------------------------------------------------------------------------ expressions


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _form(template: str, *parts: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.tuples(*parts).map(lambda texts: template.format(*texts))


def _one_of(texts: Sequence[str]) -> SearchStrategy[str]:
    return _pick(texts)


NUMBER_TEXTS = _one_of([repr(number) for number in NUMBERS])
STRING_TEXTS = _one_of([_quoted(word) for word in WORDS])
TIME_TEXTS = _one_of(
    [f"TIMESTAMP('{stamp}')" for stamp in STAMPS] + [f"DATE('{day}')" for day in DAYS]
)
COMPARE = _one_of([op.value for op in ast.ComparisonOp])
CALCULATIONS = _one_of(
    [
        *("n", "m", "n", "m", "n + m", "n * 2", "m - 1", "n / m", "n div 2", "n % 3", "n ^ 2"),
        *("m div n", "m % n", "2 ^ n", "n - m", "(n + 1) * m", "-n", "7 / n", "n / 0"),
    ]
)
STRINGS = _one_of(
    [
        *(
            "s",
            "r",
            "s",
            "CASEI(s)",
            "ACCENTI(s)",
            "CASEI(ACCENTI(s))",
            "ACCENTI(CASEI(r))",
            "CASEI(t)",
        ),
        *("x", "n"),
    ]
)
PATTERNS = _one_of(
    [
        *("'a%'", "'%b'", "'_'", "'%a%'", "'%'", "'x\\%y'", "'A_'", "''", "'%_%'", "'__'", "'é%'"),
        *("CASEI('H%L')", "ACCENTI('É')", "'a\\_b'", "'%本'", "'\\\\'", "'2020-01-0_'"),
    ]
)
PLACE_NAMES = _one_of(["g", "g", "g", "h", "s"])
SPATIAL = _one_of([function.name for function in ast.SpatialFunction])
DISTANCES = _one_of(["0", "1", "2", "2.5", "5", "1.4142135623730951", "0.5", "1e308"])
NEAR = _one_of([function.name for function in ast.NearFunction])
ENDS = _one_of(["'..'", *map(_quoted, DAYS), *map(_quoted, STAMPS), "t", "u"])


def _interval(ends: tuple[str, str]) -> str:
    start, end = ends
    if start[1:2] == end[1:2] == "2" and start.strip("'") > end.strip("'"):
        start, end = end, start
    return f"INTERVAL({start}, {end})"


def _reads(span: str) -> bool:
    """Return whether a span can be parsed: two literal ends must be in order."""
    try:
        parse(f"T_AFTER(t, {span})")
    except LanguageError:
        return False
    return True


LITERAL_SPANS = st.one_of(
    TIME_TEXTS,
    st.tuples(_one_of(["'..'", *map(_quoted, DAYS)]), _one_of(["'..'", *map(_quoted, DAYS)])).map(
        _interval
    ),
)
SPANS = st.one_of(
    _one_of(["t", "u", "i", "i", "s"]),
    st.tuples(ENDS, ENDS).map(_interval).filter(_reads),
)
TEMPORAL = _one_of([function.name for function in ast.TemporalFunction])
ARRAY = _one_of([function.name for function in ast.ArrayFunction])
LITERAL_ITEMS = st.one_of(
    st.lists(STRING_TEXTS, max_size=3),
    st.lists(NUMBER_TEXTS, max_size=3),
    st.lists(STRING_TEXTS | NUMBER_TEXTS | _one_of(["TRUE", "FALSE"]) | TIME_TEXTS, max_size=4),
).map(lambda items: f"({', '.join(items)})")
LIST_NAMES = _one_of(["l", "l", "k", "s"])
SOME_ITEMS = st.lists(
    STRING_TEXTS
    | NUMBER_TEXTS
    | _one_of(["TRUE", "FALSE", "CASEI('A')", "ACCENTI('É')", "CASEI('B')"])
    | TIME_TEXTS
    | _one_of([_quoted(text) for text in (*DAYS, *STAMPS)]),
    min_size=1,
    max_size=4,
).map(", ".join)


SIMPLE: SearchStrategy[str] = st.one_of(
    _form("{} {} {}", CALCULATIONS, COMPARE, NUMBER_TEXTS),
    _form("{} {} {}", NUMBER_TEXTS, COMPARE, CALCULATIONS),
    _form("{} {} {}", CALCULATIONS, COMPARE, CALCULATIONS),
    _form("{} BETWEEN {} AND {}", CALCULATIONS, NUMBER_TEXTS, NUMBER_TEXTS | _one_of(["m"])),
    _form("n IN ({}, {})", NUMBER_TEXTS, NUMBER_TEXTS),
    _form("{} {} {}", STRINGS.filter(lambda s: s != "n"), COMPARE, STRING_TEXTS),
    _form("CASEI({}) {} CASEI({})", _one_of(["s", "r"]), COMPARE, STRING_TEXTS),
    _form("s {} {}", COMPARE, _one_of(["r", "CASEI(r)", "t", "x", "b"])),
    _form("{} BETWEEN {} AND {}", _one_of(["s", "CASEI(r)"]), STRING_TEXTS, STRING_TEXTS),
    _form("{} LIKE {}", STRINGS, PATTERNS),
    _form("{} NOT LIKE {}", STRINGS, PATTERNS),
    _form("{} IN ({})", _one_of(["n", "s", "t", "b", "l", "x"]), SOME_ITEMS),
    _form("{} NOT IN ({})", _one_of(["n", "s", "t", "b", "l", "x"]), SOME_ITEMS),
    _form("{} IS NULL", _one_of(NAMES)),
    _form("{} IS NOT NULL", _one_of(NAMES)),
    _one_of(["b", "NOT b", "n", "s", "b = TRUE", "b <> FALSE", "b > FALSE", "b >= b", "TRUE"]),
    _one_of(["FALSE", "1 = 1", "2 < 1", "1 / 0 = 1", "'a' < 'b'", "2 IN (1, 2)", "'a' LIKE 'A'"]),
    _form("{}({}, {})", SPATIAL, PLACE_NAMES, LITERAL_GEOMETRIES),
    _form("{}({}, {})", SPATIAL, PLACE_NAMES, LITERAL_GEOMETRIES),
    _form("{}({}, {})", SPATIAL, LITERAL_GEOMETRIES, PLACE_NAMES),
    _form("{}({}, {})", SPATIAL, PLACE_NAMES, PLACE_NAMES),
    _form("{}({}, {}, {})", NEAR, PLACE_NAMES, LITERAL_GEOMETRIES, DISTANCES),
    _form("{}({}, {}, {})", NEAR, LITERAL_GEOMETRIES, PLACE_NAMES, DISTANCES),
    _form("{}({}, {}, {})", NEAR, PLACE_NAMES, PLACE_NAMES, DISTANCES),
    _form("{} {} {}", _one_of(["t", "u", "s"]), COMPARE, TIME_TEXTS),
    _form("{} {} {}", TIME_TEXTS, COMPARE, _one_of(["t", "u", "s"])),
    _form("t {} u", COMPARE),
    _form("{} {} {}", _one_of(["t", "s"]), COMPARE, _one_of([_quoted(day) for day in DAYS])),
    _form("t BETWEEN {} AND u", _one_of([_quoted(day) for day in DAYS])),
    _form("t BETWEEN {} AND {}", TIME_TEXTS, TIME_TEXTS),
    _form("{}({}, {})", TEMPORAL, SPANS, LITERAL_SPANS),
    _form("{}({}, {})", TEMPORAL, LITERAL_SPANS, SPANS),
    _form("{}({}, {})", TEMPORAL, SPANS, SPANS),
    _form("{}({}, {})", ARRAY, LIST_NAMES, LITERAL_ITEMS),
    _form("{}({}, {})", ARRAY, LITERAL_ITEMS, LIST_NAMES),
    _form("{}({}, {})", ARRAY, LIST_NAMES, LIST_NAMES),
)


def _compound(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' AND '.join(parts)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' OR '.join(parts)})"),
        inner.map(lambda part: f"NOT ({part})"),
    )


def _in_json(text: str) -> str | dict[str, Any]:
    tree = render_json(parse(text))
    return tree if isinstance(tree, dict) else text


TEXT_EXPRESSIONS: SearchStrategy[str] = st.recursive(SIMPLE, _compound, max_leaves=5)
EXPRESSIONS: SearchStrategy[str | dict[str, Any]] = st.one_of(
    TEXT_EXPRESSIONS,
    TEXT_EXPRESSIONS,
    TEXT_EXPRESSIONS.map(_in_json),
)
"""Expressions as CQL2 text, and some as JSON."""


# ----------------------------------------------------------------------------------------- tables


def _column(kind: pa.DataType, values: Sequence[object]) -> SearchStrategy[Callable[[int], Any]]:
    """Return a strategy for functions from a length to a column, plain or dictionary-encoded."""

    def column_of(picks: list[int], plain: bool) -> Callable[[int], Any]:
        def column(rows: int) -> Any:
            chosen = [([None, *values])[picks[row % len(picks)]] for row in range(rows)]
            array = pa.array(chosen, kind)
            return array if plain else array.dictionary_encode()

        return column

    encodable = not (
        pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_string_view(kind)
    )
    return st.builds(
        column_of,
        st.lists(st.integers(0, len(values)), min_size=1, max_size=6),
        st.booleans() if encodable else st.just(True),
    )


_MOMENTS = [dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)] + [
    dt.datetime(1960, 5, 5, 5, 5, 5, tzinfo=dt.UTC)
]
_PLAIN_MOMENTS = [moment.replace(tzinfo=None) for moment in _MOMENTS]
_TIME_COLUMNS = [
    *(_column(pa.timestamp(unit), _PLAIN_MOMENTS) for unit in ("s", "ms", "us", "ns")),
    *(_column(pa.timestamp(unit, tz="UTC"), _MOMENTS) for unit in ("s", "ms", "us", "ns")),
    _column(pa.timestamp("us", tz="Asia/Tokyo"), _MOMENTS),
    _column(pa.timestamp("ns"), [1577923200000000001, 1577923200000000000, -1]),
    _column(pa.date32(), [dt.date(2020, 1, 2), dt.date(1960, 1, 1)]),
    _column(pa.date64(), [dt.date(2020, 1, 2), dt.date(1960, 1, 1)]),
    _column(pa.string(), [*STAMPS, *DAYS, "nope"]),
]
_NUMBER_COLUMNS = [
    _column(pa.int64(), [0, 1, 2, 3, -1, -7, 2**53 + 1, 2**53, 2**63 - 1, -(2**63)]),
    _column(pa.uint64(), [0, 1, 2, 3, 2**53 + 1, 2**63, 2**64 - 1]),
    *(_column(kind, [0, 1, 2, 3, -1, -7]) for kind in (pa.int8(), pa.int16(), pa.int32())),
    *(_column(kind, [0, 1, 2, 3]) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
    _column(pa.float64(), [0.0, 1.0, 2.5, 0.1, 1e300, float("nan"), float("inf"), -0.0, 5e-324]),
    _column(pa.float32(), [0.0, 1.0, 2.5, 0.5, float("nan"), float("-inf")]),
    _column(pa.decimal128(10, 2), [Decimal("2.5"), Decimal("0.1"), Decimal(1)]),
]
_STRING_COLUMNS = [
    *(_column(kind, [*WORDS, *DAYS]) for kind in (pa.string(), pa.large_string())),
    _column(pa.string_view(), WORDS),
]
_PLACE_COLUMNS = [
    *(
        _column(kind, [_text(g) for g in LATTICE[::5]] + list(UNUSABLE))
        for kind in (pa.string(), pa.large_string())
    ),
    *(
        _column(kind, [g.wkb for g in LATTICE[::7]] + [g.wkb for g in BROKEN[:3]] + [b"", b"\x01"])
        for kind in (pa.binary(), pa.large_binary())
    ),
]
_LIST_COLUMNS = [
    _column(pa.list_(pa.string()), [[], ["a"], ["a", "b"], ["b", None], ["é", "A"], ["hail"]]),
    _column(pa.large_list(pa.int64()), [[], [1], [1, 2], [2, None], [2**53 + 1], [3, 3]]),
    _column(pa.list_(pa.float64()), [[], [1.0], [2.5, 2.0], [float("nan")]]),
    _column(pa.list_(pa.bool_()), [[], [True], [True, False]]),
    *_STRING_COLUMNS,
]
_SPAN = pa.struct([("interval", pa.list_(pa.string()))])
_STRANGE_COLUMNS = [
    _column(pa.null(), []),
    _column(pa.bool_(), [True, False]),
    _column(pa.time64("us"), [dt.time(1)]),
    _column(pa.duration("s"), [dt.timedelta(1)]),
    _column(pa.binary(), [b"a", b"b"]),
    _column(pa.struct([("a", pa.int64())]), [{"a": 1}]),
    _column(pa.map_(pa.string(), pa.int64()), [[("a", 1)]]),
    _NUMBER_COLUMNS[0],
    _STRING_COLUMNS[0],
    _TIME_COLUMNS[0],
]
_COLUMNS: dict[str, list[SearchStrategy[Callable[[int], Any]]]] = {
    **dict.fromkeys(("n", "m"), _NUMBER_COLUMNS),
    **dict.fromkeys(("s", "r"), _STRING_COLUMNS),
    **dict.fromkeys(("g", "h"), _PLACE_COLUMNS),
    **dict.fromkeys(("t", "u"), _TIME_COLUMNS),
    **dict.fromkeys(("l", "k"), _LIST_COLUMNS),
    "b": [_column(pa.bool_(), [True, False])],
    "i": [
        _column(_SPAN, [{"interval": [a, b]} for a in ("..", *DAYS[:3]) for b in ("..", *DAYS[2:])])
    ],
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw Arrow tables of typed columns, whole, sliced or in chunks."""
    rows = draw(st.integers(1, 7))
    columns: dict[str, Any] = {}
    for name in NAMES:
        is_strange = draw(st.integers(0, 9)) == 0
        column = draw(draw(_pick(_STRANGE_COLUMNS if is_strange else _COLUMNS[name])))
        if draw(st.integers(0, 9)) > 0:
            columns[name] = column(rows)
    if not columns:
        columns["n"] = pa.array(range(rows))
    table = pa.table(columns)
    form = draw(st.integers(0, 3))
    if form == 1:
        return table.slice(draw(st.integers(0, rows - 1)))
    if form == 2:
        cut = draw(st.integers(0, rows))
        return pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    if form == 3:
        return pa.concat_tables([table, table.slice(1), table.slice(0, 0)]).slice(1)
    return table


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Draw pandas and GeoPandas frames of ordinary columns."""
    rows = draw(st.integers(1, 6))

    def of(values: Sequence[object], **options: Any) -> pd.Series[Any]:
        picked = draw(st.lists(_pick(values), min_size=rows, max_size=rows))
        column: pd.Series[Any] = pd.Series(picked, **options)
        return column

    frame = pd.DataFrame(
        {
            "n": of([0, 1, 2, 2.5, 0.1, None]),
            "m": of([0, 1, 2**53 + 1, -7]),
            "s": of([*WORDS, None], dtype=object),
            "r": of([*WORDS[:6]], dtype="category"),
            "b": of([True, False]),
            "t": pd.to_datetime(of([*DAYS, None]), utc=draw(st.booleans())),
            "u": of([*STAMPS, "nope", None], dtype=object),
            "l": of([[], ["a"], ["a", "b"], None, ["hail", "é"]], dtype=object),
            "h": of([*(_text(g) for g in LATTICE[::9]), *UNUSABLE, None], dtype=object),
        }
    )
    geometries = of([*LATTICE[::3], *BROKEN[:2], None], dtype=object)
    if draw(st.booleans()):
        geo_frame = geopandas.GeoDataFrame(frame, geometry=geometries.tolist())
        renamed: pd.DataFrame = geo_frame.rename_geometry("g")
        return renamed
    frame["g"] = [None if geometry is None else geometry.wkb for geometry in geometries]
    frame.index = pd.Index(range(10, 10 + rows))
    return frame
