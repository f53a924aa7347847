"""Whether the answers are right: every method against the exact relation, pair by pair."""

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
    """The constraints that each message satisfies, by the relation of every pair."""
    return expected_of(workload, regions, map(Shapes.read_one, messages))


def expected_of(workload: Workload, regions: Shapes, messages: Iterable[Shapes]) -> list[Rows]:
    """The same for messages that are laid out."""
    return [
        np.flatnonzero(relations(message, regions) == workload.relations) for message in messages
    ]


def probes(workload: Workload, messages: Geometries, count: int, seed: int) -> Geometries:
    """Messages to check: some of those given, and as many regions of the constraints.

    A region equals itself, meets its neighbours and is covered by others, which messages made at
    random never do.
    """
    rng = np.random.default_rng([seed, 7])
    rows = rng.choice(len(workload), min(count, len(workload)), replace=False)
    copies = shapely.from_wkb(shapely.to_wkb(workload.regions[rows]))  # they may be prepared
    return np.concatenate((messages[:count], copies))


def differences(
    match: Callable[[Any], NDArray[Any]], messages: Iterable[Any], right: Sequence[Rows]
) -> int:
    """How many ids are missing or too many in all answers."""
    return sum(
        len(np.setxor1d(match(message), answer))
        for message, answer in zip(messages, right, strict=True)
    )
