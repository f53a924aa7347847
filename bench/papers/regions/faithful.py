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
# Arguments of `Constraints` by name. To measure another kind of CR-tree, add a line.
TREES: dict[str, dict[str, Any]] = {
    LIST: {"indexed": False},
    TREE: {"split": "quadratic"},
    RSTAR: {"split": "rstar"},
    PACKED: {"packed": True},
}


class Constraints:
    """The constraints of a workload in a list or a CR-tree; without a density, exact relations."""

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
        """Return the constraints that a message satisfies."""
        return np.sort(self._tree.search(message))


class Table:
    """Predicates in Siena Fast Forwarding, one for each interface."""

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
        for number, predicate_filters in enumerate(filters):
            self._table.add(number, str(number), predicate_filters)

    def match(self, message: EventValues) -> Rows:
        """Return the interfaces to which a message is forwarded."""
        return np.sort(np.array(list(map(int, self._table.match_interfaces(message))), np.int64))


def read_message(message: BaseGeometry) -> EventValues:
    """Return a message whose area has been read already."""
    event = EventValues({ATTRIBUTE: message})
    event.shapes(ATTRIBUTE)
    return event
