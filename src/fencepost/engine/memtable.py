"""`Memtable`: the newest subscriptions, searchable at once, in arrays that grow.

Every event visits each filter of a memtable. Beside a filter lies the smallest box that the event
must meet, so most visits are one comparison. The arrays have free capacity behind the rows in use,
and a row holds the version that created it. So adding a subscription is one kernel call, and does
not disturb a match with an older version. When the capacity is used up, larger arrays replace them
all.
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
from fencepost.kernels.match.match_scratch import DELETED_ROWS
from fencepost.kernels.match.segment_search import SegmentArrays
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.kernels.text import vocabulary
from fencepost.kernels.text.vocabulary import Vocabulary

INITIAL_CAPACITY = 64


def _allocate(capacity: int) -> SegmentArrays:
    """Allocate arrays for this many subscriptions with a few checks and points each."""
    return empty_segment()._replace(
        checks=np.zeros(4 * capacity, CHECK),
        filter_check=np.zeros(capacity + 1, np.uint32),
        # Free rows point at a sentinel subscription that never matches.
        filter_subscription=np.full(capacity, capacity, np.uint32),
        deleted_version=np.full(capacity + 1, NOT_DELETED, np.uint32),
        created_version=np.full(capacity + 1, NOT_DELETED, np.uint32),
        expires=np.zeros(capacity + 1, np.int64),
        set_start=np.zeros(2 * capacity, np.uint32),
        set_items=np.zeros(4 * capacity, np.uint32),
        scan=np.arange(capacity, dtype=np.uint32),
        scan_column=np.zeros(capacity, np.int32),
        scan_box=np.full((capacity // WIDTH, 4, WIDTH), np.nan),
        scan_free=np.zeros(capacity // WIDTH, np.uint16),
        path=np.full(capacity, AccessPath.SCAN, np.uint8),
        selectivity=np.ones(capacity, np.float32),
        state=np.array([0, NEVER_EXPIRES, 1, 0, 0], np.int64),
        vocabulary=Vocabulary(
            slots=np.full(1 << (8 * capacity - 1).bit_length(), vocabulary.EMPTY, np.uint64),
            start=np.zeros(4 * capacity, np.int64),
            bytes=np.zeros(32 * capacity, np.uint8),
        ),
        shapes=ShapeArrays(
            x=np.zeros(8 * capacity),
            y=np.zeros(8 * capacity),
            mark=np.zeros(8 * capacity, np.uint8),
            chains=np.zeros(2 * capacity, CHAIN_DTYPE),
            shapes=np.zeros(2 * capacity, SHAPE_DTYPE),
            nodes=np.zeros(4 * capacity, NODE_DTYPE),
            touches=np.zeros(capacity, TOUCH_DTYPE),
        ),
    )


class _RowBuffer:
    """A reused buffer for the subscription that a kernel appends next.

    `struct_ref` refers to the arrays that kernels read.
    """

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self._sizes = sizes
        self._allocate(128)

    def _allocate(self, capacity: int) -> None:
        checks, numbers = np.empty(capacity, CHECK), np.empty(capacity, np.int64)
        text, points = np.empty(capacity, np.uint8), np.empty((capacity, 2))
        counts = np.zeros(memtable_arrays.NEW_COUNTS + memtable_arrays.PARTS + 1, np.int64)
        self._capacity = capacity
        # Writing to a memory view takes less time than writing to its array.
        self._counts, self._numbers = (ints.data.cast("B").cast("q") for ints in (counts, numbers))
        self._checks, self._text = checks.view(np.uint8).data, text.data
        self._points = points.reshape(-1).data
        self.struct_ref = struct_ref(
            memtable_arrays.SubscriptionArrays(
                sizes=self._sizes,
                counts=counts[: memtable_arrays.NEW_COUNTS],
                part_start=counts[memtable_arrays.NEW_COUNTS :],
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
        """Write a subscription: rows of checks, the sets they refer to, and the keys of the sets.

        The shapes are for `append_with_outlines`; each has one chain.
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
        if max(counts) > self._capacity:
            self._allocate(2 * max(counts))
        self._counts[:] = array("q", counts)
        self._checks[: len(checks)] = checks
        self._text[: len(text)] = text
        self._numbers[: part_start[-1]] = array("q", chain.from_iterable(parts))
        self._points[: len(points)] = array("d", points)


