"""One small call of every kernel of this room, so that its machine code is there later."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.warmup import Step
from fencepost.model.geometry import Shapes
from fencepost.papers.regions.algorithm1 import relations_sampled
from fencepost.papers.regions.counting import SUBSCRIPTION, FilterCounts
from fencepost.papers.regions.crtree import CRTree


def steps() -> list[Step]:
    """What compiles each kernel or loads it from the cache, by name."""
    return [
        ("sampled relations", _sampled),
        ("the CR-tree's nodes", _nodes),
        ("the CR-tree's search", _search),
        ("the search of a list of regions", _scan),
        ("counting filters", _count),
    ]


def _square() -> Shapes:
    return Shapes.read_all(np.array([[0.0, 0.0, 1.0, 1.0]]))


def _sampled() -> None:
    for literally in (False, True):
        relations_sampled(_square(), _square(), 1.0, literally=literally)


def _nodes() -> None:
    tree = CRTree()
    tree.remove(tree.add(_square(), 1))


def _search() -> None:
    CRTree().search(_square())


def _scan() -> None:
    CRTree(indexed=False).search(_square())


def _count() -> None:
    counts = FilterCounts()
    counts.add([0], 0, 0)
    counts.count(np.zeros(1, np.int64), SUBSCRIPTION, counts.start(SUBSCRIPTION))
