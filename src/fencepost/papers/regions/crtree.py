"""`CRTree`: an R-tree of constraints on regions, searched by the region of a message.

Konstantinidis, Carzaniga, Wolf, section 4.1. Constraints can be added and removed at any time.

==============  ==================================================================================
the paper       here
==============  ==================================================================================
q, R_q          the region of a message and its box (MBR)
t, R_t          a node and its box, which its parent stores
constraint      a region and a mask of relations (bit ``1 << code``): any set of the eight
disjoint list   the constraints below a node whose mask has `disjoint` (`guttman`)
S_t             the relations of boxes that Table 2 allows a constraint (`crtree_search`)
==============  ==================================================================================

Differences from the paper:

- Table 2 is corrected (`crtree_search`).
- The paper does not give the size of its nodes. Here a node has 6 to 16 entries; the authors of the
  R*-tree found a minimum of 40 % best.
- The paper's split is quadratic. `split="rstar"` is the better split that its conclusions ask for,
  and the first constraints can be bulk loaded (`crtree_packing`).
- Relations are exact. With a `density`, Algorithm 1 relates simple polygons; regions with holes or
  several parts, and messages that are lines or points, are still related exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryError, IndexingError, ModelError
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.geometry.edge_trees import new_tree_scratch
from fencepost.kernels.geometry.shape_arrays import (
    AREAS,
    CHAIN_DTYPE,
    NODE_DTYPE,
    SHAPE_DTYPE,
    TOUCH_DTYPE,
    ShapeArrays,
)
from fencepost.kernels.geometry.shape_layout import copy_shapes
from fencepost.papers.regions.algorithm1 import check_density
from fencepost.papers.regions.boundary_samples import new_sample_scratch
from fencepost.papers.regions.crtree_packing import nodes_needed, pack
from fencepost.papers.regions.crtree_search import (
    ConstraintArrays,
    SearchScratch,
    measure,
    new_search_stack,
    scan,
    search,
)
from fencepost.papers.regions.guttman import (
    FREE,
    MAX_LEVELS,
    MIN_ENTRIES,
    NONE,
    QUADRATIC_SPLIT,
    ROOT,
    RSTAR_SPLIT,
    SPLIT,
    USED,
    TreeArrays,
    delete,
    insert_many,
)

Split = Literal["quadratic", "rstar"]
Item = TypeVar("Item", bound=np.generic)
_SPLITS = {"quadratic": QUADRATIC_SPLIT, "rstar": RSTAR_SPLIT}

_INITIAL_SIZE = 64
_EXACT_RELATIONS = -1.0
_DISJOINT = 1


class CRTree:
    """Constraints on regions, searched by a message's region.

    Parameters
    ----------
    density : float, optional
        Relate simple polygons by Algorithm 1 with this density; exactly if left out.
    split : "quadratic" or "rstar"
        How a full node is split.
    fanout, min_entries : int
        The maximum and the minimum number of entries of a node; 2 <= min_entries <= fanout / 2.
    indexed : bool
        If False there is no tree, and a search evaluates each constraint: the paper's baseline.

    Attributes
    ----------
    evaluated, visited : int
        The numbers of relations evaluated and of nodes visited, by all searches so far.
    """

    def __init__(
        self,
        *,
        density: float | None = None,
        split: Split = "quadratic",
        fanout: int = 16,
        min_entries: int = 6,
        indexed: bool = True,
    ) -> None:
        if density is not None:
            check_density(density)
        if split not in _SPLITS:
            raise IndexingError(f"split must be 'quadratic' or 'rstar'; saw {split!r}")
        if not 2 <= min_entries <= fanout // 2:
            raise IndexingError(
                f"with fanout={fanout}, min_entries must be 2 to {fanout // 2}; saw {min_entries}"
            )
        self._density = _EXACT_RELATIONS if density is None else float(density)
        self._indexed = indexed
        self.fanout = fanout
        # The most nodes that an insertion, or a deletion with its reinsertions, can allocate.
        self._reserve = MAX_LEVELS * (min_entries + 2)
        self.shapes = GrowingShapes()
        self._masks = np.zeros((_INITIAL_SIZE, 3), np.uint8)
        self._row = np.full(_INITIAL_SIZE, -1, np.int64)
        self._length = np.empty(_INITIAL_SIZE)
        self._next = 0
        self._free: list[int] = []
        self._live = 0
        self.tree = _empty_tree(self._reserve + _INITIAL_SIZE, fanout, _INITIAL_SIZE)
        self.tree.state[:] = 0
        self.tree.state[FREE] = NONE
        self.tree.state[USED] = 1
        self.tree.state[MIN_ENTRIES] = min_entries
        self.tree.state[SPLIT] = _SPLITS[split]
        self._scratch: SearchScratch | None = None
        self._largest = 1, 1  # most chains of a shape, most points of a chain
        self._matches = np.empty(_INITIAL_SIZE, np.int64)
        self._counts = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return self._live

    @property
    def evaluated(self) -> int:
        """Number of relations that all searches have evaluated."""
        return int(self._counts[0])

    @property
    def visited(self) -> int:
        """Number of nodes that all searches have visited."""
        return int(self._counts[1])

    @property
    def height(self) -> int:
        """Number of levels of the tree."""
        return int(self.tree.level[self.tree.state[ROOT]]) + 1

    def add(self, region: object, mask: int | Sequence[int]) -> int:
        """Add a constraint. Return its number.

        Parameters
        ----------
        region : polygon or multipolygon in any accepted form, or Shapes of one row
        mask : int, or sequence of three int
            The relations that satisfy the constraint, as a sum of `Relation.bit`. Three masks are
            for messages that are points, lines and areas; they must agree on `disjoint`.
        """
        shapes = region if isinstance(region, Shapes) else Shapes.read_one(region)
        return int(self.add_many(shapes, np.array([mask]))[0])

    def add_many(
        self, regions: Shapes, masks: NDArray[np.integer[Any]], *, packed: bool = False
    ) -> NDArray[np.int64]:
        """Add a constraint for each region, with masks (n,) or (n, 3). Return their numbers.

        Parameters
        ----------
        packed : bool
            Bulk load the tree, which must be empty. Later constraints are inserted.
        """
        triples = self._validate(regions, masks)
        if packed and self._live:
            raise IndexingError(
                f"only an empty tree can be packed; this one has {self._live} constraints: "
                "leave packed out, or start with another tree"
            )
        ids = self._new_numbers(len(regions))
        rows = self.shapes.add(regions)
        boxes = np.empty((len(rows), 4))
        lengths = np.empty(len(rows))
        measure(self.shapes.arrays, rows, boxes, lengths)
        self._masks[ids], self._row[ids], self._length[ids] = triples, rows, lengths
        self.tree.matches_disjoint[ids] = triples[:, 0] & _DISJOINT
        self._live += len(ids)
        chains, points = map(max, _largest(regions), self._largest)
        if (chains, points) != self._largest:
            self._largest = chains, points
            self._scratch = None
        if self._indexed and packed and len(ids):
            self._grow_nodes(nodes_needed(len(ids), self.fanout))
            pack(self.tree, boxes, ids)
        elif self._indexed:
            done = 0
            while done < len(ids):
                self._reserve_nodes()
                done = insert_many(self.tree, boxes, ids, done, self._reserve)
        return ids

    def remove(self, number: int) -> None:
        """Remove a constraint. A later constraint may get its number."""
        if not (0 <= number < self._next and self._row[number] >= 0):
            raise IndexingError(f"there is no constraint {number}")
        if self._indexed:
            self._reserve_nodes()
            delete(self.tree, number)
        self._row[number] = -1
        self._free.append(number)
        self._live -= 1
        if len(self.shapes) > 2 * self._live + _INITIAL_SIZE:
            self._compact()

    def search(self, region: Shapes, row: int = 0) -> NDArray[np.int64]:
        """Return the numbers of the constraints that a message's geometry satisfies, unsorted."""
        if region.arrays.shapes["dimension"][row] < 0:
            raise ModelError(f"row {row} is no usable geometry")
        scratch = self._search_scratch(region)
        if len(self._matches) < self._live:
            self._matches = np.empty(2 * self._live, np.int64)
        constraints = ConstraintArrays(self._masks, self._row, self._length, self.shapes.arrays)
        message = (region.arrays, row, self._density, scratch, self._matches, self._counts)
        if self._indexed:
            matched = search(self.tree, constraints, *message)
        else:
            matched = scan(constraints, np.flatnonzero(self._row[: self._next] >= 0), *message)
        return self._matches[:matched].copy()

    def match(self, region: object) -> NDArray[np.int64]:
        """Search by a geometry in any accepted form; see `search`."""
        return self.search(region if isinstance(region, Shapes) else Shapes.read_one(region))

    def _validate(self, regions: Shapes, masks: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        if regions.problems:
            raise GeometryError(regions.problems)
        if (regions.arrays.shapes["dimension"][:-1] != AREAS).any():
            raise ModelError("a constraint's region must be a polygon or a multipolygon")
        if masks.ndim == 1:
            masks = np.repeat(masks[:, None], 3, axis=1)
        if masks.shape != (len(regions), 3):
            raise ModelError(
                f"{len(regions)} regions need an array of {len(regions)} masks, or of "
                f"{len(regions)} rows of 3; saw the shape {masks.shape}"
            )
        if ((masks < 0) | (masks > 255)).any():
            raise ModelError("a mask is a set of eight relations: 0 to 255")
        if ((masks & _DISJOINT) != (masks[:, :1] & _DISJOINT)).any():
            raise ModelError(
                "whether `disjoint` satisfies a constraint must not depend on the "
                "message's dimension"
            )
        return masks.astype(np.uint8)

    def _new_numbers(self, count: int) -> NDArray[np.int64]:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        new = range(self._next, self._next + count - len(reused))
        self._next = new.stop
        if self._next > len(self._row):
            size = 2 * self._next
            self._masks = _grown(self._masks, size)
            self._row = _grown(self._row, size)
            self._length = _grown(self._length, size)
            self.tree = self.tree._replace(
                leaf_of=_grown(self.tree.leaf_of, size),
                matches_disjoint=_grown(self.tree.matches_disjoint, size),
            )
        return np.array([*reused, *new], np.int64)

    def _reserve_nodes(self) -> None:
        if len(self.tree.size) - int(self.tree.state[USED]) < self._reserve:
            self._grow_nodes(2 * len(self.tree.size) + self._reserve)

    def _grow_nodes(self, nodes: int) -> None:
        tree = self.tree
        if nodes > len(tree.size):
            self.tree = tree._replace(
                boxes=_grown(tree.boxes, nodes),
                child=_grown(tree.child, nodes),
                size=_grown(tree.size, nodes),
                level=_grown(tree.level, nodes),
                parent=_grown(tree.parent, nodes),
                disjoint_count=_grown(tree.disjoint_count, nodes),
            )

    def _compact(self) -> None:
        """Free the regions of removed constraints."""
        live = np.flatnonzero(self._row[: self._next] >= 0)
        self.shapes.keep(self._row[live])
        self._row[live] = np.arange(len(live))

    def _search_scratch(self, message: Shapes) -> SearchScratch:
        """Return scratch for the largest region and the largest message so far."""
        chains, points = map(max, _largest(message), self._largest)
        if self._scratch is None or (chains, points) != self._largest:
            self._largest = chains, points
            self._scratch = SearchScratch(
                new_search_stack(self.fanout), new_tree_scratch(chains), new_sample_scratch(points)
            )
        return self._scratch


def _largest(shapes: Shapes) -> tuple[int, int]:
    """Return the maximum number of chains of a shape, and of points of a chain."""
    starts = shapes.arrays.chains["start"].astype(np.int64)
    return shapes.max_chains, int(np.diff(starts).max(initial=1))


def _grown(array: NDArray[Item], size: int) -> NDArray[Item]:
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _empty_tree(nodes: int, fanout: int, constraints: int) -> TreeArrays:
    return TreeArrays(
        np.zeros((nodes, 4, fanout)),
        np.zeros((nodes, fanout), np.uint32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.uint32),
        np.zeros(nodes, np.int64),
        np.zeros(constraints, np.uint32),
        np.zeros(constraints, np.uint8),
        np.zeros(5, np.int64),
    )


class GrowingShapes:
    """Rows of shapes that grow at their end; only `keep` renumbers rows."""

    def __init__(self) -> None:
        self._at = np.zeros(5, np.int64)  # used: shapes, chains, points, nodes, touches
        self.arrays = _empty(np.full(5, _INITIAL_SIZE))

    def __len__(self) -> int:
        return int(self._at[0])

    def add(self, shapes: Shapes) -> NDArray[np.int64]:
        """Append all rows of `shapes`. Return their numbers."""
        g = shapes.arrays
        counts = (len(shapes), len(g.chains) - 1, len(g.x), len(g.nodes), len(g.touches))
        needed = self._at + counts + 1
        capacity = _capacity(self.arrays)
        if (needed > capacity).any():
            self._move(np.arange(len(self)), np.where(needed > capacity, 2 * needed, capacity))
        first = len(self)
        copy_shapes(g, np.arange(len(shapes)), self.arrays, self._at)
        return np.arange(first, len(self))

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows, which become 0, 1, 2, ..."""
        self._move(rows, _capacity(self.arrays))

    def _move(self, rows: NDArray[np.int64], capacity: NDArray[np.int64]) -> None:
        copied = _empty(capacity)
        at = np.zeros(5, np.int64)
        copy_shapes(self.arrays, rows, copied, at)
        self.arrays, self._at = copied, at


def _capacity(g: ShapeArrays) -> NDArray[np.int64]:
    return np.array([len(g.shapes), len(g.chains), len(g.x), len(g.nodes), len(g.touches)])


def _empty(capacity: NDArray[np.int64]) -> ShapeArrays:
    shapes, chains, points, nodes, touches = capacity
    return ShapeArrays(
        np.empty(points),
        np.empty(points),
        np.empty(points, np.uint8),
        np.zeros(chains, CHAIN_DTYPE),
        np.zeros(shapes, SHAPE_DTYPE),
        np.empty(nodes, NODE_DTYPE),
        np.empty(touches, TOUCH_DTYPE),
    )
