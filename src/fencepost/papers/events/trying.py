"""Every subscription tried on every event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.compiling import kernel
from fencepost.kernels.distance import NO, YES
from fencepost.kernels.hulls import Hulls
from fencepost.papers.events.deciding import all_hold, decide
from fencepost.papers.events.layout import GONE, Bytes

ROW = np.dtype([("first", "u4"), ("stop", "u4"), ("number", "u4")], align=True)


class StandardArrays(NamedTuple):
    """The subscriptions: row r has the predicates first:stop, and operator and region r."""

    rows: NDArray[np.void]  # ROW
    predicates: NDArray[np.void]
    text: Bytes
    records: NDArray[np.void]
    corners: Hulls


@kernel
def try_all(arrays, events, first, out, sure, stops):
    """Match events from `first` on, while there is room: (the next event, how many are found)."""
    rows, predicates, text, records, corners = arrays
    numbers, event_text, text_start, text_size, own, _, centroids, state = events
    x, y, start = corners
    own_x, own_y, own_start = own
    found = 0
    slots = state.shape[0] // numbers.shape[0]
    for e in range(first, stops.shape[0]):
        if found + rows.shape[0] > out.shape[0]:
            return e, found
        for r in range(rows.shape[0]):
            if records[r]["operator"] == GONE or not all_hold(
                predicates, rows[r]["first"], rows[r]["stop"], text,
                numbers, event_text, text_start, text_size, e,
            ):  # fmt: skip
                continue
            at = e * slots + records[r]["slot"]
            answer = decide(
                records[r], x, y, start, r, own_x, own_y, own_start, centroids, state, at
            )
            if answer != NO:
                out[found] = rows[r]["number"]
                sure[found] = answer == YES
                found += 1
        stops[e] = found
    return stops.shape[0], found
