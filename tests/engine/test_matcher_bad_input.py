"""Invalid input: a FencepostError that explains it, or an unknown condition; never a crash."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from fencepost.engine import Matcher
from fencepost.errors import FencepostError, GeometryError, IndexingError, ModelError
from tests.engine.manifests import write_manifest
from tests.waiting import WAIT_S

BOWTIE = "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"
EVERYTHING = (
    "n > 1 OR s = 'a' OR t = DATE('2020-01-01') OR S_INTERSECTS(g, BBOX(0, 0, 9, 9)) OR b OR "
    "A_CONTAINS(l, ('a')) OR T_AFTER(i, DATE('2020-01-01')) OR n + 1 = 5 OR CASEI(s) LIKE 'z'"
)


@pytest.fixture
def matcher() -> Matcher:
    made = Matcher(space="planar")
    made.subscribe("keep", EVERYTHING)
    made.match({})
    return made


def state(matcher: Matcher) -> object:
    return len(matcher), matcher.ids(), sorted(matcher.requested_attributes())


# --------------------------------------------------------------------------------- one subscription


@pytest.mark.parametrize("bad", [True, 1.0, None, "", "\ud800", b"a", ["a"], float("nan")])
def test_invalid_ids_and_subscribers(matcher: Matcher, bad: Any) -> None:
    before = state(matcher)
    with pytest.raises(ModelError, match="id"):
        matcher.subscribe(bad, "TRUE")
    if bad is not None:
        with pytest.raises(ModelError, match="subscriber"):
            matcher.subscribe("new", "TRUE", subscriber=bad)
    assert state(matcher) == before


@pytest.mark.parametrize(
    "bad", [5, "x", "2020-13-01", pd.NaT, float("nan"), True, dt.time(1), "\ud800"]
)
def test_invalid_expiries(matcher: Matcher, bad: Any) -> None:
    before = state(matcher)
    with pytest.raises(ModelError, match="expires"):
        matcher.subscribe("new", "TRUE", expires=bad)
    assert state(matcher) == before


EXPRESSIONS: dict[str, tuple[Any, str]] = {
    "10 MB": ("n = 1 OR " * 1_250_000 + "TRUE", "characters"),
    "10,000 brackets": ("(" * 10_000 + "TRUE" + ")" * 10_000, "deep"),
    "10,000 NOT": ("NOT " * 10_000 + "TRUE", "deep"),
    "10,000 brackets in JSON": ('{"op":"not","args":[' * 10_000, "deep"),
    "an unknown function": ("foo(n) = 1", "no function"),
    "a bow tie": (f"S_INTERSECTS(g, {BOWTIE})", "crosses itself"),
    "an empty point": ("S_INTERSECTS(g, POINT EMPTY)", "empty"),
    "NaN in a point": ("S_INTERSECTS(g, POINT(NaN 1))", "number"),
    "a lone surrogate": ("s = '\ud800'", "surrogate"),
    "a lone surrogate in JSON": ({"op": "=", "args": [{"property": "s"}, "\ud800"]}, "surrogate"),
    "a string beside a number": ("n + 1 = 'a'", "compared"),
    "bytes": (b"TRUE", "CQL2"),
    "a number": (5, "CQL2"),
    "nothing": (None, "CQL2"),
    "an empty text": ("", "expression"),
    "an empty object": ({}, "object"),
    "an object that holds itself": ("loop", "deep"),
    "too many alternatives": (
        " AND ".join(f"(n > {k} OR m > {k})" for k in range(40)),
        "alternatives",
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_invalid_expressions(matcher: Matcher, name: str) -> None:
    expression, reason = EXPRESSIONS[name]
    if expression == "loop":
        expression = {"op": "not", "args": []}
        expression["args"].append(expression)
    before = state(matcher)
    with pytest.raises(FencepostError, match=reason):
        matcher.subscribe("new", expression)
    assert state(matcher) == before


def test_an_id_in_use(matcher: Matcher) -> None:
    with pytest.raises(ModelError, match="replace=True"):
        matcher.subscribe("keep", "TRUE")
    assert matcher.expression("keep") == EVERYTHING


@pytest.mark.parametrize("id", [5, None, ["keep"], {"keep"}, "\ud800", "none"])
def test_unknown_subscriptions(matcher: Matcher, id: Any) -> None:
    assert id not in matcher
    assert matcher.unsubscribe(id) is False
    for call in (lambda: matcher.expression(id), lambda: matcher.explain({}, id)):
        with pytest.raises(ModelError, match="no subscription"):
            call()


@pytest.mark.parametrize("options", [{"space": "sphere"}, {"index": "best"}, {"space": 5}])
def test_invalid_options(options: Any) -> None:
    with pytest.raises(ModelError, match="one of"):
        Matcher(**options)


LONG = {
    "n NOT IN": "n NOT IN ({})".format(", ".join(map(str, range(20_000)))),
    "AND": " AND ".join(f"n <> {k}" for k in range(20_000)),
    "s NOT IN": "s NOT IN ({})".format(", ".join(f"'{k}'" for k in range(20_000))),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_expression_takes_linear_time(name: str) -> None:
    """Run in a process that may use a minute of CPU time, and needs two seconds."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "import sys; from fencepost.engine.matcher import Matcher; m = Matcher()\n"
        "m.subscribe('s', sys.stdin.read()); print(m.match({'n': 20_001, 's': 'x'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=LONG[name],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.strip() == "['s']"


