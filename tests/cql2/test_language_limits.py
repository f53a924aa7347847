"""No expression ends the process or keeps it busy, even in a thread with a small stack.

The inputs of `HUGE` end a process, or stop it for days, when the package `cql2` reads them. The
tests read them in a separate process, so that a failure does not end the test run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fencepost.cql2 import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_LENGTH,
    MAX_NODES,
    parse,
    render_json,
    render_text,
)
from fencepost.cql2.ast import And, In, Or
from fencepost.errors import LanguageError
from tests.waiting import WAIT_S

SMALL_STACK = 128 * 1024

DEEP = "nests more than 64 deep"
MANY_DIGITS = "at most 1,000 are allowed"
LONG = "at most 1,000,000 are allowed"

# By name: a function that makes the input, and the type of its tree or a part of the message.
HUGE: dict[str, tuple[Callable[[], str], str]] = {
    "brackets": (lambda: "(" * 10_000 + "a" + ")" * 10_000, DEEP),
    "open brackets": (lambda: "(" * 10_000, DEEP),
    "a mistake in brackets": (lambda: "(" * 60 + "1 1" + ")" * 60, "to close a bracket"),
    "lists in lists": (lambda: "a_equals(a, " + "(" * 60 + "1" + ", 2)" * 60 + ")", "not a list"),
    "OR": (lambda: " or ".join(["a = 1"] * 20_000), "Or"),
    "AND": (lambda: " and ".join(["a = 1"] * 20_000), "And"),
    "OR nested to the left": (lambda: "(" * 5_000 + "a" + " or a)" * 5_000, DEEP),
    "NOT": (lambda: "not " * 20_000 + "a", DEEP),
    "sums": (lambda: "+".join(["1"] * 20_000) + " = 1", DEEP),
    "minus signs": (lambda: "- " * 20_000 + "a = 1", DEEP),
    "comparisons": (lambda: "=".join(["1"] * 20_000), "cannot follow another"),
    "powers": (lambda: "^".join(["1"] * 20_000), "not clear"),
    "calls": (lambda: "casei(" * 20_000 + "a" + ")" * 20_000 + " = 'x'", DEEP),
    "unknown calls": (lambda: "f(" * 20_000 + ")" * 20_000, "no function"),
    "collections": (lambda: "geometrycollection(" * 20_000, DEEP),
    "collections in JSON": (
        lambda: '{"type":"GeometryCollection","geometries":[' * 20_000 + "]}" * 20_000,
        DEEP,
    ),
    "brackets in a geometry": (lambda: "polygon" + "(" * 20_000, "a number is expected"),
    "points": (lambda: "s_equals(a, linestring(" + "1 1," * 200_000, "a number is expected"),
    "points in brackets": (lambda: "(1 1" * 200_000, "to close a bracket"),
    "rings": (lambda: "polygon(" + "(1 1, 2 2)," * 80_000, "coordinates"),
    "JSON": (lambda: '{"op":"not","args":[' * 20_000 + "true" + "]}" * 20_000, DEEP),
    "lists in JSON": (lambda: '{"op":' + "[" * 400_000, DEEP),
    "coordinates in JSON": (lambda: '{"type":"Point","coordinates":' + "[" * 100_000, DEEP),
    "a string in JSON": (lambda: '{"' + "\\" * 900_000, "not JSON"),
    "quotes": (lambda: "a = '" + "''" * 400_000, "not closed"),
    "digits": (lambda: "a = " + "1" * 900_000, MANY_DIGITS),
    "digits in JSON": (lambda: '{"op":"=","args":[1,' + "1" * 900_000 + "]}", MANY_DIGITS),
    "a fraction": (lambda: "a = ." + "1" * 900_000, MANY_DIGITS),
    "a fraction in JSON": (lambda: '{"bbox":[0.' + "1" * 900_000 + "]}", MANY_DIGITS),
    "a name": (lambda: "a" * 900_000 + "(1)", "no function"),
    "letters": (lambda: "a" * 10_000_000, LONG),
    "letters in JSON": (lambda: '{"property":"' + "a" * 10_000_000 + '"}', LONG),
    "spaces": (lambda: " " * 900_000, "ends where"),
    "spaces before a mistake": (lambda: " " * 900_000 + "[", "no meaning here"),
    "lines": (lambda: "a\n" * 400_000, "line 2"),
}


def outcome(text: str) -> str:
    """Return the type of the tree of a text, or the message of the error."""
    try:
        return type(parse(text)).__name__
    except LanguageError as error:
        return str(error)


def print_outcomes() -> None:
    """Print the outcome of each input as JSON; called in a separate process."""
    outcomes = {name: outcome(make()) for name, (make, _) in HUGE.items()}
    sys.stdout.write(json.dumps(outcomes))


@pytest.mark.parametrize("stack", [None, SMALL_STACK], ids=["main thread", "small stack"])
def test_the_process_survives(stack: int | None) -> None:
    script = "from tests.cql2.test_language_limits import print_outcomes\n"
    if stack is None:
        script += "print_outcomes()"
    else:
        script += (
            f"import threading; threading.stack_size({stack})\n"
            "thread = threading.Thread(target=print_outcomes); thread.start(); thread.join()"
        )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert outcomes.keys() == HUGE.keys()
    for name, (_, expected) in HUGE.items():
        assert expected in outcomes[name], name


def in_thread(stack: int, run: Callable[[], Any]) -> Any:
    """Return what `run` returns in a thread with a stack of `stack` bytes."""
    results: list[Any] = []
    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=lambda: results.append(run()))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return results[0]


@pytest.mark.parametrize(
    "text",
    [
        "NOT " * (MAX_DEPTH - 1) + "a",
        "a OR (b AND (" * 31 + "a" + "))" * 31,
        "a - (" * (MAX_DEPTH - 2) + "a" + ")" * (MAX_DEPTH - 2) + " = 1",
        "a" + " - a" * (MAX_DEPTH - 2) + " = 1",
        "CASEI(" * (MAX_DEPTH - 2) + "a" + ")" * (MAX_DEPTH - 2) + " = 'x'",
        "(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH,
    ],
    ids=["not", "and or", "right", "left", "casei", "brackets"],
)
def test_the_deepest_fits_a_small_stack(text: str) -> None:
    def run() -> bool:
        condition = parse(text)
        again = parse(json.dumps(render_json(parse(render_text(condition)))))
        return again == condition and hash(again) == hash(condition) and bool(repr(again))

    assert in_thread(SMALL_STACK, run)


def test_the_stack_of_the_caller_may_be_nearly_used_up() -> None:
    outcomes = set()

    def descend(levels: int) -> None:
        if levels:
            descend(levels - 1)
        else:
            outcomes.add(outcome("NOT " * 60 + "a")[:30])

    for levels in range(0, sys.getrecursionlimit() - 100, 50):
        try:
            descend(levels)
        except RecursionError:
            break
    assert outcomes <= {"Not", "the expression nests more than"}
    assert "Not" in outcomes


def test_bounds() -> None:
    longest = "a = '" + "x" * (MAX_LENGTH - 6) + "'"
    assert len(longest) == MAX_LENGTH
    parse(longest)
    with pytest.raises(LanguageError, match="1,000,001 characters"):
        parse(longest + " ")
    parse("a = " + "1" * MAX_DIGITS)
    with pytest.raises(LanguageError, match=MANY_DIGITS):
        parse("a = " + "1" * (MAX_DIGITS + 1))


def test_many_parts() -> None:
    values = ", ".join(map(str, range(MAX_NODES - 3)))
    condition = parse(f"a IN ({values})")
    assert isinstance(condition, In)
    assert len(condition.items) == MAX_NODES - 3
    with pytest.raises(LanguageError, match="more than 100,000 values"):
        parse(f"a IN ({values}, -1)")
    with pytest.raises(LanguageError, match="more than 100,000 values"):
        parse({"op": "in", "args": [{"property": "a"}, list(range(MAX_NODES))]})


def test_mappings_that_hold_themselves() -> None:
    inner: dict[str, Any] = {"op": "not", "args": []}
    inner["args"].append(inner)
    with pytest.raises(LanguageError, match=DEEP):
        parse(inner)
    doubled: Any = True
    for _ in range(50):  # 2 ** 50 values, if each is visited wherever it appears
        doubled = {"op": "and", "args": [doubled, doubled]}
    with pytest.raises(LanguageError, match="more than 100,000 values"):
        parse(doubled)


def test_long_strings_in_mappings() -> None:
    with pytest.raises(LanguageError, match=LONG):
        parse({"op": "=", "args": [{"property": "a"}, "x" * 10_000_000]})


def test_flat_chains_stay_flat() -> None:
    for kind, word in ((And, "and"), (Or, "or")):
        condition = parse(f" {word} ".join(["a"] * 10_000))
        assert isinstance(condition, kind)
        assert len(condition.parts) == 10_000
        assert parse(render_text(condition)) == condition
