"""Appending subscriptions to the arrays of a memtable, which have free capacity at their ends.

Rows are appended, and rows in use do not change. A row is written before the version that creates
it is published; a concurrent match relies on it because it ignores rows of later versions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Bytes, Floats, Ints
from fencepost.kernels.geometry.shape_layout import copy_shapes, lay_out_unchecked
from fencepost.kernels.index.check_boxes import fill_bounding_boxes
from fencepost.kernels.index.posting_arrays import NOTHING
from fencepost.kernels.match.check_evaluation import ITEM_OF, NO_ITEM, SHAPE_ITEM, STRING_ITEM
from fencepost.kernels.match.match_scratch import FIRST_EXPIRY, MAX_CHAINS
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.kernels.text.vocabulary import add_words

# Indices of `sizes`. From SHAPES on they are the counts of `copy_shapes`.
SUBSCRIPTIONS, FILTERS, CHECKS, SETS, SET_ITEMS, WORDS = range(6)
SHAPES, CHAINS, POINTS, NODES, TOUCHES = range(6, 11)
SIZES = 11
# Indices of `counts`, and the parts of `numbers`: see `SubscriptionArrays`.
NEW_CHECKS, NEW_BYTES, NEW_POINTS, NEW_COUNTS = range(4)
FILTER_CHECK, SET_START, SET_KEYS, KEY_START = range(4)
CHAIN_START, CHAIN_PART, SHAPE_CHAIN, DIMENSION, PARTS = range(4, 9)
_MAX_FLOAT = float(np.finfo(np.float64).max)
_NO_BOX = np.full(4, np.nan)


@kernel
def lay_out_outlines(xy, chain_start, chain_part, shape_chain, dimension):
    """Return a struct reference to shapes, which `append` takes, and whether `lay_out_unchecked`
    could lay them out.
    """
    shapes, usable = lay_out_unchecked(
        xy, chain_start, chain_part, shape_chain, dimension, _MAX_FLOAT, _MAX_FLOAT
    )
    return struct_ref(shapes), usable


class SubscriptionArrays(NamedTuple):
    """A subscription to be appended, in arrays that are reused for the next subscription.

    Part p of `numbers` is numbers[part_start[p]:part_start[p + 1]]. FILTER_CHECK and SET_START are
    as in the segment. SET_KEYS has the items of the sets, as numbers of keys. KEY_START bounds the
    keys: key k is text[key_start[k]:key_start[k + 1]]. CHAIN_START, CHAIN_PART, SHAPE_CHAIN and
    DIMENSION describe the shapes for `append_with_outlines`, as in `lay_out_unchecked`.
    """

    sizes: Ints  # (SIZES,): rows of the memtable in use
    counts: Ints  # (NEW_COUNTS,): checks, bytes and points of this subscription
    part_start: Ints  # (PARTS + 1,)
    checks: NDArray[np.void]  # CHECK; `item` is a row of the subscription's shapes, sets or keys
    numbers: Ints
    text: Bytes
    points: Floats  # (n, 2)


@kernel
def append(segment, row_ref, shapes, expires, version):
    """Append a subscription to a memtable. Return False, with nothing changed, without capacity.

    Parameters
    ----------
    segment, row_ref, shapes : struct references
        The memtable's SegmentArrays, a SubscriptionArrays, and the ShapeArrays that its checks
        refer to.
    expires : int
        Nanoseconds since 1970.
    version : int
        The version that creates the subscription.
    """
    return _append(segment.arrays, row_ref.arrays, shapes.arrays, expires, version)


@kernel
def append_with_outlines(segment, row_ref, expires, version):
    """Append a subscription like `append`, with shapes given as points, which must be valid."""
    row = row_ref.arrays
    shapes, _ = lay_out_unchecked(
        row.points[: row.counts[NEW_POINTS]],
        _part(row, CHAIN_START),
        _part(row, CHAIN_PART),
        _part(row, SHAPE_CHAIN),
        _part(row, DIMENSION).astype(np.int8),
        _MAX_FLOAT,
        _MAX_FLOAT,
    )
    return _append(segment.arrays, row, shapes, expires, version)


@inlined
def _part(row, part):
    """Return one of the parts of a subscription's `numbers`."""
    return row.numbers[row.part_start[part] : row.part_start[part + 1]]


