"""`fencepost.spark.needs`: an event is sent to each part in which it matches anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.index.segment import NEVER
from fencepost.match.catalogue import Subscription
from fencepost.match.matcher import Matcher
from fencepost.spark.needs import filters_of, summary
from tests.match.strategies import EVENTS, EXPRESSIONS, Event, examples

STOP_WORDS = ("a", "the", "hail")


def router(matcher: Matcher) -> Matcher:
    """What sends events to the segments of a matcher, by number."""
    columns = matcher._columns
    made = Matcher(columns.space, stop_words=columns.tokeniser.stop_words)
    made._add(
        [
            Subscription(str(k), None, str(k), int(NEVER), filters_of(summary(s.segment), columns))
            for k, s in enumerate(matcher.snapshot())
        ],
        replace=False,
    )
    return made


def lost(matcher: Matcher, events: Sequence[Event]) -> list[tuple[Event, str]]:
    """Matches of events that are not sent to where the subscription is."""
    matcher.settle()
    sends = router(matcher)
    at = {
        id: str(k) for k, shelf in enumerate(matcher.snapshot())
        for id in shelf.column("id").to_pylist()
    }  # fmt: skip
    return [
        (event, id)
        for event in events
        for id in matcher.match(event)
        if at[id] not in sends.match(event)
    ]


def filled(expressions: Sequence[Any], **options: Any) -> Matcher:
    matcher = Matcher(**options)
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression)
    return matcher


@examples(150)
@given(
    st.lists(EXPRESSIONS, min_size=1, max_size=3),
    st.lists(EVENTS, min_size=1, max_size=5),
    st.sampled_from([(), STOP_WORDS]),
)
@example(["s = '\0'"], [{"s": "\0"}], ())
def test_no_match_is_lost(expressions: list[Any], events: list[Event], stop: Any) -> None:
    assert lost(filled(expressions, stop_words=stop), events) == []
