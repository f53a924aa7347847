"""A counterexample to each erratum of figure 5, and tests that our trees are correct there."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.papers.spatiotextual.trees import KINDS, build
from tests.papers.spatiotextual.plainly import (
    Box,
    Post,
    by_message,
    figure_5,
    flat,
    matching,
    tree_of,
)

ALL = frozenset(range(1, 6))
FILL = frozenset({90, 91, 92})  # tokens of subscriptions that only make the trees higher


def posts(*boxes_and_tokens: tuple[Box, set[int]]) -> dict[int, Post]:
    return {row: Post(box, frozenset(tokens)) for row, (box, tokens) in enumerate(boxes_and_tokens)}


def assert_correct(subscriptions: dict[int, Post], shape: Any, message: Post) -> None:
    """Check the corrected figure and all our trees, with other subscriptions around or without."""
    expected = matching(subscriptions, message)
    assert figure_5(tree_of(shape, subscriptions), subscriptions, message, ALL)[0] == expected
    grid = [Post((x, y, x + 1, y + 1), FILL) for x in range(-9, 12, 3) for y in range(-9, 12, 3)]
    for padding in ([], grid):
        for kind in KINDS:
            index = build(
                kind, *flat([*subscriptions.values(), *padding]), min_entries=2, max_entries=4
            )
            assert by_message(index.match_many(*flat([message]))) == [expected], kind


def test_erratum_1_a_node_that_misses_the_message_does_not_end_the_search() -> None:
    subscriptions = posts(((8, 8, 9, 9), {1, 2}), ((0, 0, 1, 1), {1, 2}))
    shape = [[{0}], [{1}]]
    message = Post((0, 0, 1, 1), frozenset({1, 2}))
    assert figure_5(tree_of(shape, subscriptions), subscriptions, message, ALL - {1})[0] == []
    assert matching(subscriptions, message) == [1]
    assert_correct(subscriptions, shape, message)


def test_erratum_2_a_flag_that_stays_set_visits_pruned_children() -> None:
    subscriptions = posts(((0, 0, 1, 1), {1, 2}), ((0, 0, 1, 1), {3, 4}))
    shape = [[{0}], [{1}]]
    message = Post((0, 0, 1, 1), frozenset({1, 2}))
    root = tree_of(shape, subscriptions)
    pruned = root.entries[1]
    assert pruned in figure_5(root, subscriptions, message, ALL - {2})[1]
    assert pruned not in figure_5(root, subscriptions, message, ALL)[1]
    assert_correct(subscriptions, shape, message)


@pytest.mark.parametrize(
    "box",
    [
        (1, -5, 2, 9),  # a cross
        (2, 2, 2, 2),  # a point inside
        (-5, 3, 9, 3),  # a line across
        (1, 1, 2, 2),  # contained
    ],
)
def test_erratum_3_boxes_meet_without_a_corner_of_one_in_the_other(box: Box) -> None:
    subscriptions = posts(((0, 0, 4, 4), {1}), ((0, 0, 4, 4), {1, 2}))
    shape = [[{0, 1}]]
    message = Post(box, frozenset({1, 2}))
    assert figure_5(tree_of(shape, subscriptions), subscriptions, message, ALL - {3})[0] == []
    assert matching(subscriptions, message) == [0, 1]
    assert_correct(subscriptions, shape, message)


def test_erratum_4_fewer_tokens_than_levels_and_none_at_all() -> None:
    subscriptions = posts(
        ((0, 0, 4, 4), set()), ((0, 0, 4, 4), {1}), ((0, 0, 4, 4), {1, 2}), ((9, 9, 9, 9), set())
    )
    shape = [[[{0, 1}], [{2, 3}]]]
    message = Post((1, 1, 1, 1), frozenset({1, 7}))
    assert figure_5(tree_of(shape, subscriptions), subscriptions, message, ALL - {4})[0] == [1]
    assert matching(subscriptions, message) == [0, 1]
    assert_correct(subscriptions, shape, message)
    assert_correct(subscriptions, shape, Post((1, 1, 1, 1), frozenset()))


def test_erratum_5_a_subscription_in_two_nodes_would_be_counted_twice() -> None:
    """Nodes without overlap (the footnote's R+-tree) need copies: one token then counts as two."""
    subscriptions = posts(((0, 0, 9, 1), {1, 2}), ((0, 0, 2, 1), {3}), ((7, 0, 9, 1), {3}))
    message = Post((0, 0, 9, 1), frozenset({1}))
    copied = tree_of([{0, 1}, {0, 2}], subscriptions)
    for entry in copied.entries:
        entry.box = (0, 0, 4.5, 1) if 1 in entry.subscriptions else (4.5, 0, 9, 1)
    assert figure_5(copied, subscriptions, message, ALL)[0] == [0]
    assert matching(subscriptions, message) == []
    assert_correct(subscriptions, [{0, 1}, {2}], message)  # whose nodes overlap
    crossing = posts(*(((-k, k - 9, k, 9 - k), {1, 2 + k % 3}) for k in range(10)))
    for tokens in ({1}, {1, 2}, {2, 3, 4}, {1, 2, 3, 4}):
        shape = [[set(range(5))], [set(range(5, 10))]]
        assert_correct(crossing, shape, Post((0, 0, 0, 0), frozenset(tokens)))
