"""Ranking: cases worked by hand, and every index against the reference, to the last bit."""

from __future__ import annotations

import datetime as dt
import random
import threading
from decimal import Decimal
from fractions import Fraction
from math import inf, log, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.engine import INDEXES, Matcher, ranking
from fencepost.errors import FencepostError, ModelError
from fencepost.events import EventValues
from tests.engine import strategies
from tests.engine.strategies import examples
from tests.papers.spatiotextual import test_matcher_spatiotextual as words_and_places
from tests.seeds import seeds

Ranked = list[tuple[str, float]]


def matcher_of(expressions: dict[str, Any], index: Any = "auto") -> Matcher:
    matcher = Matcher(index=index, space="planar")
    for id, expression in expressions.items():
        matcher.subscribe(id, expression)
    return matcher


def rank(expressions: dict[str, Any], event: dict[str, Any]) -> Ranked:
    """Return the ranking of an event, after a check that all indexes agree."""
    ranked = [matcher_of(expressions, index).rank(event) for index in INDEXES]
    assert all(ranking == ranked[0] for ranking in ranked)
    return ranked[0]


# ------------------------------------------------------------------------------------- by hand


def test_rare_words_count_more() -> None:
    expressions = {
        "storm": "A_CONTAINS(text, ('storm'))",
        "both": "A_CONTAINS(text, ('Storm', 'hail'))",
        "calm": "A_CONTAINS(text, ('calm'))",
        "any": "text IS NOT NULL",
    }
    # Of 4 subscriptions, 2 name "storm", 1 names "hail" and none the third word.
    storm, hail, other = log(1 + 4 / 3), log(1 + 4 / 2), log(1 + 4 / 1)
    total = storm + hail + other
    ranked = rank(expressions, {"text": "Hail! Storm. Storm: beware"})
    assert [id for id, _ in ranked] == ["both", "storm", "any"]
    assert [score for _, score in ranked] == pytest.approx(
        [(storm + hail) / total / 2, storm / total / 2, 0.0], rel=1e-15
    )


def test_the_example_of_the_documentation() -> None:
    expressions = {
        "storm": "A_CONTAINS(text, ('storm'))",
        "both": "A_CONTAINS(text, ('storm', 'hail'))",
        "harbour": "A_CONTAINS(text, ('storm')) AND S_INTERSECTS(at, BBOX(0, 0, 6, 8))",
    }
    ranked = rank(expressions, {"text": "Hail storm tonight", "at": "POINT (6 8)"})
    assert [(id, round(score, 3)) for id, score in ranked] == [
        ("harbour", 0.348),
        ("both", 0.258),
        ("storm", 0.098),
    ]


def test_a_keyword_of_two_words_is_one_item_of_a_list_and_two_words_of_a_text() -> None:
    expressions = {"s": "A_CONTAINS(l, ('hail storm'))"}
    named, unnamed = log(1 + 1 / 2), log(1 + 1 / 1)
    ranked = rank(expressions, {"l": ["hail storm", "hail"]})
    assert ranked == [("s", named / (named + unnamed) / 2)]
    assert rank(expressions, {"l": "Storm, hail"}) == [("s", 0.5)]


def test_only_attributes_in_which_a_subscription_names_words_count() -> None:
    expressions = {
        "one": "A_CONTAINS(a, ('x'))",
        "two": "A_CONTAINS(a, ('x')) AND A_OVERLAPS(b, ('z', 'y'))",
        "no": "A_CONTAINS(a, ('x')) AND NOT A_CONTAINS(b, ('q'))",
        "part": "A_CONTAINS(a, ('x')) AND A_CONTAINEDBY(b, ('y', 'w'))",
        "empty": "A_CONTAINS(a, ('x')) AND A_CONTAINS(b, ())",
    }
    y, w = log(1 + 5 / 2), log(1 + 5 / 1)
    x = log(1 + 5 / 6)
    ranked = rank(expressions, {"a": ["x"], "b": ["y", "w"]})
    assert dict(ranked) == pytest.approx(
        {"one": 0.5, "no": 0.5, "part": 0.5, "empty": 0.5, "two": (x + y) / (x + y + w) / 2},
        rel=1e-15,
    )


