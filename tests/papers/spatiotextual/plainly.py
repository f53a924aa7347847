"""Brute-force matching of subscriptions and messages in plain Python, and figure 5 as printed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.papers.spatiotextual.static_trees import Matches

Box = tuple[float, float, float, float]
Flat = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint32]]
EVERYWHERE: Box = (-np.inf, -np.inf, np.inf, np.inf)


@dataclass(frozen=True)
class Post:
    """A subscription or a message."""

    box: Box
    tokens: frozenset[int]


def meet(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def matching(subscriptions: Mapping[int, Post], message: Post) -> list[int]:
    return sorted(
        row
        for row, subscription in subscriptions.items()
        if meet(subscription.box, message.box) and subscription.tokens <= message.tokens
    )


def flat(posts: Sequence[Post]) -> Flat:
    """Return posts as the arrays that an index takes."""
    start = np.cumsum([0, *(len(post.tokens) for post in posts)])
    tokens = [token for post in posts for token in post.tokens]
    boxes = np.array([post.box for post in posts], np.float64).reshape(-1, 4)
    return boxes, start, np.array(tokens, np.uint32)


def by_message(matches: Matches) -> list[list[int]]:
    rows, stops = matches
    assert rows.dtype == np.uint32
    assert stops.dtype == np.int64
    return [part.tolist() for part in np.split(rows, stops)[:-1]]


def some_posts(
    rng: random.Random, count: int, tokens: int, max_tokens: int, side: int
) -> list[Post]:
    """Return posts with few tokens and boxes on a small lattice, which often touch or nest."""
    return [
        Post(_box(rng, side), frozenset(rng.sample(range(tokens), rng.randint(0, max_tokens))))
        for _ in range(count)
    ]


def _box(rng: random.Random, side: int) -> Box:
    kind = rng.randrange(10)
    if kind == 0:
        return EVERYWHERE
    x, y = rng.randrange(side), rng.randrange(side)
    if kind == 1:
        return (-np.inf, y, np.inf, y) if rng.random() < 0.5 else (x, -np.inf, x, np.inf)
    if kind < 4:
        return x, y, x, y
    return x, y, x + rng.randrange(4), y + rng.randrange(4)


@dataclass
class Node:
    """A node of figure 4, with entries or subscriptions, and with its lists."""

    entries: Sequence[Node] = ()
    subscriptions: Collection[int] = ()
    lists: dict[int, list[int]] = field(default_factory=dict)
    box: Box = EVERYWHERE


def tree_of(shape: Any, posts: Mapping[int, Post]) -> Node:
    """Return the Rt++-tree of nested lists of rows: the i-th token, by number, is on level i."""
    root = _node(shape, posts)
    levels = _height(root)
    for depth, node in _below(root, 0):
        for row in _rows(node):
            tokens = sorted(posts[row].tokens)
            last = depth == levels
            for token in tokens[depth - 1 :] if last else tokens[depth - 1 : depth]:
                node.lists.setdefault(token, []).append(row)
    return root


def _node(shape: Any, posts: Mapping[int, Post]) -> Node:
    node = (
        Node(subscriptions=shape)
        if isinstance(shape, set)
        else Node(entries=[_node(part, posts) for part in shape])
    )
    boxes = np.array([posts[row].box for row in _rows(node)])
    node.box = (*boxes[:, :2].min(axis=0).tolist(), *boxes[:, 2:].max(axis=0).tolist())
    return node


def _height(node: Node) -> int:
    return 1 + _height(node.entries[0]) if node.entries else 0


def _rows(node: Node) -> list[int]:
    return [*node.subscriptions, *(row for entry in node.entries for row in _rows(entry))]


def _below(node: Node, depth: int) -> Iterable[tuple[int, Node]]:
    for entry in node.entries:
        yield depth + 1, entry
        yield from _below(entry, depth + 1)


def figure_5(
    root: Node, posts: Mapping[int, Post], message: Post, corrected: Collection[int] = ()
) -> tuple[list[int], list[Node]]:
    """Return the matches and the visited nodes by the printed algorithm.

    corrected : the numbers of the errata that are corrected.
    """
    counts: Counter[int] = Counter()
    matches: list[int] = []
    visited: list[Node] = []

    def prune(node: Node, level: int) -> None:
        visited.append(node)
        visit = False
        for entry in node.entries:
            if 2 in corrected:
                visit = False
            near = meet if 3 in corrected else _has_a_corner_in
            if not near(entry.box, message.box):
                if 1 in corrected:
                    continue
                return
            for token in sorted(entry.lists.keys() & message.tokens):
                for row in entry.lists[token]:
                    counts[row] += 1
                    size = len(posts[row].tokens)
                    if counts[row] == level < size and entry.entries:
                        visit = True
                    if counts[row] == size and meet(posts[row].box, message.box):
                        matches.append(row)
            if visit:
                prune(entry, level + 1)

    prune(root, 1)
    if 4 in corrected:
        matches += [
            row for row, post in posts.items() if not post.tokens and meet(post.box, message.box)
        ]
    return sorted(matches), visited


def _has_a_corner_in(a: Box, b: Box) -> bool:
    return any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for x in a[::2] for y in a[1::2])
