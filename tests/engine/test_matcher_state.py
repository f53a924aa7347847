"""A matcher under any sequence of calls, beside a model: conditions that the oracle evaluates."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fencepost.cql2 import parse
from fencepost.cql2.ast import Condition
from fencepost.engine import Matcher
from fencepost.errors import FencepostError
from fencepost.reference import evaluate
from fencepost.testing import keep_segments_small
from tests.engine.strategies import examples

IDS = [f"id{number}" for number in range(7)]
EXPRESSIONS = [
    *(
        "n > 1",
        "n = 1 OR s = 'a'",
        "s = 'a'",
        "s IN ('a', 'b', 'c') AND n < 5",
        "NOT (n > 1)",
        "TRUE",
    ),
    *("S_INTERSECTS(g, BBOX(0, 0, 2, 2))", "S_WITHIN(g, BBOX(0, 0, 4, 4)) AND s <> 'b'", "FALSE"),
    *("S_DWITHIN(g, POINT(3 3), 2)", "EH_DISJOINT(g, BBOX(0, 0, 1, 1))", "g IS NULL", "n + 1 > n"),
    *("A_CONTAINS(l, ('a'))", "A_OVERLAPS(l, ('hail', 'snow')) OR S_TOUCHES(g, POINT(0 0))"),
    *("s LIKE 'a%'", "CASEI(s) = 'a'", "t > DATE('2020-01-02')", "n NOT IN (1, 2)", "s >= 'b'"),
]
TREES = {text: parse(text) for text in EXPRESSIONS}
NEAR = [parse(f"S_DWITHIN(g, {place}, 2)") for place in ("POINT(3 3)", "POINT(0 0)")]
NOT_MOVABLE = [tree for text, tree in TREES.items() if "(g, " not in text]
BAD = ["n >", "foo(1)", "(" * 100, "", "S_INTERSECTS(g, POLYGON((0 0, 1 1, 1 0, 0 1, 0 0)))"]
EVENTS = [
    {},
    {"n": 1, "s": "a", "g": "POINT (1 1)", "l": ["a", "b"], "t": "2020-01-03"},
    {"n": 2.5, "s": "b", "g": "POLYGON ((1 1, 3 1, 3 3, 1 1))", "l": "Hail tonight"},
    {"n": "x", "s": "A", "g": "LINESTRING (0 0, 5 5)", "t": dt.date(2020, 1, 1)},
    {"n": -3, "s": "abc", "g": "junk", "l": []},
    {"s": "z", "g": "POINT (0 0)", "n": 1},
]
SECOND = 1_000_000_000
NEVER = 1 << 62


@dataclass(frozen=True)
class ModelSubscription:
    """A subscription of the model."""

    tree: Condition
    subscriber: str
    expires: int


class MatcherMachine(RuleBasedStateMachine):
    """Applies every call to a matcher and to a model of it."""

    @initialize(
        index=st.sampled_from(
            ["auto", "auto", "auto", "reference", "sff", "cr-tree", "rt", "rt+", "rt++"]
        ),
        max_memtable_rows=st.sampled_from([1, 2, 1000]),
        max_small_rows=st.sampled_from([0, 4, 1000]),
    )
    def begin(self, index: Any, max_memtable_rows: int, max_small_rows: int) -> None:
        self.now = 1_000 * SECOND
        self.matcher = Matcher(index=index, clock=self.clock, space="planar")
        keep_segments_small(
            self.matcher, max_memtable_rows=max_memtable_rows, max_small_rows=max_small_rows
        )
        self.model: dict[str, ModelSubscription] = {}
        self.folder = Path(tempfile.mkdtemp())

    def clock(self) -> int:
        return self.now

    def live(self) -> dict[str, ModelSubscription]:
        return {
            id: subscription
            for id, subscription in self.model.items()
            if subscription.expires > self.now
        }

    def _expiry(self, seconds: int | None) -> tuple[str | None, int]:
        if seconds is None:
            return None, NEVER
        instant = self.now + seconds * SECOND
        moment = dt.datetime.fromtimestamp(instant // SECOND, dt.UTC)
        return moment.isoformat(), instant

    @rule(
        id=st.sampled_from(IDS),
        text=st.sampled_from(EXPRESSIONS),
        subscriber=st.sampled_from([None, "ann", "bob"]),
        replace=st.booleans(),
        seconds=st.sampled_from([None, None, -5, 0, 5, 50]),
    )
    def subscribe(
        self, id: str, text: str, subscriber: str | None, replace: bool, seconds: int | None
    ) -> None:
        expires, instant = self._expiry(seconds)
        if id in self.live() and not replace:
            with pytest.raises(FencepostError, match="already"):
                self.matcher.subscribe(id, text, subscriber=subscriber, expires=expires)
            return
        self.matcher.subscribe(id, text, subscriber=subscriber, replace=replace, expires=expires)
        self.model[id] = ModelSubscription(TREES[text], subscriber or id, instant)

    @rule(id=st.sampled_from(IDS), text=st.sampled_from(BAD))
    def subscribe_badly(self, id: str, text: str) -> None:
        with pytest.raises(FencepostError):
            self.matcher.subscribe(id, text, replace=True)

    @rule(id=st.sampled_from(IDS))
    def unsubscribe(self, id: str) -> None:
        assert self.matcher.unsubscribe(id) is (id in self.live())
        self.model.pop(id, None)

    @rule(
        rows=st.lists(
            st.tuples(st.sampled_from([*IDS, ""]), st.sampled_from([*EXPRESSIONS, *BAD[:2]])),
            max_size=5,
        ),
        replace=st.booleans(),
        letters=st.booleans(),
    )
    def subscribe_many(self, rows: list[tuple[str, str]], replace: bool, letters: bool) -> None:
        good: dict[str, ModelSubscription] = {}
        bad = []
        live = self.live()
        for number, (id, text) in enumerate(rows):
            if not id or text not in TREES or id in good or (id in live and not replace):
                bad.append(number)
            else:
                good[id] = ModelSubscription(TREES[text], id, NEVER)
        table = [{"id": id, "expression": text} for id, text in rows]
        if not letters and bad:
            with pytest.raises(FencepostError, match="cannot be used"):
                self.matcher.subscribe_many(table, replace=replace)
            return
        dead_letters: list[tuple[int, str]] | None = [] if letters else None
        assert self.matcher.subscribe_many(table, dead_letters, replace=replace) == len(good)
        if dead_letters is not None:
            assert [row for row, _ in dead_letters] == bad
            assert all(reason for _, reason in dead_letters)
        self.model.update(good)

    @rule(
        ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True),
        value=st.sampled_from(["a", "b", 1, 2.5, True]),
    )
    def subscribe_columns(self, ids: list[str], value: object) -> None:
        def add() -> None:
            self.matcher.subscribe_columns(
                ids,
                equals={"s" if isinstance(value, str) else "n": [value] * len(ids)},
                regions={"g": (["POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"] * len(ids), "S_INTERSECTS")},
                keywords={"l": [[], ["a"], ["hail"], []][: len(ids)]},
            )

        if any(id in self.live() for id in ids):
            with pytest.raises(FencepostError, match="already"):
                add()
            return
        add()
        name = "s" if isinstance(value, str) else "n"
        literal = f"'{value}'" if isinstance(value, str) else str(value).upper()
        for id, words in zip(ids, ["", "a", "hail", ""], strict=False):
            text = f"{name} = {literal} AND S_INTERSECTS(g, BBOX(0, 0, 4, 4))"
            text += f" AND A_CONTAINS(l, ('{words}'))" if words else ""
            self.model[id] = ModelSubscription(parse(text), id, NEVER)

    @rule(id=st.sampled_from(IDS), place=st.sampled_from(["POINT (3 3)", "POINT (0 0)", "BAD"]))
    def move(self, id: str, place: str) -> None:
        subscription = self.live().get(id)
        if subscription is None or place == "BAD" or subscription.tree in NOT_MOVABLE:
            with pytest.raises(FencepostError):
                self.matcher.move(id, "g", place)
        elif subscription.tree in NEAR:
            self.matcher.move(id, "g", place)
            tree = parse(f"S_DWITHIN(g, {place}, 2)")
            self.model[id] = ModelSubscription(tree, subscription.subscriber, subscription.expires)

    @rule()
    def compact(self) -> None:
        self.matcher.compact()

    @rule(seconds=st.sampled_from([1, 5, 60]))
    def wait(self, seconds: int) -> None:
        self.now += seconds * SECOND

    @rule(event=st.sampled_from(EVENTS))
    def match(self, event: dict[str, object]) -> None:
        matches = {id: k for id, k in self.live().items() if evaluate(k.tree, event) is True}
        assert self.matcher.match(event) == sorted(matches)
        assert self.matcher.match_subscribers(event) == sorted(
            {k.subscriber for k in matches.values()}
        )

    @rule()
    def match_all(self) -> None:
        table = self.matcher.match_batch(EVENTS, sort=True)
        live = sorted(self.live().items())
        expected = [
            (row, id)
            for row, event in enumerate(EVENTS)
            for id, subscription in live
            if evaluate(subscription.tree, event) is True
        ]
        pairs = zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)
        assert list(pairs) == expected

    @rule(event=st.sampled_from(EVENTS))
    def explain(self, event: dict[str, object]) -> None:
        for id, subscription in self.live().items():
            assert self.matcher.explain(event, id).outcome is evaluate(subscription.tree, event)

    @rule()
    def save_and_open(self) -> None:
        self.matcher.save(self.folder / "index")
        index: Any = self.matcher.index
        self.matcher = Matcher.open(self.folder / "index", index=index, clock=self.clock)

    @precondition(lambda self: hasattr(self, "model"))
    @invariant()
    def subscriptions_equal_those_of_the_model(self) -> None:
        live = self.live()
        assert self.matcher.ids() == sorted(live)
        assert len(self.matcher) == len(live)
        for id in IDS:
            assert (id in self.matcher) is (id in live)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)


TestMatcherMachine = MatcherMachine.TestCase
TestMatcherMachine.settings = settings(examples(100), stateful_step_count=25)
