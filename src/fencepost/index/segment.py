"""An immutable segment of subscriptions, built from a table of filters.

Each filter is put under one access path:

- *words*: where a check needs words in a list or text; with them goes the box in which another
  check needs the event to be;
- *region*: where a check asks for a relation to an area, or needs contact with, or nearness to,
  some other geometry. Each geometry column has packed Hilbert R-trees for them;
- *equality*: postings of a string, where a check needs one of a few strings;
- *scan* otherwise.

Only the bytes of `alive` ever change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.index import posts, regions
from fencepost.index.posts import EVERYWHERE, Form, PostRows, ranges
from fencepost.index.table import ITEMS, TEXT, TableArrays
from fencepost.kernels import matching, rtree, vocabulary
from fencepost.kernels.handles import handle
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.region_walk import RegionArrays
from fencepost.kernels.shapes import AREAS, ShapeArrays
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
    removals : int
        How often a subscription was removed.
    """

    __slots__ = (
        "_entries",
        "_first_expiry",
        "_handle",
        "_lists",
        "_removed",
        "arrays",
        "most_chains",
        "removals",
    )

    def __init__(self, arrays: SegmentArrays) -> None:
        self.arrays = arrays
        self.most_chains = Shapes(arrays.shapes).most_chains
        self._handle: Any = None
        self._entries: tuple[NDArray[np.int64], NDArray[np.uint32]] | None = None
        self._lists: tuple[NDArray[np.uint32], NDArray[np.int64]] | None = None
        self._removed = not arrays.alive.all()
        self.removals = 0
        self._first_expiry = int(arrays.expires.min(initial=NEVER))

    @property
    def handle(self) -> Any:
        """The arrays as kernels take them."""
        if self._handle is None:
            self._handle = handle(self.arrays)
        return self._handle

    def entries_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The entries of the posts that subscriptions own themselves, in turn; how many each."""
        if self._entries is None:
            owner = self.arrays.posts.owner[: posts.direct_count(self.arrays.posts)]
            start = np.zeros(len(self) + 1, np.int64)
            np.cumsum(np.bincount(owner, minlength=len(self)), out=start[1:])
            self._entries = start, np.argsort(owner, kind="stable").astype(np.uint32)
        start, entries = self._entries
        sizes = start[rows + 1] - start[rows]
        return entries[posts.ranges(start[rows], sizes)].astype(np.int64), sizes

    def lists_of(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """The list of the posts that each entry is in."""
        if self._lists is None:
            first = self.arrays.posts.lists["first"]
            by_entry = np.argsort(first, kind="stable")
            self._lists = first[by_entry], by_entry
        first, by_entry = self._lists
        return by_entry[np.searchsorted(first, entries.astype(np.uint32), "right") - 1]

    def remove(self, row: int) -> None:
        """Let a subscription match no longer."""
        self._removed = True  # before the other: a match that begins now must look
        self.arrays.alive[row] = 0
        self.removals += 1  # after it: who has seen this number has seen the row gone

    def some_gone(self, now: int) -> bool:
        """Whether any subscription is removed, or expired by now."""
        return self._removed or self._first_expiry <= now

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
        direct = posts.direct_count(a.posts)
        with_words = len(np.unique(a.posts.owner[direct:]))
        return {
            "words": direct + with_words,
            "region": len(a.filter_subscription) - with_words - scanned - posted,
            "equality": posted,
            "scan": scanned,
        }


def build(
    table: TableArrays, expires: NDArray[np.int64], tell: posts.Tell = posts.untold
) -> Segment:
    """A segment of the subscriptions whose expiry times are given; `tell` hears of the steps."""
    words, ids = vocabulary.build(table.text, table.string_start)
    checks = table.checks.copy()
    in_vocabulary = np.isin(checks["kind"], (matching.ORDER, matching.LIKE))
    checks["item"][in_vocabulary] = ids[checks["item"][in_vocabulary]]
    set_items = _sorted_sets(ids[table.set_items], table.set_start)
    filters = len(table.filter_subscription)
    owner = np.repeat(np.arange(filters), np.diff(table.filter_check))
    access = _Access(checks, owner, table.shapes, filters)
    posted = _posted(checks, owner, set_items, table.set_start, access)
    equality = _equalities(checks, owner, table.set_start, filters)
    access.prefer_narrow(equality)
    equality[access.check >= 0] = -1
    with_words = np.zeros(filters, bool)
    with_words[posted.owner] = True
    equality[with_words] = -1
    access.leave(with_words)
    shapes, region_column, region_direct, walked = _walked(
        checks, access, table, np.bincount(owner, minlength=filters) == 1
    )
    by_box = np.flatnonzero((access.check >= 0) & ~access.walked)
    columns = checks["column"][access.check[by_box]]
    tree_column, tree = np.unique(columns, return_inverse=True)
    trees = rtree.build(
        np.ascontiguousarray(access.boxes[access.check[by_box]]),
        tree.astype(np.int64),
        by_box.astype(np.uint32),
        len(tree_column),
    )
    post_key, post_start, post_filter = _postings(checks, equality, set_items, table.set_start)
    scan = np.flatnonzero((access.check < 0) & (equality < 0) & ~with_words)
    direct = table.posts._replace(tokens=ids[table.posts.tokens].astype(np.int64))
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
            region_column,
            region_direct,
            posts.build(posts.join([direct, posted]), len(words.start) - 1, tell),
            walked,
            trees,
            words,
            shapes,
        )
    )


def _sorted_sets(items: NDArray[np.uint32], start: NDArray[np.int64]) -> NDArray[np.uint32]:
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return items[np.lexsort((items, owner))]


class _Access:
    """For each filter the check by which space finds it, if one can.

    Attributes
    ----------
    check : array
        Of each filter, or -1.
    boxes : array
        Of each check: where an event must be for the check to be true, and infinite where that
        is nearly everywhere.
    walked : array of bool
        Of each filter: whether the check asks for a relation to an area.
    """

    def __init__(
        self, checks: NDArray[np.void], owner: NDArray[np.int64], shapes: Shapes, filters: int
    ) -> None:
        kind, function, item = checks["kind"], checks["function"], checks["item"]
        negated = (checks["flags"] & matching.NEGATED) > 0
        records = shapes.arrays.shapes
        relate = kind == matching.RELATE
        area = np.zeros(len(checks), bool)
        area[relate] = records["dimension"][item[relate]] == AREAS
        apart = ((function == S_DISJOINT) | (function == _EH_DISJOINT)) != negated
        near = (kind == matching.NEAR) & (negated == (function == matching.BEYOND))
        usable = np.flatnonzero(area | (relate & ~apart) | near)
        self.boxes = np.zeros((len(checks), 4))
        rows = item[usable]
        reach = np.where(near[usable], checks["low"][usable], 0.0)
        reach[(area & apart)[usable]] = np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            for k, (name, sign) in enumerate((("x0", -1), ("y0", -1), ("x1", 1), ("y1", 1))):
                edge = records[name][rows] + sign * reach
                self.boxes[usable, k] = np.where(reach > 0, np.nextafter(edge, sign * np.inf), edge)
            size = self._area(usable)
        self.check = np.full(filters, -1, np.int64)
        order = np.argsort(-size, kind="stable")  # the smallest is written last, and stays
        self.check[owner[usable[order]]] = usable[order]
        self.walked = np.append(area, False)[self.check]  # where there is none, -1, the last

    def _area(self, checks: NDArray[np.int64]) -> NDArray[np.float64]:
        chosen = self.boxes[checks]
        area: NDArray[np.float64] = np.prod(chosen[:, 2:] - chosen[:, :2], axis=1)
        return area

    def prefer_narrow(self, equality: NDArray[np.int64]) -> None:
        """Leave filters whose box is wide to the equality that they have."""
        both = np.flatnonzero((self.check >= 0) & (equality >= 0))
        if not len(both):
            return
        used = self.boxes[self.check[self.check >= 0]]
        used = used[np.isfinite(used).all(axis=1)]
        if not len(used):
            self.leave(both)
            return
        with np.errstate(over="ignore", invalid="ignore"):
            extent = np.prod(used[:, 2:].max(axis=0) - used[:, :2].min(axis=0))
            self.leave(both[self._area(self.check[both]) > _WIDE * extent])

    def leave(self, filters: NDArray[Any]) -> None:
        """Let some filters be found otherwise."""
        self.check[filters] = -1
        self.walked[filters] = False


def _posted(
    checks: NDArray[np.void],
    owner: NDArray[np.int64],
    set_items: NDArray[np.uint32],
    set_start: NDArray[np.int64],
    access: _Access,
) -> PostRows:
    """Filters that need words and ask for more, with the box that their place must meet.

    The check that needs most words is taken, and marked where finding a filter decides it.
    """
    function = checks["function"]
    usable = np.flatnonzero(
        (checks["kind"] == matching.LIST)
        & ((checks["flags"] & matching.NEGATED) == 0)
        & (function != matching.CONTAINED_BY)
    )
    sizes = np.diff(set_start)[checks["item"][usable]]
    usable, sizes = usable[sizes > 0], sizes[sizes > 0]
    all_of = function[usable] != matching.OVERLAPS
    best = np.full(len(access.check), -1, np.int64)
    order = np.lexsort((np.where(all_of, sizes, -sizes), all_of))
    best[owner[usable[order]]] = usable[order]
    filters = np.flatnonzero(best >= 0)
    chosen = checks[best[filters]]
    marked = best[filters[chosen["function"] != matching.EQUAL]]
    checks["flags"][marked] |= matching.FOUND
    spatial = access.check[filters]
    boxes = np.where((spatial >= 0)[:, None], access.boxes[spatial], EVERYWHERE)
    geometry = np.where(spatial >= 0, checks["column"][spatial].astype(np.int64), -1)
    first_set = chosen["item"].astype(np.int64)
    same = _equal_sets(set_items, set_start, first_set, first_set + 1)
    in_texts = ~same & (chosen["flags"] & matching.TOKENS > 0)
    parts = []
    for second, kept in ((0, np.arange(len(filters))), (1, np.flatnonzero(in_texts))):
        own_set = first_set[kept] + second
        sizes = set_start[own_set + 1] - set_start[own_set]
        # Of a check that needs any of its words, each is a row of its own.
        apart = (chosen["function"][kept] == matching.OVERLAPS) & (sizes > 0)
        times = np.where(apart, sizes, 1)
        accepts = np.where(same[kept], ITEMS | TEXT, TEXT if second else ITEMS)
        kinds = np.column_stack((chosen["column"][kept], geometry[kept], accepts))
        forms, form = np.unique(kinds, axis=0, return_inverse=True)
        parts.append(
            PostRows(
                tuple(Form(a, b, c, False) for a, b, c in forms.tolist()),
                np.repeat(form.reshape(-1), times),
                np.repeat(filters[kept], times),
                np.repeat(boxes[kept], times, axis=0),
                np.cumsum(np.append(0, np.repeat(np.where(apart, 1, sizes), times))),
                set_items[ranges(set_start[own_set], sizes)].astype(np.int64),
            )
        )
    return posts.join(parts)


def _equal_sets(
    items: NDArray[np.uint32],
    start: NDArray[np.int64],
    some: NDArray[np.int64],
    others: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which sets are equal, pair by pair; items of a set are sorted."""
    sizes = start[some + 1] - start[some]
    same: NDArray[np.bool_] = sizes == start[others + 1] - start[others]
    pair = np.repeat(np.flatnonzero(same), sizes[same])
    differ = (
        items[ranges(start[some[same]], sizes[same])]
        != items[ranges(start[others[same]], sizes[same])]
    )
    same[pair[differ]] = False
    return same


