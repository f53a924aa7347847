"""The R-tree under all of the room's trees, packed along the Hilbert curve.

Subscriptions are numbered by *place*: the order of their centres on the curve. A leaf has
neighbouring places, a node above has neighbouring nodes, so that whatever lies below a node is one
run of places. A level is shared out evenly among as few nodes as can hold it: where there is more
than one, each has at least half of what it could have.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Bytes, Floats, Ints, Positions
from fencepost.kernels.index.rtree import hilbert_index
from fencepost.kernels.runtime.compilation import kernel

_LAST_CELL = 2**20 - 1  # of a side of `hilbert_index`
_AFTER_ALL = 2**40  # where a box without a finite centre comes


class NodeArrays(NamedTuple):
    """The nodes, level by level from the leaves up; the last is the root."""

    boxes: Floats  # (nodes, 4)
    first: Positions  # the children of node k are first[k]:first[k + 1]: places, or nodes counted
    # on from the number of places
    low: Positions  # the places below node k are low[k]:high[k]
    high: Positions
    level: Bytes  # 0 for a leaf


def places(boxes: Floats) -> Ints:
    """The rows of boxes in the order of their centres on the Hilbert curve."""
    x, y = centres(boxes)
    finite = np.isfinite(x) & np.isfinite(y)
    cells = [np.where(finite, side, 0.0) * _LAST_CELL for side in (x, y)]
    keys = np.empty(len(boxes), np.int64)
    _on_curve(cells[0].astype(np.int64), cells[1].astype(np.int64), keys)
    keys[~finite] = _AFTER_ALL
    return np.argsort(keys, kind="stable")


@kernel
def _on_curve(x, y, keys):
    for k in range(keys.shape[0]):
        keys[k] = hilbert_index(x[k], y[k])


@kernel
def gather_tokens(start, tokens, order, to_start, to):
    """Copy the tokens of order[k], tokens[start[order[k]]:...], to to[to_start[k]:...]."""
    for k in range(order.shape[0]):
        low = start[order[k]]
        for j in range(to_start[k + 1] - to_start[k]):
            to[to_start[k] + j] = tokens[low + j]


def centres(boxes: Floats) -> tuple[Floats, Floats]:
    """The centres of boxes as shares of their extent; NaN where a box is infinite."""
    # Halved before they are added or subtracted: far coordinates must not overflow.
    with np.errstate(invalid="ignore"):
        x, y = (_shares_of(boxes[:, k] / 2 + boxes[:, k + 2] / 2) for k in (0, 1))
    return x, y


def _shares_of(values: Floats) -> Floats:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.full(len(values), np.nan)
    low, high = finite.min() / 2, finite.max() / 2
    shares: Floats = np.where(
        np.isfinite(values), (values / 2 - low) / max(high - low, 5e-324), np.nan
    )
    return np.clip(shares, 0.0, 1.0)


def pack(boxes: Floats, most: int) -> NodeArrays:
    """The nodes over boxes, at least one, that are in the order of their places."""
    low = high = np.empty(0, np.int64)
    levels: list[tuple[Floats, Ints, Ints, Ints]] = []
    below, begin = boxes, 0
    while True:
        starts = _shared_out(len(below), most)
        around = np.column_stack(
            (
                np.minimum.reduceat(below[:, :2], starts[:-1]),
                np.maximum.reduceat(below[:, 2:], starts[:-1]),
            )
        )
        if not levels:
            low, high = starts[:-1], starts[1:]
        else:
            low, high = low[starts[:-1]], high[starts[1:] - 1]
        levels.append((around, begin + starts[:-1], low, high))
        begin += len(below)
        if len(around) == 1:
            break
        below = around
    sizes = [len(part[0]) for part in levels]
    return NodeArrays(
        np.concatenate([part[0] for part in levels]),
        np.concatenate([*(part[1] for part in levels), [begin]]).astype(np.uint32),
        np.concatenate([part[2] for part in levels]).astype(np.uint32),
        np.concatenate([part[3] for part in levels]).astype(np.uint32),
        np.repeat(np.arange(len(levels)), sizes).astype(np.uint8),
    )


def _shared_out(count: int, most: int) -> Ints:
    """Where each node's children begin, and where the last one's end."""
    nodes = -(-count // most)
    starts: NDArray[np.int64] = np.arange(nodes + 1) * count // nodes
    return starts
