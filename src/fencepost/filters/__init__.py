"""Filters: conditions in a normal form, as checks of columns that must all hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.filters.checks import Column, Filter, Kind, Term
    from fencepost.filters.distances import distance_in, near_in
    from fencepost.filters.evaluation import truth
    from fencepost.filters.normal_form import filters

__all__ = [
    "Column",
    "Filter",
    "Kind",
    "Term",
    "distance_in",
    "filters",
    "near_in",
    "truth",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "checks": ["Column", "Filter", "Kind", "Term"],
            "distances": ["distance_in", "near_in"],
            "evaluation": ["truth"],
            "normal_form": ["filters"],
        },
    )
