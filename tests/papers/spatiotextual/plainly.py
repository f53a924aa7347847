"""Subscriptions, messages and who matches whom, in plain Python; and figure 5 as it is printed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.papers.spatiotextual.static_trees import Found

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
        for row, one in subscriptions.items()
        if meet(one.box, message.box) and one.tokens <= message.tokens
    )


def flat(posts: Sequence[Post]) -> Flat:
    """As the arrays that an index takes."""
    start = np.cumsum([0, *(len(one.tokens) for one in posts)])
    tokens = [token for one in posts for token in one.tokens]
    boxes = np.array([one.box for one in posts], np.float64).reshape(-1, 4)
    return boxes, start, np.array(tokens, np.uint32)


def by_message(found: Found) -> list[list[int]]:
    rows, stops = found
    assert rows.dtype == np.uint32
    assert stops.dtype == np.int64
    return [part.tolist() for part in np.split(rows, stops)[:-1]]


def some_posts(rng: random.Random, count: int, tokens: int, most: int, side: int) -> list[Post]:
    """Boxes on a small lattice (touching, equal, nested, crossing, points), few tokens."""
    return [
        Post(_box(rng, side), frozenset(rng.sample(range(tokens), rng.randint(0, most))))
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
    """A node of figure 4: its entries, or its subscriptions; its lists."""

    entries: Sequence[Node] = ()
    subscriptions: Collection[int] = ()
    lists: dict[int, list[int]] = field(default_factory=dict)
    box: Box = EVERYWHERE


def tree_of(shape: Any, posts: Mapping[int, Post]) -> Node:
    """Nested lists of rows as an Rt++-tree: the i-th token, by number, goes to level i."""
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
    root: Node, posts: Mapping[int, Post], message: Post, mended: Collection[int] = ()
) -> tuple[list[int], list[Node]]:
    """The answers and the nodes visited, by the printed algorithm but for the errata mended."""
    counts: Counter[int] = Counter()
    found: list[int] = []
    visited: list[Node] = []

    def prune(node: Node, level: int) -> None:
        visited.append(node)
        visit = False
        for entry in node.entries:
            if 2 in mended:
                visit = False
            near = meet if 3 in mended else _has_a_corner_in
            if not near(entry.box, message.box):
                if 1 in mended:
                    continue
                return
            for token in sorted(entry.lists.keys() & message.tokens):
                for row in entry.lists[token]:
                    counts[row] += 1
                    size = len(posts[row].tokens)
                    if counts[row] == level < size and entry.entries:
                        visit = True
                    if counts[row] == size and meet(posts[row].box, message.box):
                        found.append(row)
            if visit:
                prune(entry, level + 1)

    prune(root, 1)
    if 4 in mended:
        found += [
            row for row, one in posts.items() if not one.tokens and meet(one.box, message.box)
        ]
    return sorted(found), visited


def _has_a_corner_in(a: Box, b: Box) -> bool:
    return any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for x in a[::2] for y in a[1::2])
