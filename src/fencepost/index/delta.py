"""Subscriptions that came last: arrays that grow, through which each event goes one by one.

Their filters stand under no access path, but the smallest box that a check needs the event to meet
is beside each. What was added once stays where it is, so whoever reads a segment that was made
earlier is not disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from fencepost.index.columns import Columns
from fencepost.index.merge import GEOMETRIC, TEXTUAL, WITH_SETS
from fencepost.index.planner import Path
from fencepost.index.segment import NEVER, NEVER_GONE, Segment, build
from fencepost.index.table import FilterTable, encode_keys
from fencepost.kernels import vocabulary
from fencepost.kernels.copying import copy_shapes
from fencepost.kernels.matching import CHECK, SegmentArrays
from fencepost.kernels.places import places
from fencepost.kernels.rooms import FIRST_EXPIRY, MOST_CHAINS, REMOVED
from fencepost.kernels.shapes import CHAIN, NODE, SHAPE, TOUCHING, ShapeArrays
from fencepost.kernels.vocabulary import Vocabulary
from fencepost.model.geometry import Shapes
from fencepost.plan.checks import Filter

Item = TypeVar("Item", bound=np.generic)
_FIRST_ROOM = 64


class _Growing(Generic[Item]):
    """An array with room behind its items."""

    def __init__(self, kind: Any, items: Any = None) -> None:
        start = np.array([] if items is None else items, kind)
        self.room: NDArray[Any] = np.zeros((_FIRST_ROOM, *start.shape[1:]), kind)
        self.count = 0
        self.add(start)

    def fit(self, more: int) -> None:
        """Make room for so many more; the old array stays as it is."""
        if self.count + more > len(self.room):
            grown = np.zeros((2 * (self.count + more), *self.room.shape[1:]), self.room.dtype)
            grown[: self.count] = self.room[: self.count]
            self.room = grown

    def add(self, items: Any) -> None:
        self.fit(len(items))
        self.room[self.count : self.count + len(items)] = items
        self.count += len(items)

    @property
    def items(self) -> NDArray[Any]:
        return self.room[: self.count]


@cache
def _nothing() -> SegmentArrays:
    """A segment of no subscriptions, for the parts that a delta has not."""
    return build(FilterTable(Columns()).arrays(), np.empty(0, np.int64)).arrays


class Delta:
    """Subscriptions, row by row as they come."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._checks: _Growing[np.void] = _Growing(CHECK)
        self._filter_check: _Growing[np.uint32] = _Growing(np.uint32, [0])
        self._filter_subscription: _Growing[np.uint32] = _Growing(np.uint32)
        self._gone: _Growing[np.uint32] = _Growing(np.uint32)
        self._expires: _Growing[np.int64] = _Growing(np.int64)
        self._set_start: _Growing[np.uint32] = _Growing(np.uint32, [0])
        self._set_items: _Growing[np.uint32] = _Growing(np.uint32)
        self._scan_column: _Growing[np.int32] = _Growing(np.int32)
        self._scan_box: _Growing[np.float64] = _Growing(np.float64, np.empty((0, 4)))
        self._words = Vocabulary(
            np.full(4 * _FIRST_ROOM, vocabulary.EMPTY, np.uint64),
            np.zeros(_FIRST_ROOM, np.int64),
            np.empty(16 * _FIRST_ROOM, np.uint8),
        )
        self._word_count = 0
        self._shapes = ShapeArrays(
            np.empty(_FIRST_ROOM),
            np.empty(_FIRST_ROOM),
            np.empty(_FIRST_ROOM, np.uint8),
            np.zeros(_FIRST_ROOM, CHAIN),
            np.zeros(_FIRST_ROOM, SHAPE),
            np.empty(_FIRST_ROOM, NODE),
            np.empty(_FIRST_ROOM, TOUCHING),
        )
        self._shapes.shapes["dimension"] = -1
        self._sizes = np.zeros(5, np.int64)  # shapes, chains, points, nodes, touches
        self._state = np.array([0, NEVER, 1, 0], np.int64)

    def __len__(self) -> int:
        return self._gone.count

    def add(self, filters: Sequence[Filter], expires: int) -> None:
        """Add a subscription."""
        table = FilterTable(self._columns, compact=False)
        table.add(len(self), filters)
        shapes = [self._add_shape(geometry) for geometry in table.geometries]
        words = self._add_words(list(table.strings))
        sets = self._set_start.count - 1
        checks = np.array(table.checks, CHECK)
        self._renumber(checks, shapes, words, sets)
        boxes, kinds = np.zeros((len(checks), 4)), np.empty(len(checks), np.uint8)
        places(checks, self._shapes, boxes, kinds)
        for own in table.sets:
            self._set_items.add(np.sort(words[own]))
            self._set_start.add([self._set_items.count])
        before = self._checks.count
        self._checks.add(checks)
        self._filter_check.add(np.array(table.filter_check[1:]) + before)
        for low, high in zip(table.filter_check, table.filter_check[1:], strict=False):
            column, box = _smallest(checks[low:high], boxes[low:high], kinds[low:high])
            self._scan_column.add([column])
            self._scan_box.add(box[None, :])
        self._filter_subscription.add(table.filter_subscription)
        self._expires.add([expires])
        self._state[FIRST_EXPIRY] = min(self._state[FIRST_EXPIRY], expires)
        self._gone.add([NEVER_GONE])

    def remove(self, row: int, version: int) -> None:
        """Let a subscription match no longer, from a version on."""
        self._state[REMOVED] += 1  # before the other: a match that begins now must look
        self._gone.room[row] = version

    def _renumber(
        self, checks: NDArray[np.void], shapes: list[int], words: NDArray[np.int64], sets: int
    ) -> None:
        """Let checks refer to the delta's shapes, words and sets."""
        kind = checks["kind"]
        for k in range(len(checks)):
            item = int(checks["item"][k])
            if kind[k] in GEOMETRIC:
                checks["item"][k] = shapes[item]
            elif kind[k] in TEXTUAL:
                checks["item"][k] = words[item]
            elif kind[k] in WITH_SETS:
                checks["item"][k] = sets + item

    def _add_shape(self, geometry: object) -> int:
        """The row of a geometry, which is copied."""
        one = Shapes.read_one(geometry)
        g = one.arrays
        held = self._shapes
        holders = (held.shapes, held.chains, held.x, held.nodes, held.touches)
        rooms = np.array([len(array) for array in holders])
        more = np.array([1, len(g.chains) - 1, len(g.x), len(g.nodes), len(g.touches)])
        if (self._sizes + more >= rooms).any():  # one is for the sentinel
            self._shapes = ShapeArrays(*(_doubled(array) for array in held))
            return self._add_shape(geometry)
        row = int(self._sizes[0])
        copy_shapes(g, np.zeros(1, np.int64), self._shapes, self._sizes)
        self._state[MOST_CHAINS] = max(self._state[MOST_CHAINS], one.most_chains)
        return row

    def _add_words(self, keys: list[bytes]) -> NDArray[np.int64]:
        """The number of each word."""
        text, start = encode_keys(keys)
        words = self._words
        size = int(words.start[self._word_count]) + len(text)
        if len(words.start) <= self._word_count + len(keys) or len(words.bytes) < size:
            # New slots too: those that somebody reads must not name words that are not there.
            words = words._replace(
                start=_doubled(words.start, len(keys)),
                bytes=_doubled(words.bytes, len(text)),
                slots=words.slots.copy(),
            )
        if len(words.slots) < 2 * (self._word_count + len(keys)):
            words = words._replace(slots=vocabulary.reslotted(words, self._word_count, len(keys)))
        self._words = words
        ids = np.empty(len(keys), np.int64)
        self._word_count = vocabulary.add(words, self._word_count, text, start, ids)
        return ids

    def segment(self) -> Segment:
        """The subscriptions so far, ready to be matched."""
        shapes, chains, points, nodes, touches = self._sizes.tolist()
        g = self._shapes
        filters = self._filter_subscription.count
        return Segment(
            _nothing()._replace(
                checks=self._checks.items,
                filter_check=self._filter_check.items,
                filter_subscription=self._filter_subscription.items,
                gone=self._gone.items,
                expires=self._expires.items,
                set_start=self._set_start.items,
                set_items=self._set_items.items,
                scan=np.arange(filters, dtype=np.uint32),
                scan_column=self._scan_column.items,
                scan_box=self._scan_box.items,
                path=np.full(filters, Path.SCAN, np.uint8),
                share=np.ones(filters, np.float32),
                state=self._state,
                vocabulary=self._words._replace(start=self._words.start[: self._word_count + 1]),
                shapes=ShapeArrays(
                    g.x[:points],
                    g.y[:points],
                    g.mark[:points],
                    g.chains[: chains + 1],
                    g.shapes[: shapes + 1],
                    g.nodes[:nodes],
                    g.touches[:touches],
                ),
            )
        )


def _doubled(array: NDArray[Any], more: int = 0) -> NDArray[Any]:
    """The same with room for as many again, and some more."""
    grown = np.zeros(2 * len(array) + more, array.dtype)
    grown[: len(array)] = array
    return grown


def _smallest(
    checks: NDArray[np.void], boxes: NDArray[np.float64], kinds: NDArray[np.uint8]
) -> tuple[int, NDArray[np.float64]]:
    """The geometry column and box of the check with the smallest one; -1 where none has any."""
    best, least, column = np.zeros(4), np.inf, -1
    for k in np.flatnonzero(kinds).tolist():
        x0, y0, x1, y1 = boxes[k].tolist()
        size = (x1 - x0) * (y1 - y0)
        if size < least:
            best, least, column = boxes[k], size, int(checks["column"][k])
    return column, best
