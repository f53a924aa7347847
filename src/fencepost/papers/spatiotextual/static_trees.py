"""Trees that stay as they are, one class for each way to lay them out: what `trees` is made of.

A part is built from a `Source` at once. Nothing of it changes but the boxes of subscriptions that
are removed, which become NaN. From what it keeps, the subscriptions that are left can be read back.
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
    MaskTree,
    MessageArrays,
    Room,
    candidates,
    match_masks,
)
from fencepost.papers.spatiotextual.rt_packing import gather_tokens, pack, places
from fencepost.papers.spatiotextual.token_counting import (
    KeywordLists,
    ListTree,
    match_keywords,
    match_lists,
)
from fencepost.papers.spatiotextual.token_order import Order, put_in_order
from fencepost.papers.spatiotextual.token_tables import (
    MOST_ENTRIES,
    MaskTables,
    list_tables,
    mask_tables,
)

Kind = Literal["rt", "rt+", "rt++", "keyword-first", "spatial-first", "ir-tree"]
Found = tuple[Positions, Ints]

_FIRST_ROOM = 1 << 16
_NOTHING = np.empty(0, np.uint32)


class Source(NamedTuple):
    """Subscriptions as they were given; each has a token, if only `EVERY`; tokens count from 1."""

    rows: Positions
    boxes: Floats
    start: Ints
    tokens: Positions


@dataclass(frozen=True, slots=True)
class Options:
    """How a part is laid out."""

    kind: Kind
    order: Order
    cells: int
    most: int
    seed: int


class Part(ABC):
    """A tree that stays as it is, but for subscriptions that are removed."""

    arrays: Any
    _kernel: Callable[..., int]

    def __init__(self, source: Source) -> None:
        self._top = int(source.tokens.max()) + 1
        self._some_without = bool((source.tokens == 0).any())
        self._by_row: Ints | None = None
        self._gone = 0

    def __len__(self) -> int:
        return len(self.arrays.rows)

    @property
    def living(self) -> int:
        """How many subscriptions are not removed."""
        return len(self) - self._gone

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in _flat(self.arrays))

    def place_of(self, row: int) -> int:
        """Where a subscription is, or -1."""
        rows = self.arrays.rows
        if self._by_row is None:
            self._by_row = np.argsort(rows, kind="stable")
        # As the type that the rows have, or they would all be converted.
        at = int(np.searchsorted(rows, np.uint32(row), sorter=self._by_row))
        if at == len(rows):
            return -1
        place = int(self._by_row[at])
        return place if rows[place] == row and not np.isnan(self.arrays.boxes[place, 0]) else -1

    def remove(self, place: int) -> None:
        """Let a subscription match no longer."""
        self.arrays.boxes[place] = np.nan
        self._gone += 1

    def match(self, messages: MessageArrays) -> Found:
        """The rows of the subscriptions that messages answer, and where each message's end."""
        stops = np.zeros(len(messages.boxes), np.int64)
        out = np.empty(self._least_room(), np.uint32)
        room = self._room(int(np.diff(messages.start).max(initial=0)) + 1)
        done = 0
        while True:
            done = self._kernel(
                self.arrays, messages, self._some_without, self._top, room, done, out, stops
            )
            if done == len(stops):
                return out[: stops[-1] if done else 0].copy(), stops
            grown = np.empty(4 * len(out), np.uint32)
            grown[: len(out)] = out
            out = grown

    def candidates(self, messages: MessageArrays) -> Ints:
        """The candidate nodes of the first message."""
        raise IndexingError("only trees with masks tell their candidate nodes")

    def source(self) -> Source:
        """The subscriptions that are not removed."""
        place, token = self._pairs()
        kept = ~np.isnan(self.arrays.boxes[:, 0])
        sizes = np.bincount(place, minlength=len(kept))[kept]
        tokens = token[kept[place]]
        start = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=start[1:])
        return Source(self.arrays.rows[kept], self.arrays.boxes[kept], start, tokens)

    @abstractmethod
    def _pairs(self) -> tuple[Ints, Positions]:
        """Each place, ascending, with each of its tokens."""

    def _least_room(self) -> int:
        return _FIRST_ROOM

    def _room(self, tokens: int) -> Room:
        """Scratch for messages of so many tokens."""
        levels = int(self.arrays.nodes.level[-1]) + 1
        return Room(
            np.empty(tokens, np.uint32),
            np.zeros(self._top + 63 >> 6, np.uint64),
            np.empty(len(self.arrays.nodes.level) + 1, np.uint32),
            np.zeros(MOST_ENTRIES * MOST_ENTRIES, np.uint16),
            np.empty((levels * levels * tokens, 2), np.int64),
        )


