"""The notation of OPS4ST against CQL2, its errors, and random texts."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2 import MAX_DEPTH, MAX_LENGTH, parse
from fencepost.cql2.ast import Condition
from fencepost.engine import Matcher
from fencepost.errors import LanguageError
from fencepost.papers.events import parse_ops4st_event
from fencepost.papers.events.notation.notation_reader import Composed, Settings, read_subscription
from fencepost.papers.events.notation.subscription import render_condition

# The names in the three printed subscriptions and the printed event.
VALUES = {
    "x": 3,
    "y": 4.5,
    "v-range": 25,
    "v-group": 9,
    "v-id": 7,
    "systemTime": 1322726400000,
    "PointA.x": 0,
    "PointA.y": 0,
    "PointB.x": 10,
    "PointB.y": 0,
    "PointC.x": 10,
    "PointC.y": 5,
    "PointD.x": 0,
    "PointD.y": 5,
    "v-name": "a",
}
BOX = "POLYGON((0 0, 10 0, 10 5, 0 5, 0 0))"
RING = "LINESTRING(0 0, 10 0, 10 5, 0 5, 0 0)"
CORNERS = "(0,0),(10,0),(10,5),(0,5)"


def read(text: str, **settings: object) -> Condition:
    node = read_subscription(text, Settings(**{"values": VALUES, **settings}))  # type: ignore[arg-type]
    assert not isinstance(node, Composed)
    return node


SAME = {
    # The paper's three, as printed but for the stray bracket of the first.
    "DIST((x,y);<;2000)(STRING:type=“TAXI”;STRING:state=“uncarry”)": (
        "S_CLOSER(geometry, POINT(3 4.5), 2000) AND type = 'TAXI' AND state = 'uncarry'"
    ),
    "@((PointA.x,PointA.y),(PointB.x,PointB.y),(PointC.x,PointC.y),(PointD.x,PointD.y))"
    "(ARITH:ageRange=v-range)": (
        f"(S_WITHIN(geometry, {BOX}) OR S_WITHIN(geometry, {RING})) AND ageRange = 25"
    ),
    "SPL(Circle(x,y,500))(ARITH:group=v-group)": (
        "S_SAMEPLACE(geometry, POINT(3 4.5), 500) AND group = 9"
    ),
    # Operators with regions.
    f"OVLP({CORNERS})()": f"S_INTERSECTS(geometry, {BOX})",
    "OVLP((1,2))()": "S_INTERSECTS(geometry, POINT(1 2))",
    "OVLP(Circle(1,2,3))()": "S_DWITHIN(geometry, POINT(1 2), 3)",
    "@(Circle(-1,+2,.5e1))()": "S_ALLWITHIN(geometry, POINT(-1 2), 5)",
    "@((1,2))()": "S_WITHIN(geometry, POINT(1 2))",
    "@((0,0),(10,5))()": (
        "S_WITHIN(geometry, LINESTRING(0 0, 10 5)) OR S_WITHIN(geometry, MULTIPOINT(0 0, 10 5))"
    ),
    f"SPL({CORNERS};7)()": f"S_SAMEPLACE(geometry, {BOX}, 7)",
    "SPL(Circle(1,2,3);4)()": "S_SAMEPLACE(geometry, POINT(1 2), 4)",
    f"DIST({CORNERS};<=;7)()": f"S_DWITHIN(geometry, {BOX}, 7)",
    f"DIST({CORNERS};>;0)()": f"S_BEYOND(geometry, {BOX}, 0)",
    f"DIST({CORNERS},(0,0);>=;7)()": f"NOT S_CLOSER(geometry, {BOX}, 7)",
    "DIST(Circle(1,2,3);<;4)()": "S_CLOSER(geometry, POINT(1 2), 7)",
    "DIST(Circle(1,2,3);>;4)()": "S_BEYOND(geometry, POINT(1 2), 7)",
    "DIST((1,2);=;9)()": (
        "S_DWITHIN(geometry, POINT(1 2), 9.5) AND NOT S_CLOSER(geometry, POINT(1 2), 8.5)"
    ),
    "DIST((1,2);=;9;0)()": (
        "S_DWITHIN(geometry, POINT(1 2), 9) AND NOT S_CLOSER(geometry, POINT(1 2), 9)"
    ),
    "DIST((1,2);=;0)()": "S_DWITHIN(geometry, POINT(1 2), 0.5)",
    "DIST(Circle(1,2,3);=;0.5)()": "S_DWITHIN(geometry, POINT(1 2), 4)",
    "DIST((1,2);<;3)OVLP((1,2))(ARITH:a=1)": (
        "S_CLOSER(geometry, POINT(1 2), 3) AND S_INTERSECTS(geometry, POINT(1 2)) AND a = 1"
    ),
    "dist((1,2);<;3)(ovlp((1,2))((arith:a=1)))": (
        "S_CLOSER(geometry, POINT(1 2), 3) AND S_INTERSECTS(geometry, POINT(1 2)) AND a = 1"
    ),
    # Predicates.
    "()": "TRUE",
    'STRING:type="TAXI", ARITH:n=1': "type = 'TAXI' AND n = 1",
    "(ARITH:a=1;ARITH:a<>2;ARITH:a!=3;ARITH:a<4;ARITH:a<=5.0;ARITH:a>-6;ARITH:a>=+7)": (
        "a = 1 AND a <> 2 AND a <> 3 AND a < 4 AND a <= 5.0 AND a > -6 AND a >= 7"
    ),
    '(STRING:a="1";STRING:a<>"2";STRING:a<"3";STRING:a<="4";STRING:a>"5";STRING:a>="6")': (
        "a = '1' AND a <> '2' AND a < '3' AND a <= '4' AND a > '5' AND a >= '6'"
    ),
    '(STRING:a LIKE "x%";STRING:a NOT LIKE "_""y")': "a LIKE 'x%' AND a NOT LIKE '_\"y'",
    '(ARITH:a IN (1, 2, 1);STRING:a NOT IN ("b"))': "a IN (1, 2) AND a NOT IN ('b')",
    '(ARITH:a BETWEEN 1 AND 2;STRING:a not between "b" and "c")': (
        "a BETWEEN 1 AND 2 AND a NOT BETWEEN 'b' AND 'c'"
    ),
    "(STRING:a IS NULL;ARITH:b IS NOT NULL)": "a IS NULL AND b IS NOT NULL",
    '(STRING:"a b"="c";STRING:in="d";ARITH:名="x")'.replace('名="x"', "名=1"): (
        "\"a b\" = 'c' AND \"in\" = 'd' AND 名 = 1"
    ),
    "(STRING:a=”Lenovo“)": "a = 'Lenovo'",
}


@pytest.mark.parametrize(("text", "cql2"), SAME.items(), ids=range(len(SAME)))
def test_it_is_the_tree_of_cql2(text: str, cql2: str) -> None:
    condition = read(text)
    assert condition == parse(cql2)
    written = render_condition(condition)
    assert read_subscription(written, Settings()) == condition


def test_settings() -> None:
    assert read("SPL((1,2))()", same_place_m=5.0) == parse("S_SAMEPLACE(geometry, POINT(1 2), 5)")
    assert read("DIST((1,2);=;9)()", tolerance=2.0) == parse(
        "S_DWITHIN(geometry, POINT(1 2), 11) AND NOT S_CLOSER(geometry, POINT(1 2), 7)"
    )
    condition = read("OVLP((1,2))()", geometry="place")
    assert condition == parse("S_INTERSECTS(place, POINT(1 2))")
    assert render_condition(condition, "place") == "OVLP((1.0,2.0))()"


BAD = {
    # The paper prints a superfluous bracket.
    "DIST((x,y));<;2000)(STRING:type=“TAXI”)": (10, "leave this bracket out"),
    "DIST((x,y))(STRING:a=“b”)": (10, "write DIST(R;<;l)"),
    "DIST((x,y)<2000)()": (10, "a comparison after what DIST is about"),
    "DIST((x,y);!=;2000)()": (11, "one of < <= = >= >"),
    "DIST((x,y);<;0)()": (13, "write OVLP(R) for contact"),
    "DIST((x,y);>=;0)()": (14, "leave this operator out"),
    "DIST((x,y);<;-1)()": (13, "a distance is 0 or more; saw -1"),
    "DIST(Circle(0,0,1e308);<;1e308)()": (0, "the distance is too large"),
    "DIST((x,y);<;far)()": (13, "give one in values={'far': ...}"),
    "DIST((v-name,y);<;1)()": (6, "is to be a finite number; saw 'a'"),
    '@((STRING:a="b"))()': (0, "write IN(...) for a subscription"),
    "IN((1,2))()": (0, "write @(...) for a region"),
    "SPL((1,2))()": (9, "write SPL(...;d), or give same_place_m"),
    "@((0,0),(1,1),(1,0),(0,1))()": (2, "crosses itself at (0.5, 0.5)"),
    "@((0,0),(4,0),(1,1),(0,4))()": (2, "the region is not convex; give its corners in order"),
    "@((0,0),(1,0),(2,0))()": (2, "the geometry is not usable"),
    "@(Circle(0,0,0))()": (13, "write (x,y) for a point"),
    "@((1 2))()": (5, "and y is expected here; saw 2"),
    "@((1,2))": (8, "predicates in round brackets"),
    "(STRING:a=5)": (10, "a string in double quotes is expected here; saw 5"),
    "(STRING:a=v-range)": (10, "v-range is to be a string; saw 25"),
    '(ARITH:a="b")': (9, 'a number is expected here; saw "b"'),
    "(BOOL:a=1)": (1, "a predicate, such as STRING:type="),
    "(ARITH:a==1)": (9, "equal is written with one ="),
    "(ARITH:a~1)": (8, "has no meaning here; saw ~"),
    "(STRING:a='b')": (10, "strings are written in double quotes"),
    "(STRING:a=“b)": (10, "this string is not closed"),
    "（STRING:a=“b”)": (0, "write ( instead"),
    '(STRING:a="b"): ': (14, "the end is expected here; saw :"),
    '(STRING:a LIKE "b\\")': (15, "write \\\\ for a backslash"),
    "(ARITH:a=1e999)": (9, "too large for a double"),
    "": (0, "the expression ends where"),
}


@pytest.mark.parametrize(("text", "expected"), BAD.items(), ids=range(len(BAD)))
def test_an_error_shows_the_place_and_the_fix(text: str, expected: tuple[int, str]) -> None:
    with pytest.raises(LanguageError) as caught:
        read(text)
    position, message = expected
    assert message in str(caught.value)
    assert caught.value.position == position


def test_limits() -> None:
    for text in ("@((1,2))" * (MAX_DEPTH + 1) + "()", "(" * 5000 + ")" * 5000):
        with pytest.raises(LanguageError, match="nests more than"):
            read(text)
    assert isinstance(read("@((1,2))" * (MAX_DEPTH - 1) + "()"), Condition)
    with pytest.raises(LanguageError, match="characters"):
        read(" " * (MAX_LENGTH + 1))
    with pytest.raises(LanguageError, match="values and operations"):
        read("(" + "ARITH:a=1;" * 60_000 + "ARITH:a=1)")


@pytest.mark.parametrize(
    "cql2",
    [
        "a = 1 OR b = 2",
        "NOT a = 1",
        "a = b",
        "a = TRUE",
        "a > DATE('2024-01-01')",
        "a + 1 = 2",
        "a BETWEEN 1 AND b",
        "S_TOUCHES(geometry, POINT(1 2))",
        "S_INTERSECTS(other, POINT(1 2))",
        "S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 1 1, 0 4, 0 0)))",
        f"S_WITHIN(geometry, {BOX})",
        f"S_WITHIN(geometry, {BOX}) OR S_WITHIN(geometry, {BOX})",
        "a",
        "FALSE",
    ],
)
def test_inexpressible_conditions_are_refused(cql2: str) -> None:
    with pytest.raises(LanguageError, match="OPS4ST cannot say"):
        render_condition(parse(cql2))


# --------------------------------------------------------------------------------------- meaning


def test_in_the_closed_region() -> None:
    m = Matcher(space="planar")
    m.subscribe("box", read(f"@({CORNERS})()"))
    m.subscribe("line", read("@((0,0),(10,5))()"))
    m.subscribe("point", read("@((10,5))()"))
    for place, expected in {
        "POINT (1 1)": ["box"],
        "POINT (2 1)": ["box", "line"],
        "POINT (10 5)": ["box", "line", "point"],
        "POINT (11 5)": [],
        "MULTIPOINT (0 0, 10 5)": ["box", "line"],
        "LINESTRING (0 0, 10 0)": ["box"],
        "LINESTRING (0 0, 2 1)": ["box", "line"],
        "LINESTRING (0 0, 11 0)": [],
        "POLYGON ((0 0, 10 0, 10 5, 0 0))": ["box"],
        "POLYGON ((0 0, 10 0, 10 5.5, 0 0))": [],
    }.items():
        assert m.match({"geometry": place}) == expected, place


# ---------------------------------------------------------------------------------------- events


def test_the_printed_events() -> None:
    point = {"type": "Point", "coordinates": [3.0, 4.5]}
    time = "2011-12-01T08:00:00Z"
    assert parse_ops4st_event(
        "ARITH:id=v-id,STRING:type=“TAXI”,STRING:state=“uncarry”,systemTime,x,y", values=VALUES
    ) == {"id": 7, "type": "TAXI", "state": "uncarry", "time": time, "geometry": point}
    assert parse_ops4st_event(
        "STRING:username=v-name,ARITH:ageRange=v-range,systemTime,x,y", values=VALUES
    ) == {"username": "a", "ageRange": 25, "time": time, "geometry": point}


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("0,1,2", "1970-01-01T00:00:00Z"),
        ("-1,1,2", "1969-12-31T23:59:59.999Z"),
        ("2024-05-01T12:30:00.5+02:00, 1, 2", "2024-05-01T10:30:00.5Z"),
        ('"2024-05-01T12:30:00Z",1,2', "2024-05-01T12:30:00Z"),
        ("2024-05-01,1,2", "2024-05-01T00:00:00Z"),
        ("when,1,2", "2024-05-01T00:00:00Z"),
    ],
)
def test_times_of_events(text: str, time: str) -> None:
    event = parse_ops4st_event(text, values={"when": datetime(2024, 5, 1, tzinfo=UTC)})
    assert event == {"time": time, "geometry": {"type": "Point", "coordinates": [1.0, 2.0]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ARITH:id=7", "the next attribute, or the time"),
        ("ARITH:id=7,time,x,y", "'time'"),
        ("ARITH:id<7,1,2,3", "= after the name"),
        ("ARITH:id=7,ARITH:id=8,1,2,3", "id once"),
        ("ARITH:time=7,1,2,3", "time once"),
        ("STRING:geometry=“a”,1,2,3", "geometry once"),
        ("1,2", "and y after x"),
        ("1,2,3,4", "the end is expected here; saw ,"),
        ("1.5,2,3", "a time is expected here; saw 1.5"),
        ("2024-13-01,2,3", "a time is expected here; saw 2024-13-01"),
        ("99999999999999999,2,3", "a time is expected here"),
        ("1,2024-05-01,3", "a number is expected here"),
        (f"1,2,{'9' * 400}", "y is too large for a double"),
    ],
)
def test_invalid_events_are_refused(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse_ops4st_event(text)
    assert message in str(caught.value)


# ------------------------------------------------------------------------------------------ fuzz

NUMBERS = st.integers(-(10**6), 10**6).map(str) | st.floats(-1e9, 1e9).map(repr)
LENGTHS = st.integers(1, 10**6).map(str) | st.floats(1e-9, 1e9).map(repr)
STRINGS = st.text(max_size=6).map(lambda text: '"' + text.replace('"', '""') + '"')
NAMES = st.sampled_from(["a", "in", "PointA.x", "v-range", '"a b"', '"IN (1)"', "été"])
REGIONS = st.one_of(
    st.builds(lambda x, y: f"({x},{y})", NUMBERS, NUMBERS),
    st.builds(lambda x, y, r: f"Circle({x},{y},{r})", NUMBERS, NUMBERS, LENGTHS),
    st.just(CORNERS),
    st.just("(0,0),(3,1)"),
)
OPERATORS = st.one_of(
    REGIONS.map(lambda region: f"@({region})"),
    REGIONS.map(lambda region: f"OVLP({region})"),
    st.builds(lambda region, d: f"SPL({region};{d})", REGIONS, LENGTHS),
    st.builds(
        lambda region, op, d: f"DIST({region};{op};{d})",
        REGIONS,
        st.sampled_from(["<", "<=", "=", ">=", ">"]),
        LENGTHS,
    ),
)
COMPARED = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
PREDICATES = st.one_of(
    st.builds(lambda name, op, value: f"ARITH:{name}{op}{value}", NAMES, COMPARED, NUMBERS),
    st.builds(lambda name, op, value: f"STRING:{name}{op}{value}", NAMES, COMPARED, STRINGS),
    st.builds(lambda name, value: f"STRING:{name} NOT IN ({value})", NAMES, STRINGS),
    st.builds(lambda n, a, b: f"ARITH:{n} NOT BETWEEN {a} AND {b}", NAMES, NUMBERS, NUMBERS),
)
SUBSCRIPTIONS = st.builds(
    lambda operators, predicates: "".join(operators) + "(" + ";".join(predicates) + ")",
    st.lists(OPERATORS, max_size=3),
    st.lists(PREDICATES, max_size=4),
)


@given(SUBSCRIPTIONS)
def test_rendered_conditions_are_read_again(text: str) -> None:
    condition = read(text)
    assert read_subscription(render_condition(condition), Settings()) == condition


@given(SUBSCRIPTIONS, st.data())
def test_only_language_errors_are_raised(text: str, data: st.DataObject) -> None:
    piece = st.sampled_from([*'();,:@<>=+-."“” ', "Circle(", "DIST", "IN(", "1e9", "x", "\ud800"])
    at = data.draw(st.integers(0, len(text)))
    rest = text[at + data.draw(st.integers(0, 3)) :]
    text = text[:at] + data.draw(piece | st.text(max_size=3)) + rest
    for reader in (read, parse_ops4st_event):
        with suppress(LanguageError):
            reader(text)


@pytest.mark.parametrize("value", [np.int64(3), np.float32(3), 3.0])
def test_numbers_of_any_kind_can_be_given(value: object) -> None:
    condition = read("OVLP((x,0))()", values={"x": value})
    assert condition == parse("S_INTERSECTS(geometry, POINT(3 0))")


@pytest.mark.parametrize("value", [10**400, True, float("nan"), None, "3"])
def test_invalid_numbers_are_refused(value: object) -> None:
    with pytest.raises(LanguageError):
        read("OVLP((x,0))()", values={"x": value})
