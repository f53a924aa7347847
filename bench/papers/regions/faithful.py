"""The paper's method, as `fencepost.papers.regions` implements it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from bench.papers.regions.predicates import ATTRIBUTE
from bench.papers.regions.workloads import Workload
from fencepost.events.event_values import EventValues
from fencepost.filters.checks import Filter
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.papers.regions.crtree import CRTree
from fencepost.papers.regions.sff import ForwardingTable

Rows = NDArray[np.int64]

LIST = "Algorithm 1, list"
TREE = "Algorithm 1, CR-tree"
RSTAR = "Algorithm 1, CR-tree R*"
PACKED = "Algorithm 1, CR-tree packed"
# How constraints can be kept, by name. Another kind of CR-tree is one line here.
TREES: dict[str, dict[str, Any]] = {
    LIST: {"indexed": False},
    TREE: {"split": "quadratic"},
    RSTAR: {"split": "rstar"},
    PACKED: {"packed": True},
}


class Constraints:
    """A workload in a list or a CR-tree; without a density relations are exact."""

    def __init__(
        self,
        workload: Workload,
        regions: Shapes,
        density: float | None,
        *,
        packed: bool = False,
        **kind: Any,
    ) -> None:
        self._tree = CRTree(density=density, **kind)
        self._tree.add_many(regions, 1 << workload.relations.astype(np.int64), packed=packed)

    def match(self, message: Shapes) -> Rows:
        """The constraints that a message, laid out, satisfies."""
        return np.sort(self._tree.search(message))


class Table:
    """Predicates in Siena Fast Forwarding; an interface each."""

    def __init__(
        self,
        filters: Sequence[Sequence[Filter]],
        density: float | None,
        region_index: Literal["cr-tree", "list"] = "cr-tree",
    ) -> None:
        if density is None:
            self._table = ForwardingTable(region_index)
        else:
            self._table = ForwardingTable(region_index, "sampled", density)
        for number, own in enumerate(filters):
            self._table.add(number, str(number), own)

    def match(self, message: EventValues) -> Rows:
        """The interfaces that a message is forwarded to."""
        return np.sort(np.array(list(map(int, self._table.match_interfaces(message))), np.int64))


def read_message(message: BaseGeometry) -> EventValues:
    """A message whose area is laid out."""
    event = EventValues({ATTRIBUTE: message})
    event.shapes(ATTRIBUTE)
    return event
