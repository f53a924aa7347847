"""Composites read from the notation of OPS4ST, and written in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.papers.events import parse_ops4st, parse_ops4st_event, render_ops4st
from tests.composite.test_model import TWO, meeting

FIRE, SMOKE = '(STRING:k="fire")', '(STRING:k="smoke")'


@pytest.mark.parametrize(
    ("operator", "where"),
    [
        (f"IN({FIRE})", "IN(b, a)"),
        (f"OVLP({FIRE})", "OVLP(b, a)"),
        (f"SPL({FIRE};50)", "SPL(b, a) < 50"),
        (f"SPL({FIRE})", "SPL(b, a) < 7"),
        (f"DIST({FIRE};<;500)", "DIST(b, a) < 500"),
        (f"DIST({FIRE};>;500)", "DIST(b, a) > 500"),
        (f"DIST({FIRE};=;500)", "DIST(b, a) = 500 +- 3"),
        (f"DIST({FIRE};=;500;2)", "DIST(b, a) = 500 +- 2"),
    ],
)
def test_operators_with_subscriptions_are_composites(operator: str, where: str) -> None:
    subscription = parse_ops4st(operator + SMOKE, id="x", within_s=60, same_place_m=7, tolerance=3)
    members = {"a": "k = 'fire'", "b": "k = 'smoke'"}
    assert subscription == fp.Composite("x", members, [where], within_s=60)
    assert parse_ops4st(render_ops4st(subscription), id="x", within_s=60) == subscription


def test_composites_nest_in_the_notation() -> None:
    text = f"@(Circle(1,2,3))IN(DIST({FIRE};<;5){SMOKE})@((1,2))(ARITH:n>3)"
    subscription = parse_ops4st(text, id="x", within_s=60, subscriber="me")
    smoke = fp.Composite(
        "x.b.a", {"a": "k = 'fire'", "b": "k = 'smoke'"}, ["DIST(b, a) < 5"], within_s=60
    )
    inner = fp.Composite(
        "x.b",
        {"a": smoke, "b": "S_WITHIN(geometry, POINT(1 2)) AND n > 3"},
        ["IN(b, a)"],
        within_s=60,
    )
    assert subscription == fp.Composite(
        "x", {"b": inner}, ["IN(b, CIRCLE(1, 2, 3))"], within_s=60, subscriber="me"
    )
    reread = parse_ops4st(render_ops4st(subscription), id="x", within_s=60, subscriber="me")
    assert reread == subscription


def test_a_subscription_on_one_event_is_an_expression() -> None:
    m = fp.Matcher(space="planar")
    m.subscribe("me", parse_ops4st('DIST((0,0);<;5)(STRING:type="TAXI")'))  # type: ignore[arg-type]
    events = ('STRING:type="TAXI",0,3,3.9', 'STRING:type="TAXI",0,3,4', 'STRING:type="BUS",0,1,1')
    assert [m.match(parse_ops4st_event(text)) for text in events] == [["me"], [], []]


def test_the_notation_asks_for_a_window() -> None:
    with pytest.raises(fp.ModelError, match="no time window"):
        parse_ops4st(f"IN({FIRE}){SMOKE}")
    assert parse_ops4st(f"IN({FIRE}){SMOKE}", within_s=5).id == f"IN({FIRE}){SMOKE}"  # type: ignore[union-attr]
    with pytest.raises(fp.LanguageError, match="tolerance is a finite number"):
        parse_ops4st("()", tolerance=-1)
    with pytest.raises(fp.LanguageError, match="is text"):
        parse_ops4st(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "composite",
    [
        meeting(where=[]),
        meeting(where=["DIST(a, b) < 5", "OVLP(a, b)"]),
        meeting(members={**TWO, "c": "TRUE"}),
        meeting(where=["IN(POINT(1 2), a)"]),
        meeting(members={"a": "TRUE"}, where=["IN(a, POINT(1 2))"]),
        fp.Composite("x", {"a": meeting(), "b": "TRUE"}, ["OVLP(a, b)"], within_s=1),
        meeting(members={"a": "x = 1 OR y = 2", "b": "TRUE"}),
        fp.Composite(
            "x",
            {"a": meeting()},
            ["IN(a, POLYGON((0 0, 4 0, 1 1, 0 4, 0 0)))"],
            within_s=600,
        ),
    ],
)
def test_inexpressible_composites_are_refused(composite: fp.Composite) -> None:
    with pytest.raises(fp.LanguageError, match="OPS4ST"):
        render_ops4st(composite)


@given(st.recursive(
    st.sampled_from([FIRE, SMOKE, "()", "@((1,2))()", "OVLP(Circle(0,0,1))(ARITH:n=1)"]),
    lambda inner: st.builds(
        lambda operator, a, b: operator.format(a) + b,
        st.sampled_from(["IN({})", "OVLP({})", "SPL({};3)", "DIST({};=;4)", "DIST({};>=;4)"]),
        inner,
        inner,
    ) | inner.map(lambda one: "DIST((1,2);<;3)" + one),
    max_leaves=8,
))  # fmt: skip
def test_round_trips(text: str) -> None:
    subscription = parse_ops4st(text, id="x", within_s=60)
    assert parse_ops4st(render_ops4st(subscription), id="x", within_s=60) == subscription
    if isinstance(subscription, fp.Composite):
        assert fp.Composite.from_json(json.dumps(subscription.to_json())) == subscription
