"""From the tree of an expression to filters: which checks of which columns must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.filters.checks import Column, Filter, Kind, Term
    from fencepost.filters.distances import distance_in, near_in
    from fencepost.filters.evaluation import EventValues, truth
    from fencepost.filters.normal_form import filters
    from fencepost.filters.value_types import pair_of

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
            "evaluation": ["EventValues", "truth"],
            "normal_form": ["filters"],
            "value_types": ["pair_of"],
        },
    )
