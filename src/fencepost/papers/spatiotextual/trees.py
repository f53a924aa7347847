"""`SpatioTextualIndex`: an index of several static trees, which accepts changes; `build` fills one.

A static tree is packed and immutable: its lists are sorted by place, which makes counting fast
(`token_counting`). The paper does not say how trees change. This index uses Bentley and Saxe's
logarithmic method (1980, "Decomposable searching problems"): added subscriptions are buffered until
the next match, then packed into a new tree, together with trees that are not much larger. So there
are few trees, and all nodes of each have b to B entries. The box of a removed subscription becomes
NaN, which meets nothing; a tree is packed again when half of its subscriptions are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fencepost.errors import IndexingError
from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.papers.spatiotextual.mask_search import MessageArrays
from fencepost.papers.spatiotextual.static_trees import (
    TREE_CLASSES,
    Kind,
    Matches,
    Options,
    Source,
    StaticTree,
)
from fencepost.papers.spatiotextual.token_order import ORDERS, Order
from fencepost.papers.spatiotextual.token_tables import MAX_ENTRIES

KINDS: tuple[Kind, ...] = ("rt", "rt+", "rt++", "keyword-first", "spatial-first", "ir-tree")
_MAX_TOKENS = 2**16 - 2  # of a subscription: counts have 16 bits
_TOKEN_LIMIT = 2**28
_BAD_TOKENS = (
    f"a subscription has up to {_MAX_TOKENS:,} tokens, each from 0 to {_TOKEN_LIMIT - 1:,}"
)


def build(
    kind: Kind,
    boxes: ArrayLike,
    token_start: ArrayLike,
    tokens: ArrayLike,
    *,
    order: Order = "locality",
    cells: int = 10_000,
    min_entries: int = 25,
    max_entries: int = 50,
    seed: int = 0,
) -> SpatioTextualIndex:
    """Build an index of subscriptions, whose rows are 0, 1, 2 and so on.

    Parameters
    ----------
    kind : "rt", "rt+", "rt++", "keyword-first", "spatial-first" or "ir-tree"
    boxes : (n, 4) array
        x0, y0, x1, y1 of each subscription; they may be infinite.
    token_start, tokens : arrays of n + 1 and of all tokens
        Subscription k has tokens[token_start[k]:token_start[k + 1]], distinct numbers from 0 on.
        If it has no tokens, only its box decides.
    order : "random", "df", "idf" or "locality"
        The order of a subscription's tokens; see `token_order`.
    cells : int
        The approximate number of cells of the grid for "locality".
    min_entries, max_entries : int
        The bounds on the number of entries of a node, b and B in the paper; the root may have
        fewer.
    seed : int
        The seed of the order "random".
    """
    index = SpatioTextualIndex(
        kind, order=order, cells=cells, min_entries=min_entries, max_entries=max_entries, seed=seed
    )
    count = len(np.asarray(boxes))
    index._add_tree(_make_source(np.arange(count), boxes, token_start, tokens))
    return index


class SpatioTextualIndex:
    """Finds the subscriptions, which have tokens and rectangles, that a message matches.

    See `build` for the parameters; a new index is empty.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        order: Order = "locality",
        cells: int = 10_000,
        min_entries: int = 25,
        max_entries: int = 50,
        seed: int = 0,
    ) -> None:
        if kind not in KINDS:
            raise IndexingError(f"kind must be one of {', '.join(KINDS)}; saw {kind!r}")
        if order not in ORDERS:
            raise IndexingError(f"order must be one of {', '.join(ORDERS)}; saw {order!r}")
        if not (2 <= min_entries <= max_entries // 2 and max_entries <= MAX_ENTRIES):
            raise IndexingError(
                f"nodes need 2 <= min_entries <= max_entries / 2 and max_entries <= {MAX_ENTRIES}; "
                f"saw min_entries={min_entries} and max_entries={max_entries}"
            )
        if cells < 1:
            raise IndexingError(f"cells must be 1 or more; saw {cells}")
        self.kind = kind
        self.options = Options(kind, order, cells, max_entries, seed)
        self.trees: list[StaticTree] = []
        self._pending: dict[int, tuple[Floats, Positions]] = {}

    def __len__(self) -> int:
        return len(self._pending) + sum(tree.living for tree in self.trees)

    def __contains__(self, row: int) -> bool:
        return row in self._pending or any(tree.place_of(row) >= 0 for tree in self.trees)

    @property
    def nbytes(self) -> int:
        """Size of the index in bytes: boxes, tokens, nodes and their tables."""
        self._flush()
        return sum(tree.nbytes for tree in self.trees)

    def add(self, row: int, box: ArrayLike, tokens: ArrayLike) -> None:
        """Add a subscription under a row that the index does not contain."""
        if not 0 <= row < 2**32:
            raise IndexingError(f"a row is a number from 0 to {2**32 - 1}; saw {row}")
        if row in self:
            raise IndexingError(f"subscription {row} exists already; remove it first")
        token_array = np.array(tokens, np.uint32)
        box_array = np.array(box, np.float64)
        if box_array.shape != (4,) or token_array.ndim != 1:
            raise IndexingError(f"a box is x0, y0, x1, y1 and tokens are a list; saw {box!r:.60}")
        if not (box_array[0] <= box_array[2] and box_array[1] <= box_array[3]):
            raise IndexingError(_bad_box_message(row, box_array))
        if len(token_array) > _MAX_TOKENS or (
            len(token_array) and token_array.max() >= _TOKEN_LIMIT
        ):
            raise IndexingError(_BAD_TOKENS)
        self._pending[row] = box_array, token_array

    def remove(self, row: int) -> None:
        """Remove a subscription."""
        if self._pending.pop(row, None) is not None:
            return
        for number, tree in enumerate(self.trees):
            place = tree.place_of(row)
            if place >= 0:
                tree.remove(place)
                if 2 * tree.living <= len(tree):
                    del self.trees[number]
                    self._add_tree(tree.source())
                return
        raise IndexingError(f"there is no subscription {row}")

    def match_many(self, boxes: ArrayLike, token_start: ArrayLike, tokens: ArrayLike) -> Matches:
        """Return the rows of the subscriptions that messages match.

        Parameters
        ----------
        boxes : (m, 4) array
            x0, y0, x1, y1 of each message; a point has x0 = x1 and y0 = y1.
        token_start, tokens : arrays
            As in `build`; tokens that no subscription has are allowed.

        Returns
        -------
        rows : array of uint32
            The rows of all messages, concatenated; ascending for each message.
        stops : (m,) array of int64
            Where the rows of each message end.
        """
        self._flush()
        messages = _make_messages(boxes, token_start, tokens)
        matches = [tree.match(messages) for tree in self.trees]
        if len(matches) == 1:
            return matches[0]
        return _merge_matches(matches, len(messages.boxes))

    def candidate_nodes(self, box: ArrayLike, tokens: ArrayLike) -> list[Ints]:
        """Return the candidate nodes of a message in each tree: the root, then level by level.

        For the kinds "rt", "rt+", "ir-tree" and "spatial-first". Indexes of different kinds have
        the same nodes if the same subscriptions were added in the same order.
        """
        self._flush()
        token_array = np.asarray(tokens).reshape(-1)
        messages = _make_messages(np.reshape(box, (1, 4)), [0, len(token_array)], token_array)
        return [tree.candidates(messages) for tree in self.trees]

    def _flush(self) -> None:
        """Pack the buffered subscriptions into a tree."""
        if self._pending:
            token_lists = [tokens for _, tokens in self._pending.values()]
            start = np.zeros(len(token_lists) + 1, np.int64)
            np.cumsum([len(tokens) for tokens in token_lists], out=start[1:])
            boxes = np.array([box for box, _ in self._pending.values()])
            source = _make_source(list(self._pending), boxes, start, np.concatenate(token_lists))
            self._pending = {}
            self._add_tree(source)

    def _add_tree(self, source: Source) -> None:
        """Pack subscriptions into a tree, together with trees that are not much larger."""
        sources = [source]
        size = len(source.rows)
        while size and self.trees and self.trees[-1].living <= 2 * size:
            sources.append(self.trees.pop().source())
            size += len(sources[-1].rows)
        if size:
            self.trees.append(TREE_CLASSES[self.kind](_concatenate(sources), self.options))
            self.trees.sort(key=len, reverse=True)


def _make_source(
    rows: ArrayLike, boxes: ArrayLike, token_start: ArrayLike, tokens: ArrayLike
) -> Source:
    """Check subscriptions and return them; a subscription without tokens gets `EVERY`."""
    boxes = np.asarray(boxes, np.float64)
    start = np.asarray(token_start, np.int64)
    token_array = np.asarray(tokens, np.uint32)
    if boxes.ndim != 2 and len(boxes) == 0:
        boxes = boxes.reshape(0, 4)
    _check_layout(boxes, start, token_array, "subscription")
    bad = ~((boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3]))
    if bad.any():
        row = int(bad.argmax())
        raise IndexingError(_bad_box_message(row, boxes[row]))
    sizes = np.diff(start)
    if sizes.max(initial=0) > _MAX_TOKENS or token_array.max(initial=0) >= _TOKEN_LIMIT:
        raise IndexingError(_BAD_TOKENS)
    tokenless = np.flatnonzero(sizes == 0)
    shifted_tokens = (
        np.insert(token_array + np.uint32(1), start[tokenless], 0)
        if len(tokenless)
        else token_array + np.uint32(1)
    )
    sizes[tokenless] = 1
    ends = np.zeros(len(start), np.int64)
    np.cumsum(sizes, out=ends[1:])
    return Source(np.asarray(rows).astype(np.uint32), boxes, ends, shifted_tokens)


