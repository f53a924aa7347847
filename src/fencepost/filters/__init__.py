"""Filters: conditions in a normal form, as checks of columns that must all hold.

- `covering/`: Which terms and which filters imply which: what the simplifier goes by
- `checks`: Columns and checks: what a filter asks of an event
- `distances`: Distances of two geometries, decided, in whichever space a matcher has
- `evaluation`: Conditions on one event, evaluated part by part: True, False or None for unknown
- `filter_conditions`: Terms and filters back into conditions of the language: the way from
  `normal.py` back
- `normal_form`: A condition as a disjunction of filters, each a conjunction of checks
- `query_templates`: Texts of one form: the same but for their numbers, strings and points
- `simplifier`: The simplifier: what a predicate can do without
- `spatial_relations`: What the spatial functions ask: sets of relations beside an area, matrices
  beside the rest
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.filters.checks import Column, ColumnKind, Filter, Term
    from fencepost.filters.distances import evaluate_near, measure_distance
    from fencepost.filters.evaluation import evaluate_condition
    from fencepost.filters.normal_form import to_filters

__all__ = [
    "Column",
    "Filter",
    "ColumnKind",
    "Term",
    "measure_distance",
    "to_filters",
    "evaluate_near",
    "evaluate_condition",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "checks": ["Column", "Filter", "ColumnKind", "Term"],
            "distances": ["measure_distance", "evaluate_near"],
            "evaluation": ["evaluate_condition"],
            "normal_form": ["to_filters"],
        },
    )
