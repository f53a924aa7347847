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

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fencepost.errors import IndexingError
from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.papers.spatiotextual.mask_search import MessageArrays
from fencepost.papers.spatiotextual.static_trees import FAMILIES, Found, Kind, Options, Part, Source
from fencepost.papers.spatiotextual.token_order import ORDERS, Order
from fencepost.papers.spatiotextual.token_tables import MOST_ENTRIES

KINDS: tuple[Kind, ...] = ("rt", "rt+", "rt++", "keyword-first", "spatial-first", "ir-tree")
_MOST_TOKENS = 2**16 - 2  # of one subscription: they are counted in 16 bits
_TOP_TOKEN = 2**28
_BAD_TOKENS = (
    f"a subscription has up to {_MOST_TOKENS:,} tokens, numbered from 0 on and below {_TOP_TOKEN:,}"
)


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
    index = SpatioTextualIndex(kind, order=order, cells=cells, least=least, most=most, seed=seed)
    count = len(np.asarray(boxes))
    index._take(_source(np.arange(count), boxes, token_start, tokens))
    return index


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
        self.options = Options(kind, order, cells, most, seed)
        self.parts: list[Part] = []
        self._waiting: dict[int, tuple[Floats, Positions]] = {}

    def __len__(self) -> int:
        return len(self._waiting) + sum(part.living for part in self.parts)

    def __contains__(self, row: int) -> bool:
        return row in self._waiting or any(part.place_of(row) >= 0 for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the index: boxes, tokens, nodes and what they keep."""
        self._flush()
        return sum(part.nbytes for part in self.parts)

    def add(self, row: int, box: ArrayLike, tokens: ArrayLike) -> None:
        """Add a subscription under a row that is not in use."""
        if not 0 <= row < 2**32:
            raise IndexingError(f"rows are numbers from 0 to {2**32 - 1}; got {row}")
        if row in self:
            raise IndexingError(f"there is a subscription {row} already; remove it first")
        own = np.array(tokens, np.uint32)
        place = np.array(box, np.float64)
        if place.shape != (4,) or own.ndim != 1:
            raise IndexingError(f"a box is x0, y0, x1, y1 and tokens are a list; got {box!r:.60}")
        if not (place[0] <= place[2] and place[1] <= place[3]):
            raise IndexingError(_bad_box(row, place))
        if len(own) > _MOST_TOKENS or (len(own) and own.max() >= _TOP_TOKEN):
            raise IndexingError(_BAD_TOKENS)
        self._waiting[row] = place, own

    def remove(self, row: int) -> None:
        """Take a subscription out."""
        if self._waiting.pop(row, None) is not None:
            return
        for number, part in enumerate(self.parts):
            place = part.place_of(row)
            if place >= 0:
                part.remove(place)
                if 2 * part.living <= len(part):
                    del self.parts[number]
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
        found = [part.match(messages) for part in self.parts]
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
        return [part.candidates(messages) for part in self.parts]

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
        while size and self.parts and self.parts[-1].living <= 2 * size:
            sources.append(self.parts.pop().source())
            size += len(sources[-1].rows)
        if size:
            self.parts.append(FAMILIES[self.kind](_together(sources), self.options))
            self.parts.sort(key=len, reverse=True)


def _source(rows: ArrayLike, boxes: ArrayLike, token_start: ArrayLike, tokens: ArrayLike) -> Source:
    """Subscriptions, checked; one without tokens is given `EVERY`."""
    boxes = np.asarray(boxes, np.float64)
    start = np.asarray(token_start, np.int64)
    given = np.asarray(tokens, np.uint32)
    if boxes.ndim != 2 and len(boxes) == 0:
        boxes = boxes.reshape(0, 4)
    _check(boxes, start, given, "subscription")
    bad = ~((boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3]))
    if bad.any():
        row = int(bad.argmax())
        raise IndexingError(_bad_box(row, boxes[row]))
    sizes = np.diff(start)
    if sizes.max(initial=0) > _MOST_TOKENS or given.max(initial=0) >= _TOP_TOKEN:
        raise IndexingError(_BAD_TOKENS)
    without = np.flatnonzero(sizes == 0)
    shifted = (
        np.insert(given + np.uint32(1), start[without], 0) if len(without) else given + np.uint32(1)
    )
    sizes[without] = 1
    ends = np.zeros(len(start), np.int64)
    np.cumsum(sizes, out=ends[1:])
    return Source(np.asarray(rows).astype(np.uint32), boxes, ends, shifted)


def _bad_box(row: int, box: Floats) -> str:
    return (
        f"the box of subscription {row} is {box.tolist()}: give x0, y0, x1, y1 with x0 <= x1 and "
        "y0 <= y1"
    )


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


def _joined(found: Sequence[Found], messages: int) -> Found:
    """What several trees found, message by message."""
    sizes = [np.diff(stops, prepend=0) for _, stops in found]
    owner = [np.repeat(np.arange(messages), size) for size in sizes]
    rows = np.concatenate([np.empty(0, np.uint32), *(rows for rows, _ in found)])
    order = np.lexsort((rows, np.concatenate([np.empty(0, np.int64), *owner])))
    total = np.zeros(messages, np.int64)
    for size in sizes:
        total += size
    return rows[order], np.cumsum(total)
