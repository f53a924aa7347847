"""Published systems as indexes of a `Matcher`: their worked examples, options and statistics."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import geoarrow.pyarrow as ga
import numpy as np
import pyarrow as pa
import pytest
import shapely

from fencepost.cql2 import parse
from fencepost.engine import Matcher, relations
from fencepost.engine.executors import SegmentEngine
from fencepost.engine.index_registry import MatcherIndex
from fencepost.errors import ModelError
from fencepost.geometry import Shapes, Space
from fencepost.papers.regions import cr_tree, relations_sampled, sff
from fencepost.reference import evaluate
from fencepost.testing import mixed_pairs
from tests.engine.strategies import LATTICE
from tests.papers.regions.figures import FIGURE_1, FIGURE_3

PAPERS: tuple[Any, ...] = ("sff", "cr-tree", "rt", "rt+", "rt++", "ops4st", "ops4st-standard")
EXCLUSIVE = ("EH_DISJOINT", "EH_MEET", "EH_OVERLAP", "EH_EQUALS", "EH_INSIDE", "EH_CONTAINS")


@pytest.mark.parametrize(
    "index",
    ["sff", "cr-tree", sff(), cr_tree(), cr_tree(density=10.0)],
    ids=["sff", "cr-tree", "sff()", "cr_tree()", "cr_tree(density)"],
)
def test_the_message_of_figure_1_goes_to_interface_2_through_filter_2_2(
    index: Any,
) -> None:
    matcher = Matcher(index=index, space="planar")
    for number, (interface, text) in FIGURE_3.items():
        matcher.subscribe(f"f{number // 10}.{number % 10}", text, subscriber=interface)
    assert matcher.match_subscribers(FIGURE_1) == ["I2"]
    assert matcher.match(FIGURE_1) == ["f2.2"]
    assert matcher.explain(FIGURE_1, "f2.2").matches
    assert matcher.match_subscribers({**FIGURE_1, "hazard": 3}) == []
    stock = {"stock": "MTK", "price": 99}
    assert matcher.match_subscribers(stock) == ["I1"]
    assert matcher.match_subscribers({**FIGURE_1, **stock}) == ["I1", "I2"]


@pytest.mark.parametrize("index", PAPERS)
def test_expired_and_removed_filters_find_no_subscriber(index: Any) -> None:
    """The first filter that holds decides a subscriber; it must be neither expired nor removed."""
    now = 1_000_000_000
    matcher = Matcher(index=index, clock=lambda: now, space="planar")
    matcher.subscribe("short", "n > 0", subscriber="ann", expires="1970-01-01T00:00:05Z")
    matcher.subscribe("long", "n > 5", subscriber="ann", expires="1970-01-01T00:00:09Z")
    matcher.subscribe("gone", "n > 0", subscriber="bob")
    assert matcher.match_subscribers({"n": 1}) == ["ann", "bob"]
    matcher.unsubscribe("gone")
    assert matcher.match_subscribers({"n": 1}) == ["ann"]
    now = 5_000_000_000
    assert matcher.match_subscribers({"n": 1}) == []
    assert matcher.match_subscribers({"n": 6}) == ["ann"]
    # The id is used again; the expiry of the first subscription must not end the second.
    matcher.subscribe("long", "n > 0", subscriber="eve", replace=True)
    now = 10_000_000_000
    assert matcher.match_subscribers({"n": 1}) == ["eve"]
    assert matcher.match({"n": 1}) == ["long"]
    assert matcher.match_batch([{"n": 1}], sort=True)["subscription"].to_pylist() == ["long"]


def test_a_subscription_renewed_for_ever_leaves_nothing_behind() -> None:
    now = 0
    matcher = Matcher(index="sff", clock=lambda: now)
    for second in range(300):
        now = second * 1_000_000_000
        expires = np.datetime64(second + 1_000, "s")
        matcher.subscribe("s", f"n > {second}", replace=True, expires=expires)
        assert matcher.match({"n": second + 1}) == ["s"]
        assert matcher.match({"n": second}) == []
    assert matcher.stats()["expiring"] < 100
    now += 1_000_000_000_000
    assert matcher.match({"n": 1_000}) == []
    assert matcher.stats()["constraints"] == 0


def test_a_clock_that_advances_while_changes_are_applied() -> None:
    """The clock advances at each call, so that ids expire between any two calls."""
    ticks = itertools.count(1_000)
    matcher = Matcher(index="cr-tree", clock=lambda: next(ticks))
    for k in range(400):
        expires = np.datetime64(next(ticks) + k % 13, "ns")
        matcher.subscribe(f"s{k % 20}", f"n > {k % 3}", replace=True, expires=expires)
        assert set(matcher.match({"n": 5})) <= {f"s{j}" for j in range(20)}
    assert matcher.match({"n": 0}) == []


@pytest.mark.parametrize("index", PAPERS)
def test_an_index_is_chosen_when_a_folder_is_opened(index: Any, tmp_path: Path) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("a", "EH_INSIDE(g, BBOX(0, 0, 4, 4))", subscriber="ann")
    matcher.subscribe_columns(["b"], equals={"n": [5]}, subscribers=["bob"])
    matcher.save(tmp_path)
    assert Matcher.open(tmp_path).index == "auto"
    for index_name in ("auto", "reference", *PAPERS):
        reopened = Matcher.open(tmp_path, index=index_name)
        assert reopened.index == index_name
        event = {"g": "POINT (1 1)", "n": 5}
        assert reopened.match(event) == ["a", "b"], index_name
        assert reopened.match_subscribers(event) == ["ann", "bob"], index_name
        reopened.subscribe("c", "n < 9")
        reopened.unsubscribe("a")
        assert reopened.match(event) == ["b", "c"], index_name
    with pytest.raises(ModelError, match="index must be one of"):
        Matcher.open(tmp_path, index="best")  # type: ignore[arg-type]


def test_a_custom_index_is_given_as_papers_are() -> None:
    mine = MatcherIndex("mine", SegmentEngine, frozenset({Space.WGS84}))
    matcher = Matcher("wgs84", mine)
    matcher.subscribe("near", "S_DWITHIN(g, POINT(10 0), 120000)")
    assert matcher.index == "mine"
    assert matcher.match({"g": "POINT (11 0)"}) == ["near"]
    with pytest.raises(ModelError, match="index='mine' supports the space wgs84"):
        Matcher(index=mine, space="planar")


def test_an_index_stays_what_it_is() -> None:
    matcher = Matcher(index="sff")
    with pytest.raises(AttributeError):
        matcher.index = "auto"  # type: ignore[misc]


def test_stats_count_distinct_constraints() -> None:
    matcher = Matcher(index="cr-tree")
    assert matcher.stats()["constraints"] == 0
    for number in range(4):
        matcher.subscribe(f"s{number}", f"n > 5 AND m = {number % 2}")
    assert matcher.stats()["constraints"] == 3
    matcher.unsubscribe("s1")
    matcher.unsubscribe("s3")
    assert matcher.stats()["constraints"] == 2
    assert matcher.stats()["subscriptions"] == 2
    assert "constraints" not in Matcher(space="planar").stats()


# ---------------------------------------------------------------------------------------- sampling


def test_a_density_samples_relations_as_algorithm_1_does() -> None:
    regions, events = mixed_pairs(np.random.default_rng(3), 300, 12)
    shapes = Shapes.read_all(regions)
    exact, sampled = Matcher(index="cr-tree"), Matcher(index=cr_tree(density=2.0), space="planar")
    for matcher in (exact, sampled):
        matcher.subscribe_columns(
            [str(k) for k in range(300)], regions={"g": (regions, "S_INTERSECTS")}
        )
    differ = 0
    for event in events:
        shape = Shapes.read_one(event)
        for matcher, codes in (
            (exact, relations(shape, shapes)),
            (sampled, relations_sampled(shape, shapes, 2.0)),
        ):
            assert matcher.match({"g": event}) == sorted(map(str, np.flatnonzero(codes)))
        differ += exact.match({"g": event}) != sampled.match({"g": event})
    assert differ > 0


def test_a_folder_does_not_store_the_density(tmp_path: Path) -> None:
    near = "POLYGON ((4.01 0, 8 0, 8 5, 2 5, 2 4.01, 4.01 4.01, 4.01 0))"
    matcher = Matcher(index=cr_tree(density=10.0), space="planar")
    matcher.subscribe("touched", "S_INTERSECTS(g, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))")
    assert matcher.index == "cr-tree"
    assert matcher.match({"g": near}) == ["touched"]
    matcher.save(tmp_path)
    assert Matcher.open(tmp_path, index="cr-tree").match({"g": near}) == []
    reopened = Matcher.open(tmp_path, index=cr_tree(density=10.0))
    assert reopened.match({"g": near}) == ["touched"]


@pytest.mark.parametrize("index", ["best", None, cr_tree], ids=["best", "None", "cr_tree"])
def test_an_unknown_index_is_refused(index: Any) -> None:
    with pytest.raises(ModelError, match="index must be one of auto, reference, sff, cr-tree"):
        Matcher(index=index, space="planar")


@pytest.mark.parametrize("density", [0, -1.0, float("nan"), float("inf"), "thick", True, [1]])
def test_an_invalid_density_is_refused(density: Any) -> None:
    with pytest.raises(ModelError, match="above 0"):
        cr_tree(density)


# ------------------------------------------------------------------------------------------ tables


@pytest.mark.parametrize("index", ["auto", "reference", *PAPERS])
def test_geoarrow_columns_hold_geometries(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("in", "S_INTERSECTS(g, BBOX(0, 0, 2, 2))")
    matcher.subscribe("missing", "g IS NULL")
    matcher.subscribe("large", "n > 1")
    for places in (
        ["POINT (1 1)", None, "POINT (9 1)", "POINT (2 0)"],
        ["POLYGON ((0 0, 1 0, 1 1, 0 0))", None, "POLYGON ((5 5, 6 5, 6 6, 5 5))", "POLYGON EMPTY"],
        ["MULTIPOINT (5 5, 1 1)", None, "MULTIPOINT (5 5, 6 6)", "MULTIPOINT (1 0)"],
    ):
        for encode in (ga.as_geoarrow, ga.as_wkb):
            table = pa.table({"g": encode(places), "n": [1, 2, 3, None]})
            chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
            expected = [(0, "in"), (1, "large"), (1, "missing"), (2, "large")]
            if "EMPTY" not in places[3]:  # type: ignore[operator]
                expected.append((3, "in"))
            for events in (table, chunked, table.slice(0)):
                matches = matcher.match_batch(events, sort=True).to_pydict()
                assert list(zip(matches["event"], matches["subscription"], strict=True)) == expected


@pytest.mark.parametrize("index", ["auto", "reference", *PAPERS])
def test_a_table_of_rows_without_columns(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("always", "TRUE")
    matcher.subscribe("missing", "n IS NULL")
    matches = matcher.match_batch(pa.table({"x": [1, 2, 3]}).select([]), sort=True)
    assert matches["event"].to_pylist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("index", ["auto", "reference", *PAPERS])
def test_an_unused_column_of_another_extension_type_is_ignored(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("s", "n > 1")
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((3, 2, 2)))
    matches = matcher.match_batch(pa.table({"x": tensors, "n": [1, 2, 3]}), sort=True)
    assert matches["event"].to_pylist() == [1, 2]


@pytest.mark.parametrize("index", ["auto", "reference", *PAPERS])
def test_a_table_with_two_columns_of_one_name(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("s", "n > 1")
    table = pa.table([pa.array([1]), pa.array([2])], names=["n", "n"])
    with pytest.raises(ModelError, match="have the same name"):
        matcher.match_batch(table, sort=True)


# -------------------------------------------------------------------------------------------- many


@pytest.mark.parametrize("index", PAPERS)
@pytest.mark.slow
def test_thousands_of_subscriptions_that_come_and_go(index: Any) -> None:
    rng = random.Random(index)
    areas = [place for place in LATTICE if shapely.get_dimensions(place) == 2]
    texts = [
        f"{function}(g, {place.wkt})" for function, place in itertools.product(EXCLUSIVE, areas)
    ]
    texts += [f"n > {k} AND s <> '{k % 3}'" for k in range(40)]
    conditions = {text: parse(text) for text in texts}
    events: list[dict[str, Any]] = [
        {"g": rng.choice(LATTICE), "n": rng.randrange(40), "s": str(rng.randrange(4))}
        for _ in range(6)
    ]
    expected_texts = [
        {text for text in texts if evaluate(conditions[text], e) is True} for e in events
    ]
    matcher = Matcher(index=index, space="planar")
    kept: dict[str, str] = {}
    for step in range(12):
        added = {f"{step}-{k}": rng.choice(texts) for k in range(250)}
        added |= {id: rng.choice(texts) for id in rng.sample(sorted(kept), len(kept) // 10)}
        rows = [{"id": id, "expression": text} for id, text in added.items()]
        assert matcher.subscribe_many(rows, replace=True) == len(added)
        kept |= added
        for id in rng.sample(sorted(kept), len(kept) // 8):
            assert matcher.unsubscribe(id)
            del kept[id]
        event_number = step % len(events)
        expected_ids = [id for id, text in kept.items() if text in expected_texts[event_number]]
        assert matcher.match(events[event_number]) == sorted(expected_ids)
    assert len(matcher) == len(kept) > 1_000
