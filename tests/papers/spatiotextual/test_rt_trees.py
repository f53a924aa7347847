"""All kinds of `SpatioTextualIndex` against brute force, when built and when changed."""

from __future__ import annotations

import random
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.errors import IndexingError
from fencepost.papers.spatiotextual.static_trees import Kind
from fencepost.papers.spatiotextual.token_order import ORDERS, Order
from fencepost.papers.spatiotextual.trees import KINDS, SpatioTextualIndex, build
from tests.engine.strategies import examples
from tests.papers.spatiotextual.plainly import (
    EVERYWHERE,
    Post,
    by_message,
    flat,
    matching,
    meet,
    some_posts,
)

NARROW: dict[str, Any] = {"min_entries": 2, "max_entries": 4}  # many levels
BOXES = st.tuples(*[st.integers(0, 5)] * 4).map(
    lambda s: (min(s[0], s[2]), min(s[1], s[3]), max(s[0], s[2]), max(s[1], s[3]))
) | st.sampled_from([EVERYWHERE, (2, -np.inf, 2, np.inf), (3.0, 3.0, 3.0, 3.0)])
POSTS = st.builds(Post, BOXES, st.frozensets(st.integers(0, 6), max_size=6))


def test_the_names() -> None:
    assert get_args(Kind) == KINDS
    assert get_args(Order) == ORDERS


@given(st.lists(POSTS, max_size=40), st.lists(POSTS, max_size=6), st.sampled_from(ORDERS))
@examples(100)
def test_all_find_what_brute_force_finds(
    subscriptions: list[Post], messages: list[Post], order: Order
) -> None:
    expected = [matching(dict(enumerate(subscriptions)), message) for message in messages]
    for kind in KINDS:
        index = build(kind, *flat(subscriptions), order=order, cells=9, **NARROW)
        assert len(index) == len(subscriptions)
        assert by_message(index.match_many(*flat(messages))) == expected, kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("count", "options"),
    [(51, {}), (300, NARROW), (3_000, {}), (2_600, {"min_entries": 2, "max_entries": 64})],
)
def test_trees_of_several_levels(kind: Kind, count: int, options: dict[str, Any]) -> None:
    rng = random.Random(f"{count}")
    subscriptions = some_posts(rng, count, 20, 5, 40)
    messages = some_posts(rng, 60, 25, 12, 40)
    messages += [Post(EVERYWHERE, frozenset(range(20))), Post((3, 3, 3, 3), frozenset({99}))]
    index = build(kind, *flat(subscriptions), **options)
    expected = [matching(dict(enumerate(subscriptions)), message) for message in messages]
    assert by_message(index.match_many(*flat(messages))) == expected
    assert sum(map(len, expected)) > count


@pytest.mark.parametrize("kind", KINDS)
def test_one_token_that_everyone_has_and_one_place(kind: Kind) -> None:
    subscriptions = [Post((1, 1, 2, 2), frozenset({5})) for _ in range(400)]
    subscriptions[7] = Post((1, 1, 2, 2), frozenset({5, 6}))
    index = build(kind, *flat(subscriptions), **NARROW)
    messages = [
        Post((2, 2, 2, 2), frozenset({5})),  # at a corner
        Post((2, 0, 3, 1.5), frozenset({5, 6})),  # along an edge
        Post((2.1, 2, 3, 3), frozenset({5, 6})),
        Post((0, 0, 9, 9), frozenset({6, 4})),
        Post((0, 0, 9, 9), frozenset()),
    ]
    all_but_row_7 = [row for row in range(400) if row != 7]
    expected = [all_but_row_7, list(range(400)), [], [], []]
    assert by_message(index.match_many(*flat(messages))) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_matches_that_outgrow_the_output(kind: Kind) -> None:
    count = 30_000
    boxes = np.tile([0.0, 0.0, 1.0, 1.0], (count, 1))
    index = build(kind, boxes, np.arange(count + 1), np.full(count, 3, np.uint32))
    rows, stops = index.match_many(boxes[:9], np.arange(10), np.array([3, 4, 3, 3, 5, 3, 3, 3, 3]))
    assert np.diff(stops, prepend=0).tolist() == [count, 0, count, count, 0, *[count] * 4]
    assert (rows.reshape(7, count) == np.arange(count)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, NARROW])
