"""One event from its values to what `match_events` takes, in one call."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import kernel
from fencepost.kernels.handles import handle
from fencepost.kernels.layout import lay_out
from fencepost.kernels.matching import EventArrays

_CONTACTS = 1  # an ordinary geometry has none with itself; of others it is enough to know


@kernel
def lay_out_event(
    number, number_rest, truth, missing, string_start, string_stop, geometry, list_kind,
    list_start, list_stop, item_start, text, xy, chain_start, chain_part, shape_chain, dimension,
    most_x, most_y,
):  # fmt: skip
    """The handle of one event; False where its geometries need more than laying out.

    xy : (n, 2), the points of all shapes. The four after it are as in `lay_out`, those before it as
    in `EventArrays`. most_x, most_y : how far from 0 coordinates may be, which is finite.
    """
    x = np.empty(xy.shape[0])
    y = np.empty(xy.shape[0])
    inside = True
    for k in range(xy.shape[0]):
        x[k] = xy[k, 0] + 0.0  # which makes -0.0 a 0.0
        y[k] = xy[k, 1] + 0.0
        inside &= abs(x[k]) <= most_x and abs(y[k]) <= most_y
    shapes, defect, _, _, contacts = lay_out(
        x, y, chain_start, chain_part, shape_chain, dimension, _CONTACTS
    )
    events = EventArrays(
        number, number_rest, truth, missing, string_start, string_stop, geometry, list_kind,
        list_start, list_stop, item_start, text, shapes,
    )  # fmt: skip
    return handle(events), inside and contacts == 0 and not defect.any()
