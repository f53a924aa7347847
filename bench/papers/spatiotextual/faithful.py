"""The paper's trees and baselines, as `fencepost.papers.spatiotextual` implements them."""

from __future__ import annotations

from bench.papers.spatiotextual.methods import WARM_UP, Method, timed
from bench.papers.spatiotextual.token_sets import TokenBoxes
from bench.papers.spatiotextual.workloads import Workload
from fencepost.papers.spatiotextual.static_trees import Kind
from fencepost.papers.spatiotextual.token_order import Order
from fencepost.papers.spatiotextual.trees import SpatioTextualIndex, build

MIN_ENTRIES, MAX_ENTRIES = 25, 50  # of a node, as in the paper
CELLS = 10_000  # of the grid for the locality-aware order, as in the paper
ORDERS: tuple[Order, ...] = ("random", "df", "idf", "locality")
NAMES: dict[Kind, str] = {
    "rt": "Rt-tree",
    "rt+": "Rt+-tree",
    "rt++": "Rt++-tree",
    "keyword-first": "keyword-first",
    "spatial-first": "spatial-first",
    "ir-tree": "IR-tree",
}


def method(workload: Workload, kind: Kind, order: Order = "locality", name: str = "") -> Method:
    """Build an index of a kind with the paper's parameters."""
    few = workload.subscriptions.first(WARM_UP)
    _build(few, kind, order)  # compiles
    index, seconds = timed(lambda: _build(workload.subscriptions, kind, order))
    return Method(
        name or NAMES[kind],
        seconds,
        index.nbytes,
        lambda m: lambda: index.match_many(m.boxes, m.start, m.tokens),
    )


def _build(subscriptions: TokenBoxes, kind: Kind, order: Order) -> SpatioTextualIndex:
    return build(
        kind,
        subscriptions.boxes,
        subscriptions.start,
        subscriptions.tokens,
        order=order,
        cells=CELLS,
        min_entries=MIN_ENTRIES,
        max_entries=MAX_ENTRIES,
        seed=0,
    )