def test_a_number_with_a_huge_exponent_is_compared_at_once() -> None:
    code = (
        "from decimal import Decimal; from fencepost.engine.matcher import Matcher; m = Matcher()\n"
        "m.subscribe('s', 'n > 1'); print(m.match({'n': Decimal('1e999999999')}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.stdout.strip() == "['s']", done.stderr[-500:]


# ------------------------------------------------------------------------------ many subscriptions

ROWS: list[dict[str, Any]] = [
    {"id": "a", "expression": "TRUE"},
    {"id": "a", "expression": "n > 1"},
    {"id": "b", "expression": "("},
    {"id": "keep", "expression": "TRUE"},
    {"id": None, "expression": "TRUE"},
    {"id": "c"},
    {},
    {"id": "d", "expression": "TRUE", "expires": "x"},
    {"id": "e", "expression": "TRUE", "subscriber": 5.0},
    {"id": "\ud800", "expression": "TRUE"},
    {"id": "f", "expression": f"S_WITHIN(g, {BOWTIE})"},
    {"id": "g", "expression": {"op": "=", "args": [{"property": "n"}, 1]}, "expires": "2999-01-01"},
]


def test_bad_rows_refuse_the_rest_or_become_dead_letters(matcher: Matcher) -> None:
    before = state(matcher)
    with pytest.raises(ModelError, match=r"10 rows cannot be used, so none was added: row 1: "):
        matcher.subscribe_many(ROWS)
    assert state(matcher) == before
    letters: list[tuple[int, str]] = []
    assert matcher.subscribe_many(ROWS, letters) == 2
    assert [row for row, _ in letters] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert all(len(reason) > 10 for _, reason in letters)
    assert matcher.ids() == ["a", "g", "keep"]


@pytest.mark.parametrize(
    "bad",
    [
        *(5, None, "x", {"id": ["a"]}, iter([]), [{"id": "a", "expression": "TRUE"}, 5]),
        pa.table([["a"], ["b"], ["TRUE"]], names=["id", "id", "expression"]),
        pd.DataFrame([["a", "b", "TRUE"]], columns=["id", "id", "expression"]),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_invalid_tables_of_subscriptions(matcher: Matcher, bad: Any) -> None:
    before = state(matcher)
    with pytest.raises(ModelError):
        matcher.subscribe_many(bad)
    assert state(matcher) == before


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"id": [1.0], "expression": ["TRUE"]}),
        pa.table({"id": ["a"], "expression": [1]}),
        pa.table({"name": ["a"]}),
        pa.table({"id": ["a"], "expression": ["TRUE"], "expires": [5]}),
        pa.table(
            {"id": ["a"], "expression": ["TRUE"], "expires": pa.array([1 << 60], pa.timestamp("s"))}
        ),
        pd.DataFrame({"id": [None], "expression": ["TRUE"]}),
    ],
    ids=["id", "expression", "no column", "expires", "far expiry", "pandas"],
)
def test_tables_of_subscriptions_with_wrong_types(matcher: Matcher, table: Any) -> None:
    before = state(matcher)
    with pytest.raises(ModelError):
        matcher.subscribe_many(table)
    assert state(matcher) == before