class Memtable:
    """The newest subscriptions, row by row. Matched at once, flushed to a segment later.

    Parameters
    ----------
    columns : ColumnRegistry
    serial : int
        Serial number of all views of the memtable.
    capacity : int
        Number of subscriptions to allocate for, if they are small.

    Attributes
    ----------
    subscriptions : list of Subscription
    struct_ref
        Struct reference of all arrays, free capacity included. An older one stays valid for older
        versions.
    deleted_version, expires : array
        One item a row, as in `SegmentArrays`.
    has_posting_filters : bool
        Whether a filter may need only keywords and a box. A segment stores such a filter as a
        posting, which takes less memory.

    has_subscribers : bool
        Whether the subscriber of a subscription is not its id.

    Notes
    -----
    There is one writer; readers hold a `MemtableView`. A row's arrays are written before its
    subscription is appended, and the subscription is appended before the snapshot with the row is
    published. A match relies on it, because it looks up the id of each row that the kernel finds.
    Kernels get a version, and skip rows that were created after it.
    """

    def __init__(
        self, columns: ColumnRegistry, serial: int, capacity: int = INITIAL_CAPACITY
    ) -> None:
        self.serial = serial
        self.subscriptions: list[Subscription] = []
        self.has_posting_filters = False
        self.has_subscribers = False
        self._rows: dict[str, int] = {}
        self._columns = columns
        self._sizes = np.zeros(memtable_arrays.SIZES, np.int64)
        self._row_buffer = _RowBuffer(self._sizes)
        self._use(_allocate(capacity))

    def _use(self, arrays: SegmentArrays, ref: Any = None) -> None:
        self._arrays = arrays
        self.deleted_version, self.expires = arrays.deleted_version, arrays.expires
        self.struct_ref = struct_ref(arrays) if ref is None else ref

    @property
    def capacity(self) -> int:
        """Number of subscriptions that the arrays can hold, if they are small."""
        return len(self._arrays.scan)

    def __len__(self) -> int:
        return int(self._sizes[memtable_arrays.SUBSCRIPTIONS])

    def row_of(self, id: str) -> int:
        """Return the newest row of an id, or -1."""
        return self._rows.get(id, -1)

    def id_of(self, row: int) -> str:
        """Return the id of a row."""
        return self.subscriptions[row].id

    def subscriber_of(self, row: int) -> str:
        """Return the subscriber of a row."""
        return self.subscriptions[row].subscriber

    def add(self, subscriptions: Collection[Subscription], version: int) -> None:
        """Add subscriptions, which exist from a version on: all of them, or none.

        Their ids are not in use, or belong to rows that this version deletes.
        """
        sizes, arrays, ref = self._sizes.copy(), self._arrays, self.struct_ref
        try:
            for subscription in subscriptions:
                self.add_compiled(subscription.compiled, subscription.expires, version)
        except BaseException:
            # Restore the arrays that readers hold: later deletions are marked in them.
            self._sizes[:] = sizes
            self._use(arrays, ref)
            self._arrays.created_version[len(self) :] = NOT_DELETED
            self._arrays.filter_subscription[sizes[memtable_arrays.FILTERS] :] = self.capacity
            raise
        for subscription in subscriptions:
            self.has_subscribers |= subscription.subscriber != subscription.id
            self._rows[subscription.id] = len(self.subscriptions)
            self.subscriptions.append(subscription)

    def add_compiled(self, compiled: CompiledExpression, expires: int, version: int) -> None:
        """Append the row of a compiled expression."""
        if isinstance(compiled, BoundTemplate):
            shapes = self._write_template(compiled)
        else:
            shapes = self._write_filters(compiled)
        first_filter = int(self._sizes[memtable_arrays.FILTERS])
        created_version = np.uint32(version)
        row_ref = self._row_buffer.struct_ref
        if shapes is None:
            while not memtable_arrays.append_with_outlines(
                self.struct_ref, row_ref, expires, created_version
            ):
                self._grow()
        else:
            while not memtable_arrays.append(
                self.struct_ref, row_ref, shapes, expires, created_version
            ):
                self._grow()
        if self._columns.space is Space.WGS84:
            self._write_geodesic_boxes(first_filter)

    def _write_filters(self, filters: Sequence[Filter]) -> Any:
        """Write filters to the row buffer. Return a struct reference of their shapes."""
        table = FilterTable(self._columns, use_postings=False)
        table.add(0, filters)
        self.has_posting_filters |= any(len(t) < 3 and _has_list(t) for t in filters)
        self._row_buffer.write(
            table.checks, table.filter_check, table.set_start, table.set_items, table.strings
        )
        return _shapes_ref(table.geometries)

    def _write_template(self, bound: BoundTemplate) -> Any:
        """Write a bound template to the row buffer.

        Return a struct reference of its shapes, or None if the shapes are in the buffer, too.
        """
        rows = template_rows(bound.template, self._columns)
        self.has_posting_filters |= rows.posting_columns is not None
        numbers: dict[bytes, int] = {}
        start, items = [0], []
        for keys in set_keys(rows, bound, self._columns.tokenizer):
            items += [numbers.setdefault(key, len(numbers)) for key in keys]
            start.append(len(items))
        is_plain = bound.template.needs_no_validation
        shapes = bound.shapes if is_plain else ()
        self._row_buffer.write(
            rows.pack(bound.bounds), [0, rows.count], start, items, numbers, shapes
        )
        if is_plain:
            return None
        return (
            bound.shapes_ref or memtable_arrays.lay_out_outlines(*outline_arrays(bound.shapes))[0]
        )

    def _write_geodesic_boxes(self, first_filter: int) -> None:
        """Replace the boxes of new filters: `append` does not know the reach of geodesics."""
        arrays = self._arrays
        for number in range(first_filter, int(self._sizes[memtable_arrays.FILTERS])):
            low, high = arrays.filter_check[number], arrays.filter_check[number + 1]
            bounding_boxes = bounding_boxes_of(arrays.checks[low:high], arrays.shapes)
            boxes = bounding_boxes.hulls()
            sizes = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
            sizes[bounding_boxes.kinds == NOTHING] = np.inf
            best = int(np.argmin(sizes)) if len(sizes) else -1
            is_bounded = best >= 0 and np.isfinite(sizes[best])
            block, lane = divmod(number, WIDTH)
            arrays.scan_column[number] = arrays.checks["column"][low + best] if is_bounded else -1
            arrays.scan_box[block, :, lane] = boxes[best] if is_bounded else np.nan
            columns = arrays.scan_column[block * WIDTH : (block + 1) * WIDTH]
            arrays.scan_free[block] = unbounded_lanes(columns)[0]

    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on; the count first, as in `Segment.remove`."""
        self._arrays.state[DELETED_ROWS] += 1
        self.deleted_version[row] = version

    def reset_versions(self) -> None:
        """Restart at version 0: live rows stay live, deleted rows stay deleted."""
        self.deleted_version[self.deleted_version != NOT_DELETED] = 0
        self._arrays.created_version[: len(self)] = 0

    def _grow(self) -> None:
        """Move to arrays of twice the capacity."""
        old, capacity = self._arrays, 2 * self.capacity
        new = _copy_into(_allocate(capacity), old)
        words, count = new.vocabulary, int(self._sizes[memtable_arrays.WORDS])
        slots = vocabulary.enlarge_slots(
            words._replace(slots=old.vocabulary.slots), count, len(words.start) - count
        )
        new.filter_subscription[self._sizes[memtable_arrays.FILTERS] :] = capacity
        self._use(new._replace(state=old.state, vocabulary=words._replace(slots=slots)))

    def arrays_of(self, count: int) -> SegmentArrays:
        """Return the arrays of the first `count` rows, without free capacity."""
        arrays = self._arrays
        filters = int(np.searchsorted(arrays.filter_subscription, count))
        checks = int(arrays.filter_check[filters])
        blocks = -(-filters // WIDTH)
        sizes, g = self._sizes, arrays.shapes
        return arrays._replace(
            checks=arrays.checks[:checks],
            filter_check=arrays.filter_check[: filters + 1],
            filter_subscription=arrays.filter_subscription[:filters],
            deleted_version=arrays.deleted_version[:count],
            created_version=empty_segment().created_version,
            expires=arrays.expires[:count],
            set_start=arrays.set_start[: sizes[memtable_arrays.SETS] + 1],
            set_items=arrays.set_items[: sizes[memtable_arrays.SET_ITEMS]],
            scan=arrays.scan[:filters],
            scan_column=arrays.scan_column[:filters],
            scan_box=arrays.scan_box[:blocks],
            scan_free=unbounded_lanes(arrays.scan_column[:filters]),
            path=arrays.path[:filters],
            selectivity=arrays.selectivity[:filters],
            vocabulary=arrays.vocabulary._replace(
                start=arrays.vocabulary.start[: sizes[memtable_arrays.WORDS] + 1]
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
    """The rows of a memtable at one moment."""

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

    @property
    def has_subscribers(self) -> bool:  # type: ignore[override]
        """Whether the subscriber of some row, or of a later one, is not its id."""
        return self._memtable.has_subscribers

    @cached_property
    def arrays(self) -> SegmentArrays:  # type: ignore[override]
        """The arrays of these rows, without free capacity."""
        return self._memtable.arrays_of(self._count)

    @property
    def names(self) -> pa.Table:
        """The names by row, as in `Segment`."""
        return names_table(self._memtable.subscriptions[: self._count])

    def row_of(self, id: str) -> int:
        """Return the row of an id, or -1."""
        return self._memtable.row_of(id)

    def stored_expression(self, row: int) -> Expression:
        """Return the expression of a row, or its condition."""
        return self._memtable.subscriptions[row].expression

    def remove(self, row: int, version: int) -> None:
        """Delete a row from a version on."""
        self._memtable.remove(row, version)
        self.removals += 1

    def reset_versions(self) -> None:
        """Restart at version 0."""
        self._memtable.reset_versions()


def _has_list(terms: Filter) -> bool:
    return any(isinstance(term.check, ListCheck) for term in terms)


def _shapes_ref(geometries: Sequence[object]) -> Any:
    """Return a struct reference of the shapes of geometries.

    Raise GeometryError for the first geometry that cannot be read.
    """
    unchecked = [
        shape for geometry in geometries if (shape := read_unchecked(geometry)) is not None
    ]
    if len(unchecked) == len(geometries):
        shapes, usable = memtable_arrays.lay_out_outlines(*join_unchecked(unchecked))
        if usable:
            return shapes
    for geometry in geometries:
        Shapes.read_one(geometry)
    return struct_ref(Shapes.read_all(list(geometries)).arrays)


def _copy_into(new: Any, old: Any) -> Any:
    """Copy arrays, in nested named tuples, to the beginning of larger ones. Return these."""
    if isinstance(new, tuple):
        return type(new)(*map(_copy_into, new, old))
    array: NDArray[Any] = new
    array[: len(old)] = old
    return array
