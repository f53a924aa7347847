"""How a subscription is found: the access path of each of its filters, and why that one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fencepost.index.columns import Columns
from fencepost.index.planner import Path
from fencepost.index.segment import Segment
from fencepost.index.table import FilterTable
from fencepost.language import ast
from fencepost.match.explain import shortened, written
from fencepost.plan.conditions import condition_of_filter
from fencepost.plan.normal import filters

_FOUND_BY = {
    Path.WORDS: "words that it needs, in the box that it needs",
    Path.REGION: "the walk over regions, which decides the relation",
    Path.PLACE: "a box that the event must meet",
    Path.EQUALITY: "a value that it needs",
    Path.INTERVAL: "an interval that a number, or the beginning or end of a string, must be in",
    Path.COMBINED: "several strings that it needs at once, in the box that it needs",
    Path.SCAN: "nothing: every event is compared with it",
}


@dataclass(frozen=True, slots=True)
class PlannedFilter:
    """One alternative of a subscription, and how events find it.

    Attributes
    ----------
    condition : str
        What must hold, in CQL2.
    path : str
        "words", "region", "place", "equality", "interval", "combined" or "scan".
    share : float
        Of all events, how many are expected to find it, and so to be compared with the rest.
    """

    condition: str
    path: str
    share: float

    def as_dict(self) -> dict[str, object]:
        """The plan for JSON."""
        return {"condition": self.condition, "path": self.path, "share": self.share}

    def __str__(self) -> str:
        found_by = _FOUND_BY[Path[self.path.upper()]]
        return f"{self.path:<9}{self.share:8.2%}  {shortened(self.condition)}  (by {found_by})"


def planned(
    segment: Segment, row: int, condition: ast.Condition, columns: Columns
) -> tuple[PlannedFilter, ...]:
    """The plan of a subscription that is a row of a segment."""
    arrays = segment.arrays
    rows = iter(np.flatnonzero(arrays.filter_subscription == row).tolist())
    found = []
    for terms in filters(condition):
        table = FilterTable(columns.frozen())
        table.add(0, [terms])
        if table.posts and not table.checks:
            path, share = Path.WORDS, _share_of_posts(segment, row)
        else:
            number = next(rows)
            path, share = Path(int(arrays.path[number])), float(arrays.share[number])
        text = written(condition_of_filter(terms))
        found.append(PlannedFilter(text, path.name.lower(), share))
    return tuple(found)


def _share_of_posts(segment: Segment, row: int) -> float:
    """How many of the posts are in the lists of a subscription's own."""
    entries, _ = segment.entries_of(np.array([row]))
    lists = np.unique(segment.lists_of(entries))
    posts = segment.arrays.posts
    return float(posts.lists["count"][lists].sum() / max(len(posts.owner), 1))
