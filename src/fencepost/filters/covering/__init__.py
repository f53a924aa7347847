"""Which terms and which filters imply which: what the simplifier goes by.

- `area_covering`: Covering and conflict of relations to areas, many pairs at a time
- `covering_index`: Which filters cover which: an index over filters, asked with filters
- `filter_rows`: Filters as rows of term numbers, which of many pairs of them cover, and where
  each is filed
- `predicate_covering`: Which predicates cover which: what the subscriptions of one subscriber can
  do without each other
- `term_covering`: Covering and conflict of terms: which implies which, and which cannot hold
  together
- `value_covering`: How the values that two checks of one column allow lie to each other
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