@kernel
def _append(segment, row, shapes, expires, version):
    sizes = row.sizes
    checks = row.checks[: row.counts[NEW_CHECKS]]
    filter_check, set_start = _part(row, FILTER_CHECK), _part(row, SET_START)
    set_items, key_start = _part(row, SET_KEYS), _part(row, KEY_START)
    text = row.text[: row.counts[NEW_BYTES]]
    keys = key_start.shape[0] - 1
    if not _fits(segment, shapes, sizes, checks, filter_check, set_start, set_items, text, keys):
        return False
    first_shape = sizes[SHAPES]
    rows = np.arange(shapes.shapes.shape[0] - 1)
    copy_shapes(shapes, rows, segment.shapes, sizes[SHAPES:])
    for s in rows:
        chains = np.int64(shapes.shapes[s + 1]["chain"]) - np.int64(shapes.shapes[s]["chain"])
        segment.state[MAX_CHAINS] = max(segment.state[MAX_CHAINS], chains)
    ids = np.empty(keys, np.int64)
    sizes[WORDS] = add_words(segment.vocabulary, sizes[WORDS], text, key_start, ids)
    first = sizes[CHECKS]
    for k in range(checks.shape[0]):
        segment.checks[first + k] = checks[k]
        item_kind = ITEM_OF[checks[k]["kind"]]
        item = np.int64(checks[k]["item"])
        if item_kind == SHAPE_ITEM:
            item += first_shape
        elif item_kind == STRING_ITEM:
            item = ids[item]
        elif item_kind != NO_ITEM:
            item += sizes[SETS]
        segment.checks[first + k]["item"] = item
    sizes[CHECKS] += checks.shape[0]
    _add_sets(segment, sizes, set_start, set_items, ids)
    subscription = sizes[SUBSCRIPTIONS]
    _add_filters(segment, sizes, first, filter_check, subscription)
    segment.expires[subscription] = expires
    segment.state[FIRST_EXPIRY] = min(segment.state[FIRST_EXPIRY], expires)
    segment.created_version[subscription] = version
    sizes[SUBSCRIPTIONS] += 1
    return True


@kernel
def _fits(segment, shapes, sizes, checks, filter_check, set_start, set_items, text, keys):
    """Return whether a subscription fits, with a sentinel after each array of starts.

    One row of subscriptions stays free: the sentinel to which free filters belong.
    """
    filters = filter_check.shape[0] - 1
    words = sizes[WORDS] + keys
    return (
        sizes[SUBSCRIPTIONS] + 2 <= segment.deleted_version.shape[0]
        and sizes[FILTERS] + filters < segment.filter_check.shape[0]
        and sizes[CHECKS] + checks.shape[0] <= segment.checks.shape[0]
        and sizes[SETS] + set_start.shape[0] <= segment.set_start.shape[0]
        and sizes[SET_ITEMS] + set_items.shape[0] <= segment.set_items.shape[0]
        and words < segment.vocabulary.start.shape[0]
        and 2 * words <= segment.vocabulary.slots.shape[0]
        and segment.vocabulary.start[sizes[WORDS]] + text.shape[0]
        <= segment.vocabulary.bytes.shape[0]
        and sizes[SHAPES] + shapes.shapes.shape[0] <= segment.shapes.shapes.shape[0]
        and sizes[CHAINS] + shapes.chains.shape[0] <= segment.shapes.chains.shape[0]
        and sizes[POINTS] + shapes.x.shape[0] <= segment.shapes.x.shape[0]
        and sizes[NODES] + shapes.nodes.shape[0] <= segment.shapes.nodes.shape[0]
        and sizes[TOUCHES] + shapes.touches.shape[0] <= segment.shapes.touches.shape[0]
    )


@kernel
def _add_sets(segment, sizes, set_start, set_items, ids):
    """Append sets, with their items in ascending order."""
    write = sizes[SET_ITEMS]
    for s in range(set_start.shape[0] - 1):
        first = write
        for k in range(set_start[s], set_start[s + 1]):
            item = ids[set_items[k]]
            place = write
            while place > first and segment.set_items[place - 1] > item:
                segment.set_items[place] = segment.set_items[place - 1]
                place -= 1
            segment.set_items[place] = item
            write += 1
        sizes[SETS] += 1
        segment.set_start[sizes[SETS]] = write
    sizes[SET_ITEMS] = write


@kernel
def _add_filters(segment, sizes, first, filter_check, subscription):
    """Append the filters of checks `first` and later, each with the smallest box of its checks."""
    checks = segment.checks[first : sizes[CHECKS]]
    boxes = np.zeros((checks.shape[0], 4))
    kinds = np.empty(checks.shape[0], np.uint8)
    fill_bounding_boxes(checks, segment.shapes, boxes, kinds)
    for f in range(filter_check.shape[0] - 1):
        at = sizes[FILTERS] + f
        best = -1
        smallest = np.inf
        for k in range(filter_check[f], filter_check[f + 1]):
            size = (boxes[k, 2] - boxes[k, 0]) * (boxes[k, 3] - boxes[k, 1])
            if kinds[k] != NOTHING and size < smallest:
                smallest, best = size, k
        if best >= 0:
            _set_scan_box(segment, at, np.int64(checks[best]["column"]), boxes[best])
        else:
            _set_scan_box(segment, at, np.int64(-1), _NO_BOX)
        segment.filter_check[at + 1] = first + filter_check[f + 1]
        segment.filter_subscription[at] = subscription
    sizes[FILTERS] += filter_check.shape[0] - 1


@kernel
def _set_scan_box(segment, f, column, box):
    """Set the box that an event's geometry in a column must meet; column -1: any event visits f."""
    block, lane = f // WIDTH, f % WIDTH
    segment.scan_column[f] = column
    for side in range(4):
        segment.scan_box[block, side, lane] = box[side]
    bit = np.uint16(1 << lane)
    if column < 0:
        segment.scan_free[block] |= bit
    else:
        segment.scan_free[block] &= ~bit