def test_words_of_all_filters_are_named() -> None:
    expressions = {
        "s": "A_CONTAINS(l, ('a', 'b')) OR A_EQUALS(l, ('c')) OR n > 1 AND A_OVERLAPS(l, (7))"
    }
    assert rank(expressions, {"l": ["a", "b"], "n": 1}) == [("s", 0.5)]
    assert rank(expressions, {"l": ["a", "c", 7], "n": 2}) == [("s", 0.5)]
    assert rank(expressions, {"l": "7 b a"}) == [
        ("s", 2 * log(1 + 1 / 2) / (2 * log(1 + 1 / 2) + log(2)) / 2)
    ]


def test_a_keyword_without_a_word_names_nothing() -> None:
    expressions = {"s": "A_CONTAINS(a, ('!!!')) OR A_CONTAINS(b, ('x'))"}
    assert rank(expressions, {"a": "y z", "b": "x"}) == [("s", 0.5)]


@pytest.mark.parametrize(
    ("condition", "place", "nearness"),
    [
        ("S_INTERSECTS(g, BBOX(0, 0, 6, 8))", "POINT (3 4)", 1.0),
        ("S_INTERSECTS(g, BBOX(0, 0, 6, 8))", "POINT (6 8)", 0.5),
        ("S_INTERSECTS(g, BBOX(0, 0, 6, 8))", "POLYGON ((3 4, 9 4, 9 12, 3 4))", 0.5),
        ("S_INTERSECTS(g, POLYGON((0 0, 6 0, 0 8, 0 0)))", "POINT (0 8)", 0.5),
        ("NOT S_DISJOINT(g, BBOX(0, 0, 6, 8))", "POINT (6 8)", 0.5),
        ("NOT EH_DISJOINT(g, BBOX(0, 0, 6, 8))", "POINT (6 8)", 0.5),
        ("NOT EH_INSIDE(g, BBOX(0, 0, 6, 8))", "POINT (6 8)", 0.0),
        ("S_DISJOINT(g, BBOX(0, 0, 6, 8))", "POINT (6 9)", 0.0),
        ("S_DWITHIN(g, POINT(0 0), 5)", "POINT (3 4)", 0.5),
        ("NOT S_BEYOND(g, POINT(0 0), 5)", "POINT (3 4)", 0.5),
        ("S_BEYOND(g, POINT(0 0), 4)", "POINT (3 4)", 0.0),
        ("NOT S_DWITHIN(g, POINT(0 0), 4)", "POINT (3 4)", 0.0),
        ("S_SAMEPLACE(g, POINT(0 0), 15)", "POINT (3 4)", 0.75),
        ("S_DWITHIN(g, BBOX(0, 0, 6, 8), 5)", "POINT (3 13)", 10 / 19),
        ("S_INTERSECTS(g, POINT(1 1))", "POINT (1 1)", 1.0),
        ("S_INTERSECTS(g, POINT(1 1))", "LINESTRING (1 1, 3 1)", 0.0),
        ("S_INTERSECTS(g, BBOX(0, 0, 6, 8)) OR S_DWITHIN(g, POINT(6 8), 1)", "POINT (6 8)", 1.0),
        ("n = 1", "POINT (6 8)", 0.0),
        ("n = 1 OR S_INTERSECTS(h, BBOX(0, 0, 6, 8))", "POINT (6 8)", 0.0),
    ],
)
def test_nearness(condition: str, place: str, nearness: float) -> None:
    assert rank({"s": condition}, {"g": place, "n": 1}) == [("s", nearness / 2)]


def test_words_and_nearness_count_the_same() -> None:
    expressions = {"s": "A_CONTAINS(t, ('a')) AND S_INTERSECTS(g, BBOX(0, 0, 6, 8))"}
    a, b = log(1 + 1 / 2), log(2)
    ranked = rank(expressions, {"t": "a b", "g": "POINT (6 8)"})
    assert ranked == [("s", (a / (a + b) + 0.5) / 2)]


