"""Which terms and which filters imply which: what the simplifier goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

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
    __getattr__ = offering(
        __name__,
        {
            "area_covering": ["CONFLICTS", "COVERS"],
            "term_covering": ["TermTable", "conflicts", "covers"],
        },
    )
