"""Normal form of conditions: filters, which are conjunctions of checks of columns.

- `checks`: columns, checks, terms and filters
- `normal_form`: a condition of the language to a list of filters
- `filter_conditions`: terms and filters back to a condition of the language
- `query_templates`: texts that differ in literals only, read by a template instead of the parser
- `evaluation`: the truth value of a condition for one event
- `spatial_relations`: the relation of two geometries, and which relations a function accepts
- `distances`: the distance of two geometries, compared with a bound
- `simplifier`: drops filters and terms that change no match
- `covering/`: which terms, filters and predicates imply which
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
    "ColumnKind",
    "Filter",
    "Term",
    "evaluate_condition",
    "evaluate_near",
    "measure_distance",
    "to_filters",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "checks": ["Column", "ColumnKind", "Filter", "Term"],
            "distances": ["evaluate_near", "measure_distance"],
            "evaluation": ["evaluate_condition"],
            "normal_form": ["to_filters"],
        },
    )