def test_subscriptions_that_come_and_go(kind: Kind, options: dict[str, Any]) -> None:
    rng = random.Random(f"changes of {kind}")
    first = some_posts(rng, 120, 8, 4, 12)
    index = build(kind, *flat(first), **options)
    kept = dict(enumerate(first))
    for step in range(60):
        for post in some_posts(rng, rng.choice((0, 1, 1, 2, 25)), 8 + step, 4, 12):
            row = rng.choice([row for row in range(2_000) if row not in kept])
            index.add(row, post.box, np.array(sorted(post.tokens)))
            kept[row] = post
        for row in rng.sample(sorted(kept), min(len(kept), rng.choice((0, 1, 4, 30)))):
            index.remove(row)
            assert row not in index
            del kept[row]
        messages = some_posts(rng, 3, 9 + step, 6, 12)
        expected = [matching(kept, message) for message in messages]
        assert by_message(index.match_many(*flat(messages))) == expected, step
        assert len(index) == len(kept)
        assert_structure(index, kept)
    for row in list(kept):
        index.remove(row)
    assert len(index) == 0
    assert index.nbytes == 0
    assert by_message(index.match_many(*flat([Post(EVERYWHERE, frozenset(range(99)))]))) == [[]]


def assert_structure(index: SpatioTextualIndex, kept: dict[int, Post]) -> None:
    """Check that there are few trees, the sizes of their nodes, and property 1."""
    assert len(index.trees) <= 8
    rows = np.concatenate([_living_rows(tree) for tree in index.trees] or [np.empty(0)])
    assert sorted(rows.tolist()) == sorted(kept)
    if index.kind == "keyword-first":
        return
    for tree in index.trees:
        nodes = tree.arrays.nodes
        sizes = np.diff(nodes.first.astype(np.int64))
        max_entries = index.options.max_entries
        assert (sizes <= max_entries).all()
        assert (sizes[:-1] >= max_entries // 2).all()
        if index.kind == "rt++":
            _assert_property_1(tree, kept)


def _living_rows(tree: Any) -> Any:
    return tree.arrays.rows[~np.isnan(tree.arrays.boxes[:, 0])]


def _assert_property_1(tree: Any, kept: dict[int, Post]) -> None:
    """Check that each subscription is in one list for each token, the i-th on level i."""
    nodes, tables = tree.arrays.nodes, tree.arrays.tables
    height = int(nodes.level[-1])
    stored: dict[int, list[tuple[int, int]]] = {}
    for node in range(len(nodes.level)):
        for slot in range(tables.start[node], tables.start[node + 1]):
            for place in tables.members[tables.ends[slot] : tables.ends[slot + 1]].tolist():
                assert nodes.low[node] <= place < nodes.high[node]
                level = max(height, 1) - int(nodes.level[node])
                stored.setdefault(place, []).append((level, int(tables.keys[slot])))
    for place, row in enumerate(tree.arrays.rows.tolist()):
        levels_and_tokens = sorted(stored[place])
        if not np.isnan(tree.arrays.boxes[place, 0]):
            tokens = sorted(token + 1 for token in kept[row].tokens) or [0]
            assert sorted(token for _, token in levels_and_tokens) == tokens
        height_or_1 = max(height, 1)
        assert [level for level, _ in levels_and_tokens] == [
            min(k + 1, height_or_1) for k in range(len(levels_and_tokens))
        ]


def test_property_1_on_a_larger_tree() -> None:
    subscriptions = some_posts(random.Random(4), 3_000, 30, 6, 50)
    for options in ({}, NARROW):
        index = build("rt++", *flat(subscriptions), **options)
        assert_structure(index, dict(enumerate(subscriptions)))


# ------------------------------------------------------------------------------------- candidates


@pytest.mark.parametrize("order", ORDERS)
def test_lemma_2_candidates_of_the_rt_plus_tree_are_those_of_the_rt_tree(order: Order) -> None:
    rng = random.Random(f"lemma 2, {order}")
    subscriptions = some_posts(rng, 400, 30, 5, 30)
    rt, rt_plus = (build(kind, *flat(subscriptions), order=order, **NARROW) for kind in KINDS[:2])
    fewer = 0
    for step in range(40):
        message = some_posts(rng, 1, 32, 8, 30)[0]
        tokens = np.array(sorted(message.tokens))
        wide, narrow = (index.candidate_nodes(message.box, tokens) for index in (rt, rt_plus))
        assert len(wide) == len(narrow)
        for tree, (rt_plus_nodes, rt_nodes) in enumerate(zip(narrow, wide, strict=True)):
            assert set(rt_plus_nodes.tolist()) <= set(rt_nodes.tolist())
            fewer += len(rt_plus_nodes) < len(rt_nodes)
            assert set(rt_nodes.tolist()) == plain_candidates(
                rt, tree, message, representatives_only=False
            )
            assert set(rt_plus_nodes.tolist()) == plain_candidates(
                rt_plus, tree, message, representatives_only=True
            )
        added = some_posts(rng, 1, 30, 5, 30)[0]
        for index in (rt, rt_plus):
            index.add(1_000 + step, added.box, np.array(sorted(added.tokens)))
            index.remove(step)
    assert fewer > 0


def plain_candidates(
    index: SpatioTextualIndex, tree: int, message: Post, representatives_only: bool
) -> set[int]:
    """Return the candidate nodes by their definition, from the root down.

    representatives_only : compare the message with the first token of each subscription only.
    """
    arrays = index.trees[tree].arrays
    nodes = arrays.nodes
    places = int(nodes.high[-1])
    candidates = {len(nodes.level) - 1}
    for node in range(len(nodes.level) - 1, -1, -1):
        if node not in candidates or nodes.level[node] == 0:
            continue
        for child in range(int(nodes.first[node]) - places, int(nodes.first[node + 1]) - places):
            low, high = int(nodes.low[child]), int(nodes.high[child])
            tokens = set(arrays.representatives[low:high].tolist())
            if not representatives_only:
                tokens |= set(
                    arrays.tokens[arrays.token_start[low] : arrays.token_start[high]].tolist()
                )
            common = tokens & {0, *(token + 1 for token in message.tokens)}
            if common and meet(tuple(nodes.boxes[child]), message.box):
                candidates.add(child)
    return candidates


@pytest.mark.parametrize("kind", ["rt++", "keyword-first"])
def test_candidate_nodes_are_of_trees_with_masks(kind: Kind) -> None:
    index = build(kind, *flat([Post((0, 0, 1, 1), frozenset({1}))]))
    with pytest.raises(IndexingError, match="candidate nodes exist for"):
        index.candidate_nodes((0, 0, 1, 1), [1])


# --------------------------------------------------------------------------------------- bad input


def test_invalid_arguments_are_refused() -> None:
    valid: tuple[Any, ...] = ([[0, 0, 1, 1]], [0, 1], [3])
    for changed, message in (
        ({"order": "best"}, "order must be one of"),
        ({"min_entries": 1}, "min_entries <= max_entries / 2"),
        ({"min_entries": 30}, "min_entries <= max_entries / 2"),
        ({"max_entries": 65}, "max_entries <= 64"),
        ({"cells": 0}, "cells must be 1 or more"),
    ):
        with pytest.raises(IndexingError, match=message):
            build("rt", *valid, **changed)
    with pytest.raises(IndexingError, match="kind must be one of"):
        build("r", *valid)  # type: ignore[arg-type]
    for arrays, message in (
        (([[1, 0, 0, 1]], [0, 1], [3]), "x0 <= x1"),
        (([[np.nan, 0, 0, 1]], [0, 1], [3]), "x0 <= x1"),
        (([0, 0, 1, 1], [0, 1], [3]), r"\(n, 4\)"),
        (([[0, 0, 1, 1]], [0, 1, 1], [3]), "need 2 starts"),
        (([[0, 0, 1, 1]], [0, 2], [3]), "must ascend from 0 to 1"),
        (([[0, 0, 1, 1]], [0, 1], [2**28]), "each from 0 to"),
        (([[0, 0, 1, 1]], [0, 70_000], np.arange(70_000)), "up to 65,534 tokens"),
    ):
        with pytest.raises(IndexingError, match=message):
            build("rt++", *arrays)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_added_and_removed_once(kind: Kind) -> None:
    index = build(kind, *flat([Post((0, 0, 1, 1), frozenset({1}))]))
    with pytest.raises(IndexingError, match="already"):
        index.add(0, (0, 0, 1, 1), [2])
    with pytest.raises(IndexingError, match="no subscription 5"):
        index.remove(5)
    index.add(5, (0, 0, 1, 1), [2])
    with pytest.raises(IndexingError, match="already"):
        index.add(5, (0, 0, 1, 1), [2])
    for box, tokens in (
        ((1, 0, 0, 1), [2]),
        ((0, 0, 1, np.nan), [2]),
        ((0, 0, 1), [2]),
        ((0, 0, 1, 1), 2),
        ((0, 0, 1, 1), [2**28]),
        ((0, 0, 1, 1), np.arange(70_000)),
    ):
        with pytest.raises(IndexingError, match=r"x0, y0, x1, y1|each from 0 to"):
            index.add(6, box, tokens)
    with pytest.raises(IndexingError, match="from 0 to"):
        index.add(-1, (0, 0, 1, 1), [2])
    index.remove(5)
    index.remove(0)
    index.add(0, (2, 2, 3, 3), [])
    message = Post((2, 2, 2, 2), frozenset())
    assert by_message(index.match_many(*flat([message]))) == [[0]]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_index_and_no_messages(kind: Kind) -> None:
    empty = build(kind, np.empty((0, 4)), [0], [])
    message = Post((0, 0, 1, 1), frozenset({1}))
    assert by_message(empty.match_many(*flat([message, message]))) == [[], []]
    assert empty.nbytes == 0
    index = build(kind, *flat([message]))
    assert by_message(index.match_many(np.empty((0, 4)), [0], [])) == []
    assert index.nbytes > 0
    read_only = [np.array(array) for array in flat([message])]
    for array in read_only:
        array.setflags(write=False)
    copy = build(kind, *read_only)
    assert by_message(copy.match_many(*read_only)) == [[0]]
    copy.remove(0)
    assert not np.isnan(read_only[0]).any()
