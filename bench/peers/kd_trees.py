"""SciPy's KD-tree for points within a distance, one tree for each pair of strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.peers import optional
from bench.peers.contest import BULK, SINGLE, Method, Pairs, over, pairs_of, pairs_of_lists, timed

BALLS = "SciPy, query_ball_point of all"
MATRIX = "SciPy, sparse_distance_matrix"
ONE = "SciPy, query_ball_point of one"
IN_BULK = (BALLS, MATRIX)
Key = tuple[str, str]


def methods(
    middles: NDArray[np.float64],
    keys: Sequence[Key],
    reach: float,
    points: NDArray[np.float64],
    asked: Sequence[Key],
) -> list[Method]:
    """Trees of subscriptions, asked with each event; or, in bulk, with a tree of events."""
    make_tree = optional.load("scipy.spatial", "scipy").cKDTree
    rows_of = _grouped(keys)

    def build() -> dict[Key, Any]:
        return {key: make_tree(middles[rows]) for key, rows in rows_of.items()}

    trees, build_s = timed(build)
    nowhere = np.empty(0, np.int64)

    def one(event: tuple[tuple[float, float], Key]) -> NDArray[np.int64]:
        place, key = event
        if key not in trees:
            return nowhere
        near = trees[key].query_ball_point(place, reach, return_sorted=False)
        found: NDArray[np.int64] = rows_of[key][near]
        return found

    def balls(count: int) -> Callable[[], list[Any]]:
        own = points[:count]

        def run() -> list[Any]:
            found = []
            for key, events in _grouped(asked[:count]).items():
                if key in trees:
                    lists = trees[key].query_ball_point(own[events], reach, return_sorted=False)
                    sizes = [len(near) for near in lists]
                    rows = rows_of[key][np.concatenate(lists).astype(np.int64)]
                    found.append((np.repeat(events, sizes), rows))
            return found

        return run

    def matrix(count: int) -> Callable[[], list[Any]]:
        own = points[:count]

        def run() -> list[Any]:
            found = []
            for key, events in _grouped(asked[:count]).items():
                if key in trees:
                    near = make_tree(own[events]).sparse_distance_matrix(
                        trees[key], reach, output_type="ndarray"
                    )
                    found.append((events[near["i"]], rows_of[key][near["j"]]))
            return found

        return run

    single = [(tuple(place), key) for place, key in zip(points.tolist(), asked, strict=True)]
    return [
        Method(BALLS, BULK, build_s, balls, _pairs),
        Method(MATRIX, BULK, build_s, matrix, _pairs),
        Method(ONE, SINGLE, build_s, over(one, single), pairs_of_lists),
    ]


def _grouped(keys: Sequence[Key]) -> dict[Key, NDArray[np.int64]]:
    """The places of each key, ascending."""
    found: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key, []).append(place)
    return {key: np.array(places) for key, places in found.items()}


def _pairs(parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Pairs:
    empty = np.empty(0, np.int64)
    events, rows = zip((empty, empty), *parts, strict=True)
    return pairs_of(np.concatenate(events), np.concatenate(rows))