class MaskPart(Part):
    """The Rt-tree, the Rt+-tree, spatial-first and the IR-tree."""

    _kernel = staticmethod(match_masks)

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source)
        source = _placed(source, options)
        nodes = pack(source.boxes, options.most)
        leaf = np.append(nodes.low[nodes.level == 0], nodes.high[-1])  # where leaves begin
        lengths = np.empty(0, np.uint16)
        leads, start, tokens = _NOTHING, np.zeros(1, np.int64), _NOTHING
        if options.kind == "ir-tree":
            lengths = np.diff(source.start).astype(np.uint16)
            tables = mask_tables(nodes, 0, source.start, source.tokens, self._top)
        else:
            leads = source.tokens[source.start[:-1]]
            start, tokens = _without_first(source)
            if options.kind == "rt":
                tables = mask_tables(nodes, 1, source.start[leaf], source.tokens, self._top)
            elif options.kind == "rt+":
                tables = mask_tables(nodes, 1, leaf.astype(np.int64), leads, self._top)
            else:
                none = np.zeros(len(nodes.level) + 1, np.int64)
                tables = MaskTables(none, _NOTHING.copy(), np.empty(0, np.uint64))
        self.arrays = MaskTree(
            nodes,
            tables,
            source.rows,
            source.boxes,
            lengths,
            leads,
            start.astype(np.uint32),
            tokens,
        )

    def candidates(self, messages: MessageArrays) -> Ints:
        """The candidate nodes of the first message."""
        known = messages.tokens[messages.tokens < self._top - 1] + 1
        own = np.concatenate(([0], known)).astype(np.uint32)
        room = self._room(len(own))
        x0, y0, x1, y1 = messages.boxes[0]
        total = candidates(
            self.arrays.nodes, self.arrays.tables, x0, y0, x1, y1, own, len(own), room.queue
        )
        return room.queue[:total].astype(np.int64)

    def _pairs(self) -> tuple[Ints, Positions]:
        tree: MaskTree = self.arrays
        if not len(tree.lengths):
            start: Ints = tree.token_start.astype(np.int64)
            sizes = 1 + start[1:] - start[:-1]
            place = np.repeat(np.arange(len(self)), sizes)
            tokens = np.empty(len(place), np.uint32)
            first = np.cumsum(sizes) - sizes
            tokens[first] = tree.leads
            rest = np.ones(len(place), bool)
            rest[first] = False
            tokens[rest] = tree.tokens
            return place, tokens
        leaves = int(np.count_nonzero(tree.nodes.level == 0))
        used = int(tree.tables.start[leaves])
        leaf = np.repeat(np.arange(leaves), np.diff(tree.tables.start[: leaves + 1]))
        low = tree.nodes.low[leaf].astype(np.int64)
        found = [
            (low[has] + bit, tree.tables.keys[:used][has])
            for bit in range(MOST_ENTRIES)
            for has in [(tree.tables.masks[:used] >> np.uint64(bit)) & np.uint64(1) > 0]
        ]
        return _by_place(
            np.concatenate([pair[0] for pair in found]), np.concatenate([pair[1] for pair in found])
        )


class ListPart(Part):
    """The Rt++-tree."""

    _kernel = staticmethod(match_lists)

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source)
        source = _placed(source, options)
        nodes = pack(source.boxes, options.most)
        tables = list_tables(nodes, source.start, source.tokens, self._top)
        lengths = np.diff(source.start).astype(np.uint16)
        self.arrays = ListTree(nodes, tables, source.rows, source.boxes, lengths)

    def _least_room(self) -> int:
        return max(_FIRST_ROOM, MOST_ENTRIES * MOST_ENTRIES)

    def _pairs(self) -> tuple[Ints, Positions]:
        tables = self.arrays.tables
        tokens = np.repeat(tables.keys, np.diff(tables.ends.astype(np.int64)))
        return _by_place(tables.members.astype(np.int64), tokens)


class KeywordPart(Part):
    """The keyword-first method."""

    _kernel = staticmethod(match_keywords)

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source)
        order = np.argsort(source.tokens, kind="stable")
        owner = np.repeat(np.arange(len(source.rows)), np.diff(source.start))
        start = np.zeros(self._top + 1, np.int64)
        np.cumsum(np.bincount(source.tokens, minlength=self._top), out=start[1:])
        self.arrays = KeywordLists(
            start,
            owner[order].astype(np.uint32),
            source.rows,
            source.boxes.copy(),
            np.diff(source.start).astype(np.uint16),
        )

    def _pairs(self) -> tuple[Ints, Positions]:
        lists: KeywordLists = self.arrays
        tokens = np.repeat(np.arange(self._top, dtype=np.uint32), np.diff(lists.list_start))
        return _by_place(lists.members.astype(np.int64), tokens)

    def _least_room(self) -> int:
        return len(self)

    def _room(self, tokens: int) -> Room:
        return Room(
            np.empty(tokens, np.uint32),
            np.empty(0, np.uint64),
            np.empty(0, np.uint32),
            np.zeros(len(self), np.uint16),
            np.empty((0, 2), np.int64),
        )


FAMILIES: dict[str, Callable[[Source, Options], Part]] = {
    "rt": MaskPart,
    "rt+": MaskPart,
    "rt++": ListPart,
    "keyword-first": KeywordPart,
    "spatial-first": MaskPart,
    "ir-tree": MaskPart,
}


def _placed(source: Source, options: Options) -> Source:
    """Subscriptions in the order of their places, their tokens in the order that is asked for."""
    order = places(source.boxes)
    boxes = source.boxes[order]
    start = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(source.start)[order], out=start[1:])
    tokens = np.empty(len(source.tokens), np.uint32)
    gather_tokens(source.start, source.tokens, order, start, tokens)
    top = int(tokens.max()) + 1
    put_in_order(options.order, boxes, start, tokens, top, options.cells, options.seed)
    return Source(source.rows[order], boxes, start, tokens)


def _without_first(source: Source) -> tuple[Ints, Positions]:
    """Each subscription's tokens after the first."""
    rest = np.ones(len(source.tokens), bool)
    rest[source.start[:-1]] = False
    return source.start - np.arange(len(source.start)), source.tokens[rest]


def _by_place(place: Ints, tokens: Positions) -> tuple[Ints, Positions]:
    order = np.argsort(place, kind="stable")
    return place[order], tokens[order]


def _flat(arrays: tuple[Any, ...]) -> list[NDArray[Any]]:
    """Every array of nested named tuples."""
    found: list[NDArray[Any]] = []
    for one in arrays:
        found += [one] if isinstance(one, np.ndarray) else _flat(one)
    return found
