"""`methods`: Shapely for subscriptions of several conditions, with a tree for each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from bench.peers.contest import SINGLE, Method, one_at_a_time, pairs_of_lists, timed
from bench.peers.mixed_workload import Events, Subscriptions

NAME = "Shapely, a tree for each kind"
Event = tuple[Any, str, int, list[str]]


def methods(subscriptions: Subscriptions, events: Events) -> list[Method]:
    """Return the method: boxes from the tree, prices in NumPy, words as sets, regions last."""

    def build() -> tuple[dict[str, Any], dict[str, NDArray[np.int64]], list[frozenset[str]]]:
        kinds = subscriptions.kinds
        rows_of = {f"k{kind}": np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}
        trees = {kind: shapely.STRtree(regions[rows]) for kind, rows in rows_of.items()}
        for tree in trees.values():
            tree.query(shapely.Point(0, 0))  # the first query builds the tree
        return trees, rows_of, [frozenset(words) for words in subscriptions.word_lists()]

    low, high, regions = subscriptions.low, subscriptions.high, subscriptions.regions
    (trees, rows_of, required_words), build_s = timed(build)

    def match_one(event: Event) -> NDArray[np.int64]:
        point, kind, price, event_words = event
        rows = rows_of[kind][trees[kind].query(point)]
        rows = rows[(low[rows] <= price) & (price <= high[rows])]
        words = frozenset(event_words)
        rows = np.array([row for row in rows.tolist() if required_words[row] <= words], np.int64)
        matches: NDArray[np.int64] = rows[shapely.intersects_xy(regions[rows], point.x, point.y)]
        return matches

    points = shapely.points(events.points)
    rows = list(zip(points, events.kinds, events.prices, events.words, strict=True))
    return [Method(NAME, SINGLE, build_s, one_at_a_time(match_one, rows), pairs_of_lists)]
