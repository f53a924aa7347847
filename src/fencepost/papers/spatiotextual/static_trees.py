"""Static trees, one class for each layout; an index in `trees` consists of several.

A static tree is built from a `Source`. It is immutable, but for the boxes of removed subscriptions,
which become NaN. The remaining subscriptions can be read back from its arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import IndexingError
from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.papers.spatiotextual.mask_search import (
    MaskTreeArrays,
    MessageArrays,
    Scratch,
    candidates,
    match_masks,
)
from fencepost.papers.spatiotextual.rt_packing import gather_tokens, hilbert_order, pack
from fencepost.papers.spatiotextual.token_counting import (
    KeywordListArrays,
    ListTreeArrays,
    match_keywords,
    match_lists,
)
from fencepost.papers.spatiotextual.token_order import Order, put_in_order
from fencepost.papers.spatiotextual.token_tables import (
    MAX_ENTRIES,
    MaskTables,
    list_tables,
    mask_tables,
)

Kind = Literal["rt", "rt+", "rt++", "keyword-first", "spatial-first", "ir-tree"]
Matches = tuple[Positions, Ints]

_INITIAL_SIZE = 1 << 16
_NO_TOKENS = np.empty(0, np.uint32)


class Source(NamedTuple):
    """Subscriptions to build a tree from.

    Each has at least one token: `EVERY` is 0, and all other tokens are shifted by 1.
    """

    rows: Positions
    boxes: Floats
    start: Ints
    tokens: Positions


@dataclass(frozen=True, slots=True)
class Options:
    """The layout of a static tree; see `trees.build`."""

    kind: Kind
    order: Order
    cells: int
    max_entries: int
    seed: int


class StaticTree(ABC):
    """An immutable tree, from which subscriptions can be removed."""

    arrays: Any
    _kernel: Callable[..., int]

    def __init__(self, source: Source) -> None:
        self._token_limit = int(source.tokens.max()) + 1
        self._has_tokenless = bool((source.tokens == 0).any())
        self._order_by_row: Ints | None = None
        self._removed = 0

    def __len__(self) -> int:
        return len(self.arrays.rows)

    @property
    def living(self) -> int:
        """Number of subscriptions that are not removed."""
        return len(self) - self._removed

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(array.nbytes for array in _flatten(self.arrays))

    def place_of(self, row: int) -> int:
        """Return the place of a subscription, or -1 if the tree does not have it."""
        rows = self.arrays.rows
        if self._order_by_row is None:
            self._order_by_row = np.argsort(rows, kind="stable")
        # With another type than that of `rows`, NumPy would convert the whole array.
        at = int(np.searchsorted(rows, np.uint32(row), sorter=self._order_by_row))
        if at == len(rows):
            return -1
        place = int(self._order_by_row[at])
        return place if rows[place] == row and not np.isnan(self.arrays.boxes[place, 0]) else -1

    def remove(self, place: int) -> None:
        """Mark the subscription at a place as removed."""
        self.arrays.boxes[place] = np.nan
        self._removed += 1

    def match(self, messages: MessageArrays) -> Matches:
        """Return the rows that messages match, and where the rows of each message end."""
        stops = np.zeros(len(messages.boxes), np.int64)
        out = np.empty(self._min_output_size(), np.uint32)
        scratch = self._new_scratch(int(np.diff(messages.start).max(initial=0)) + 1)
        done = 0
        while True:
            done = self._kernel(
                self.arrays,
                messages,
                self._has_tokenless,
                self._token_limit,
                scratch,
                done,
                out,
                stops,
            )
            if done == len(stops):
                return out[: stops[-1] if done else 0].copy(), stops
            larger = np.empty(4 * len(out), np.uint32)
            larger[: len(out)] = out
            out = larger

    def candidates(self, messages: MessageArrays) -> Ints:
        """Return the candidate nodes of the first message."""
        raise IndexingError(
            'candidate nodes exist for the kinds "rt", "rt+", "ir-tree" and "spatial-first" only'
        )

    def source(self) -> Source:
        """Return the subscriptions that are not removed."""
        place, token = self._pairs()
        kept = ~np.isnan(self.arrays.boxes[:, 0])
        sizes = np.bincount(place, minlength=len(kept))[kept]
        tokens = token[kept[place]]
        start = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=start[1:])
        return Source(self.arrays.rows[kept], self.arrays.boxes[kept], start, tokens)

    @abstractmethod
    def _pairs(self) -> tuple[Ints, Positions]:
        """Return all pairs of a place and a token, sorted by place."""

    def _min_output_size(self) -> int:
        return _INITIAL_SIZE

    def _new_scratch(self, tokens: int) -> Scratch:
        """Return scratch for messages of up to `tokens` tokens."""
        levels = int(self.arrays.nodes.level[-1]) + 1
        return Scratch(
            np.empty(tokens, np.uint32),
            np.zeros(self._token_limit + 63 >> 6, np.uint64),
            np.empty(len(self.arrays.nodes.level) + 1, np.uint32),
            np.zeros(MAX_ENTRIES * MAX_ENTRIES, np.uint16),
            np.empty((levels * levels * tokens, 2), np.int64),
        )


class MaskTree(StaticTree):
    """The Rt-tree, the Rt+-tree, spatial-first and the IR-tree."""

    _kernel = staticmethod(match_masks)

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source)
        source = _sort_by_place(source, options)
        nodes = pack(source.boxes, options.max_entries)
        # Where the places of each leaf begin.
        leaf = np.append(nodes.low[nodes.level == 0], nodes.high[-1])
        lengths = np.empty(0, np.uint16)
        representatives, start, tokens = _NO_TOKENS, np.zeros(1, np.int64), _NO_TOKENS
        if options.kind == "ir-tree":
            lengths = np.diff(source.start).astype(np.uint16)
            tables = mask_tables(nodes, 0, source.start, source.tokens, self._token_limit)
        else:
            representatives = source.tokens[source.start[:-1]]
            start, tokens = _without_first(source)
            if options.kind == "rt":
                tables = mask_tables(nodes, 1, source.start[leaf], source.tokens, self._token_limit)
            elif options.kind == "rt+":
                tables = mask_tables(
                    nodes, 1, leaf.astype(np.int64), representatives, self._token_limit
                )
            else:
                none = np.zeros(len(nodes.level) + 1, np.int64)
                tables = MaskTables(none, _NO_TOKENS.copy(), np.empty(0, np.uint64))
        self.arrays = MaskTreeArrays(
            nodes,
            tables,
            source.rows,
            source.boxes,
            lengths,
            representatives,
            start.astype(np.uint32),
            tokens,
        )

    def candidates(self, messages: MessageArrays) -> Ints:
        """Return the candidate nodes of the first message."""
        known_tokens = messages.tokens[messages.tokens < self._token_limit - 1] + 1
        tokens = np.concatenate(([0], known_tokens)).astype(np.uint32)
        queue = self._new_scratch(len(tokens)).queue
        x0, y0, x1, y1 = messages.boxes[0]
        total = candidates(
            self.arrays.nodes, self.arrays.tables, x0, y0, x1, y1, tokens, len(tokens), queue
        )
        return queue[:total].astype(np.int64)

    def _pairs(self) -> tuple[Ints, Positions]:
        tree: MaskTreeArrays = self.arrays
        if not len(tree.lengths):
            start: Ints = tree.token_start.astype(np.int64)
            sizes = 1 + start[1:] - start[:-1]
            place = np.repeat(np.arange(len(self)), sizes)
            tokens = np.empty(len(place), np.uint32)
            first = np.cumsum(sizes) - sizes
            tokens[first] = tree.representatives
            is_rest = np.ones(len(place), bool)
            is_rest[first] = False
            tokens[is_rest] = tree.tokens
            return place, tokens
        leaves = int(np.count_nonzero(tree.nodes.level == 0))
        used = int(tree.tables.start[leaves])
        leaf = np.repeat(np.arange(leaves), np.diff(tree.tables.start[: leaves + 1]))
        low = tree.nodes.low[leaf].astype(np.int64)
        pairs = [
            (low[has_bit] + bit, tree.tables.keys[:used][has_bit])
            for bit in range(MAX_ENTRIES)
            for has_bit in [(tree.tables.masks[:used] >> np.uint64(bit)) & np.uint64(1) > 0]
        ]
        return _by_place(
            np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])
        )


class ListTree(StaticTree):
    """The Rt++-tree."""

    _kernel = staticmethod(match_lists)

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source)
        source = _sort_by_place(source, options)
        nodes = pack(source.boxes, options.max_entries)
        tables = list_tables(nodes, source.start, source.tokens, self._token_limit)
        lengths = np.diff(source.start).astype(np.uint16)
        self.arrays = ListTreeArrays(nodes, tables, source.rows, source.boxes, lengths)

    def _min_output_size(self) -> int:
        return max(_INITIAL_SIZE, MAX_ENTRIES * MAX_ENTRIES)

    def _pairs(self) -> tuple[Ints, Positions]:
        tables = self.arrays.tables
        tokens = np.repeat(tables.keys, np.diff(tables.ends.astype(np.int64)))
        return _by_place(tables.members.astype(np.int64), tokens)


class KeywordLists(StaticTree):
    """The keyword-first method."""

    _kernel = staticmethod(match_keywords)

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source)
        order = np.argsort(source.tokens, kind="stable")
        owner = np.repeat(np.arange(len(source.rows)), np.diff(source.start))
        start = np.zeros(self._token_limit + 1, np.int64)
        np.cumsum(np.bincount(source.tokens, minlength=self._token_limit), out=start[1:])
        self.arrays = KeywordListArrays(
            start,
            owner[order].astype(np.uint32),
            source.rows,
            source.boxes.copy(),
            np.diff(source.start).astype(np.uint16),
        )

    def _pairs(self) -> tuple[Ints, Positions]:
        lists: KeywordListArrays = self.arrays
        tokens = np.repeat(np.arange(self._token_limit, dtype=np.uint32), np.diff(lists.list_start))
        return _by_place(lists.members.astype(np.int64), tokens)

    def _min_output_size(self) -> int:
        return len(self)

    def _new_scratch(self, tokens: int) -> Scratch:
        return Scratch(
            np.empty(tokens, np.uint32),
            np.empty(0, np.uint64),
            np.empty(0, np.uint32),
            np.zeros(len(self), np.uint16),
            np.empty((0, 2), np.int64),
        )


TREE_CLASSES: dict[str, Callable[[Source, Options], StaticTree]] = {
    "rt": MaskTree,
    "rt+": MaskTree,
    "rt++": ListTree,
    "keyword-first": KeywordLists,
    "spatial-first": MaskTree,
    "ir-tree": MaskTree,
}


def _sort_by_place(source: Source, options: Options) -> Source:
    """Return subscriptions sorted by place, with their tokens in the order of the options."""
    order = hilbert_order(source.boxes)
    boxes = source.boxes[order]
    start = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(source.start)[order], out=start[1:])
    tokens = np.empty(len(source.tokens), np.uint32)
    gather_tokens(source.start, source.tokens, order, start, tokens)
    token_limit = int(tokens.max()) + 1
    put_in_order(options.order, boxes, start, tokens, token_limit, options.cells, options.seed)
    return Source(source.rows[order], boxes, start, tokens)


def _without_first(source: Source) -> tuple[Ints, Positions]:
    """Return the starts and the tokens of subscriptions without the first token of each."""
    is_rest = np.ones(len(source.tokens), bool)
    is_rest[source.start[:-1]] = False
    return source.start - np.arange(len(source.start)), source.tokens[is_rest]


def _by_place(place: Ints, tokens: Positions) -> tuple[Ints, Positions]:
    order = np.argsort(place, kind="stable")
    return place[order], tokens[order]


def _flatten(arrays: tuple[Any, ...]) -> list[NDArray[Any]]:
    """Return all arrays of nested named tuples."""
    flat: list[NDArray[Any]] = []
    for item in arrays:
        flat += [item] if isinstance(item, np.ndarray) else _flatten(item)
    return flat
