"""The sample of events, and the plans that are made with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2 import parse
from fencepost.engine import (
    ColumnRegistry,
    FilterTable,
    Matcher,
    Segment,
    build,
    encode_events,
    event_sampler,
)
from fencepost.engine.columns.single_event_layout import SingleEventLayout
from fencepost.engine.event_sampler import CAPACITY, EventSample, EventSampler
from fencepost.events import EventTable, EventValues
from fencepost.filters import to_filters
from fencepost.kernels import EventArrays
from fencepost.reference import matches
from tests.engine.strategies import EVENTS, EXPRESSIONS, examples
from tests.engine.test_matcher_parity import conditions, expected_ids

PRIOR_WEIGHT = 8  # the estimate without a sample weighs as much as this many events


@contextmanager
def sampling_every_event() -> Iterator[None]:
    """Take every event into the sample."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_sampler, "_INITIAL_STRIDE", 1)
        patch.setattr(event_sampler, "_STRIDE", 1)
        yield


def sample_due(sampler: EventSampler, events: EventArrays, count: int) -> None:
    if sampler.is_due_after(count):
        sampler.add_from(events, count)


def sample_of(columns: ColumnRegistry, events: list[dict[str, Any]]) -> EventSample:
    with sampling_every_event():
        sampler = EventSampler()
        for event in events:
            sample_due(sampler, encode_events(columns, EventTable([event])), 1)
    assert len(sampler.sample()) == len(events)
    return sampler.sample()


def segment_of(columns: ColumnRegistry, texts: list[str], sample: EventSample) -> Segment:
    table = FilterTable(columns)
    for number, text in enumerate(texts):
        table.add(number, to_filters(parse(text)))
    names = pa.table({"id": list(map(str, range(len(texts))))})
    return Segment(build(table.arrays(), np.full(len(texts), 2**62), sample=sample), names)


# The access path of each of these finds exactly the events that satisfy it.
CONDITIONS = [
    *("s = 'a'", "s IN ('b', 'ab', 'nowhere')", "s = ''", "s LIKE 'a%'", "s LIKE '%b'"),
    *("s >= 'ab'", "s <= 'ab'", "s = 'bab'", "CASEI(s) = 'a'", "n BETWEEN 2 AND 4", "n = 3"),
    *("n >= 7", "n <= -2", "b", "b = FALSE", "s IS NULL", "n IS NULL", "g IS NULL"),
    *("S_INTERSECTS(g, BBOX(0, 0, 2, 2))", "S_INTERSECTS(g, BBOX(1, 1, 9, 2))"),
    *("S_INTERSECTS(g, BBOX(5, 5, 6, 6))", "S_INTERSECTS(h, BBOX(0, 0, 1, 1))", "t >= 3"),
]
POINTS = st.builds("POINT ({} {})".format, st.integers(0, 6), st.integers(0, 6))
SOME_EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "s": st.sampled_from(["a", "A", "b", "ab", "bab", "", "other", 7]),
        "n": st.one_of(st.integers(-2, 7), st.just("x")),
        "b": st.one_of(st.booleans(), st.just("yes")),
        "g": POINTS,
        "h": st.one_of(POINTS, st.just("POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))")),
    },
)


@given(st.lists(SOME_EVENTS, min_size=1, max_size=40))
@examples(25)
def test_selectivities_are_those_of_the_events(events: list[dict[str, Any]]) -> None:
    columns = ColumnRegistry()
    before = segment_of(columns, CONDITIONS, EventSample()).arrays.selectivity
    sample = sample_of(columns, events)
    after = segment_of(columns, CONDITIONS, sample)
    assert after.sampled_events == len(events)
    for text, expected, selectivity in zip(
        CONDITIONS, before.tolist(), after.arrays.selectivity.tolist(), strict=True
    ):
        hits = sum(matches(parse(text), event) for event in events)
        estimated_hits = selectivity * (len(events) + PRIOR_WEIGHT) - PRIOR_WEIGHT * expected
        if "BETWEEN" in text:  # numbers between sampled numbers count as well
            assert hits - 1e-4 <= estimated_hits <= hits + 1 + 1e-4
        else:
            assert estimated_hits == pytest.approx(hits, abs=1e-4), text