def test_coordinates_near_the_largest_double() -> None:
    far = 1.7e308
    expressions = {
        "all": f"S_INTERSECTS(g, BBOX({-far!r}, {-far!r}, {far!r}, {far!r}))",
        "far": f"S_DWITHIN(g, POINT({-far!r} {-far!r}), {far!r})",
        "here": f"S_INTERSECTS(g, BBOX({-far!r}, {-far!r}, -1e308, -1e308))",
    }
    ranked = rank(expressions, {"g": f"POINT ({-far!r} {-far!r})"})
    assert [id for id, _ in ranked] == ["far", "all", "here"]
    assert [score for _, score in ranked] == pytest.approx([0.5, 0.25, 0.25])


# --------------------------------------------------------------------------------------- limits


@pytest.fixture(params=INDEXES)
def three(request: pytest.FixtureRequest) -> Matcher:
    return matcher_of(
        {
            "b": "A_CONTAINS(t, ('x'))",
            "a": "A_CONTAINS(t, ('x'))",
            "c": "A_CONTAINS(t, ('x', 'y'))",
            "d": "A_CONTAINS(t, ('z'))",
        },
        request.param,
    )


def test_best_first_ties_by_id(three: Matcher) -> None:
    event = {"t": "x y"}
    assert three.match(event) == ["a", "b", "c"]
    ranked = three.rank(event)
    assert [id for id, _ in ranked] == ["c", "a", "b"]
    assert ranked[1][1] == ranked[2][1] < ranked[0][1] == 0.5
    assert three.match(event, top_k=2) == ["c", "a"]
    assert three.match(event, top_k=9) == ["c", "a", "b"]
    assert three.match(event, top_k=0) == []
    assert three.rank(event, top_k=0) == []
    assert three.match(event, min_score=0.5) == ["c"]
    assert three.match(event, min_score=ranked[1][1]) == ["c", "a", "b"]
    assert three.match(event, top_k=1, min_score=0) == ["c"]
    assert three.match(event, min_score=-inf) == ["c", "a", "b"]
    assert three.match(event, min_score=inf) == []
    assert three.match(event, min_score=10**400) == []
    assert three.rank(event, np.int64(1), np.float32(0)) == ranked[:1]  # type: ignore[arg-type]
    assert three.match({"t": "nothing"}, top_k=3) == []
    assert three.rank({}) == []


@pytest.mark.parametrize("bad", [-1, 1.0, "1", True, nan, Decimal(1), [1]])
def test_invalid_top_k(bad: Any) -> None:
    for call in (Matcher(space="planar").match, Matcher(space="planar").rank):
        with pytest.raises(ModelError, match="top_k must be a whole number from 0 on"):
            call({}, top_k=bad)


@pytest.mark.parametrize("bad", [nan, "1", True, np.float64("nan"), [1], 1j])
def test_invalid_min_score(bad: Any) -> None:
    for call in (Matcher(space="planar").match, Matcher(space="planar").rank):
        with pytest.raises(ModelError, match="min_score must be a number"):
            call({}, min_score=bad)


def test_invalid_event() -> None:
    with pytest.raises(FencepostError):
        Matcher(space="planar").rank(5)


# ---------------------------------------------------------------------------- against the reference


@given(
    st.lists(words_and_places.EXPRESSIONS, min_size=1, max_size=8),
    st.lists(words_and_places.EVENTS, min_size=1, max_size=3),
)
@examples(100)
def test_words_and_geometries_are_ranked_alike(
    expressions: list[str], events: list[dict[str, Any]]
) -> None:
    by_id = {f"s{k}": expression for k, expression in enumerate(expressions)}
    for event in events:
        ranked = rank(by_id, event)
        assert all(0 <= score <= 1 for _, score in ranked)
        assert [id for id, _ in ranked] == sorted(
            dict(ranked), key=lambda id: (-dict(ranked)[id], id)
        )


