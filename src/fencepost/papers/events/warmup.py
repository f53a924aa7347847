"""One small call of every kernel of this room, so that its machine code is there later."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.warmup import Step
from fencepost.papers.events.layout import (
    HULL,
    NEARER,
    NUMBER,
    Asked,
    Events,
    Predicate,
    Region,
    laid_out,
    one_hull,
)
from fencepost.papers.events.multilevel import MultiLevelIndex
from fencepost.papers.events.standard import StandardIndex


def steps() -> list[Step]:
    """What compiles each kernel or loads it from the cache, by name."""
    return [
        ("spatial events, one by one", lambda: _match(StandardIndex())),
        ("spatial events, by levels", lambda: _match(MultiLevelIndex())),
    ]


def _match(index: StandardIndex | MultiLevelIndex) -> None:
    asked = Asked(frozenset([Predicate(NUMBER, 0, False)]), Region(NEARER))
    index.add(0, asked)
    index.match_many(_one_event())


def _one_event() -> Events:
    return laid_out(
        np.zeros((1, 1, 2)),
        np.zeros(1, np.uint8),
        np.zeros((1, 1), np.int64),
        np.zeros((1, 1), np.int64),
        one_hull(((0.0, 0.0),)),
        np.full(1, HULL, np.uint8),
    )
