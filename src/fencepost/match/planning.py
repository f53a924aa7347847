"""How a subscription is found: the access path of each of its filters, and why that one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from fencepost.index.columns import Columns
from fencepost.index.selectivity import Path
from fencepost.index.table import FilterTable
from fencepost.language import ast
from fencepost.match.explain import shortened, written
from fencepost.match.segments import SegmentReader
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
    expected_from : str
        "events" where that is learned from a sample of those that went by, else "subscriptions":
        from how often others ask for the same.
    """

    condition: str
    path: str
    share: float
    expected_from: str

    def as_dict(self) -> dict[str, object]:
        """The plan for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        found_by = _FOUND_BY[Path[self.path.upper()]]
        condition = shortened(self.condition)
        return (
            f"{self.path:<9}{self.share:8.2%}  {condition}  (by {found_by}; expected from "
            f"{self.expected_from})"
        )


def planned(
    segment: SegmentReader, row: int, condition: ast.Condition, columns: Columns
) -> tuple[PlannedFilter, ...]:
    """The plan of a subscription that is a row of a segment."""
    arrays = segment.arrays
    rows = iter(np.flatnonzero(arrays.filter_subscription == row).tolist())
    found = []
    for terms in filters(condition, columns.space):
        table = FilterTable(columns.frozen())
        table.add(0, [terms])
        if table.posts and not table.checks:
            path, share = Path.WORDS, _share_of_posts(segment, row)
        else:
            number = next(rows)
            path, share = Path(int(arrays.path[number])), float(arrays.share[number])
        text = written(condition_of_filter(terms))
        # How often words occur is not in the sample.
        learned = segment.events_seen > 0 and path != Path.WORDS
        source = "events" if learned else "subscriptions"
        found.append(PlannedFilter(text, path.name.lower(), share, source))
    return tuple(found)


def _share_of_posts(segment: SegmentReader, row: int) -> float:
    """How many of the posts are in the lists of a subscription's own."""
    entries, _ = segment.entries_of(np.array([row]))
    lists = np.unique(segment.lists_of(entries))
    posts = segment.arrays.posts
    return float(posts.lists["count"][lists].sum() / max(len(posts.owner), 1))
