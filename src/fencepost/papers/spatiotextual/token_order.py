"""In which order the tokens of a subscription are used: section 4.2.

The first is its *representative*, which the Rt+-tree keeps; the Rt++-tree uses them one after
another. ``df`` is the number of subscriptions that hold a token.

==========  ======================================================================================
random      any token first
df          the token of the largest df is the representative of all that hold it; they are taken
            out, df is counted again, and so on
idf         rare tokens before frequent ones
locality    the same, by how frequent they are in the cell of a grid that holds the subscription's
            centre, then by df
==========  ======================================================================================
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import kernel
from fencepost.papers.spatiotextual.rt_packing import centres

Order = Literal["random", "df", "idf", "locality"]
ORDERS: tuple[Order, ...] = ("random", "df", "idf", "locality")


def put_in_order(
    order: Order, boxes: Floats, start: Ints, tokens: Positions, top: int, cells: int, seed: int
) -> None:
    """Change the order of each subscription's tokens, tokens[start[k]:start[k + 1]], one at least.

    top : more than any token. cells : of the grid, about. seed : of the random order.
    """
    count = len(start) - 1
    if order == "random":
        sizes = np.diff(start)
        chosen = (np.random.default_rng(seed).random(count) * sizes).astype(np.int64) + start[:-1]
        _bring_to_front(start, tokens, chosen)
        return
    df = np.bincount(tokens, minlength=top)
    if order == "df":
        holders = np.repeat(np.arange(count), np.diff(start))[np.argsort(tokens, kind="stable")]
        held = np.zeros(top + 1, np.int64)
        np.cumsum(df, out=held[1:])
        chosen = np.full(count, -1, np.int64)
        _choose_frequent(start, tokens, held, holders, df.copy(), chosen)
        _bring_to_front(start, tokens, chosen)
        return
    cell = np.zeros(count, np.int64) if order == "idf" else _cells(boxes, cells)
    members = np.argsort(cell, kind="stable")
    cell_start = np.zeros(int(cell.max()) + 2, np.int64)
    np.cumsum(np.bincount(cell), out=cell_start[1:])
    local = np.zeros(top, np.uint32)
    _rare_first(start, tokens, members, cell_start, df.astype(np.uint32), local)


def _cells(boxes: Floats, cells: int) -> Ints:
    """The cell of each box's centre; boxes without one share a cell of their own."""
    side = max(1, math.isqrt(cells))
    x, y = centres(boxes)
    finite = np.isfinite(x) & np.isfinite(y)
    column, row = (
        np.minimum((np.where(finite, share, 0.0) * side).astype(np.int64), side - 1)
        for share in (x, y)
    )
    return np.where(finite, row * side + column, side * side)


@kernel
def _bring_to_front(start, tokens, chosen):
    """Exchange each subscription's first token with the one at chosen[k]."""
    for k in range(chosen.shape[0]):
        first = tokens[start[k]]
        tokens[start[k]] = tokens[chosen[k]]
        tokens[chosen[k]] = first


@kernel
def _choose_frequent(start, tokens, held, holders, df, chosen):
    """chosen[k] = where subscription k's representative is, by df; chosen is all -1 before.

    held, holders : token t is held by holders[held[t]:held[t + 1]]. df : is used up.
    """
    # Tokens wait in a list for each df; one whose df has shrunk meanwhile moves to its own.
    top = df.shape[0]
    waiting = np.full(df.max() + 1, -1)
    after = np.full(top, -1)
    for token in range(top - 1, -1, -1):
        after[token] = waiting[df[token]]
        waiting[df[token]] = token
    present = waiting.shape[0] - 1
    while present > 0:
        token = waiting[present]
        if token < 0:
            present -= 1
            continue
        waiting[present] = after[token]
        if df[token] < present:
            after[token] = waiting[df[token]]
            waiting[df[token]] = token
            continue
        for h in range(held[token], held[token + 1]):
            k = holders[h]
            if chosen[k] >= 0:
                continue
            for j in range(start[k], start[k + 1]):
                df[tokens[j]] -= 1
                if tokens[j] == token:
                    chosen[k] = j


@kernel
def _rare_first(start, tokens, members, cell_start, df, local):
    """Sort each subscription's tokens by how many of its cell hold them, then by df.

    members : the subscriptions of cell c are members[cell_start[c]:cell_start[c + 1]].
    local : scratch, one a token, all 0 before and after.
    """
    for c in range(cell_start.shape[0] - 1):
        for n in range(cell_start[c], cell_start[c + 1]):
            for j in range(start[members[n]], start[members[n] + 1]):
                local[tokens[j]] += 1
        for n in range(cell_start[c], cell_start[c + 1]):
            first = start[members[n]]
            for j in range(first + 1, start[members[n] + 1]):
                token = tokens[j]
                at = j
                while at > first:
                    other = tokens[at - 1]
                    if local[other] < local[token]:
                        break
                    if local[other] == local[token] and (
                        df[other] < df[token] or (df[other] == df[token] and other < token)
                    ):
                        break
                    tokens[at] = other
                    at -= 1
                tokens[at] = token
        for n in range(cell_start[c], cell_start[c + 1]):
            for j in range(start[members[n]], start[members[n] + 1]):
                local[tokens[j]] = 0
