"""Shapely for subscriptions of several conditions: a tree for each kind, then the rest in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from bench.peers.contest import SINGLE, Method, over, pairs_of_lists, timed
from bench.peers.mixed_questions import Happenings, Questions

NAME = "Shapely, a tree for each kind"
Event = tuple[Any, str, int, list[str]]


def methods(asked: Questions, given: Happenings) -> list[Method]:
    """Boxes from the tree, prices in NumPy, words as sets, and what is left by its region."""

    def build() -> tuple[dict[str, Any], dict[str, NDArray[np.int64]], list[frozenset[str]]]:
        rows = {f"k{kind}": np.flatnonzero(asked.kinds == kind) for kind in np.unique(asked.kinds)}
        trees = {kind: shapely.STRtree(asked.regions[own]) for kind, own in rows.items()}
        for tree in trees.values():
            tree.query(shapely.Point(0, 0))  # it is built when it is first asked
        return trees, rows, [frozenset(words) for words in asked.word_lists()]

    (trees, rows_of, needed), build_s = timed(build)
    low, high, regions = asked.low, asked.high, asked.regions

    def one(event: Event) -> NDArray[np.int64]:
        point, kind, price, said = event
        rows = rows_of[kind][trees[kind].query(point)]
        rows = rows[(low[rows] <= price) & (price <= high[rows])]
        words = frozenset(said)
        left = np.array([row for row in rows.tolist() if needed[row] <= words], np.int64)
        kept: NDArray[np.int64] = left[shapely.intersects_xy(regions[left], point.x, point.y)]
        return kept

    points = shapely.points(given.points)
    events = list(zip(points, given.kinds, given.prices, given.words, strict=True))
    return [Method(NAME, SINGLE, build_s, over(one, events), pairs_of_lists)]
