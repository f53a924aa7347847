"""Which terms and which filters imply which: what the simplifier goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.plan.covering.areas import CONFLICTS, COVERS
    from fencepost.plan.covering.terms import TermTable, conflicts, covers

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
            "areas": ["CONFLICTS", "COVERS"],
            "terms": ["TermTable", "conflicts", "covers"],
        },
    )
