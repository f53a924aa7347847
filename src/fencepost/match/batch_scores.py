"""How well the matches of many events fit them: `Matcher.rank` for pairs that are found already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.index.columns import Storage
from fencepost.match.engines import Pairs, python_rows
from fencepost.match.ranking import by_shelf
from fencepost.match.snapshot import Snapshot
from fencepost.model.event import attributes
from fencepost.model.geoarrow import with_named_geometries
from fencepost.plan.evaluate import EventValues

if TYPE_CHECKING:
    from fencepost.match.matcher import Matcher


def scores_of_pairs(
    matcher: Matcher,
    shelves: Snapshot,
    events: pa.Table | Sequence[object],
    pairs: Pairs,
) -> NDArray[np.float64]:
    """The score of each pair of an event's row and a subscription's, as `match_pairs` counts."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    rows, starts = np.unique(pairs[order, 0], return_index=True)
    stops = [*starts[1:].tolist(), len(order)]
    scores = np.empty(len(pairs))
    given = _values(matcher, events, rows)
    for values, start, stop in zip(given, starts.tolist(), stops, strict=True):
        mine = order[start:stop]
        found = by_shelf(shelves, pairs[mine, 1])
        scores[mine] = matcher._scores.of(shelves, values, found)
    return scores


def _values(
    matcher: Matcher, events: pa.Table | Sequence[object], rows: NDArray[np.int64]
) -> Sequence[EventValues]:
    """The chosen events, with what scores depend on."""
    columns = matcher._columns
    tokeniser, space = columns.tokeniser, columns.space
    if not isinstance(events, pa.Table):
        return [EventValues(attributes(events[row]), tokeniser, space) for row in rows.tolist()]
    # Of a table only words and places: other columns may hold what Python has no value for.
    asked = columns.attributes(Storage.LIST, Storage.GEOMETRY)
    chosen = events.select([name for name in events.column_names if name in asked])
    named = with_named_geometries(chosen, columns.geometric())
    everything = python_rows(named, columns)
    return [everything[row] for row in rows.tolist()]
