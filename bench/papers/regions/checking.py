"""Checks the answers of a method against the exact relation of each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from bench.papers.regions.workloads import Workload
from fencepost.engine.relate import relations
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.testing import Geometries

Rows = NDArray[np.int64]


def expected(workload: Workload, regions: Shapes, messages: Iterable[Any]) -> list[Rows]:
    """Return the constraints that each message satisfies, by the relation of each pair."""
    return expected_of(workload, regions, map(Shapes.read_one, messages))


def expected_of(workload: Workload, regions: Shapes, messages: Iterable[Shapes]) -> list[Rows]:
    """Return the constraints that each message satisfies; the messages are `Shapes`."""
    return [
        np.flatnonzero(relations(message, regions) == workload.relations) for message in messages
    ]


def probes(workload: Workload, messages: Geometries, count: int, seed: int) -> Geometries:
    """Return messages to check: the first `count`, and as many regions of constraints.

    A region equals itself, meets its neighbours and is covered by other regions; random messages
    never do.
    """
    rng = np.random.default_rng([seed, 7])
    rows = rng.choice(len(workload), min(count, len(workload)), replace=False)
    copies = shapely.from_wkb(shapely.to_wkb(workload.regions[rows]))  # they may be prepared
    return np.concatenate((messages[:count], copies))


def differences(
    match: Callable[[Any], NDArray[Any]], messages: Iterable[Any], expected_rows: Sequence[Rows]
) -> int:
    """Return how many ids are missing from the answers, or too many."""
    return sum(
        len(np.setxor1d(match(message), answer))
        for message, answer in zip(messages, expected_rows, strict=True)
    )