POINT = shapely.Point(0, 0)
COLUMNS: dict[str, dict[str, Any]] = {
    "no ids": {"ids": None},
    "a number": {"ids": 5},
    "ids that are floats": {"ids": [1.0]},
    "an Arrow column of floats": {"ids": pa.array([1.0])},
    "ids that are truth values": {"ids": [True]},
    "a lone surrogate": {"ids": ["\ud800"]},
    "an empty id": {"ids": [""]},
    "a null id": {"ids": [None]},
    "an id twice": {"ids": ["a", "a"]},
    "an id in use": {"ids": ["keep"]},
    "too many subscribers": {"ids": ["a"], "subscribers": ["x", "y"]},
    "a subscriber that is null": {"ids": ["a"], "subscribers": [None]},
    "a bow tie": {"ids": ["a"], "regions": {"new": ([BOWTIE], "S_WITHIN")}},
    "an empty region": {"ids": ["a"], "regions": {"new": (["POLYGON EMPTY"], "S_WITHIN")}},
    "a null region": {"ids": ["a"], "regions": {"new": ([None], "S_WITHIN")}},
    "NaN in a region": {"ids": ["a"], "regions": {"new": ([shapely.Point(np.nan, 1)], "S_WITHIN")}},
    "an unknown relation": {"ids": ["a"], "regions": {"new": ([POINT], "NEAR")}},
    "no relation": {"ids": ["a"], "regions": {"new": ([POINT], None)}},
    "too many regions": {"ids": ["a"], "regions": {"new": ([POINT, POINT], "S_WITHIN")}},
    "too few relations": {"ids": ["a", "b"], "regions": {"new": ([POINT] * 2, ["S_WITHIN"])}},
    "a region without relation": {"ids": ["a"], "regions": {"new": [POINT]}},
    "regions that are a number": {"ids": ["a"], "regions": {"new": 5}},
    "regions that are a list": {"ids": ["a"], "regions": [1]},
    "an attribute that is a number": {"ids": ["a"], "equals": {5: [1]}},
    "an attribute without name": {"ids": ["a"], "equals": {"": [1]}},
    "an attribute with a surrogate": {"ids": ["a"], "equals": {"\ud800": [1]}},
    "too many distances": {"ids": ["a"], "within": {"new": ([POINT], [1, 2])}},
    "a distance that is a string": {"ids": ["a"], "within": {"new": ([POINT], "far")}},
    "a distance that is NaN": {"ids": ["a"], "within": {"new": ([POINT], float("nan"))}},
    "a distance below 0": {"ids": ["a"], "within": {"new": ([POINT], [-1])}},
    "a distance beyond doubles": {"ids": ["a"], "within": {"new": ([POINT], [10**400])}},
    "distances of two dimensions": {"ids": ["a"], "within": {"new": ([POINT], [[1]])}},
    "too many values": {"ids": ["a"], "equals": {"new": [1, 2]}},
    "no values": {"ids": ["a"], "equals": {"new": None}},
    "a value that is an object": {"ids": ["a"], "equals": {"new": [object()]}},
    "a value that is a date": {"ids": ["a"], "equals": {"new": [dt.date(2020, 1, 1)]}},
    "a value with a surrogate": {"ids": ["a"], "equals": {"new": ["\ud800"]}},
    "a keyword that is a number": {"ids": ["a"], "keywords": {"new": [[1]]}},
    "keywords that are a string": {"ids": ["a"], "keywords": {"new": ["hail"]}},
    "keywords that are a number": {"ids": ["a"], "keywords": {"new": [5]}},
    "too few keywords": {"ids": ["a"], "keywords": {"new": []}},
    "a keyword with a surrogate": {"ids": ["a"], "keywords": {"new": [["\ud800"]]}},
    "one bad row of many": {
        "ids": ["a", "b"],
        "equals": {"new": [1, 2]},
        "keywords": {"newer": [["x"], [5]]},
    },
}


