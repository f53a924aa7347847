"""`methods`: SciPy's KD-trees find points within a distance, one tree for each pair of strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.peers import optional
from bench.peers.contest import (
    BULK,
    SINGLE,
    Method,
    Pairs,
    one_at_a_time,
    pairs_of,
    pairs_of_lists,
    timed,
)

BALLS = "SciPy, query_ball_point of all"
MATRIX = "SciPy, sparse_distance_matrix"
ONE = "SciPy, query_ball_point of one"
IN_BULK = (BALLS, MATRIX)
Key = tuple[str, str]


def methods(
    middles: NDArray[np.float64],
    keys: Sequence[Key],
    radius: float,
    points: NDArray[np.float64],
    event_keys: Sequence[Key],
) -> list[Method]:
    """Return the methods that query trees of subscriptions, by event or with a tree of events."""
    make_tree = optional.load("scipy.spatial", "scipy").cKDTree
    rows_of = _positions_by_key(keys)

    def build() -> dict[Key, Any]:
        return {key: make_tree(middles[rows]) for key, rows in rows_of.items()}

    trees, build_s = timed(build)
    no_rows = np.empty(0, np.int64)

    def match_one(event: tuple[tuple[float, float], Key]) -> NDArray[np.int64]:
        point, key = event
        if key not in trees:
            return no_rows
        near = trees[key].query_ball_point(point, radius, return_sorted=False)
        rows: NDArray[np.int64] = rows_of[key][near]
        return rows

    def prepare_balls(count: int) -> Callable[[], list[Any]]:
        event_points = points[:count]

        def run() -> list[Any]:
            parts = []
            for key, events in _positions_by_key(event_keys[:count]).items():
                if key in trees:
                    lists = trees[key].query_ball_point(
                        event_points[events], radius, return_sorted=False
                    )
                    sizes = [len(near) for near in lists]
                    rows = rows_of[key][np.concatenate(lists).astype(np.int64)]
                    parts.append((np.repeat(events, sizes), rows))
            return parts

        return run

    def prepare_matrix(count: int) -> Callable[[], list[Any]]:
        event_points = points[:count]

        def run() -> list[Any]:
            parts = []
            for key, events in _positions_by_key(event_keys[:count]).items():
                if key in trees:
                    near = make_tree(event_points[events]).sparse_distance_matrix(
                        trees[key], radius, output_type="ndarray"
                    )
                    parts.append((events[near["i"]], rows_of[key][near["j"]]))
            return parts

        return run

    events = [(tuple(xy), key) for xy, key in zip(points.tolist(), event_keys, strict=True)]
    return [
        Method(BALLS, BULK, build_s, prepare_balls, _pairs),
        Method(MATRIX, BULK, build_s, prepare_matrix, _pairs),
        Method(ONE, SINGLE, build_s, one_at_a_time(match_one, events), pairs_of_lists),
    ]


def _positions_by_key(keys: Sequence[Key]) -> dict[Key, NDArray[np.int64]]:
    """Return the positions of each key in the sequence, ascending."""
    positions: dict[Key, list[int]] = {}
    for position, key in enumerate(keys):
        positions.setdefault(key, []).append(position)
    return {key: np.array(key_positions) for key, key_positions in positions.items()}


def _pairs(parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Pairs:
    empty = np.empty(0, np.int64)
    events, rows = zip((empty, empty), *parts, strict=True)
    return pairs_of(np.concatenate(events), np.concatenate(rows))