def test_numbers_are_expected_between_sampled_numbers() -> None:
    columns = ColumnRegistry()
    texts = ["n BETWEEN 4 AND 6", "n = 5", "n BETWEEN 10 AND 15", "n BETWEEN 30 AND 31"]
    expected = segment_of(columns, texts, EventSample()).arrays.selectivity
    sample = sample_of(columns, [{"n": n} for n in (0, 10, 20, 20, 20)])
    selectivity = segment_of(columns, texts, sample).arrays.selectivity
    hits = np.array([0.2, 0, 1, 0])
    assert selectivity.tolist() == pytest.approx(((hits + 8 * expected) / 13).tolist(), rel=1e-6)


@given(st.data())
@examples(60)
def test_count_meeting_boxes_against_brute_force(data: st.DataObject) -> None:
    def boxes(min_size: int) -> Any:
        corner = st.integers(0, 9)
        drawn = data.draw(st.lists(st.tuples(*[corner] * 4), min_size=min_size, max_size=30))
        a = np.array(drawn, np.float64).reshape(-1, 4)
        return np.column_stack((np.minimum(a[:, :2], a[:, 2:]), np.maximum(a[:, :2], a[:, 2:])))

    event_boxes, boxes_of_checks = boxes(0), boxes(1)
    boxes_of_checks[0] = -np.inf, -np.inf, np.inf, np.inf
    brute = [
        sum(
            box[0] <= event_box[2]
            and event_box[0] <= box[2]
            and box[1] <= event_box[3]
            and event_box[1] <= box[3]
            for event_box in event_boxes
        )
        for box in boxes_of_checks
    ]
    assert event_sampler.count_meeting_boxes(event_boxes, boxes_of_checks).tolist() == brute


def test_a_new_column_is_sampled_from_later_events_only() -> None:
    columns = ColumnRegistry()
    segment_of(columns, ["a = 'x'"], EventSample())
    with sampling_every_event():
        sampler = EventSampler()
        for k in range(20):
            event = EventValues({"a": "x", "b": "y"})
            sample_due(sampler, encode_events(columns, EventTable([event.attributes])), 1)
            if k == 9:
                expected = segment_of(
                    columns, ["a = 'x'", "b = 'y'"], EventSample()
                ).arrays.selectivity
    selectivity = segment_of(columns, ["a = 'x'", "b = 'y'"], sampler.sample()).arrays.selectivity
    corrected = [(20 + PRIOR_WEIGHT * expected[0]) / 28, (10 + PRIOR_WEIGHT * expected[1]) / 18]
    assert selectivity.tolist() == pytest.approx(corrected, rel=1e-6)


def test_long_strings_are_sampled_by_their_ends() -> None:
    columns = ColumnRegistry()
    texts = ["s LIKE 'begin%'", "s LIKE '%end'", "s = 'begin'"]
    expected = segment_of(columns, texts, EventSample()).arrays.selectivity
    sample = sample_of(columns, [{"s": "begin" + "x" * 10_000 + "end"}] * 8)
    selectivity = segment_of(columns, texts, sample).arrays.selectivity
    hits = np.array([8, 8, 0])
    assert selectivity.tolist() == pytest.approx(((hits + 8 * expected) / 16).tolist(), rel=1e-6)
    assert all(len(event.string[0] or b"") <= 256 for event in sample.events)


# ---------------------------------------------------------------------------------------- sampling


def numbered(columns: ColumnRegistry, first: int, count: int) -> EventArrays:
    rows = [EventValues({"n": first + k}) for k in range(count)]
    return encode_events(columns, EventTable([row.attributes for row in rows]))


