"""Adding subscriptions to a segment that has room behind what is there.

Whoever matches with it meanwhile does so by an older version, and so stops before what is new:
nothing that is there is written to.
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

# What is counted in `sizes`; from SHAPES on as `copy_shapes` counts.
SUBSCRIPTIONS, FILTERS, CHECKS, SETS, SET_ITEMS, WORDS = range(6)
SHAPES, CHAINS, POINTS, NODES, TOUCHES = range(6, 11)
SIZES = 11
# What is counted of a subscription that is given, and the parts of its `numbers`.
NEW_CHECKS, NEW_BYTES, NEW_POINTS, NEW_COUNTS = range(4)
FILTER_CHECK, SET_START, SET_NUMBERS, KEY_START = range(4)
CHAIN_START, CHAIN_PART, SHAPE_CHAIN, DIMENSION, PARTS = range(4, 9)
_MOST = float(np.finfo(np.float64).max)
_NO_BOX = np.full(4, np.nan)


@kernel
def lay_out_outlines(xy, chain_start, chain_part, shape_chain, dimension):
    """The handle of shapes as `append` takes them, and whether they are that; `lay_out_unchecked`."""
    shapes, usable = lay_out_unchecked(
        xy, chain_start, chain_part, shape_chain, dimension, _MOST, _MOST
    )
    return struct_ref(shapes), usable


class SubscriptionArrays(NamedTuple):
    """A subscription to be added, in arrays that are used again for the next.

    Part p of `numbers` is numbers[part_start[p]:part_start[p + 1]]: FILTER_CHECK and SET_START as
    in the segment; SET_NUMBERS, the items of sets as numbers of keys; KEY_START, key k being
    text[key_start[k]:key_start[k + 1]]; and for `append_with_outlines` CHAIN_START, CHAIN_PART, SHAPE_CHAIN
    and DIMENSION of the shapes, as in `lay_out_unchecked`.
    """

    sizes: Ints  # (SIZES,): how much the segment has so far
    counts: Ints  # (NEW_COUNTS,): how many checks, bytes and points are this one's
    part_start: Ints  # (PARTS + 1,)
    checks: NDArray[np.void]  # CHECK; about rows of shapes, sets, or keys
    numbers: Ints
    text: Bytes
    points: Floats  # (n, 2)


@kernel
def append(segment, row_ref, shapes, expires, version):
    """Add a subscription to a segment, behind those there are; whether there is room for it.

    segment : handle of SegmentArrays. row_ref : of SubscriptionArrays. shapes : handle of the ShapeArrays
    that its checks are about. version : from which on it is there.
    """
    return _append(segment.arrays, row_ref.arrays, shapes.arrays, expires, version)


@kernel
def append_with_outlines(segment, row_ref, expires, version):
    """The same with shapes that are given as points, and known to be good."""
    one = row_ref.arrays
    shapes, _ = lay_out_unchecked(
        one.points[: one.counts[NEW_POINTS]],
        _part(one, CHAIN_START),
        _part(one, CHAIN_PART),
        _part(one, SHAPE_CHAIN),
        _part(one, DIMENSION).astype(np.int8),
        _MOST,
        _MOST,
    )
    return _append(segment.arrays, one, shapes, expires, version)


@inlined
def _part(given, part):
    return given.numbers[given.part_start[part] : given.part_start[part + 1]]


@kernel
def _append(own, one, given, expires, version):
    sizes = one.sizes
    checks = one.checks[: one.counts[NEW_CHECKS]]
    filter_check, set_start = _part(one, FILTER_CHECK), _part(one, SET_START)
    set_items, key_start = _part(one, SET_NUMBERS), _part(one, KEY_START)
    text = one.text[: one.counts[NEW_BYTES]]
    keys = key_start.shape[0] - 1
    if not _has_room(own, given, sizes, checks, filter_check, set_start, set_items, text, keys):
        return False
    first_shape = sizes[SHAPES]
    rows = np.arange(given.shapes.shape[0] - 1)
    copy_shapes(given, rows, own.shapes, sizes[SHAPES:])
    for s in rows:
        chains = np.int64(given.shapes[s + 1]["chain"]) - np.int64(given.shapes[s]["chain"])
        own.state[MAX_CHAINS] = max(own.state[MAX_CHAINS], chains)
    ids = np.empty(keys, np.int64)
    sizes[WORDS] = add_words(own.vocabulary, sizes[WORDS], text, key_start, ids)
    first = sizes[CHECKS]
    for k in range(checks.shape[0]):
        own.checks[first + k] = checks[k]
        refers_to = ITEM_OF[checks[k]["kind"]]
        item = np.int64(checks[k]["item"])
        if refers_to == SHAPE_ITEM:
            item += first_shape
        elif refers_to == STRING_ITEM:
            item = ids[item]
        elif refers_to != NO_ITEM:
            item += sizes[SETS]
        own.checks[first + k]["item"] = item
    sizes[CHECKS] += checks.shape[0]
    _add_sets(own, sizes, set_start, set_items, ids)
    subscription = sizes[SUBSCRIPTIONS]
    _add_filters(own, sizes, first, filter_check, subscription)
    own.expires[subscription] = expires
    own.state[FIRST_EXPIRY] = min(own.state[FIRST_EXPIRY], expires)
    own.created_version[subscription] = version
    sizes[SUBSCRIPTIONS] += 1
    return True


@kernel
def _has_room(own, given, sizes, checks, filter_check, set_start, set_items, text, keys):
    """Whether everything fits, with a sentinel behind; of the subscriptions one is kept free."""
    filters = filter_check.shape[0] - 1
    words = sizes[WORDS] + keys
    return (
        sizes[SUBSCRIPTIONS] + 2 <= own.deleted_version.shape[0]
        and sizes[FILTERS] + filters < own.filter_check.shape[0]
        and sizes[CHECKS] + checks.shape[0] <= own.checks.shape[0]
        and sizes[SETS] + set_start.shape[0] <= own.set_start.shape[0]
        and sizes[SET_ITEMS] + set_items.shape[0] <= own.set_items.shape[0]
        and words < own.vocabulary.start.shape[0]
        and 2 * words <= own.vocabulary.slots.shape[0]
        and own.vocabulary.start[sizes[WORDS]] + text.shape[0] <= own.vocabulary.bytes.shape[0]
        and sizes[SHAPES] + given.shapes.shape[0] <= own.shapes.shapes.shape[0]
        and sizes[CHAINS] + given.chains.shape[0] <= own.shapes.chains.shape[0]
        and sizes[POINTS] + given.x.shape[0] <= own.shapes.x.shape[0]
        and sizes[NODES] + given.nodes.shape[0] <= own.shapes.nodes.shape[0]
        and sizes[TOUCHES] + given.touches.shape[0] <= own.shapes.touches.shape[0]
    )


@kernel
def _add_sets(own, sizes, set_start, set_items, ids):
    """Add sets, whose items are sorted here."""
    write = sizes[SET_ITEMS]
    for s in range(set_start.shape[0] - 1):
        first = write
        for k in range(set_start[s], set_start[s + 1]):
            item = ids[set_items[k]]
            place = write
            while place > first and own.set_items[place - 1] > item:
                own.set_items[place] = own.set_items[place - 1]
                place -= 1
            own.set_items[place] = item
            write += 1
        sizes[SETS] += 1
        own.set_start[sizes[SETS]] = write
    sizes[SET_ITEMS] = write


@kernel
def _add_filters(own, sizes, first, filter_check, subscription):
    """Add filters of the checks from `first` on, each with the smallest box that a check has."""
    checks = own.checks[first : sizes[CHECKS]]
    boxes = np.zeros((checks.shape[0], 4))
    kinds = np.empty(checks.shape[0], np.uint8)
    fill_bounding_boxes(checks, own.shapes, boxes, kinds)
    for f in range(filter_check.shape[0] - 1):
        at = sizes[FILTERS] + f
        best = -1
        least = np.inf
        for k in range(filter_check[f], filter_check[f + 1]):
            size = (boxes[k, 2] - boxes[k, 0]) * (boxes[k, 3] - boxes[k, 1])
            if kinds[k] != NOTHING and size < least:
                least, best = size, k
        if best >= 0:
            _place_filter(own, at, np.int64(checks[best]["column"]), boxes[best])
        else:
            _place_filter(own, at, np.int64(-1), _NO_BOX)
        own.filter_check[at + 1] = first + filter_check[f + 1]
        own.filter_subscription[at] = subscription
    sizes[FILTERS] += filter_check.shape[0] - 1


@kernel
def _place_filter(own, f, column, box):
    """Let a filter be found only where the geometry of a column meets a box; -1: everywhere."""
    block, lane = f // WIDTH, f % WIDTH
    own.scan_column[f] = column
    for side in range(4):
        own.scan_box[block, side, lane] = box[side]
    bit = np.uint16(1 << lane)
    if column < 0:
        own.scan_free[block] |= bit
    else:
        own.scan_free[block] &= ~bit
