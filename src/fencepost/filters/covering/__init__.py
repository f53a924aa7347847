"""Covering and conflict of terms, filters and predicates, for the simplifier.

A term covers another if the other implies it; so do filters and predicates. Two terms conflict if
no event satisfies both.

- `term_covering`: covering and conflict of terms, many pairs at a time
- `area_covering`: covering and conflict of relations to areas
- `value_covering`: covering and conflict of checks of strings, booleans, distances and lists
- `filter_rows`: filters as rows of term numbers; tests pairs of filters; keys to find them by
- `covering_index`: finds the filters that other filters cover
- `predicate_covering`: finds the predicates of one subscriber that other predicates cover
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.filters.covering.area_covering import CONFLICTS, COVERS
    from fencepost.filters.covering.term_covering import TermTable, conflicts, covers

__all__ = [
    "CONFLICTS",
    "COVERS",
    "TermTable",
    "conflicts",
    "covers",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "area_covering": ["CONFLICTS", "COVERS"],
            "term_covering": ["TermTable", "conflicts", "covers"],
        },
    )
