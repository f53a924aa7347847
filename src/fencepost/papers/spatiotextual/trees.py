"""The room's trees as one object: built at once, changed one subscription at a time.

A tree is packed and stays as it is: its lists are in the order of its places, which is what makes
counting fast (`counting`). The paper does not say how trees change; here they do by Bentley and
Saxe's logarithmic method (1980, "Decomposable searching problems"). What was added waits until the
next match, becomes a tree of its own, and trees of like size are packed together, so that there are
few and every node of each has between b and B entries. A removed subscription's box becomes NaN,
which meets nothing; a tree of which half is removed is packed again.

============  ====================================================================================
the paper     here
============  ====================================================================================
s, m          a subscription, by the row it was given; a message
s.T, s.R      tokens (numbers) and box: x0, y0, x1, y1, closed
b, B          `least` and `most`
n.T, TokenSet the masks of a node's parent, or the lists of the node (`token_tables`)
H             the number of levels below the root
============  ====================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fencepost.errors import IndexingError
from fencepost.kernels.compiling import kernel
from fencepost.kernels.shapes import Floats, Ints, Positions
from fencepost.papers.spatiotextual.counting import (
    KeywordLists,
    ListTree,
    match_keywords,
    match_lists,
)
from fencepost.papers.spatiotextual.ordering import ORDERS, put_in_order
from fencepost.papers.spatiotextual.packing import pack, places
from fencepost.papers.spatiotextual.search import (
    MaskTree,
    MessageArrays,
    Room,
    candidates,
    match_masks,
)
from fencepost.papers.spatiotextual.token_tables import (
    MOST_ENTRIES,
    MaskTables,
    list_tables,
    mask_tables,
)

Kind = Literal["rt", "rt+", "rt++", "keyword-first", "spatial-first", "ir-tree"]
Order = Literal["random", "df", "idf", "locality"]
Found = tuple[Positions, Ints]

KINDS = ("rt", "rt+", "rt++", "keyword-first", "spatial-first", "ir-tree")
_MOST_TOKENS = 2**16 - 2  # of one subscription: they are counted in 16 bits
_TOP_TOKEN = 2**28
_FIRST_ROOM = 1 << 16
_NOTHING = np.empty(0, np.uint32)


def build(
    kind: Kind,
    boxes: ArrayLike,
    token_start: ArrayLike,
    tokens: ArrayLike,
    *,
    order: Order = "locality",
    cells: int = 10_000,
    least: int = 25,
    most: int = 50,
    seed: int = 0,
) -> SpatioTextualIndex:
    """An index of subscriptions, whose rows are 0, 1, 2 and so on.

    Parameters
    ----------
    kind : "rt", "rt+", "rt++", "keyword-first", "spatial-first" or "ir-tree"
    boxes : (n, 4) array
        x0, y0, x1, y1 of each subscription; they may be infinite.
    token_start, tokens : arrays of n + 1 and of all tokens
        Subscription k has tokens[token_start[k]:token_start[k + 1]], distinct numbers from 0 on;
        where it has none, space alone decides.
    order : "random", "df", "idf" or "locality"
        Which token of a subscription comes first: see `ordering`.
    cells : int
        Of the grid that "locality" counts tokens in, about.
    least, most : int
        The fewest and the most entries of a node, but for the root: the paper's b and B.
    seed : int
        Of the order "random".
    """
    index = SpatioTextualIndex(
        kind, order=order, cells=cells, least=least, most=most, seed=seed
    )
    count = len(np.asarray(boxes))
    index._take(_source(np.arange(count), boxes, token_start, tokens))
    return index


class Source(NamedTuple):
    """Subscriptions as they were given; each has a token, if only `EVERY`; tokens count from 1."""

    rows: Positions
    boxes: Floats
    start: Ints
    tokens: Positions


class SpatioTextualIndex:
    """Subscriptions with tokens and rectangles, and which of them messages answer.

    See `build` for the parameters; this one is empty.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        order: Order = "locality",
        cells: int = 10_000,
        least: int = 25,
        most: int = 50,
        seed: int = 0,
    ) -> None:
        if kind not in KINDS:
            raise IndexingError(f"no index is called {kind!r}; there are {', '.join(KINDS)}")
        if order not in ORDERS:
            raise IndexingError(f"no order is called {order!r}; there are {', '.join(ORDERS)}")
        if not (2 <= least <= most // 2 and most <= MOST_ENTRIES):
            raise IndexingError(
                f"nodes need 2 <= least <= most / 2, and most up to {MOST_ENTRIES}; got least "
                f"{least} and most {most}"
            )
        if cells < 1:
            raise IndexingError(f"the grid needs a cell or more; got {cells}")
        self.kind = kind
        self._options = _Options(kind, order, cells, most, seed)
        self._parts: list[_Part] = []
        self._waiting: dict[int, tuple[Floats, Positions]] = {}

    def __len__(self) -> int:
        return len(self._waiting) + sum(part.living for part in self._parts)

    def __contains__(self, row: int) -> bool:
        return row in self._waiting or any(part.place_of(row) >= 0 for part in self._parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the index: boxes, tokens, nodes and what they keep."""
        self._flush()
        return sum(part.nbytes for part in self._parts)

    def add(self, row: int, box: ArrayLike, tokens: ArrayLike) -> None:
        """Add a subscription under a row that is not in use."""
        if row in self:
            raise IndexingError(f"there is a subscription {row} already; remove it first")
        own = np.asarray(tokens, np.uint32).reshape(-1)
        _source([row], [box], [0, len(own)], own)  # refuses what cannot be
        self._waiting[row] = np.array(box, np.float64), own

    def remove(self, row: int) -> None:
        """Take a subscription out."""
        if self._waiting.pop(row, None) is not None:
            return
        for number, part in enumerate(self._parts):
            place = part.place_of(row)
            if place >= 0:
                part.remove(place)
                if 2 * part.living <= len(part):
                    del self._parts[number]
                    self._take(part.source())
                return
        raise IndexingError(f"there is no subscription {row}")

    def match_many(self, boxes: ArrayLike, token_start: ArrayLike, tokens: ArrayLike) -> Found:
        """The rows that messages answer.

        Parameters
        ----------
        boxes : (m, 4) array
            x0, y0, x1, y1 of each message; a point has x0 = x1 and y0 = y1.
        token_start, tokens : arrays
            As of subscriptions; distinct in each message, and any that nobody knows.

        Returns
        -------
        rows : array of uint32
            Of message after message, ascending in each.
        stops : (m,) array of int64
            Where each message's rows end.
        """
        self._flush()
        messages = _messages(boxes, token_start, tokens)
        found = [part.match(messages) for part in self._parts]
        if len(found) == 1:
            return found[0]
        return _joined(found, len(messages.boxes))

    def candidate_nodes(self, box: ArrayLike, tokens: ArrayLike) -> list[Ints]:
        """The candidate nodes of one message, for each tree: the root, then level by level.

        Of "rt", "rt+", "ir-tree" and "spatial-first". Trees of the same subscriptions, added in
        the same order, have the same nodes.
        """
        self._flush()
        own = np.asarray(tokens).reshape(-1)
        messages = _messages(np.reshape(box, (1, 4)), [0, len(own)], own)
        return [part.candidates(messages) for part in self._parts]

    def _flush(self) -> None:
        """Make a tree of what waits."""
        if self._waiting:
            own = [tokens for _, tokens in self._waiting.values()]
            start = np.zeros(len(own) + 1, np.int64)
            np.cumsum([len(tokens) for tokens in own], out=start[1:])
            boxes = np.array([box for box, _ in self._waiting.values()])
            fresh = _source(list(self._waiting), boxes, start, np.concatenate(own))
            self._waiting = {}
            self._take(fresh)

    def _take(self, source: Source) -> None:
        """Make a tree of subscriptions, together with trees that are not much larger."""
        sources = [source]
        size = len(source.rows)
        while size and self._parts and self._parts[-1].living <= 2 * size:
            sources.append(self._parts.pop().source())
            size += len(sources[-1].rows)
        if size:
            self._parts.append(_FAMILIES[self.kind](_together(sources), self._options))
            self._parts.sort(key=len, reverse=True)


@dataclass(frozen=True, slots=True)
class _Options:
    kind: Kind
    order: Order
    cells: int
    most: int
    seed: int


class _Part(ABC):
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
        at = int(np.searchsorted(rows, row, sorter=self._by_row))
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


class _MaskPart(_Part):
    """The Rt-tree, the Rt+-tree, spatial-first and the IR-tree."""

    _kernel = staticmethod(match_masks)

    def __init__(self, source: Source, options: _Options) -> None:
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
        total = candidates(
            self.arrays.nodes, self.arrays.tables, *messages.boxes[0], own, len(own), room.queue
        )
        return room.queue[:total].astype(np.int64)

    def _pairs(self) -> tuple[Ints, Positions]:
        tree: MaskTree = self.arrays
        if not len(tree.lengths):
            sizes = np.diff(tree.token_start.astype(np.int64)) + 1
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


class _ListPart(_Part):
    """The Rt++-tree."""

    _kernel = staticmethod(match_lists)

    def __init__(self, source: Source, options: _Options) -> None:
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


class _KeywordPart(_Part):
    """The keyword-first method."""

    _kernel = staticmethod(match_keywords)

    def __init__(self, source: Source, options: _Options) -> None:
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


_FAMILIES: dict[str, Callable[[Source, _Options], _Part]] = {
    "rt": _MaskPart,
    "rt+": _MaskPart,
    "rt++": _ListPart,
    "keyword-first": _KeywordPart,
    "spatial-first": _MaskPart,
    "ir-tree": _MaskPart,
}


def _source(
    rows: ArrayLike, boxes: ArrayLike, token_start: ArrayLike, tokens: ArrayLike
) -> Source:
    """Subscriptions, checked; one without tokens is given `EVERY`."""
    boxes = np.asarray(boxes, np.float64)
    start = np.asarray(token_start, np.int64)
    given = np.asarray(tokens, np.uint32)
    if boxes.ndim != 2 and len(boxes) == 0:
        boxes = boxes.reshape(0, 4)
    _check(boxes, start, given, "subscription")
    bad = ~((boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3]))
    if bad.any():
        k = int(bad.argmax())
        raise IndexingError(
            f"the box of subscription {k} is {boxes[k].tolist()}: give x0, y0, x1, y1 with "
            "x0 <= x1 and y0 <= y1"
        )
    sizes = np.diff(start)
    if sizes.max(initial=0) > _MOST_TOKENS:
        raise IndexingError(f"a subscription may have up to {_MOST_TOKENS:,} tokens")
    if given.max(initial=0) >= _TOP_TOKEN:
        raise IndexingError(
            f"tokens are numbered from 0 on, below {_TOP_TOKEN:,}; got {given.max():,}"
        )
    without = np.flatnonzero(sizes == 0)
    shifted = np.insert(given + np.uint32(1), start[without], 0) if len(without) else given + np.uint32(1)
    sizes[without] = 1
    ends = np.zeros(len(start), np.int64)
    np.cumsum(sizes, out=ends[1:])
    return Source(np.asarray(rows).astype(np.uint32), boxes, ends, shifted)


def _messages(boxes: ArrayLike, token_start: ArrayLike, tokens: ArrayLike) -> MessageArrays:
    # Arrays that can be written, whatever came: kernels need no second signature.
    made = MessageArrays(
        np.require(boxes, np.float64, ("C", "W")),
        np.require(token_start, np.int64, ("C", "W")),
        np.require(tokens, np.uint32, ("C", "W")),
    )
    _check(made.boxes, made.start, made.tokens, "message")
    return made


def _check(boxes: Floats, start: Ints, tokens: Positions, what: str) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise IndexingError(f"boxes must be an array of (n, 4); got {boxes.shape}")
    if start.shape != (len(boxes) + 1,) or tokens.ndim != 1:
        raise IndexingError(
            f"{len(boxes):,} boxes need {len(boxes) + 1:,} starts of tokens; got {start.shape}"
        )
    if start[0] != 0 or start[-1] != len(tokens) or (np.diff(start) < 0).any():
        raise IndexingError(
            f"the starts of a {what}'s tokens must ascend from 0 to {len(tokens):,}, their number"
        )


def _together(sources: Sequence[Source]) -> Source:
    """Several as one."""
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


def _placed(source: Source, options: _Options) -> Source:
    """Subscriptions in the order of their places, their tokens in the order that is asked for."""
    order = places(source.boxes)
    boxes = source.boxes[order]
    start = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.diff(source.start)[order], out=start[1:])
    tokens = np.empty(len(source.tokens), np.uint32)
    _gather(source.start, source.tokens, order, start, tokens)
    top = int(tokens.max()) + 1
    put_in_order(options.order, boxes, start, tokens, top, options.cells, options.seed)
    return Source(source.rows[order], boxes, start, tokens)


@kernel
def _gather(start, tokens, order, to_start, to):
    for k in range(order.shape[0]):
        low = start[order[k]]
        for j in range(to_start[k + 1] - to_start[k]):
            to[to_start[k] + j] = tokens[low + j]


def _without_first(source: Source) -> tuple[Ints, Positions]:
    """Each subscription's tokens after the first."""
    rest = np.ones(len(source.tokens), bool)
    rest[source.start[:-1]] = False
    return source.start - np.arange(len(source.start)), source.tokens[rest]


def _by_place(place: Ints, tokens: Positions) -> tuple[Ints, Positions]:
    order = np.argsort(place, kind="stable")
    return place[order], tokens[order]


def _joined(found: Sequence[Found], messages: int) -> Found:
    """What several trees found, message by message."""
    sizes = [np.diff(stops, prepend=0) for _, stops in found]
    owner = [np.repeat(np.arange(messages), size) for size in sizes]
    rows = np.concatenate([_NOTHING, *(rows for rows, _ in found)])
    order = np.lexsort((rows, np.concatenate([np.empty(0, np.int64), *owner])))
    total = np.zeros(messages, np.int64)
    for size in sizes:
        total += size
    return rows[order], np.cumsum(total)


def _flat(arrays: tuple[Any, ...]) -> list[NDArray[Any]]:
    """Every array of nested named tuples."""
    found: list[NDArray[Any]] = []
    for one in arrays:
        found += [one] if isinstance(one, np.ndarray) else _flat(one)
    return found