def _bad_box_message(row: int, box: Floats) -> str:
    return (
        f"the box of subscription {row} is {box.tolist()}: give x0, y0, x1, y1 with x0 <= x1 and "
        "y0 <= y1"
    )


def _make_messages(boxes: ArrayLike, token_start: ArrayLike, tokens: ArrayLike) -> MessageArrays:
    # Writable arrays, whatever the caller gives: kernels need no second signature.
    messages = MessageArrays(
        np.require(boxes, np.float64, ("C", "W")),
        np.require(token_start, np.int64, ("C", "W")),
        np.require(tokens, np.uint32, ("C", "W")),
    )
    _check_layout(messages.boxes, messages.start, messages.tokens, "message")
    return messages


def _check_layout(boxes: Floats, start: Ints, tokens: Positions, what: str) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise IndexingError(f"boxes must be an array of shape (n, 4); saw {boxes.shape}")
    if start.shape != (len(boxes) + 1,) or tokens.ndim != 1:
        raise IndexingError(
            f"{len(boxes):,} boxes need {len(boxes) + 1:,} starts of tokens; saw {start.shape}"
        )
    if start[0] != 0 or start[-1] != len(tokens) or (np.diff(start) < 0).any():
        raise IndexingError(
            f"the starts of a {what}'s tokens must ascend from 0 to {len(tokens):,}, their number"
        )


def _concatenate(sources: Sequence[Source]) -> Source:
    """Return several sources as one."""
    if len(sources) == 1:
        return sources[0]
    sizes = np.concatenate([np.diff(source.start) for source in sources])
    start = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    return Source(
        np.concatenate([source.rows for source in sources]),
        np.concatenate([source.boxes for source in sources]),
        start,
        np.concatenate([source.tokens for source in sources]),
    )


def _merge_matches(parts: Sequence[Matches], messages: int) -> Matches:
    """Return the matches of several trees, sorted by message and row."""
    sizes = [np.diff(stops, prepend=0) for _, stops in parts]
    owner = [np.repeat(np.arange(messages), size) for size in sizes]
    rows = np.concatenate([np.empty(0, np.uint32), *(rows for rows, _ in parts)])
    order = np.lexsort((rows, np.concatenate([np.empty(0, np.int64), *owner])))
    total = np.zeros(messages, np.int64)
    for size in sizes:
        total += size
    return rows[order], np.cumsum(total)
