"""From the tree of an expression to filters: which checks of which columns must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.plan.checks import Column, Filter, Kind, Term
    from fencepost.plan.distances import distance_in, near_in
    from fencepost.plan.evaluate import EventValues, truth
    from fencepost.plan.normal import filters
    from fencepost.plan.values import pair_of

__all__ = [
    "Column",
    "EventValues",
    "Filter",
    "Kind",
    "Term",
    "distance_in",
    "filters",
    "near_in",
    "pair_of",
    "truth",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "checks": ["Column", "Filter", "Kind", "Term"],
            "distances": ["distance_in", "near_in"],
            "evaluate": ["EventValues", "truth"],
            "normal": ["filters"],
            "values": ["pair_of"],
        },
    )
