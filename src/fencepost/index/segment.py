"""An immutable segment of subscriptions, built from a table of filters.

Each filter is put under one access path:

- *region*: a box in a packed Hilbert R-tree, one tree for each geometry column, where a check
  needs contact with a geometry or nearness to it;
- *equality*: postings of a string, where a check needs one of a few strings;
- *scan* otherwise.

Only the bytes of `alive` ever change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fencepost.index.table import TableArrays
from fencepost.kernels import matching, rtree, vocabulary
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.spatial import DISJOINT as S_DISJOINT
from fencepost.language.ast import Spatial
from fencepost.model.geometry import Shapes
from fencepost.plan.relate import CODE

NEVER = np.iinfo(np.int64).max
_MOST_POSTINGS = 64  # strings of one check; with more, another path does better
_WIDE = 0.25  # a box over more than this share of the extent is worse than an equality
_EH_DISJOINT = CODE[Spatial.EH_DISJOINT]


class Segment:
    """Subscriptions ready to be matched; `len` is their number, removed ones included.

    Attributes
    ----------
    arrays : SegmentArrays
    most_chains : int
        How many chains the geometry with most has.
    """

    __slots__ = ("arrays", "most_chains")

    def __init__(self, arrays: SegmentArrays) -> None:
        self.arrays = arrays
        self.most_chains = Shapes(arrays.shapes).most_chains

    def __len__(self) -> int:
        return len(self.arrays.alive)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for _, array in flat_arrays(self.arrays))

    def paths(self) -> dict[str, int]:
        """The number of filters under each access path."""
        a = self.arrays
        scanned = len(a.scan)
        posted = len(np.unique(a.post_filter))
        return {
            "region": len(a.filter_subscription) - scanned - posted,
            "equality": posted,
            "scan": scanned,
        }


def build(table: TableArrays, expires: NDArray[np.int64]) -> Segment:
    """A segment of the subscriptions whose expiry times are given."""
    words, ids = vocabulary.build(table.text, table.string_start)
    checks = table.checks.copy()
    in_vocabulary = np.isin(checks["kind"], (matching.ORDER, matching.LIKE))
    checks["item"][in_vocabulary] = ids[checks["item"][in_vocabulary]]
    set_items = _sorted_sets(ids[table.set_items], table.set_start)
    filters = len(table.filter_subscription)
    owner = np.repeat(np.arange(filters), np.diff(table.filter_check))
    region, boxes = _regions(checks, owner, table.shapes, filters)
    equality = _equalities(checks, owner, table.set_start, filters)
    _prefer_narrow(region, boxes, equality, checks)
    equality[region >= 0] = -1
    by_region = np.flatnonzero(region >= 0)
    columns = checks["column"][region[by_region]]
    tree_column, tree = np.unique(columns, return_inverse=True)
    trees = rtree.build(
        np.ascontiguousarray(boxes[region[by_region]]),
        tree.astype(np.int64),
        by_region.astype(np.uint32),
        len(tree_column),
    )
    post_key, post_start, post_filter = _postings(checks, equality, set_items, table.set_start)
    scan = np.flatnonzero((region < 0) & (equality < 0))
    return Segment(
        SegmentArrays(
            checks,
            table.filter_check.astype(np.uint32),
            table.filter_subscription.astype(np.uint32),
            np.ones(len(expires), np.uint8),
            expires.astype(np.int64),
            table.set_start.astype(np.uint32),
            set_items.astype(np.uint32),
            post_key,
            post_start,
            post_filter,
            tree_column.astype(np.uint32),
            scan.astype(np.uint32),
            trees,
            words,
            table.shapes.arrays,
        )
    )


def _sorted_sets(items: NDArray[np.uint32], start: NDArray[np.int64]) -> NDArray[np.uint32]:
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return items[np.lexsort((items, owner))]


def _regions(
    checks: NDArray[np.void], owner: NDArray[np.int64], shapes: Shapes, filters: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each filter the check with the smallest box, or -1; and a box for each check."""
    kind, function = checks["kind"], checks["function"]
    negated = (checks["flags"] & matching.NEGATED) > 0
    disjoint = (function == S_DISJOINT) | (function == _EH_DISJOINT)
    relate = (kind == matching.RELATE) & (negated == disjoint)
    beyond = function == matching.BEYOND
    near = (kind == matching.NEAR) & (negated == beyond)
    usable = np.flatnonzero(relate | near)
    boxes = np.zeros((len(checks), 4))
    rows = checks["item"][usable]
    shape = shapes.arrays.shapes
    reach = np.where(near[usable], checks["low"][usable], 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, (name, sign) in enumerate((("x0", -1), ("y0", -1), ("x1", 1), ("y1", 1))):
            edge = shape[name][rows] + sign * reach
            boxes[usable, k] = np.where(reach > 0, np.nextafter(edge, sign * np.inf), edge)
        area = np.prod(boxes[usable, 2:] - boxes[usable, :2], axis=1)
    best = np.full(filters, -1, np.int64)
    order = np.argsort(-area, kind="stable")  # the smallest is written last, and stays
    best[owner[usable[order]]] = usable[order]
    return best, boxes


def _equalities(
    checks: NDArray[np.void], owner: NDArray[np.int64], set_start: NDArray[np.int64], filters: int
) -> NDArray[np.int64]:
    """For each filter the string check with the fewest strings, or -1."""
    member = (checks["kind"] == matching.MEMBER) & ((checks["flags"] & matching.NEGATED) == 0)
    usable = np.flatnonzero(member)
    sizes = np.diff(set_start)[checks["item"][usable]]
    usable, sizes = usable[sizes <= _MOST_POSTINGS], sizes[sizes <= _MOST_POSTINGS]
    order = np.argsort(-sizes, kind="stable")
    best = np.full(filters, -1, np.int64)
    best[owner[usable[order]]] = usable[order]
    return best


def _prefer_narrow(
    region: NDArray[np.int64],
    boxes: NDArray[np.float64],
    equality: NDArray[np.int64],
    checks: NDArray[np.void],
) -> None:
    """Take the region away from filters whose box is wide and that have an equality."""
    both = np.flatnonzero((region >= 0) & (equality >= 0))
    if not len(both):
        return
    used = boxes[region[region >= 0]]
    with np.errstate(over="ignore", invalid="ignore"):
        extent = np.prod(used[:, 2:].max(axis=0) - used[:, :2].min(axis=0))
        mine = boxes[region[both]]
        wide = np.prod(mine[:, 2:] - mine[:, :2], axis=1) > _WIDE * extent
    region[both[wide]] = -1


def _postings(
    checks: NDArray[np.void],
    equality: NDArray[np.int64],
    set_items: NDArray[np.uint32],
    set_start: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    filters = np.flatnonzero(equality >= 0)
    chosen = checks[equality[filters]]
    sets = chosen["item"].astype(np.int64)
    sizes = set_start[sets + 1] - set_start[sets]
    position = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    items = set_items[position + np.repeat(set_start[sets], sizes)].astype(np.uint64)
    keys = np.repeat(chosen["column"].astype(np.uint64), sizes) << np.uint64(32) | items
    owners = np.repeat(filters, sizes)
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    start = np.append(first, len(order)).astype(np.uint32)
    return distinct.astype(np.uint64), start, owners[order].astype(np.uint32)


def flat_arrays(value: object, prefix: str = "") -> list[tuple[str, NDArray[np.generic]]]:
    """Every array of nested named tuples, with a dotted name."""
    if isinstance(value, np.ndarray):
        return [(prefix, value)]
    found: list[tuple[str, NDArray[np.generic]]] = []
    for name in value._fields:  # type: ignore[attr-defined]
        found += flat_arrays(getattr(value, name), f"{prefix}.{name}" if prefix else name)
    return found
