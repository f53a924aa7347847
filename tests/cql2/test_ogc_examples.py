"""Examples of every kind from the standard (OGC 21-065r2), in text and in JSON.

Both encodings give the same tree; the package `cql2` finds the rendered JSON valid by the
standard's schema. Messages name the features of the standard that Fencepost lacks.
"""

from __future__ import annotations

import json
from typing import Any

import cql2
import pytest

from fencepost.cql2 import parse, render_json, render_text
from fencepost.errors import LanguageError


def prop(name: str) -> dict[str, str]:
    return {"property": name}


def op(name: str, *args: Any) -> dict[str, Any]:
    return {"op": name, "args": list(args)}


TRIANGLE = {"type": "Polygon", "coordinates": [[[8.1, 47.2], [9, 47.2], [9, 48], [8.1, 47.2]]]}
TRIANGLE_TEXT = "POLYGON((8.1 47.2, 9 47.2, 9 48, 8.1 47.2))"
STAY = {"interval": [prop("arrived"), prop("left")]}
STAY_TEXT = "INTERVAL(arrived, left)"
YEAR = {"interval": ["2023-01-01T00:00:00Z", "2023-12-31T23:59:59.5Z"]}
YEAR_TEXT = "INTERVAL('2023-01-01T00:00:00Z', '2023-12-31T23:59:59.5Z')"
FOR_TWO_SPANS = (
    "t_contains t_during t_finishedBy t_finishes t_meets t_metBy t_overlappedBy t_overlaps "
    "t_startedBy"
)