@pytest.mark.parametrize("name", COLUMNS)
def test_invalid_columns_of_subscriptions(matcher: Matcher, name: str) -> None:
    before = state(matcher)
    with pytest.raises(FencepostError):
        matcher.subscribe_columns(**COLUMNS[name])
    assert state(matcher) == before
    assert matcher.match({"n": 2}) == ["keep"]


# ------------------------------------------------------------------------------------------ events

EVENTS: dict[str, Any] = {
    "a number": 5,
    "nothing": None,
    "a string": "x",
    "a list": [],
    "bytes": b"x",
    "names that are numbers": {1: 2},
    "properties that are a number": {"type": "Feature", "properties": 5},
    "names of properties that are numbers": {"type": "Feature", "properties": {1: 2}},
    "a geometry": POINT,
    "a table": pa.table({"n": [1]}),
    "a frame": pd.DataFrame({"n": [1]}),
    "a row with numbers as names": pd.Series([1], index=[1]),
}


@pytest.mark.parametrize("index", ["auto", "reference", "sff", "cr-tree", "rt++", "ops4st"])
@pytest.mark.parametrize("name", EVENTS)
def test_invalid_events(name: str, index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("keep", EVERYTHING)
    for call in (
        lambda: matcher.match(EVENTS[name]),
        lambda: matcher.match_subscribers(EVENTS[name]),
        lambda: matcher.explain(EVENTS[name], "keep"),
        lambda: matcher.match_batch([EVENTS[name]]),
    ):
        with pytest.raises(ModelError, match=r"event|Feature"):
            call()


class Hostile:
    """A value that raises on every access and comparison."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        raise TypeError("not comparable")

    __hash__ = None  # type: ignore[assignment]


VALUES: dict[str, Any] = {
    "a lone surrogate": "\ud800",
    "a NUL": "\0",
    "a signalling NaN": Decimal("sNaN"),
    "an array": np.array([[1, 2], [3, 4]]),
    "an array without dimensions": np.array(1),
    "a masked value": np.ma.masked,
    "a complex number": 1j,
    "a class": int,
    "hostile": Hostile(),
    "a list of hostile": [Hostile()],
    "an interval of hostile": {"interval": [Hostile(), ".."]},
    "an interval of arrays": {"interval": [np.array([1, 2]), ".."]},
    "an interval of NA": {"interval": [pd.NA, pd.NaT]},
    "a huge integer": 10**5000,
    "a list of huge integers": [10**5000],
    "a far date": np.datetime64(2**62, "s"),
    "a far year": np.datetime64(2**40, "Y"),
    "the latest datetime": dt.datetime.max,  # noqa: DTZ901
    "a released view": memoryview(b"x"),
    "a nested list": [[[[]]]],
    "a bow tie": BOWTIE,
    "an empty geometry": shapely.Point(),
    "NaN in a geometry": shapely.Point(np.nan, 0),
    "an empty collection": shapely.GeometryCollection([shapely.Point()]),
    "a collection of overlapping polygons": shapely.GeometryCollection(
        [shapely.box(0, 0, 1, 1)] * 2
    ),
    "GeoJSON of nothing": {"type": "Polygon", "coordinates": None},
    "GeoJSON of strings": {"type": "Point", "coordinates": ["1", "2"]},
    "GeoJSON of a huge integer": {"type": "Point", "coordinates": [10**400, 0]},
    "GeoJSON nested deep": {"type": "Polygon", "coordinates": [[[[[[[]]]]]]]},
    "WKB cut off": POINT.wkb[:-3],
    "WKB that promises too much": b"\x01\x02\x00\x00\x00\xff\xff\xff\xff",
}
VALUES["a released view"].release()


@pytest.mark.parametrize("name", VALUES)
def test_strange_values_are_at_worst_unknown(name: str) -> None:
    matcher = Matcher(space="planar")
    for letter, kind in enumerate(
        [
            *(
                "x > 1",
                "x = 'a'",
                "x < 'b'",
                "x LIKE '%'",
                "x = DATE('2020-01-01')",
                "x",
                "x IS NULL",
            ),
            *(
                "S_INTERSECTS(x, POINT(0 0))",
                "S_DWITHIN(x, POINT(0 0), 1)",
                "A_OVERLAPS(x, ('a', 1))",
            ),
            *(
                "T_AFTER(x, DATE('2020-01-01'))",
                "x + 1 > 0",
                "x * x > 0",
                "CASEI(x) = 'a'",
                "x = x",
            ),
            *(
                "S_EQUALS(x, x)",
                "A_EQUALS(x, x)",
                "T_EQUALS(x, x)",
                "x IN (1, 'a', TRUE)",
                "x ^ 2 = 4",
            ),
        ]
    ):
        matcher.subscribe(f"s{letter}", kind)
        matcher.subscribe(f"n{letter}", f"NOT ({kind})")
    event = {"x": VALUES[name], "\ud800": 1}
    matches = matcher.match(event)
    assert not {f"s{id[1:]}" for id in matches if id[0] == "n"} & set(matches)
    assert matcher.match_batch([event], sort=True)["subscription"].to_pylist() == matches
    for id in matcher.ids():
        explained = matcher.explain(event, id)
        assert explained.matches is (id in matches)
        assert str(explained)


def big_ring(vertices: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    radius = 10 + np.where(np.arange(vertices) % 2, 0.001, 0)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


def test_a_polygon_of_a_million_vertices() -> None:
    ring = big_ring(1_000_000)
    valid = shapely.Polygon(ring)
    crossed = ring.copy()
    crossed[[400_000, 400_200]] = crossed[[400_200, 400_000]]
    bad = shapely.Polygon(crossed)
    matcher = Matcher(space="planar")
    matcher.subscribe("near", "S_CONTAINS(g, POINT(1 1))")
    matcher.subscribe("far", "S_DISJOINT(g, BBOX(20, 20, 21, 21))")
    assert matcher.match({"g": valid}) == ["far", "near"]
    assert matcher.match({"g": valid.wkb}) == ["far", "near"]
    assert matcher.match({"g": bad}) == []
    with pytest.raises(GeometryError, match="crosses itself"):
        matcher.subscribe_columns(["bad"], regions={"g": ([bad], "S_WITHIN")})
    matcher.subscribe_columns(["big"], regions={"g": ([valid], "S_WITHIN")})
    assert matcher.match({"g": "POINT (9 1)"}) == ["big", "far"]
    assert matcher.match({"g": "POINT (11 1)"}) == ["far"]
    assert matcher.match({"g": valid}) == ["big", "far", "near"]
    assert matcher.ids() == ["big", "far", "near"]


# ------------------------------------------------------------------------------------------ tables

TABLES: dict[str, Any] = {
    "a number": 5,
    "nothing": None,
    "a string": "x",
    "a mapping": {"n": [1]},
    "a generator": iter([{"n": 1}]),
    "an array": pa.array([1]),
    "a column": pa.chunked_array([[1]]),
    "two columns of one name": pa.table([[1], [2]], names=["n", "n"]),
    "a frame with two columns of one name": pd.DataFrame([[1, 2]], columns=["n", "n"]),
    "a collection without features": {"type": "FeatureCollection"},
    "a collection of a number": {"type": "FeatureCollection", "features": 5},
}


@pytest.mark.parametrize("index", ["auto", "reference", "sff", "cr-tree", "rt++", "ops4st"])
@pytest.mark.parametrize("name", TABLES)
def test_invalid_tables_of_events(name: str, index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("keep", EVERYTHING)
    with pytest.raises(ModelError):
        matcher.match_batch(TABLES[name])


FRAMES: dict[str, Any] = {
    "numbers and strings": pd.DataFrame({"n": [5, "a"]}),
    "geometries": pd.DataFrame({"n": [5, 5], "g": [POINT, None]}),
    "a lone surrogate": pd.DataFrame({"n": [5, 5], "s": ["\ud800", "a"]}),
    "huge integers": pd.DataFrame({"n": [10**30, 5]}),
    "complex numbers": pd.DataFrame({"n": [5, 5], "s": [1j, 2j]}),
    "mixed intervals": pd.DataFrame({"n": [5, 5], "i": [{"interval": [1, "a"]}, None]}),
    "a geo frame without active geometry": geopandas.GeoDataFrame({"n": [5, 5]}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_with_mixed_columns_is_matched_or_refused(matcher: Matcher, name: str) -> None:
    try:
        matches = matcher.match_batch(FRAMES[name])
    except FencepostError:
        return
    assert 0 in matches["event"].to_pylist()


def _bad_text() -> pa.Array:
    offsets = pa.py_buffer(np.array([0, 2], np.int32))
    return pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff\xfe"))


WRONG: dict[str, Callable[[], pa.Array]] = {
    "a far timestamp": lambda: pa.array([1 << 60], pa.timestamp("s")),
    "the farthest timestamp": lambda: pa.array([-(1 << 63)], pa.timestamp("s")),
    "a far date": lambda: pa.array([(1 << 31) - 1], pa.int32()).cast(pa.date32()),
    "an unknown zone": lambda: pa.array([1], pa.timestamp("us", tz="Mars/Phobos")),
    "text that is not UTF-8": _bad_text,
    "fields of one name": lambda: pa.StructArray.from_arrays(
        [pa.array([1]), pa.array([2])], names=["a", "a"]
    ),
    "encoded views": lambda: pa.array(["a"], pa.string_view()).dictionary_encode(),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays([1], ["a"]),
    "a union": lambda: pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1]), pa.array(["a"])]
    ),
    "months": lambda: pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    "half floats": lambda: pa.array(np.array([1], np.float16)),
    "nulls": lambda: pa.nulls(1),
    "uuid": lambda: pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16))),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_column_of_any_type_is_at_worst_refused(name: str) -> None:
    for letter in ("n", "s", "t", "g", "b", "l", "i"):
        matcher = Matcher(space="planar")
        matcher.subscribe("keep", EVERYTHING)
        matcher.subscribe("null", f"{letter} IS NULL")
        table = pa.table({letter: WRONG[name]()})
        try:
            matches = matcher.match_batch(table)
        except FencepostError:
            continue
        assert matches.num_rows <= 2


@pytest.mark.parametrize("threads", [0, -1, "2", None, 1.5])
def test_invalid_numbers_of_threads(matcher: Matcher, threads: Any) -> None:
    with pytest.raises(ModelError, match="threads"):
        matcher.match_batch([{}], threads=threads)


# ---------------------------------------------------------------------------------- index folders


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Matcher(space="planar")
    made.subscribe("a", "n + 1 > 1 AND s = 'x'")
    made.subscribe("b", "S_INTERSECTS(g, BBOX(0, 0, 1, 1))")
    path: Path = tmp_path_factory.mktemp("saved") / "index"
    made.save(path)
    return path


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def test_folders_without_an_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "photo.jpg").write_text("x")
    for name in ("none", "file", "foreign", "a\0b", "x" * 5000):
        with pytest.raises(IndexingError, match="index"):
            Matcher.open(tmp_path / name)


def test_folders_to_which_no_index_can_be_written(matcher: Matcher, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "photo.jpg").write_text("x")
    for name in ("file", "file/below", "foreign", "a\0b", "x" * 5000):
        with pytest.raises(IndexingError):
            matcher.save(tmp_path / name)
    with pytest.raises(IndexingError):
        matcher.save("/proc/index")
    assert (tmp_path / "file").read_text() == "x"
    assert sorted(os.listdir(tmp_path)) == ["file", "foreign"]
    assert os.listdir(tmp_path / "foreign") == ["photo.jpg"]


MANIFESTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "null": lambda m: None,
    "a list": lambda m: [],
    "a number": lambda m: 5,
    "text": lambda m: "x",
    "empty": lambda m: {},
    "another format": lambda m: {**m, "format": 99},
    "no columns": lambda m: {k: v for k, v in m.items() if k != "columns"},
    "no segments": lambda m: {k: v for k, v in m.items() if k != "segments"},
    "no space": lambda m: {k: v for k, v in m.items() if k != "space"},
    "another space": lambda m: {**m, "space": "sphere"},
    "columns that are a number": lambda m: {**m, "columns": 5},
    "columns of an unknown kind": lambda m: {**m, "columns": [[{"kind": "X", "property": "n"}]]},
    "columns without source": lambda m: {**m, "columns": [[{"kind": "NUMBER"}]]},
    "columns that do not parse": lambda m: {
        **m, "columns": [[{"kind": "NUMBER", "condition": "("}]]
    },
    "columns that are no values": lambda m: {
        **m, "columns": [[{"kind": "NUMBER", "condition": "TRUE"}]]
    },
    "segments that are a number": lambda m: {**m, "segments": 5},
    "segments that are numbers": lambda m: {**m, "segments": [5]},
    "a segment that is not there": lambda m: {**m, "segments": ["segment-007"]},
}  # fmt: skip


@pytest.mark.parametrize("name", MANIFESTS)
def test_damaged_manifests(copy: Path, name: str) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    write_manifest(copy / "manifest.json", MANIFESTS[name](manifest))
    with pytest.raises(FencepostError):
        Matcher.open(copy)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_manifests_that_are_not_json(copy: Path, content: bytes) -> None:
    (copy / "manifest.json").write_bytes(content)
    with pytest.raises(IndexingError):
        Matcher.open(copy)


def test_a_manifest_of_fewer_columns_than_the_segments_use(copy: Path) -> None:
    """Run in a process, which must not end by a signal."""
    manifest = json.loads((copy / "manifest.json").read_text())
    write_manifest(copy / "manifest.json", {**manifest, "columns": []})
    code = (
        "import sys; from fencepost.engine.matcher import Matcher\n"
        "from fencepost.errors import IndexingError\n"
        "try: Matcher.open(sys.argv[1]).match({'n': 1, 's': 'x', 'g': 'POINT (0 0)'})\n"
        "except IndexingError: sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(copy)], timeout=WAIT_S, check=False)
    assert done.returncode == 3


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "the first bytes": lambda path: path.write_bytes(path.read_bytes()[:8]),
    "junk": lambda path: path.write_bytes(b"junk" * 100),
    "a folder": _make_folder,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["arrays", "deleted_version.npy", "names.arrow"])
def test_damaged_segment_files(copy: Path, name: str, damage: str) -> None:
    DAMAGE[damage](next(copy.glob("segment-*")) / name)
    with pytest.raises(IndexingError, match="damaged"):
        Matcher.open(copy)


ARRAYS: dict[str, Callable[[dict[str, Any]], object]] = {
    "another type": lambda arrays: arrays["checks"].update(dtype="<u4"),
    "another number of sides": lambda arrays: arrays["scan_box"]["shape"].append(1),
    "too long": lambda arrays: arrays["checks"]["shape"].__setitem__(0, 2**40),
    "a negative size": lambda arrays: arrays["checks"]["shape"].__setitem__(0, -1),
    "beyond the end": lambda arrays: arrays["checks"].update(start=2**40),
    "before the start": lambda arrays: arrays["checks"].update(start=-64),
    "misaligned": lambda arrays: arrays["checks"].update(start=arrays["checks"]["start"] + 8),
    "swapped": lambda arrays: arrays.update(
        {"expires": arrays["set_start"], "set_start": arrays["expires"]}
    ),
    "missing": lambda arrays: arrays.pop("shapes.x"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_differ_from_the_manifest(copy: Path, name: str) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    ARRAYS[name](manifest["segments"][0]["arrays"])
    write_manifest(copy / "manifest.json", manifest)
    with pytest.raises(IndexingError, match="damaged") as raised:
        Matcher.open(copy)
    assert "checksum" not in str(raised.value)


def test_an_open_index_holds_few_files_open(saved: Path) -> None:
    """A process may open about 1,000 files, and some libraries fail with larger descriptors."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    opened = [Matcher.open(saved) for _ in range(10)]
    held = len(list(Path("/proc/self/fd").iterdir())) - before
    assert len(opened) == 10
    assert held <= 10 * len(opened[0].view().snapshot())


def test_an_opened_index_can_be_changed(saved: Path) -> None:
    opened = Matcher.open(saved)
    opened.subscribe("c", "S_INTERSECTS(g, BBOX(0, 0, 1, 1)) AND n > 0")
    assert opened.match({"n": 1, "s": "x", "g": "POINT (0 0)"}) == ["a", "b", "c"]
    opened.subscribe_columns(["d"], regions={"g": (["POINT (0 0)"], "S_EQUALS")})
    assert opened.unsubscribe("a")
    assert opened.match({"n": 1, "s": "x", "g": "POINT (0 0)"}) == ["b", "c", "d"]
    assert opened.explain({"g": "POINT (0 0)"}, "d").matches
