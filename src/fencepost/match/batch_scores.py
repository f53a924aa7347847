"""How well the matches of many events fit them: `Matcher.rank` for pairs that are found already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fencepost.index.columns import Storage
from fencepost.match.batch import Pairs
from fencepost.match.ranking import by_shelf
from fencepost.match.snapshot import Snapshot

if TYPE_CHECKING:
    from fencepost.match.matcher import Matcher


def scores_of_pairs(matcher: Matcher, snapshot: Snapshot, found: Pairs) -> NDArray[np.float64]:
    """The score of each pair."""
    scores = np.empty(len(found))
    columns = matcher._columns
    # Scores depend on words and places only: other columns may hold what Python has no value for.
    asked = columns.attributes(Storage.LIST, Storage.GEOMETRY)
    given = found.table.events(asked, columns.geometric(), columns.tokeniser)
    start = 0
    for values, stop in zip(given, found.stops.tolist(), strict=True):
        if start < stop:
            rows = found.rows[start:stop].astype(np.int64)
            order = np.argsort(rows)
            own = by_shelf(snapshot, rows[order])
            scores[start + order] = matcher._scores.of(snapshot, values, own)
        start = stop
    return scores