def _walked(
    checks: NDArray[np.void],
    access: _Access,
    table: TableArrays,
    alone: NDArray[np.bool_],
) -> tuple[ShapeArrays, NDArray[np.uint32], NDArray[np.uint8], RegionArrays]:
    """The filters found by walking, marked so; and the shapes, in the order of the walk.

    alone : of each filter, whether it has no other check.
    """
    found = np.flatnonzero(access.walked)
    own = checks[access.check[found]]
    checks["flags"][access.check[found]] |= matching.FOUND
    keys = own["column"].astype(np.int64) * 2 + alone[found]
    kinds, tree = np.unique(keys, return_inverse=True)
    full = np.where(own["flags"] & matching.NEGATED, 0xFF, 0).astype(np.uint8)
    laid = regions.build(
        regions.Regions(
            tree.astype(np.int64),
            np.where(alone[found], table.filter_subscription[found], found).astype(np.uint32),
            own["item"],
            own["areas_mask"] ^ full,
            own["lines_mask"] ^ full,
        ),
        table.shapes.arrays,
        len(kinds),
    )
    # Neighbours in the tree are looked at together, so their shapes shall lie together.
    used = np.concatenate((laid.entries["shape"], laid.large["shape"])).astype(np.int64)
    rest = np.setdiff1d(np.arange(len(table.shapes)), used)
    order = np.concatenate((used, rest))
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order))
    geometric = np.isin(checks["kind"], (matching.RELATE, matching.NEAR))
    checks["item"][geometric] = place[checks["item"][geometric]]
    shapes = Shapes.gather([(table.shapes.arrays, order)]).arrays
    regions.point_to(laid, place, shapes)
    return (
        shapes,
        (kinds >> 1).astype(np.uint32),
        (kinds & 1).astype(np.uint8),
        laid,
    )


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
    items = set_items[ranges(set_start[sets], sizes)].astype(np.uint64)
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
