"""The paper's trees and baselines, as `fencepost.papers.spatiotextual` implements them."""

from __future__ import annotations

from bench.papers.spatiotextual.methods import WARM_UP, Method, timed
from bench.papers.spatiotextual.token_sets import TokenBoxes
from bench.papers.spatiotextual.workloads import Workload
from fencepost.papers.spatiotextual.static_trees import Kind
from fencepost.papers.spatiotextual.token_order import Order
from fencepost.papers.spatiotextual.trees import SpatioTextualIndex, build

LEAST, MOST = 25, 50  # entries of a node, as in the paper
CELLS = 10_000  # of the locality-aware order, as in the paper
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
    """One of the kinds, built with the paper's parameters."""
    few = workload.subscriptions.first(WARM_UP)
    _build(few, kind, order)  # compiles
    index, seconds = timed(lambda: _build(workload.subscriptions, kind, order))
    return Method(
        name or NAMES[kind],
        seconds,
        index.nbytes,
        lambda m: lambda: index.match_many(m.boxes, m.start, m.tokens),
    )


def _build(given: TokenBoxes, kind: Kind, order: Order) -> SpatioTextualIndex:
    return build(
        kind,
        given.boxes,
        given.start,
        given.tokens,
        order=order,
        cells=CELLS,
        least=LEAST,
        most=MOST,
        seed=0,
    )