@given(
    st.lists(strategies.EXPRESSIONS, min_size=1, max_size=6),
    st.lists(strategies.EVENTS, min_size=1, max_size=3),
)
@examples(60)
def test_any_expressions_are_ranked_alike(
    expressions: list[Any], events: list[dict[str, Any]]
) -> None:
    by_id = {f"s{k}": expression for k, expression in enumerate(expressions)}
    matchers = [matcher_of(by_id, index) for index in ("auto", "reference", "rt++")]
    for event in events:
        ranked = [matcher.rank(event) for matcher in matchers]
        assert ranked[0] == ranked[1] == ranked[2]
        assert sorted(id for id, _ in ranked[0]) == matchers[0].match(event)


WORDS = ("ipad", "Café", "Straße", "new york", "!!!", "東京", "жара", "a-b", "7", "x", "y")
TEXTS = ("iPad! x y", "CAFÉ in der STRASSE 7", "new x in York", "東京 жара ipad", "", "a b y 7")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def random_keywords(rng: random.Random) -> list[str]:
    return rng.sample(WORDS, rng.randint(0, 3))


def random_box(rng: random.Random) -> list[float]:
    x, y = rng.randint(0, 9), rng.randint(0, 9)
    return [x, y, x + rng.randint(1, 6), y + rng.randint(1, 6)]


def random_expression(rng: random.Random) -> str:
    box = ", ".join(map(str, random_box(rng)))
    keywords = ", ".join(f"'{word}'" for word in random_keywords(rng))
    x, y = rng.randint(0, 12), rng.randint(0, 12)
    array = rng.choice(["A_CONTAINS", "A_CONTAINS", "A_OVERLAPS", "A_EQUALS", "A_CONTAINEDBY"])
    terms = [
        f"{array}(words, ({keywords}))",
        f"S_INTERSECTS(place, BBOX({box}))",
        f"S_DWITHIN(place, POINT({x} {y}), {rng.randint(0, 6)})",
        f"S_INTERSECTS(place, POLYGON(({x} {y}, {x + 5} {y}, {x} {y + 7}, {x} {y})))",
        "n > 1",
    ]
    chosen = rng.sample(terms, rng.randint(1, 3))
    chosen = [f"NOT {term}" if rng.random() < 0.15 else term for term in chosen]
    joined = (" AND " if rng.random() < 0.7 else " OR ").join(chosen)
    return f"{joined} OR A_CONTAINS(words, ({keywords}))" if rng.random() < 0.3 else joined


def random_event(rng: random.Random) -> dict[str, Any]:
    x, y = rng.randint(0, 12), rng.randint(0, 12)
    places = (f"POINT ({x} {y})", f"POLYGON (({x} {y}, {x + 3} {y}, {x} {y + 4}, {x} {y}))", None)
    return {
        "words": rng.choice((rng.choice(TEXTS), rng.sample(WORDS, rng.randint(0, 6)), [7, "x"])),
        "place": rng.choice(places),
        "n": rng.randint(0, 2),
    }


def limited(ranked: Ranked, top_k: int | None, min_score: float | None) -> Ranked:
    """Return what the limits leave of a ranking."""
    kept = [pair for pair in ranked if min_score is None or pair[1] >= min_score]
    return kept if top_k is None else kept[:top_k]


