"""The memtable: the subscriptions that came last, in arrays that grow.

Every event visits each filter, but the smallest box that a check needs the event to meet lies
beside it. The arrays have room behind what is there, and a row says from which version on it
exists: so adding one is one call, and matches with an older version are not disturbed. Where the
room is used up, larger arrays take the place of all.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.engine.bounding_boxes import bounding_boxes_of
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.filter_table import (
    ROW,
    CompiledExpression,
    FilterTable,
    set_keys,
    template_rows,
)
from fencepost.engine.segment import SegmentReader, names_table
from fencepost.engine.segment_builder import (
    NEVER_EXPIRES,
    NOT_DELETED,
    empty_segment,
    unbounded_lanes,
)
from fencepost.engine.selectivity import AccessPath
from fencepost.engine.subscriptions import Expression, Subscription
from fencepost.filters.checks import Filter, ListCheck
from fencepost.filters.query_templates import BoundTemplate
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.single_geometry import (
    Outline,
    join_unchecked,
    outline_arrays,
    read_unchecked,
)
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.shape_arrays import (
    CHAIN_DTYPE,
    NODE_DTYPE,
    SHAPE_DTYPE,
    TOUCH_DTYPE,
    ShapeArrays,
)
from fencepost.kernels.index import memtable_arrays
from fencepost.kernels.index.posting_arrays import NOTHING
from fencepost.kernels.match.check_evaluation import CHECK
from fencepost.kernels.match.match_scratch import REMOVED
from fencepost.kernels.match.segment_search import SegmentArrays
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.kernels.text import vocabulary
from fencepost.kernels.text.vocabulary import Vocabulary

INITIAL_CAPACITY = 64


def _empty(room: int) -> SegmentArrays:
    """Room for so many subscriptions, with a few checks and points each."""
    return empty_segment()._replace(
        checks=np.zeros(4 * room, CHECK),
        filter_check=np.zeros(room + 1, np.uint32),
        # Free rows point at a sentinel subscription that never matches.
        filter_subscription=np.full(room, room, np.uint32),
        deleted_version=np.full(room + 1, NOT_DELETED, np.uint32),
        created_version=np.full(room + 1, NOT_DELETED, np.uint32),
        expires=np.zeros(room + 1, np.int64),
        set_start=np.zeros(2 * room, np.uint32),
        set_items=np.zeros(4 * room, np.uint32),
        scan=np.arange(room, dtype=np.uint32),
        scan_column=np.zeros(room, np.int32),
        scan_box=np.full((room // WIDTH, 4, WIDTH), np.nan),
        scan_free=np.zeros(room // WIDTH, np.uint16),
        path=np.full(room, AccessPath.SCAN, np.uint8),
        selectivity=np.ones(room, np.float32),
        state=np.array([0, NEVER_EXPIRES, 1, 0, 0], np.int64),
        vocabulary=Vocabulary(
            slots=np.full(1 << (8 * room - 1).bit_length(), vocabulary.EMPTY, np.uint64),
            start=np.zeros(4 * room, np.int64),
            bytes=np.zeros(32 * room, np.uint8),
        ),
        shapes=ShapeArrays(
            x=np.zeros(8 * room),
            y=np.zeros(8 * room),
            mark=np.zeros(8 * room, np.uint8),
            chains=np.zeros(2 * room, CHAIN_DTYPE),
            shapes=np.zeros(2 * room, SHAPE_DTYPE),
            nodes=np.zeros(4 * room, NODE_DTYPE),
            touches=np.zeros(room, TOUCH_DTYPE),
        ),
    )


class _Given:
    """Where the next subscription is written; `handle` is what kernels take for it."""

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self._sizes = sizes
        self._take(128)

    def _take(self, room: int) -> None:
        checks, numbers = np.empty(room, CHECK), np.empty(room, np.int64)
        text, points = np.empty(room, np.uint8), np.empty((room, 2))
        counts = np.zeros(memtable_arrays.GIVEN_COUNTS + memtable_arrays.PARTS + 1, np.int64)
        self._room = room
        # Views of the arrays, which are written to sooner than these.
        self._counts, self._numbers = (own.data.cast("B").cast("q") for own in (counts, numbers))
        self._checks, self._text = checks.view(np.uint8).data, text.data
        self._points = points.reshape(-1).data
        self.struct_ref = struct_ref(
            memtable_arrays.Given(
                sizes=self._sizes,
                counts=counts[: memtable_arrays.GIVEN_COUNTS],
                part_start=counts[memtable_arrays.GIVEN_COUNTS :],
                checks=checks,
                numbers=numbers,
                text=text,
                points=points,
            )
        )

    def write(
        self,
        checks: bytes | bytearray,
        filter_check: list[int],
        set_start: list[int],
        set_items: list[int],
        strings: Collection[bytes],
        shapes: Sequence[Outline] = (),
    ) -> None:
        """Write a subscription: rows of checks, the sets they refer to, and the keys in these.

        The shapes are for `append_plain`, and of one chain each.
        """
        text = b"".join(strings)
        points = [number for xy, _, _ in shapes for number in xy]
        chains = len(shapes)
        parts = (  # in the order of `growing`
            filter_check,
            set_start,
            set_items,
            [0, *accumulate(map(len, strings))],
            [0, *accumulate(size for _, (size,), _ in shapes)],
            [0] * chains,
            range(chains + 1),
            [dimension for *_, dimension in shapes],
        )
        part_start = [*accumulate(map(len, parts), initial=0)]
        counts = [len(checks) // ROW.size, len(text), len(points) // 2, *part_start]
        if max(counts) > self._room:
            self._take(2 * max(counts))
        self._counts[:] = array("q", counts)
        self._checks[: len(checks)] = checks
        self._text[: len(text)] = text
        self._numbers[: part_start[-1]] = array("q", chain.from_iterable(parts))
        self._points[: len(points)] = array("d", points)


class Memtable:
    """The subscriptions that came last, row by row; matched at once, made a segment later.

    Parameters
    ----------
    columns : Columns
    serial : int
        Of all views of it.
    room : int
        For how many subscriptions to have room, if they ask for little.

    Attributes
    ----------
    subscriptions : list of Subscription
    handle
        Of all arrays, with the room behind; an older one stays good for older versions.
    deleted_version, expires : array
        Of each row, as in `SegmentArrays`.
    has_posting_filters : bool
        Whether one of them may ask for words and a place only, which take less room otherwise.

    Notes
    -----
    One writer at a time; readers hold a `MemtableView`. A row's arrays are written before its
    subscription is appended, and that before the snapshot with the row is published: a match relies
    on it, because it looks up the id of whatever the kernel finds. Kernels are given a version, and
    skip rows that were created after it.
    """

    def __init__(self, columns: ColumnRegistry, serial: int, room: int = INITIAL_CAPACITY) -> None:
        self.serial = serial
        self.subscriptions: list[Subscription] = []
        self.has_posting_filters = False
        self._rows: dict[str, int] = {}
        self._columns = columns
        self._sizes = np.zeros(memtable_arrays.SIZES, np.int64)
        self._given = _Given(self._sizes)
        self._use(_empty(room))

    def _use(self, arrays: SegmentArrays, own: Any = None) -> None:
        self._arrays = arrays
        self.deleted_version, self.expires = arrays.deleted_version, arrays.expires
        self.struct_ref = struct_ref(arrays) if own is None else own

    @property
    def room(self) -> int:
        """For how many subscriptions there is room, if they ask for little."""
        return len(self._arrays.scan)

    def __len__(self) -> int:
        return int(self._sizes[memtable_arrays.SUBSCRIPTIONS])

    def row_of(self, id: str) -> int:
        """The last row of an id, or -1."""
        return self._rows.get(id, -1)

    def id_of(self, row: int) -> str:
        """The id of a row."""
        return self.subscriptions[row].id

    def subscriber_of(self, row: int) -> str:
        """The subscriber of a row."""
        return self.subscriptions[row].subscriber

    def add(self, subscriptions: Collection[Subscription], version: int) -> None:
        """Add some, from a version on; their ids are not in use, or of rows deleted by then.

        Where one cannot be added, none is.
        """
        sizes, arrays, own = self._sizes.copy(), self._arrays, self.struct_ref
        try:
            for one in subscriptions:
                self.add_compiled(one.compiled, one.expires, version)
        except BaseException:
            # If they grew, the arrays that readers have would miss what is deleted later.
            self._sizes[:] = sizes
            self._use(arrays, own)
            self._arrays.created_version[len(self) :] = NOT_DELETED
            self._arrays.filter_subscription[sizes[memtable_arrays.FILTERS] :] = self.room
            raise
        for one in subscriptions:
            self._rows[one.id] = len(self.subscriptions)
            self.subscriptions.append(one)

    def add_compiled(self, compiled: CompiledExpression, expires: int, version: int) -> None:
        shapes = (
            self._write_filled(compiled)
            if isinstance(compiled, BoundTemplate)
            else self._write(compiled)
        )
        first = int(self._sizes[memtable_arrays.FILTERS])
        since = np.uint32(version)
        given = self._given.struct_ref
        if shapes is None:
            while not memtable_arrays.append_plain(self.struct_ref, given, expires, since):
                self._grow()
        else:
            while not memtable_arrays.append(self.struct_ref, given, shapes, expires, since):
                self._grow()
        if self._columns.space is Space.WGS84:
            self._widen(first)

    def _write(self, filters: Sequence[Filter]) -> Any:
        """Write filters to be added; the handle of their shapes comes back."""
        table = FilterTable(self._columns, compact=False)
        table.add(0, filters)
        self.has_posting_filters |= any(len(t) < 3 and _has_list(t) for t in filters)
        self._given.write(
            table.checks, table.filter_check, table.set_start, table.set_items, table.strings
        )
        return _laid_out(table.geometries)

    def _write_filled(self, compiled: BoundTemplate) -> Any:
        """Write a text of a form to be added; the handle of its shapes, or None: they are too."""
        rows = template_rows(compiled.template, self._columns)
        self.has_posting_filters |= rows.posted is not None
        numbers: dict[bytes, int] = {}
        start, items = [0], []
        for keys in set_keys(rows, compiled, self._columns.tokenizer):
            items += [numbers.setdefault(key, len(numbers)) for key in keys]
            start.append(len(items))
        shapes = compiled.shapes if compiled.template.needs_no_validation else ()
        self._given.write(
            rows.packed(compiled.bounds), [0, rows.count], start, items, numbers, shapes
        )
        if compiled.template.needs_no_validation:
            return None
        return compiled.shapes_ref or memtable_arrays.laid_out(*outline_arrays(compiled.shapes))[0]

    def _widen(self, first: int) -> None:
        """Let filters from one on have the boxes that distances on the ellipsoid reach."""
        own = self._arrays
        for number in range(first, int(self._sizes[memtable_arrays.FILTERS])):
            low, high = own.filter_check[number], own.filter_check[number + 1]
            places = bounding_boxes_of(own.checks[low:high], own.shapes)
            boxes = places.hulls()
            sizes = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
            sizes[places.kinds == NOTHING] = np.inf
            best = int(np.argmin(sizes)) if len(sizes) else -1
            placed = best >= 0 and np.isfinite(sizes[best])
            block, lane = divmod(number, WIDTH)
            own.scan_column[number] = own.checks["column"][low + best] if placed else -1
            own.scan_box[block, :, lane] = boxes[best] if placed else np.nan
            last = (block + 1) * WIDTH
            own.scan_free[block] = unbounded_lanes(own.scan_column[block * WIDTH : last])[0]

    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on: the count first, as in `Segment.remove`."""
        self._arrays.state[REMOVED] += 1
        self.deleted_version[row] = version

    def reset_versions(self) -> None:
        """Begin with version 0 again: what is there is there, what is deleted is deleted."""
        self.deleted_version[self.deleted_version != NOT_DELETED] = 0
        self._arrays.created_version[: len(self)] = 0

    def _grow(self) -> None:
        """Move to arrays of twice the size."""
        old, room = self._arrays, 2 * len(self._arrays.scan)
        new = _filled(_empty(room), old)
        words, count = new.vocabulary, int(self._sizes[memtable_arrays.WORDS])
        slots = vocabulary.reslotted(
            words._replace(slots=old.vocabulary.slots), count, len(words.start) - count
        )
        new.filter_subscription[self._sizes[memtable_arrays.FILTERS] :] = room
        self._use(new._replace(state=old.state, vocabulary=words._replace(slots=slots)))

    def arrays_of(self, count: int) -> SegmentArrays:
        """The arrays of the first so many rows, without the room behind."""
        own = self._arrays
        filters = int(np.searchsorted(own.filter_subscription, count))
        checks = int(own.filter_check[filters])
        blocks = -(-filters // WIDTH)
        sizes, g = self._sizes, own.shapes
        return own._replace(
            checks=own.checks[:checks],
            filter_check=own.filter_check[: filters + 1],
            filter_subscription=own.filter_subscription[:filters],
            deleted_version=own.deleted_version[:count],
            created_version=empty_segment().created_version,
            expires=own.expires[:count],
            set_start=own.set_start[: sizes[memtable_arrays.SETS] + 1],
            set_items=own.set_items[: sizes[memtable_arrays.SET_ITEMS]],
            scan=own.scan[:filters],
            scan_column=own.scan_column[:filters],
            scan_box=own.scan_box[:blocks],
            scan_free=unbounded_lanes(own.scan_column[:filters]),
            path=own.path[:filters],
            selectivity=own.selectivity[:filters],
            vocabulary=own.vocabulary._replace(
                start=own.vocabulary.start[: sizes[memtable_arrays.WORDS] + 1]
            ),
            shapes=ShapeArrays(
                x=g.x[: sizes[memtable_arrays.POINTS]],
                y=g.y[: sizes[memtable_arrays.POINTS]],
                mark=g.mark[: sizes[memtable_arrays.POINTS]],
                chains=g.chains[: sizes[memtable_arrays.CHAINS] + 1],
                shapes=g.shapes[: sizes[memtable_arrays.SHAPES] + 1],
                nodes=g.nodes[: sizes[memtable_arrays.NODES]],
                touches=g.touches[: sizes[memtable_arrays.TOUCHES]],
            ),
        )


class MemtableView(SegmentReader):
    """The rows that a memtable has at one moment."""

    def __init__(self, memtable: Memtable) -> None:
        self._memtable = memtable
        self._count = count = len(memtable)
        self.serial = memtable.serial
        self.struct_ref = memtable.struct_ref
        self.id_of, self.subscriber_of = memtable.id_of, memtable.subscriber_of
        self.deleted_version = memtable.deleted_version[:count]
        self.expires = memtable.expires[:count]

    def __len__(self) -> int:
        return self._count

    @cached_property
    def arrays(self) -> SegmentArrays:  # type: ignore[override]
        """The arrays, cut off behind these rows when first asked for."""
        return self._memtable.arrays_of(self._count)

    @property
    def names(self) -> pa.Table:
        """The names, written when asked for."""
        return names_table(self._memtable.subscriptions[: self._count])

    def row_of(self, id: str) -> int:
        """The row of an id, or -1."""
        return self._memtable.row_of(id)

    def stored_expression(self, row: int) -> Expression:
        """The expression of a row, or its condition."""
        return self._memtable.subscriptions[row].expression

    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on."""
        self._memtable.remove(row, version)
        self.removals += 1

    def reset_versions(self) -> None:
        """Begin with version 0 again."""
        self._memtable.reset_versions()


def _has_list(terms: Filter) -> bool:
    return any(isinstance(term.check, ListCheck) for term in terms)


def _laid_out(geometries: Sequence[object]) -> Any:
    """The handle of the shapes of geometries; raises GeometryError for the first bad one."""
    found = [one for geometry in geometries if (one := read_unchecked(geometry)) is not None]
    if len(found) == len(geometries):
        shapes, usable = memtable_arrays.laid_out(*join_unchecked(found))
        if usable:
            return shapes
    for geometry in geometries:
        Shapes.read_one(geometry)
    return struct_ref(Shapes.read_all(list(geometries)).arrays)


def _filled(new: Any, old: Any) -> Any:
    """Arrays, in named tuples, that begin with what the old ones hold."""
    if isinstance(new, tuple):
        return type(new)(*map(_filled, new, old))
    array: NDArray[Any] = new
    array[: len(old)] = old
    return array
