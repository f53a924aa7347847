"""`pack`: the R-tree on which all trees of this package are built, packed along the Hilbert curve.

The *place* of a subscription is the rank of its centre along the curve. A leaf has consecutive
places and an inner node has consecutive nodes, so the subscriptions below a node are a range of
places. Each level is divided evenly among as few nodes as can hold it; if a level has several
nodes, each is at least half full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Bytes, Floats, Ints, Positions
from fencepost.kernels.index.rtree import hilbert_index
from fencepost.kernels.runtime.compilation import kernel

_LAST_CELL = 2**20 - 1  # the greatest coordinate of `hilbert_index`
_LAST_KEY = 2**40  # the key of boxes without a finite centre


class NodeArrays(NamedTuple):
    """The nodes, level by level from the leaves up; the last node is the root."""

    boxes: Floats  # (nodes, 4)
    # The children of node k are first[k]:first[k + 1]. They are places if less than the number of
    # places; else node numbers plus the number of places.
    first: Positions
    low: Positions  # the places below node k are low[k]:high[k]
    high: Positions
    level: Bytes  # 0 for a leaf


def hilbert_order(boxes: Floats) -> Ints:
    """Return the rows of boxes in the order of their centres along the Hilbert curve."""
    x, y = centres(boxes)
    finite = np.isfinite(x) & np.isfinite(y)
    cells = [np.where(finite, side, 0.0) * _LAST_CELL for side in (x, y)]
    keys = np.empty(len(boxes), np.int64)
    _fill_hilbert_indexes(cells[0].astype(np.int64), cells[1].astype(np.int64), keys)
    keys[~finite] = _LAST_KEY
    return np.argsort(keys, kind="stable")


@kernel
def _fill_hilbert_indexes(x, y, keys):
    for k in range(keys.shape[0]):
        keys[k] = hilbert_index(x[k], y[k])


@kernel
def gather_tokens(start, tokens, order, to_start, to):
    """Copy the tokens of subscription order[k] to to[to_start[k]:to_start[k + 1]], for every k.

    start, tokens : subscription j has tokens[start[j]:start[j + 1]].
    """
    for k in range(order.shape[0]):
        low = start[order[k]]
        for j in range(to_start[k + 1] - to_start[k]):
            to[to_start[k] + j] = tokens[low + j]


def centres(boxes: Floats) -> tuple[Floats, Floats]:
    """Return the centres of boxes, scaled to 0 to 1 in their extent; NaN if a box is infinite."""
    # Halved before the addition or subtraction, so that large coordinates do not overflow.
    with np.errstate(invalid="ignore"):
        x, y = (_scale(boxes[:, k] / 2 + boxes[:, k + 2] / 2) for k in (0, 1))
    return x, y


def _scale(values: Floats) -> Floats:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.full(len(values), np.nan)
    low, high = finite.min() / 2, finite.max() / 2
    shares: Floats = np.where(
        np.isfinite(values), (values / 2 - low) / max(high - low, 5e-324), np.nan
    )
    return np.clip(shares, 0.0, 1.0)


def pack(boxes: Floats, max_entries: int) -> NodeArrays:
    """Return the nodes over boxes that are sorted by place; there must be at least one box."""
    low = high = np.empty(0, np.int64)
    levels: list[tuple[Floats, Ints, Ints, Ints]] = []
    child_boxes, child_offset = boxes, 0
    while True:
        starts = _node_starts(len(child_boxes), max_entries)
        node_boxes = np.column_stack(
            (
                np.minimum.reduceat(child_boxes[:, :2], starts[:-1]),
                np.maximum.reduceat(child_boxes[:, 2:], starts[:-1]),
            )
        )
        if not levels:
            low, high = starts[:-1], starts[1:]
        else:
            low, high = low[starts[:-1]], high[starts[1:] - 1]
        levels.append((node_boxes, child_offset + starts[:-1], low, high))
        child_offset += len(child_boxes)
        if len(node_boxes) == 1:
            break
        child_boxes = node_boxes
    sizes = [len(part[0]) for part in levels]
    return NodeArrays(
        np.concatenate([part[0] for part in levels]),
        np.concatenate([*(part[1] for part in levels), [child_offset]]).astype(np.uint32),
        np.concatenate([part[2] for part in levels]).astype(np.uint32),
        np.concatenate([part[3] for part in levels]).astype(np.uint32),
        np.repeat(np.arange(len(levels)), sizes).astype(np.uint8),
    )


def _node_starts(count: int, max_entries: int) -> Ints:
    """Return where the children of each node begin, and where those of the last node end."""
    nodes = -(-count // max_entries)
    starts: NDArray[np.int64] = np.arange(nodes + 1) * count // nodes
    return starts