class MatcherHistory:
    """Matchers with several indexes that undergo the same random changes."""

    def __init__(
        self, seed: int, indexes: Any, space: Literal["planar", "wgs84"] = "planar"
    ) -> None:
        self.now = 0
        self.rng = random.Random(seed)
        self.matchers = [
            Matcher(index=index, clock=lambda: self.now, space=space) for index in indexes
        ]
        self.added = 0

    def step(self) -> None:
        rng, act = self.rng, self.rng.random()
        ids = self.matchers[0].ids()
        if act < 0.35:
            self.added += 1
            expires = None if rng.random() < 0.6 else EPOCH + dt.timedelta(rng.randint(1, 40))
            self.subscribe(f"s{self.added}", expires)
        elif act < 0.5 and ids:
            self.subscribe(rng.choice(ids), None)
        elif act < 0.65 and ids:
            removed_id = rng.choice(ids)
            assert all(matcher.unsubscribe(removed_id) for matcher in self.matchers)
        elif act < 0.75:
            self.now += rng.randint(0, 3) * 86_400 * 10**9
        elif act < 0.85:
            self.subscribe_columns(rng.randint(1, 6))
        self.compare()

    def subscribe(self, id: str, expires: Any) -> None:
        expression = random_expression(self.rng)
        for matcher in self.matchers:
            matcher.subscribe(id, expression, replace=True, expires=expires)

    def subscribe_columns(self, count: int) -> None:
        rng = self.rng
        ids = [f"c{self.added}-{k}" for k in range(count)]
        self.added += 1
        boxes: Any = np.array([random_box(rng) for _ in ids])
        columns: dict[str, Any] = {"keywords": {"words": [random_keywords(rng) for _ in ids]}}
        if rng.random() < 0.7:
            relation = rng.choice(["S_INTERSECTS", "S_INTERSECTS", "S_CONTAINS", "S_DISJOINT"])
            columns["regions"] = {"place": (boxes.astype(float), relation)}
        if rng.random() < 0.3:
            columns["within"] = {"place": (boxes.astype(float), rng.randint(0, 4))}
        for matcher in self.matchers:
            matcher.subscribe_columns(ids, **columns)

    def compare(self) -> None:
        event = random_event(self.rng)
        ranked = [matcher.rank(event) for matcher in self.matchers]
        if self.matchers[0].space == "planar":
            assert all(ranking == ranked[0] for ranking in ranked)
        else:  # distances on the ellipsoid may differ by rounding, and with them the order
            assert all(
                dict(ranking) == pytest.approx(dict(ranked[0]), rel=1e-9, abs=0)
                for ranking in ranked
            )
        best = ranked[0]
        assert best == sorted(best, key=lambda pair: (-pair[1], pair[0]))
        scores = [score for _, score in best]
        matcher = self.matchers[0]
        for top_k in (None, 0, 1, self.rng.randint(0, len(best) + 1)):
            for min_score in (None, self.rng.random() / 2, self.rng.choice([0, *scores])):
                expected = limited(best, top_k, min_score)
                assert matcher.rank(event, top_k, min_score) == expected
                if top_k is not None or min_score is not None:
                    assert matcher.match(event, top_k, min_score) == [id for id, _ in expected]


@pytest.mark.parametrize("seed", seeds(4, quick=1))
def test_rankings_on_the_ellipsoid_stay_alike_under_random_changes(
    seed: int, tmp_path: Path
) -> None:
    history = MatcherHistory(seed, ("auto", "reference"), "wgs84")
    for _ in range(25):
        history.step()
    history.matchers[0].save(tmp_path / "index")
    history.matchers[0] = Matcher.open(tmp_path / "index", clock=lambda: history.now)
    for _ in range(5):
        history.step()


