"""`put_in_order`: orders the tokens of each subscription (section 4.2).

The first token is the *representative*, the only one that the Rt+-tree uses. The Rt++-tree puts
each token on another level of the tree. ``df`` is the number of subscriptions that have a token.

==========  ======================================================================================
random      a random token is first
df          the token with the largest df becomes the representative of all subscriptions that
            have it; they are set aside, df is counted again, and so on
idf         by ascending df
locality    by ascending df among the subscriptions in the same cell of a grid, then by df; the
            centre of a subscription's box determines its cell
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
    order: Order,
    boxes: Floats,
    start: Ints,
    tokens: Positions,
    token_limit: int,
    cells: int,
    seed: int,
) -> None:
    """Reorder the tokens of each subscription k, tokens[start[k]:start[k + 1]]; at least one each.

    token_limit : greater than any token.
    cells : the approximate number of cells of the grid.
    seed : the seed of the random order.
    """
    count = len(start) - 1
    if order == "random":
        sizes = np.diff(start)
        representatives = (np.random.default_rng(seed).random(count) * sizes).astype(
            np.int64
        ) + start[:-1]
        _bring_to_front(start, tokens, representatives)
        return
    df = np.bincount(tokens, minlength=token_limit)
    if order == "df":
        holders = np.repeat(np.arange(count), np.diff(start))[np.argsort(tokens, kind="stable")]
        holder_start = np.zeros(token_limit + 1, np.int64)
        np.cumsum(df, out=holder_start[1:])
        representatives = np.full(count, -1, np.int64)
        _choose_frequent(start, tokens, holder_start, holders, df.copy(), representatives)
        _bring_to_front(start, tokens, representatives)
        return
    cell = np.zeros(count, np.int64) if order == "idf" else _cells(boxes, cells)
    members = np.argsort(cell, kind="stable")
    cell_start = np.zeros(int(cell.max()) + 2, np.int64)
    np.cumsum(np.bincount(cell), out=cell_start[1:])
    cell_df = np.zeros(token_limit, np.uint32)
    _rare_first(start, tokens, members, cell_start, df.astype(np.uint32), cell_df)


def _cells(boxes: Floats, cells: int) -> Ints:
    """Return the cell of each box's centre; boxes without a finite centre share an extra cell."""
    side = max(1, math.isqrt(cells))
    x, y = centres(boxes)
    finite = np.isfinite(x) & np.isfinite(y)
    column, row = (
        np.minimum((np.where(finite, share, 0.0) * side).astype(np.int64), side - 1)
        for share in (x, y)
    )
    return np.where(finite, row * side + column, side * side)


@kernel
def _bring_to_front(start, tokens, representatives):
    """Swap each subscription's first token with the token at representatives[k]."""
    for k in range(representatives.shape[0]):
        first = tokens[start[k]]
        tokens[start[k]] = tokens[representatives[k]]
        tokens[representatives[k]] = first


@kernel
def _choose_frequent(start, tokens, holder_start, holders, df, representatives):
    """Write the index of subscription k's representative, by df, to representatives[k].

    representatives : all -1 before.
    holder_start, holders : holders[holder_start[t]:holder_start[t + 1]] have token t.
    df : overwritten.
    """
    # A linked list of tokens for each df. Lists are processed by descending df; a token whose df
    # has shrunk since moves to the list of its present df.
    token_count = df.shape[0]
    first_by_df = np.full(df.max() + 1, -1)
    next_by_token = np.full(token_count, -1)
    for token in range(token_count - 1, -1, -1):
        next_by_token[token] = first_by_df[df[token]]
        first_by_df[df[token]] = token
    current_df = first_by_df.shape[0] - 1
    while current_df > 0:
        token = first_by_df[current_df]
        if token < 0:
            current_df -= 1
            continue
        first_by_df[current_df] = next_by_token[token]
        if df[token] < current_df:
            next_by_token[token] = first_by_df[df[token]]
            first_by_df[df[token]] = token
            continue
        for h in range(holder_start[token], holder_start[token + 1]):
            k = holders[h]
            if representatives[k] >= 0:
                continue
            for j in range(start[k], start[k + 1]):
                df[tokens[j]] -= 1
                if tokens[j] == token:
                    representatives[k] = j


@kernel
def _rare_first(start, tokens, members, cell_start, df, cell_df):
    """Sort each subscription's tokens by their df in its cell, then by df.

    members : the subscriptions of cell c are members[cell_start[c]:cell_start[c + 1]].
    cell_df : scratch, as long as there are tokens; all 0 before and after.
    """
    for c in range(cell_start.shape[0] - 1):
        for n in range(cell_start[c], cell_start[c + 1]):
            for j in range(start[members[n]], start[members[n] + 1]):
                cell_df[tokens[j]] += 1
        for n in range(cell_start[c], cell_start[c + 1]):
            first = start[members[n]]
            for j in range(first + 1, start[members[n] + 1]):
                token = tokens[j]
                at = j
                while at > first:
                    previous = tokens[at - 1]
                    if cell_df[previous] < cell_df[token]:
                        break
                    if cell_df[previous] == cell_df[token] and (
                        df[previous] < df[token] or (df[previous] == df[token] and previous < token)
                    ):
                        break
                    tokens[at] = previous
                    at -= 1
                tokens[at] = token
        for n in range(cell_start[c], cell_start[c + 1]):
            for j in range(start[members[n]], start[members[n] + 1]):
                cell_df[tokens[j]] = 0
