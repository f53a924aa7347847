"""Mistakes of a first hour, each with the exact message that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fencepost.cli import entry_point

runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})


def run(arguments: list[str]) -> Any:
    result = runner.invoke(entry_point.app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()


CASEI_LIKE = "CASEI ignores case: write CASEI(a) LIKE CASEI('x%')"
CASEI_EQUAL = "CASEI ignores case: write CASEI(a) = CASEI('x')"
NO_PRESENT = (
    "an expression does not know the present: write a time, as in TIMESTAMP('2024-05-01T12:30:00Z')"
)
NO_SRID = "all coordinates are in one coordinate space, so write the geometry alone"

# By expression: the first line of the message.
EXPRESSIONS = {
    **{
        f"ST_{name}(geometry, POINT(1 2))": f"column 1: there is no function ST_{name}; "
        f"did you mean S_{name.upper()}?"
        for name in (
            *("Intersects", "Disjoint", "Equals", "Touches", "Within", "Contains", "Overlaps"),
            *("Crosses", "DWithin"),
        )
    },
    "st_intersect(g, h)": "column 1: there is no function st_intersect; did you mean S_INTERSECTS?",
    "ST_CoveredBy(g, h)": "column 1: there is no function ST_CoveredBy; "
    "did you mean S_WITHIN? What lies on the border only is not within",
    "ST_Covers(g, h)": "column 1: there is no function ST_Covers; "
    "did you mean S_CONTAINS? What lies on the border only is not contained",
    "ST_ContainsProperly(g, h)": "column 1: there is no function ST_ContainsProperly; "
    "did you mean EH_CONTAINS?",
    "ST_DFullyWithin(g, h, 1)": "column 1: there is no function ST_DFullyWithin; "
    "did you mean S_ALLWITHIN?",
    "ST_Distance(g, h) < 5": "column 1: there is no function ST_Distance; "
    "compare distances with S_DWITHIN(a, b, d), S_CLOSER(a, b, d) or S_BEYOND(a, b, d)",
    "ST_Relate(g, h)": "column 1: there is no function ST_Relate; "
    "docs/language.md lists the relations, S_ and EH_",
    "S_WITHIN(g, ST_Buffer(h, 1))": "column 13: there is no function ST_Buffer; geometries cannot "
    "be calculated with: write S_DWITHIN(a, b, d) for what is near b",
    "S_WITHIN(g, ST_MakePoint(1, 2))": "column 13: there is no function ST_MakePoint; "
    "write POINT(x y)",
    "S_WITHIN(g, ST_MakeEnvelope(1, 2, 3, 4))": "column 13: there is no function ST_MakeEnvelope; "
    "write BBOX(xmin, ymin, xmax, ymax)",
    "S_WITHIN(g, ST_GeomFromText('POINT(1 2)'))": "column 13: there is no function "
    "ST_GeomFromText; write the geometry without quotes, as in POINT(x y)",
    "S_WITHIN(g, ST_SetSRID(h, 1))": f"column 13: there is no function ST_SetSRID; {NO_SRID}",
    "ST_Area(g) > 1": "column 1: there is no function ST_Area; docs/language.md lists the "
    "functions",
    "INTERSECTS(g, h)": "column 1: there is no function INTERSECTS; "
    "did you mean S_INTERSECTS or T_INTERSECTS?",
    "DWITHIN(g, h, 5)": "column 1: there is no function DWITHIN; did you mean S_DWITHIN?",
    "a ILIKE 'x%'": "column 3: an operator, or the end, is expected here; saw ILIKE; " + CASEI_LIKE,
    "a NOT ILIKE 'x%'": "column 7: LIKE, BETWEEN or IN after NOT is expected here; saw ILIKE; "
    + CASEI_LIKE,
    "(a ILIKE 'x%')": "column 4: ) to close a bracket is expected here; saw ILIKE; " + CASEI_LIKE,
    "ilike(a, 'x%')": "column 1: there is no function ilike; " + CASEI_LIKE,
    "LOWER(a) = 'x'": "column 1: there is no function LOWER; " + CASEI_EQUAL,
    "'x' = UPPER(a)": "column 7: there is no function UPPER; " + CASEI_EQUAL,
    "unaccent(a) = 'x'": "column 1: there is no function unaccent; "
    "ACCENTI ignores accents: write ACCENTI(a) = ACCENTI('x')",
    "seen > NOW()": "column 8: there is no function NOW; " + NO_PRESENT,
    "in(a, ('x', 'y'))": "column 1: in is no function; write a IN ('x', 'y')",
    "like(a, 'x%')": "column 1: like is no function; write a LIKE 'x%'",
    "between(a, 1, 2)": "column 1: between is no function; write a BETWEEN 1 AND 2",
    "and(a, b)": "column 1: and is no function; write a > 1 AND b > 2",
    "isNull(a)": "column 1: there is no function isNull; write a IS NULL",
    "a == 1": "column 4: equal is written with one =",
    "a != 1": "column 3: this character has no meaning here; saw !; not equal is written <>",
    "a > 1 && b": "column 7: this character has no meaning here; saw &; a conjunction is written "
    "AND",
    "a > 1 || b": "column 7: this character has no meaning here; saw |; a disjunction is written "
    "OR; strings cannot be concatenated",
    "a ~ 'x'": "column 3: this character has no meaning here; saw ~; a pattern is written LIKE "
    "'a%'; there are no regular expressions",
    '{"op": "!=", "args": [1, 2]}': "there is no function '!='; saw {'args': [1, 2], 'op': '!='}; "
    "not equal is written <>",
    '{"op": "st_within", "args": [1, 2]}': "there is no function 'st_within'; "
    "saw {'args': [1, 2], 'op': 'st_within'}; did you mean S_WITHIN?",
}

# By command: the message.
COMMANDS = {
    "keys list --data none": "there is no folder none; name the folder that `serve --data` has",
    "keys list --data empty": "empty holds no database; name the folder that `serve --data` has",
    "keys revoke x --data none": "there is no folder none; name the folder that `serve --data` has",
    "export a.backup --data none": "there is no folder none; "
    "name the folder that `serve --data` has",
    "export a.backup --data empty": "empty holds no database; "
    "name the folder that `serve --data` has",
}

MISTAKES = {
    **{("explain", "{}", "-e", text): message for text, message in EXPRESSIONS.items()},
    **{tuple(command.split()): message for command, message in COMMANDS.items()},
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_the_message(arguments: tuple[str, ...]) -> None:
    before = sorted(Path().rglob("*"))
    result = run([*arguments])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines()[0] == f"error: {MISTAKES[arguments]}"
    assert sorted(Path().rglob("*")) == before