def sampled_numbers(sampler: EventSampler) -> list[float]:
    return sorted(float(event.number[0]) for event in sampler.sample().events)


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_the_sample_stays_small_and_drops_old_events(count: int) -> None:
    columns = ColumnRegistry()
    segment_of(columns, ["n = 1"], EventSample())
    sampler = EventSampler()
    block = numbered(columns, 0, count)
    while len(sampler.sample()) < CAPACITY:
        before = len(sampler.sample())
        sample_due(sampler, block, count)
        assert len(sampler.sample()) - before <= max(count // 100, 1)
    later = numbered(columns, 5000, count)
    for _ in range(CAPACITY * 1100 // count):
        sample_due(sampler, later, count)
    assert len(sampler.sample()) == CAPACITY
    assert min(sampled_numbers(sampler)) >= 5000


def test_a_block_is_sampled_from_end_to_end() -> None:
    columns = ColumnRegistry()
    segment_of(columns, ["n = 1"], EventSample())
    sampler = EventSampler()
    sample_due(sampler, numbered(columns, 0, 10_000), 10_000)
    numbers = sampled_numbers(sampler)
    assert 32 <= len(numbers) <= 64
    assert np.diff(numbers).max() < 400
    assert numbers[0] < 400
    assert numbers[-1] > 9600


def test_threads_that_sample_together() -> None:
    columns = ColumnRegistry()
    segment_of(columns, ["n = 1"], EventSample())
    sampler = EventSampler()
    block = numbered(columns, 0, 50)

    def add_events() -> None:
        for _ in range(2000):
            sample_due(sampler, block, 50)

    threads = [threading.Thread(target=add_events) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert len(sampler.sample()) <= CAPACITY
    for thread in threads:
        thread.join()
    assert len(sampler.sample()) > CAPACITY // 4


# ------------------------------------------------------------------------------------------- plans


def skewed() -> tuple[list[dict[str, str]], pa.Table]:
    """Return subscriptions of 20 kinds with narrow intervals, and events of a single kind."""
    low = np.random.default_rng(1).uniform(0, 100, 1000)
    subscriptions = [
        {"id": f"s{k:03}", "expression": f"kind = 'k{k % 20}' AND n BETWEEN {x} AND {x + 3}"}
        for k, x in enumerate(low.tolist())
    ]
    numbers = np.random.default_rng(2).uniform(0, 100, 9000)
    return subscriptions, pa.table({"kind": ["k3"] * 9000, "n": numbers})


def candidates(matcher: Matcher, events: pa.Table) -> tuple[float, pa.Table]:
    """Return the number of candidates per event, and the matches."""
    before = matcher.stats()
    matches = matcher.match_batch(events, sort=True)
    after = matcher.stats()
    total = [s["events"] * s["candidates_per_event"] for s in (before, after)]
    return (total[1] - total[0]) / events.num_rows, matches


def test_reindex_plans_for_the_sampled_events() -> None:
    subscriptions, events = skewed()
    matcher = Matcher(space="planar")
    matcher.subscribe_many(subscriptions)
    matcher.compact()
    before_reindex, matches = candidates(matcher, events)
    assert {planned.expected_from for planned in matcher.plan("s004")} == {"subscriptions"}
    assert matcher.plan("s004")[0].path == "interval"
    matcher.reindex()
    after_reindex, same_matches = candidates(matcher, events)
    assert same_matches.equals(matches)
    assert len(matches) > 1000
    assert after_reindex < before_reindex / 5
    other_plan, own_plan = matcher.plan("s004")[0], matcher.plan("s003")[0]
    assert (other_plan.path, other_plan.expected_from) == ("equality", "events")
    assert (own_plan.path, own_plan.expected_from) == ("interval", "events")
    assert other_plan.selectivity < 0.02
    assert "expected from events" in str(other_plan)
    assert other_plan.as_dict()["expected_from"] == "events"


def test_new_and_merged_segments_are_planned_with_the_sample() -> None:
    subscriptions, events = skewed()
    matcher = Matcher(space="planar")
    matcher.subscribe("first", "kind = 'k0' AND n > 1000")
    matcher.compact()
    matcher.match_batch(events, sort=True)
    matcher.subscribe_many(subscriptions)  # becomes a segment at once
    ids = [f"c{k}" for k in range(20)]
    matcher.subscribe_columns(ids, equals={"kind": [f"k{k}" for k in range(20)], "n": range(20)})
    matcher.subscribe("last", "kind = 'k5' AND n BETWEEN 1 AND 99")  # goes to the memtable
    for id in ("s004", "c4", "last"):
        assert matcher.plan(id)[0].expected_from == "events"
    assert {matcher.plan(id)[0].path for id in ("s004", "last")} == {"equality"}


def test_a_plan_is_saved_and_the_sample_is_not(tmp_path: Path) -> None:
    subscriptions, events = skewed()
    matcher = Matcher(space="planar")
    matcher.subscribe_many(subscriptions)
    matches = matcher.match_batch(events, sort=True)
    matcher.reindex()
    matcher.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    assert opened.plan("s004") == matcher.plan("s004")
    opened.reindex()
    assert opened.plan("s004")[0].expected_from != "events"
    assert opened.match_batch(events, sort=True).equals(matches)
    assert not [path for path in (tmp_path / "index").rglob("*") if "sample" in path.name]


def test_reindex_without_subscriptions_or_events() -> None:
    matcher = Matcher(space="planar")
    matcher.reindex()
    matcher.subscribe("a", "n = 1")
    matcher.reindex()
    assert matcher.match({"n": 1}) == ["a"]
    assert matcher.plan("a")[0].expected_from == "subscriptions"
    matcher.unsubscribe("a")
    matcher.reindex()
    assert matcher.match({"n": 1}) == []
    assert matcher.stats()["segments"] == 0


@given(
    st.lists(EXPRESSIONS, min_size=2, max_size=8),
    st.lists(EVENTS, min_size=2, max_size=10),
)
@examples(80)
def test_matches_do_not_depend_on_the_sample(
    expressions: list[str], events: list[dict[str, Any]]
) -> None:
    with sampling_every_event():
        matcher, parsed = Matcher(space="planar"), conditions(expressions)
        half = len(expressions) // 2
        for number, expression in enumerate(expressions[:half]):
            matcher.subscribe(f"s{number}", expression)
        for event in events:
            matcher.match(event)
        for number, expression in enumerate(expressions[half:]):
            matcher.subscribe(f"s{half + number}", expression)
        matcher.compact()
        for reindexed in (False, True):
            if reindexed:
                matcher.reindex()
            for event in events:
                assert matcher.match(event) == expected_ids(parsed, event)


@given(st.lists(EXPRESSIONS, min_size=1, max_size=3), st.lists(EVENTS, min_size=1, max_size=5))
def test_single_events_leave_the_same_sample_as_tables(
    expressions: list[str], events: list[dict[str, Any]]
) -> None:
    columns = ColumnRegistry()
    filters = FilterTable(columns)
    for number, expression in enumerate(expressions):
        filters.add(number, to_filters(parse(expression)))
    with sampling_every_event():
        single, table = EventSampler(), EventSampler()
        for event in events:
            layout = SingleEventLayout(columns)
            geometry = layout.write(event)
            encoded = encode_events(columns, EventTable([event]))
            # Kernels pass on an event with a geometry that is not valid.
            is_valid = np.array_equal(encoded.geometry >= 0, layout.events.geometry >= 0)
            if geometry is not None and is_valid and single.is_due_after(1):
                single.add_one(layout.events, geometry)
                sample_due(table, encoded, 1)
    for one, other in zip(single.sample().events, table.sample().events, strict=True):
        assert one.string == other.string
        for name in ("number", "truth", "missing", "box"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