@pytest.mark.parametrize("seed", seeds(8, quick=2))
def test_rankings_stay_alike_under_random_changes(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(ranking, "_BLOCK_ROWS", 3)
    history = MatcherHistory(
        seed, ("auto", "reference", "rt++") if seed < 6 else ("auto", "reference", "sff")
    )
    for _ in range(40):
        history.step()
    history.matchers[0].save(tmp_path / "index")
    history.matchers = [
        Matcher.open(tmp_path / "index", index=index, clock=lambda: history.now)
        for index in ("auto", "reference", "cr-tree")
    ] + history.matchers
    for _ in range(15):
        history.step()
    history.matchers[0].save(tmp_path / "again")
    history.matchers = [
        Matcher.open(tmp_path / "again", index=index, clock=lambda: history.now)
        for index in ("auto", "reference")
    ]
    history.compare()
    history.now = 0  # a clock that is set back revives expired subscriptions that still have rows
    for _ in range(3):
        history.compare()


def test_scores_follow_changes_of_subscriptions() -> None:
    now = [0]
    matcher = Matcher(clock=lambda: now[0], space="planar")
    words = [["x", "y"], ["x"], ["y"], ["z"]]
    matcher.subscribe_columns(list("abcd"), keywords={"t": words})
    event = {"t": "x y"}

    def score(living: int, naming_x: int, naming_y: int) -> float:
        x, y = log(1 + living / (1 + naming_x)), log(1 + living / (1 + naming_y))
        return x / (x + y) / 2

    assert dict(matcher.rank(event))["b"] == pytest.approx(score(4, 2, 2), rel=1e-15)
    matcher.unsubscribe("c")
    assert dict(matcher.rank(event))["b"] == pytest.approx(score(3, 2, 1), rel=1e-15)
    expires = EPOCH + dt.timedelta(seconds=1)
    matcher.subscribe("e", "A_CONTAINS(t, ('y')) OR A_CONTAINS(t, ('y', 'z'))", expires=expires)
    assert dict(matcher.rank(event))["b"] == pytest.approx(score(4, 2, 2), rel=1e-15)
    now[0] = 10**9
    assert dict(matcher.rank(event))["b"] == pytest.approx(score(3, 2, 1), rel=1e-15)
    matcher.subscribe("a", "A_CONTAINS(t, ('y'))", replace=True)
    assert dict(matcher.rank(event))["b"] == pytest.approx(score(3, 1, 1), rel=1e-15)


@pytest.mark.parametrize("index", ["auto", "reference", "rt"])
def test_a_subscription_that_expires_during_a_call(index: Any) -> None:
    calls = iter(range(1000))
    matcher = Matcher(index=index, clock=lambda: next(calls), space="planar")
    ranked = []
    for _ in range(30):
        expires = np.datetime64(next(calls) + 4, "ns")
        matcher.subscribe("s", "A_CONTAINS(t, ('x'))", expires=expires, replace=True)
        for _ in range(4):
            ranked += matcher.rank({"t": "x"})
    assert {id for id, _ in ranked} == {"s"}
    assert {score for _, score in ranked} <= {0.0, 0.5}


def test_ranking_while_subscriptions_change() -> None:
    matcher = Matcher(space="planar")
    ids = [f"s{k}" for k in range(60)]
    keywords = [["x", f"w{k % 7}"] for k in range(60)]
    matcher.subscribe_columns(ids, keywords={"t": keywords})
    event = {"t": "x " + " ".join(f"w{k}" for k in range(7))}
    broken: list[BaseException] = []

    def keep_ranking() -> None:
        try:
            for _ in range(60):
                ranked = matcher.rank(event)
                assert all(0 < score <= 0.5 for _, score in ranked)
                assert {f"s{k}" for k in range(30)} <= {id for id, _ in ranked}
        except BaseException as error:
            broken.append(error)

    threads = [threading.Thread(target=keep_ranking) for _ in range(3)]
    for thread in threads:
        thread.start()
    for k in range(30, 60):
        matcher.unsubscribe(f"s{k}")
        matcher.subscribe(f"s{k % 30}", f"A_CONTAINS(t, ('x', 'w{k % 7}'))", replace=True)
    for thread in threads:
        thread.join()
    assert not broken
    plain = Matcher(index="reference", space="planar")
    for id in matcher.ids():
        plain.subscribe(id, matcher.expression(id))
    assert matcher.rank(event) == plain.rank(event)


def test_sums_of_many_weights_are_rounded_once() -> None:
    rng = random.Random(5)
    words = [f"w{k}" for k in range(400)]
    keywords = [rng.sample(words, rng.randint(1, 60)) for _ in range(80)]
    matchers = []
    for index in ("auto", "reference"):
        matcher = Matcher(index=index, space="planar")
        for k, named in enumerate(keywords):
            items = ", ".join(f"'{word}'" for word in named)
            matcher.subscribe(f"s{k}", f"A_OVERLAPS(l, ({items})) AND n = 1")
        matchers.append(matcher)
    for memtable_is_flushed in (False, True):
        if memtable_is_flushed:
            matchers[0].compact()
        for _ in range(10):
            event = {"l": rng.sample(words, 300), "n": 1}
            ranked = matchers[0].rank(event)
            assert len(ranked) == 80
            assert ranked == matchers[1].rank(event)


# Limits on scores of 0.375 and 0.25, and how many of 200 and 100 scores remain.
LIMITS_OF_OTHER_TYPES: list[tuple[Any, int]] = [
    (Fraction(3, 8), 200),
    (Fraction(3, 8) + Fraction(1, 10**30), 0),
    (Fraction(1, 4) - Fraction(1, 10**30), 300),
    (np.longdouble("0.25"), 300),
    (np.float32(0.375), 200),
    (0, 300),
]


def test_limits_among_many_equal_scores() -> None:
    ids = random.Random(1).sample([f"s{k:03d}" for k in range(900)], 300)
    best, middle = ids[:100], ids[100:]
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(
        ids[:200], within={"g": (["POINT (0 0)"] * 200, [5.0] * 100 + [15.0] * 100)}
    )
    for id in ids[200:]:
        matcher.subscribe(id, "S_DWITHIN(g, POINT(0 0), 15)")
    event = {"g": "POINT (0 0)"}
    everything = [(id, 0.5) for id in sorted(ids)]
    event_beside = {"g": "POINT (3 4)"}
    ordered = [(id, 0.375) for id in sorted(middle)] + [(id, 0.25) for id in sorted(best)]
    for top_k in (0, 1, 5, 99, 100, 101, 199, 200, 201, 299, 300, 301, None):
        assert matcher.rank(event, top_k) == everything[:top_k]
        assert matcher.rank(event_beside, top_k) == ordered[:top_k]
        assert matcher.rank(event_beside, top_k, 0.3) == ordered[:200][:top_k]
        for min_score, count in LIMITS_OF_OTHER_TYPES:
            assert matcher.rank(event_beside, top_k, min_score) == ordered[:count][:top_k]


def test_words_of_later_subscriptions_leave_earlier_scores_alone() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("s", "A_OVERLAPS(a, ('x', 'y')) OR A_OVERLAPS(b, ('z'))")
    later_words = [f"later{k}" for k in range(20)]
    event = EventValues({"a": ["x", *later_words], "b": ["z", *later_words]})
    before = matcher.view().snapshot()
    hits = ranking.rows_by_segment(before, matcher._engine.matching_rows(before, event.attributes))
    scores = matcher._scorer.score(before, event, hits)
    assert 0 < scores[0] < 0.5
    for word in later_words:
        matcher.subscribe(word, f"A_OVERLAPS(a, ('{word}')) AND n = 7")
        assert np.array_equal(matcher._scorer.score(before, event, hits), scores)


def test_stop_words_are_ignored_in_texts_and_keywords() -> None:
    matchers = [
        Matcher(index=index, stop_words=["the"], space="planar")
        for index in ("auto", "reference", "rt")
    ]
    for matcher in matchers:
        matcher.subscribe("cat", "A_CONTAINS(t, ('the', 'cat'))")
        matcher.subscribe("dog", "A_CONTAINS(t, ('dog'))")
    rankings = [matcher.rank({"t": "The cat and the dog"}) for matcher in matchers]
    assert rankings[0] == rankings[1] == rankings[2]
    assert [id for id, _ in rankings[0]] == ["cat", "dog"]
    in_list = [matcher.rank({"t": ["the", "cat"]}) for matcher in matchers]
    assert in_list[0] == in_list[1] == in_list[2] == [("cat", 0.5)]


def test_scores_are_those_of_the_version_that_was_matched() -> None:
    matcher = Matcher(space="planar")
    for id, word in (("a", "x"), ("b", "y"), ("c", "y")):
        matcher.subscribe(id, f"A_OVERLAPS(t, ('{word}'))")
    matcher.compact()
    event = EventValues({"t": "x y"})
    before = matcher.view().snapshot()
    hits = ranking.rows_by_segment(before, matcher._engine.matching_rows(before, event.attributes))
    scores = matcher._scorer.score(before, event, hits)
    for id in ("b", "a", "c"):
        matcher.unsubscribe(id)
        after = matcher._scorer.score(matcher.view().snapshot(), event, hits)
        assert not np.array_equal(after, scores)
        assert np.array_equal(matcher._scorer.score(before, event, hits), scores)
