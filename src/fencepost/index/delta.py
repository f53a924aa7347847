"""Subscriptions that came last: arrays that grow, through which each event goes one by one.

Their filters stand under no access path, but the smallest box that a check needs the event to meet
is beside each. The arrays have room behind what is there, and a row says from which version on it
is: so adding one is one call, and whoever matches with an older version is not disturbed. Where
the room is used up, larger arrays take the place of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.index.columns import Columns
from fencepost.index.places import places_of
from fencepost.index.planner import Path
from fencepost.index.segment import NEVER, NEVER_GONE, Segment, build
from fencepost.index.table import FilterTable
from fencepost.kernels import growing, vocabulary
from fencepost.kernels.handles import handle
from fencepost.kernels.matching import CHECK, SegmentArrays
from fencepost.kernels.places import NOWHERE
from fencepost.kernels.rooms import REMOVED
from fencepost.kernels.shapes import CHAIN, NODE, SHAPE, TOUCHING, ShapeArrays
from fencepost.kernels.vocabulary import Vocabulary
from fencepost.model.geometry import Shapes
from fencepost.model.geometry_plain import joined, plain
from fencepost.model.space import Space
from fencepost.plan.checks import Filter

_FIRST_ROOM = 64


@cache
def _nothing() -> SegmentArrays:
    """A segment of no subscriptions, for the parts that a delta has not."""
    return build(FilterTable(Columns()).arrays(), np.empty(0, np.int64)).arrays


def _empty(room: int) -> SegmentArrays:
    """Room for so many subscriptions, with a few checks and points each."""
    return _nothing()._replace(
        checks=np.zeros(4 * room, CHECK),
        filter_check=np.zeros(room + 1, np.uint32),
        # Those that are not there yet belong to a subscription that never comes.
        filter_subscription=np.full(room, room, np.uint32),
        gone=np.full(room + 1, NEVER_GONE, np.uint32),
        born=np.full(room + 1, NEVER_GONE, np.uint32),
        expires=np.zeros(room + 1, np.int64),
        set_start=np.zeros(2 * room, np.uint32),
        set_items=np.zeros(4 * room, np.uint32),
        scan=np.arange(room, dtype=np.uint32),
        scan_column=np.zeros(room, np.int32),
        scan_box=np.zeros((room, 4)),
        path=np.full(room, Path.SCAN, np.uint8),
        share=np.ones(room, np.float32),
        state=np.array([0, NEVER, 1, 0, 0], np.int64),
        vocabulary=Vocabulary(
            np.full(1 << (8 * room - 1).bit_length(), vocabulary.EMPTY, np.uint64),
            np.zeros(4 * room, np.int64),
            np.zeros(32 * room, np.uint8),
        ),
        shapes=ShapeArrays(
            np.zeros(8 * room),
            np.zeros(8 * room),
            np.zeros(8 * room, np.uint8),
            np.zeros(2 * room, CHAIN),
            np.zeros(2 * room, SHAPE),
            np.zeros(4 * room, NODE),
            np.zeros(room, TOUCHING),
        ),
    )


class _Given:
    """Where the next subscription is written; `handle` is what kernels take for it."""

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self._sizes = sizes
        self._take(16)

    def _take(self, room: int) -> None:
        checks, text = np.empty(room, CHECK), np.empty(room, np.uint8)
        a, b, c, d = (np.empty(room, np.int64) for _ in range(4))
        self._arrays = growing.Given(self._sizes, np.zeros(6, np.int64), checks, a, b, c, d, text)
        self.handle = handle(self._arrays)

    def write(self, table: FilterTable) -> None:
        """Write the only subscription of a table."""
        text = b"".join(table.strings)
        parts: tuple[Any, ...] = (
            table.checks,
            table.filter_check,
            [0, *accumulate(map(len, table.sets))],
            [item for one in table.sets for item in one],
            [0, *accumulate(map(len, table.strings))],
            np.frombuffer(text, np.uint8),
        )
        counts = [len(part) for part in parts]
        if max(counts) > len(self._arrays.checks):
            self._take(2 * max(counts))
        self._arrays.counts[:] = counts
        arrays: tuple[Any, ...] = self._arrays[2:]
        for array, part, count in zip(arrays, parts, counts, strict=True):
            array[:count] = part


class Delta:
    """Subscriptions, row by row as they come.

    Attributes
    ----------
    handle
        Of all arrays, with the room behind; an older one stays good for older versions.
    gone, expires : array
        Of each row, as in `SegmentArrays`.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._sizes = np.zeros(growing.SIZES, np.int64)
        self._given = _Given(self._sizes)
        self._use(_empty(_FIRST_ROOM))

    def _use(self, arrays: SegmentArrays) -> None:
        self._arrays = arrays
        self.gone, self.expires = arrays.gone, arrays.expires
        self.handle = handle(arrays)

    def __len__(self) -> int:
        return int(self._sizes[growing.SUBSCRIPTIONS])

    def add(self, subscriptions: Iterable[tuple[Sequence[Filter], int]], version: int) -> None:
        """Add the filters and expiry of subscriptions, which are there from a version on.

        Where one cannot be added, none is.
        """
        sizes = self._sizes.copy()
        try:
            for filters, expires in subscriptions:
                self._add(filters, expires, version)
        except BaseException:
            self._sizes[:] = sizes
            self._arrays.born[len(self) :] = NEVER_GONE
            raise

    def _add(self, filters: Sequence[Filter], expires: int, version: int) -> None:
        table = FilterTable(self._columns, compact=False)
        table.add(0, filters)
        self._given.write(table)
        shapes = _laid_out(table.geometries)
        first = int(self._sizes[growing.FILTERS])
        while not growing.append(
            self.handle, self._given.handle, shapes, expires, np.uint32(version)
        ):
            self._grow()
        if self._columns.space is Space.WGS84:
            self._widen(first)

    def _widen(self, first: int) -> None:
        """Let filters from one on have the boxes that distances on the ellipsoid reach."""
        own = self._arrays
        for number in range(first, int(self._sizes[growing.FILTERS])):
            low, high = own.filter_check[number], own.filter_check[number + 1]
            places = places_of(own.checks[low:high], own.shapes)
            boxes = places.joined()
            sizes = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
            sizes[places.kinds == NOWHERE] = np.inf
            best = int(np.argmin(sizes)) if len(sizes) else -1
            own.scan_column[number] = -1
            if best >= 0 and np.isfinite(sizes[best]):
                own.scan_column[number] = own.checks["column"][low + best]
                own.scan_box[number] = boxes[best]

    def remove(self, row: int, version: int) -> None:
        """Let a subscription match no longer, from a version on."""
        self._arrays.state[REMOVED] += 1  # before the other: a match that begins now must look
        self.gone[row] = version

    def renew(self) -> None:
        """Begin with version 0 again: what is there is there, what is gone is gone."""
        self.gone[self.gone != NEVER_GONE] = 0
        self._arrays.born[: len(self)] = 0

    def _grow(self) -> None:
        """Move to arrays of twice the size."""
        old, room = self._arrays, 2 * len(self._arrays.scan)
        new = _filled(_empty(room), old)
        words, count = new.vocabulary, int(self._sizes[growing.WORDS])
        slots = vocabulary.reslotted(
            words._replace(slots=old.vocabulary.slots), count, len(words.start) - count
        )
        new.filter_subscription[self._sizes[growing.FILTERS] :] = room
        self._use(new._replace(state=old.state, vocabulary=words._replace(slots=slots)))

    def segment(self, count: int) -> Segment:
        """The first so many subscriptions as others are, ready to be looked at."""
        own = self._arrays
        filters = int(np.searchsorted(own.filter_subscription, count))
        checks = int(own.filter_check[filters])
        _, _, _, sets, items, words, shapes, chains, points, nodes, touches = self._sizes.tolist()
        g = own.shapes
        return Segment(
            own._replace(
                checks=own.checks[:checks],
                filter_check=own.filter_check[: filters + 1],
                filter_subscription=own.filter_subscription[:filters],
                gone=own.gone[:count],
                born=_nothing().born,
                expires=own.expires[:count],
                set_start=own.set_start[: sets + 1],
                set_items=own.set_items[:items],
                scan=own.scan[:filters],
                scan_column=own.scan_column[:filters],
                scan_box=own.scan_box[:filters],
                path=own.path[:filters],
                share=own.share[:filters],
                vocabulary=own.vocabulary._replace(start=own.vocabulary.start[: words + 1]),
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


def _laid_out(geometries: Sequence[object]) -> Any:
    """The handle of the shapes of geometries; raises GeometryError for the first bad one."""
    found = [one for geometry in geometries if (one := plain(geometry)) is not None]
    if len(found) == len(geometries):
        shapes, usable = growing.laid_out(*joined(found))
        if usable:
            return shapes
    for geometry in geometries:
        Shapes.read_one(geometry)
    return handle(Shapes.read_all(list(geometries)).arrays)


def _filled(new: Any, old: Any) -> Any:
    """Arrays, in named tuples, that begin with what the old ones hold."""
    if isinstance(new, tuple):
        return type(new)(*map(_filled, new, old))
    array: NDArray[Any] = new
    array[: len(old)] = old
    return array