EXAMPLES: dict[str, Any] = {
    # comparison
    "ship = 'Aurora'": op("=", prop("ship"), "Aurora"),
    "ship<>'Aurora'": op("<>", prop("ship"), "Aurora"),
    "sea:state >= 4": op(">=", prop("sea:state"), 4),
    "draught<3.5": op("<", prop("draught"), 3.5),
    '"draught" <= -3.5': op("<=", prop("draught"), -3.5),
    "10 > crew": op(">", 10, prop("crew")),
    "towed = TRUE": op("=", prop("towed"), True),
    "FALSE <> towed": op("<>", False, prop("towed")),
    "seen >= DATE('2023-04-01')": op(">=", prop("seen"), {"date": "2023-04-01"}),
    "seen < timestamp('2023-04-01T10:20:30Z')": op(
        "<", prop("seen"), {"timestamp": "2023-04-01T10:20:30Z"}
    ),
    "port_of_call = home_port": op("=", prop("port_of_call"), prop("home_port")),
    "length-20.0 > 0": op(">", op("-", prop("length"), 20.0), 0),
    "1 + 2 > 2": op(">", op("+", 1, 2), 2),
    # logic
    "crew > 5 AND towed = true": op("and", op(">", prop("crew"), 5), op("=", prop("towed"), True)),
    "crew > 5 and crew < 9 and pilot = 'x'": op(
        "and", op(">", prop("crew"), 5), op("<", prop("crew"), 9), op("=", prop("pilot"), "x")
    ),
    "towed=true AND (crew>5 OR flag LIKE 'N%' OR flag LIKE '%N')": op(
        "and",
        op("=", prop("towed"), True),
        op(
            "or",
            op(">", prop("crew"), 5),
            op("like", prop("flag"), "N%"),
            op("like", prop("flag"), "%N"),
        ),
    ),
    "(crew>5 AND flag='NO') OR towed=true": op(
        "or",
        op("and", op(">", prop("crew"), 5), op("=", prop("flag"), "NO")),
        op("=", prop("towed"), True),
    ),
    "NOT (crew<5) OR towed=true": op(
        "or", op("not", op("<", prop("crew"), 5)), op("=", prop("towed"), True)
    ),
    "true": True,
    # LIKE, BETWEEN, IN, IS NULL
    "name LIKE '%gale%'": op("like", prop("name"), "%gale%"),
    "name NOT LIKE '_\\%'": op("not", op("like", prop("name"), "_\\%")),
    "name like ''": op("like", prop("name"), ""),
    "depth BETWEEN 10.5 AND 20": op("between", prop("depth"), 10.5, 20),
    'NOT "depth" BETWEEN 10 AND 20': op("not", op("between", prop("depth"), 10, 20)),
    "depth between 10 and 20 and crew=3": op(
        "and", op("between", prop("depth"), 10, 20), op("=", prop("crew"), 3)
    ),
    "flag IN ('NO','SE', 'DK')": op("in", prop("flag"), ["NO", "SE", "DK"]),
    "crew NOT IN (1,2,3)": op("not", op("in", prop("crew"), [1, 2, 3])),
    "pilot IS NULL": op("isNull", prop("pilot")),
    "pilot IS NOT NULL": op("not", op("isNull", prop("pilot"))),
    "(pilot IS NULL OR depth BETWEEN 10 AND 20)": op(
        "or", op("isNull", prop("pilot")), op("between", prop("depth"), 10, 20)
    ),
    # case and accents
    "CASEI(kind) IN (CASEI('Fähre'), CASEI('ΦΕΡΙ'))": op(
        "in",
        op("casei", prop("kind")),
        [op("casei", "Fähre"), op("casei", "ΦΕΡΙ")],
    ),
    "ACCENTI(port) = ACCENTI('Málaga')": op(
        "=", op("accenti", prop("port")), op("accenti", "Málaga")
    ),
    "CASEI(port) LIKE casei('m%')": op("like", op("casei", prop("port")), op("casei", "m%")),
    "ACCENTI(CASEI(port)) <> accenti(casei('MÁLAGA'))": op(
        "<>", op("accenti", op("casei", prop("port"))), op("accenti", op("casei", "MÁLAGA"))
    ),
    "port LIKE CASEI('M%')": op("like", prop("port"), op("casei", "M%")),
    # space
    "S_INTERSECTS(geometry, POINT(8.5 47.3))": op(
        "s_intersects", prop("geometry"), {"type": "Point", "coordinates": [8.5, 47.3]}
    ),
    "S_INTERSECTS(geometry,BBOX(-180,-90,180,90))": op(
        "s_intersects", prop("geometry"), {"bbox": [-180, -90, 180, 90]}
    ),
    "S_INTERSECTS(geometry, BBOX(-128.1, -1.1, -99999.0, 180.0, 90.0, 100000.0))": op(
        "s_intersects", prop("geometry"), {"bbox": [-128.1, -1.1, -99999.0, 180.0, 90.0, 100000.0]}
    ),
    f"S_CROSSES(LINESTRING (8 47, 9 48), {TRIANGLE_TEXT})": op(
        "s_crosses", {"type": "LineString", "coordinates": [[8, 47], [9, 48]]}, TRIANGLE
    ),
    f"s_within({TRIANGLE_TEXT}, geometry)": op("s_within", TRIANGLE, prop("geometry")),
    "S_DISJOINT(a, MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5))))": op(
        "s_disjoint",
        prop("a"),
        {
            "type": "MultiPolygon",
            "coordinates": [
                [[[0, 0], [1, 0], [1, 1], [0, 0]]],
                [[[5, 5], [6, 5], [6, 6], [5, 5]]],
            ],
        },
    ),
    "S_TOUCHES(a, MULTILINESTRING ((-1.9 -1, 75.3 1.5),(-1.9 -1.1, 1.5 8.5)))": op(
        "s_touches",
        prop("a"),
        {
            "type": "MultiLineString",
            "coordinates": [[[-1.9, -1], [75.3, 1.5]], [[-1.9, -1.1], [1.5, 8.5]]],
        },
    ),
    "S_EQUALS(MULTIPOINT ((180.0 -0.5), (179.0 -47.1)), a)": op(
        "s_equals",
        {"type": "MultiPoint", "coordinates": [[180.0, -0.5], [179.0, -47.1]]},
        prop("a"),
    ),
    "S_OVERLAPS(POLYGON Z ((0 0 5, 1 0 5, 1 1 5, 0 0 5)), a)": op(
        "s_overlaps",
        {"type": "Polygon", "coordinates": [[[0, 0, 5], [1, 0, 5], [1, 1, 5], [0, 0, 5]]]},
        prop("a"),
    ),
    "S_CONTAINS(a, b)": op("s_contains", prop("a"), prop("b")),
    # time
    "T_BEFORE(built, DATE('2015-03-01'))": op("t_before", prop("built"), {"date": "2015-03-01"}),
    "T_AFTER(seen, TIMESTAMP('2015-03-01T01:02:03.456Z'))": op(
        "t_after", prop("seen"), {"timestamp": "2015-03-01T01:02:03.456Z"}
    ),
    f"T_INTERSECTS(seen, {YEAR_TEXT})": op("t_intersects", prop("seen"), YEAR),
    "T_EQUALS(seen, INTERVAL('2023-01-01', '2023-12-31'))": op(
        "t_equals", prop("seen"), {"interval": ["2023-01-01", "2023-12-31"]}
    ),
    f"T_DISJOINT(INTERVAL('..', '2023-12-31T00:00:00Z'), {STAY_TEXT})": op(
        "t_disjoint", {"interval": ["..", "2023-12-31T00:00:00Z"]}, STAY
    ),
    f"T_STARTS({STAY_TEXT}, INTERVAL('2023-01-01', '..'))": op(
        "t_starts", STAY, {"interval": ["2023-01-01", ".."]}
    ),
    **{
        f"{name.upper()}({STAY_TEXT}, {YEAR_TEXT})": op(name, STAY, YEAR)
        for name in FOR_TWO_SPANS.split(" ")
    },
    # lists
    "A_CONTAINS(layer:ids, ('ca','us'))": op("a_contains", prop("layer:ids"), ["ca", "us"]),
    "A_CONTAINEDBY(tags, ('a', 'b'))": op("a_containedBy", prop("tags"), ["a", "b"]),
    "A_EQUALS(('a', TRUE, 1.0, 8), tags)": op("a_equals", ["a", True, 1.0, 8], prop("tags")),
    "A_OVERLAPS(tags, (TIMESTAMP('2012-08-10T05:30:00Z'), DATE('2010-02-10'), FALSE))": op(
        "a_overlaps",
        prop("tags"),
        [{"timestamp": "2012-08-10T05:30:00Z"}, {"date": "2010-02-10"}, False],
    ),
    "A_EQUALS(tags, labels)": op("a_equals", prop("tags"), prop("labels")),
    # arithmetic
    "height > (clearance-1)": op(">", prop("height"), op("-", prop("clearance"), 1)),
    "height <> 22.1 * a": op("<>", prop("height"), op("*", 22.1, prop("a"))),
    "height = 2 / a": op("=", prop("height"), op("/", 2, prop("a"))),
    "height <= 2 ^ a": op("<=", prop("height"), op("^", 2, prop("a"))),
    "0 = a % 2": op("=", 0, op("%", prop("a"), 2)),
    "1 = a div 2": op("=", 1, op("div", prop("a"), 2)),
    "height = -a * 2.0 + b / 6.5 - c ^ 2.0": op(
        "=",
        prop("height"),
        op(
            "-",
            op("+", op("*", op("*", -1, prop("a")), 2.0), op("/", prop("b"), 6.5)),
            op("^", prop("c"), 2.0),
        ),
    ),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_text_and_json_agree(text: str) -> None:
    condition = parse(text)
    assert parse(EXAMPLES[text]) == condition
    assert parse(render_text(condition)) == condition


@pytest.mark.parametrize("text", EXAMPLES)
def test_our_json_is_valid_by_the_schema(text: str) -> None:
    cql2.parse_json(json.dumps(render_json(parse(text)))).validate()


REFUSED = {
    "avg(windSpeed)": "there is no function avg",
    "avg(windSpeed) < 4": "there is no function avg",
    'Foo("geometry") = TRUE': "there is no function Foo",
    "FALSE <> Bar(geometry, 100, 'a')": "there is no function Bar",
    "S_WITHIN(road, Buffer(geometry, 10, 'm'))": "there is no function Buffer",
    "A_CONTAINS(tags, (foo, 'bar'))": "not an attribute",
    "A_EQUALS(tags, ((1, 2), 3))": "not a list",
    "A_EQUALS(tags, (1 + 2))": "not a number",
    "flag IN (home, 'NO')": "literals only",
    "a + b IS NULL": "IS NULL takes an attribute",
    "POINT(1 2) IS NULL": "IS NULL takes an attribute",
    "(a = 1) IS NULL": "= is a condition",
    "T_DURING(seen, INTERVAL(now(), '..'))": "there is no function now",
    "'a' LIKE b": "pattern of LIKE",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_by_name(text: str) -> None:
    with pytest.raises(LanguageError, match=REFUSED[text]):
        parse(text)
