"""Composites as values: their arguments, their errors, and their JSON."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.composite import MemberCondition, Operator, Predicate, read_condition
from fencepost.cql2 import MAX_DEPTH, parse
from fencepost.cql2.ast import ComparisonOp

TWO = {"a": "kind = 'taxi'", "b": "kind = 'rider'"}
SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"


def meeting(**changed: Any) -> fp.Composite:
    arguments: dict[str, Any] = {
        "id": "m",
        "members": TWO,
        "where": ["DIST(a, b) < 500"],
        "within_s": 600,
    }
    return fp.Composite(**(arguments | changed))


def test_members_become_trees() -> None:
    as_json = {"op": "=", "args": [{"property": "kind"}, "taxi"]}
    composite = meeting()
    assert composite == meeting(members={"b": TWO["b"], "a": as_json})
    assert composite == meeting(members={"a": parse(TWO["a"]), "b": json.dumps(_json_of(TWO["b"]))})
    assert composite.members["a"] == parse("kind = 'taxi'")
    assert (composite.id, composite.within_s, composite.subscriber) == ("m", 600.0, "m")
    assert composite.where == (
        MemberCondition(Predicate(Operator.DIST, ComparisonOp.LT, 500.0), "a", "b"),
    )


def _json_of(text: str) -> dict[str, Any]:
    name, value = text.split(" = ")
    return {"op": "=", "args": [{"property": name}, value.strip("'")]}


def test_a_composite_is_a_frozen_value() -> None:
    composite = meeting()
    changed: dict[str, Any]
    assert {composite, meeting(), meeting(id="n")} == {composite, meeting(id="n")}
    for changed in (
        {"within_s": 601},
        {"where": []},
        {"subscriber": "me"},
        {"members": {"a": "TRUE", "b": "TRUE"}},
    ):
        assert composite != meeting(**changed)
    with pytest.raises(AttributeError):
        composite.within_s = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        composite.members["c"] = parse("TRUE")  # type: ignore[index]
    assert composite != "m"


NESTED = fp.Composite(
    "convoy",
    members={"pair": meeting(subscriber="me"), "c": "speed > 5 AND S_INTERSECTS(g, POINT(1 2))"},
    where=["OVLP(pair, c)", f"IN(pair, {SQUARE})", "DIST(c, CIRCLE(1, 2, 3)) = 5"],
    within_s=0.5,
)


@pytest.mark.parametrize("composite", [meeting(), NESTED, meeting(where=[])])
def test_round_trips_through_json_text_and_pickle(composite: fp.Composite) -> None:
    assert fp.Composite.from_json(composite.to_json()) == composite
    assert fp.Composite.from_json(json.dumps(composite.to_json())) == composite
    assert pickle.loads(pickle.dumps(composite)) == composite
    assert eval(repr(composite), {"Composite": fp.Composite}) == composite
    again = fp.Composite(
        composite.id,
        composite.members,
        map(str, composite.where),
        composite.within_s,
        composite.subscriber,
    )
    assert again == composite


def test_json_as_documented() -> None:
    assert NESTED.to_json() == {
        "id": "convoy",
        "members": {
            "pair": {
                "id": "m",
                "members": {"a": _json_of(TWO["a"]), "b": _json_of(TWO["b"])},
                "where": [
                    {
                        "op": "<",
                        "args": [
                            {"op": "dist", "args": [{"member": "a"}, {"member": "b"}]},
                            500.0,
                        ],
                    }
                ],
                "within_s": 600.0,
                "subscriber": "me",
            },
            "c": {
                "op": "and",
                "args": [
                    {"op": ">", "args": [{"property": "speed"}, 5]},
                    {
                        "op": "s_intersects",
                        "args": [{"property": "g"}, {"type": "Point", "coordinates": [1.0, 2.0]}],
                    },
                ],
            },
        },
        "where": [
            {"op": "ovlp", "args": [{"member": "pair"}, {"member": "c"}]},
            {
                "op": "in",
                "args": [
                    {"member": "pair"},
                    {
                        "type": "Polygon",
                        "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]],
                    },
                ],
            },
            {
                "op": "=",
                "args": [
                    {"op": "dist", "args": [{"member": "c"}, {"circle": [1.0, 2.0, 3.0]}]},
                    5.0,
                ],
                "tolerance": 0.5,
            },
        ],
        "within_s": 0.5,
    }


def test_atoms_have_paths() -> None:
    assert [path for path, _ in NESTED.atoms()] == [("pair", "a"), ("pair", "b"), ("c",)]


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("IN(a, b)", Predicate(Operator.IN)),
        (" ovlp ( a , b ) ", Predicate(Operator.OVLP)),
        ("SPL(a, b) < 50", Predicate(Operator.SPL, ComparisonOp.LT, 50.0)),
        ("DIST(a,b)<=.5", Predicate(Operator.DIST, ComparisonOp.LE, 0.5)),
        ("DIST(a, b) = 500", Predicate(Operator.DIST, ComparisonOp.EQ, 500.0, 0.5)),
        ("DIST(a, b) = 0 +- 2", Predicate(Operator.DIST, ComparisonOp.EQ, 0.0, 2.0)),
        ("DIST(a, b) = 500 ± 0", Predicate(Operator.DIST, ComparisonOp.EQ, 500.0, 0.0)),
        ("DIST(a, b) >= 1e3", Predicate(Operator.DIST, ComparisonOp.GE, 1000.0)),
        ("DIST(a, b) > 0", Predicate(Operator.DIST, ComparisonOp.GT, 0.0)),
    ],
)
def test_conditions(text: str, predicate: Predicate) -> None:
    assert read_condition(text) == MemberCondition(predicate, "a", "b")


BAD_CONDITIONS = {
    "NEAR(a, b)": (0, "IN, OVLP, SPL or DIST"),
    "DIST(a, b)": (10, "a comparison, as in DIST(a, b) < 50"),
    "DIST(a, b) <> 5": (11, "a comparison"),
    "DIST(a b) < 5": (7, "and another member"),
    "DIST(a, b) < 0": (13, "write OVLP(a, b) for contact"),
    "DIST(a, b) >= 0": (14, "leave the condition out"),
    "DIST(a, b) < -1": (13, "0 or more; saw -1"),
    "SPL(a, b) > 5": (12, "SPL allows only the comparison <"),
    "IN(a, b) AND IN(b, a)": (9, "each condition is a separate item"),
    "IN(a, BOX(1 2))": (6, "unknown geometry type BOX"),
    "IN(a, POINT(1))": (12, "a point of"),
    "IN(a, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))": (6, "crosses itself"),
    "IN(a, CIRCLE(1, 2, 0))": (19, "a radius above 0"),
    "IN(POINT(1 2), POINT(1 2))": (15, "both operands are constants"),
    "IN('a', b)": (3, "has no meaning here"),
}


@pytest.mark.parametrize(("text", "expected"), BAD_CONDITIONS.items())
def test_an_error_in_a_condition_shows_the_place(text: str, expected: tuple[int, str]) -> None:
    with pytest.raises(fp.LanguageError) as caught:
        meeting(where=[text])
    assert expected[1] in str(caught.value)
    assert caught.value.position == expected[0]


A, B = {"member": "a"}, {"member": "b"}


@pytest.mark.parametrize(
    "condition",
    [
        {"op": "in"},
        {"op": "in", "args": [A]},
        {"op": "in", "args": [A, "b"]},
        {"op": "in", "args": [A, B], "tolerance": 1},
        {"op": "dist", "args": [A, B]},
        {"op": "<", "args": [{"op": "in", "args": [A, B]}, 5]},
        {"op": "<", "args": [{"op": "dist", "args": [A, B]}, "5"]},
        {"op": "<", "args": [{"op": "dist", "args": [A, B]}, float("nan")]},
        {"op": "<", "args": [{"op": "dist", "args": [A, B]}, True]},
        {"op": "<>", "args": [{"op": "dist", "args": [A, B]}, 5]},
        {"op": "=", "args": [{"op": "dist", "args": [A, B]}, 5], "tolerance": -1},
        {"op": "<", "args": [{"op": "dist", "args": [A, B]}, 5], "more": 1},
        {"op": "in", "args": [A, {"circle": [1, "x", 3]}]},
        {"op": "in", "args": [A, {"circle": [1, 2]}]},
        {"op": "in", "args": [A, {"type": "Point", "coordinates": []}]},
        {"op": "in", "args": [{"circle": [1, 2, 3]}, {"circle": [1, 2, 3]}]},
        5,
        None,
    ],
)
def test_invalid_conditions(condition: object) -> None:
    with pytest.raises(fp.LanguageError, match="saw"):
        meeting(where=[condition])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": ""}, "not empty"),
        ({"members": {}}, "a mapping of names to expressions"),
        ({"members": ["a"]}, "a mapping of names to expressions"),
        ({"members": {"a b": "TRUE"}}, "must be a word; saw 'a b'"),
        ({"members": {1: "TRUE"}}, "must be a word; saw 1"),
        ({"members": {f"a{k}": "TRUE" for k in range(65)}}, "64 are allowed"),
        ({"members": {"a": "x ="}}, "member 'a' of 'm': column 4"),
        ({"members": {"a": 5}}, "member 'a' of 'm': an expression is CQL2"),
        ({"members": {"a": {"id": "x", "members": {}}}}, "member 'a' of 'm': the composite lacks"),
        ({"where": "DIST(a, b) < 5"}, "a list of conditions"),
        ({"where": ["DIST(a, c) < 5"]}, "names 'c', which is not a member"),
        ({"where": ["DIST(a, a) < 5"]}, "relates 'a' to itself"),
        ({"within_s": None}, "no time window"),
        ({"within_s": 0}, "a number above 0; saw 0"),
        ({"within_s": float("inf")}, "a number above 0"),
        ({"within_s": "60"}, "a number above 0"),
        ({"within_s": 10**400}, "a number above 0"),
        ({"subscriber": 5.0}, "the subscriber"),
    ],
)
def test_invalid_arguments(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(fp.FencepostError) as caught:
        meeting(**changed)
    assert message in str(caught.value)


@pytest.mark.parametrize("source", ["[]", "{}", '{"id": 1}', "{", 5, {"id": "x", "other": 1}])
def test_invalid_json(source: Any) -> None:
    with pytest.raises(fp.FencepostError):
        fp.Composite.from_json(source)


def test_nesting_is_limited() -> None:
    composite = meeting()
    for _ in range(MAX_DEPTH - 1):
        composite = meeting(members={"a": composite, "b": "TRUE"})
    with pytest.raises(fp.LanguageError, match="nests more than"):
        meeting(members={"a": composite, "b": "TRUE"})


# ------------------------------------------------------------------------------------------ fuzz

TEXTS = [str(condition) for condition in NESTED.where] + ["SPL(a, b) < 5", "DIST(a, b) >= 2.5e1"]
PIECES = [*"(),<>=+-±.;@'\" ", "CIRCLE(", "POINT", "1e999", "DIST", "\ud800", "MULTIPOINT Z"]


@given(st.sampled_from(TEXTS), st.data())
def test_a_text_is_a_condition_or_refused(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    rest = text[at + data.draw(st.integers(0, 3)) :]
    text = text[:at] + data.draw(st.sampled_from(PIECES) | st.text(max_size=3)) + rest
    try:
        condition = read_condition(text)
    except fp.LanguageError:
        return
    assert read_condition(str(condition)) == condition == read_condition(condition.to_json())


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
MEMBERS = st.sampled_from(["id", "members", "where", "within_s", "op", "args", "member", "a"])
WORDS = st.sampled_from(["in", "dist", "spl", "<", "=", "a", "x = 1", "circle", "type"])
VALUES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS | WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, VALUES, VALUES)
def test_json_is_a_composite_or_refused(members: object, where: object, within_s: object) -> None:
    fields = {"id": "x", "members": members, "where": where, "within_s": within_s}
    for source in (
        fields,
        fields | {"members": {"a": "TRUE", "b": members}, "within_s": 5},
        members,
    ):
        try:
            composite = fp.Composite.from_json(source)  # type: ignore[arg-type]
        except fp.FencepostError:
            continue
        assert fp.Composite.from_json(composite.to_json()) == composite
