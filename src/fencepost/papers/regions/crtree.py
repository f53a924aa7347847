"""The CR-tree: constraints on regions, insertable and removable at any time.

Konstantinidis, Carzaniga, Wolf, section 4.1: an R-tree over the boxes of the constraints'
regions, which a message's region searches for all constraints that it satisfies.

==============  ==================================================================================
the paper       here
==============  ==================================================================================
q, R_q          the region of a message and its box (MBR)
t, R_t          a node and its box, which the node above it keeps
constraint      a region and a mask of relations (bit ``1 << code``): any set of the eight
disjoint list   the constraints below a node whose mask holds `disjoint` (`guttman`)
S_t             the relations of boxes that Table 2 allows a constraint (`crtree_search`)
==============  ==================================================================================

Where we differ: Table 2 is corrected (`crtree_search`). The paper does not say how full its nodes
are; ours have 16 entries at most and 6 at least (near the 40 % that the R*-tree's authors found
best). Its split is the quadratic one; `split="rstar"` is the better one it wishes for, and
constraints known beforehand can be packed (`packing`). Relations are exact unless Algorithm 1 is
asked for, which then decides between simple polygons; regions with holes or several parts, and
messages that are lines or points, are beyond it and related exactly.
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
from fencepost.papers.regions.boundary_samples import sample_room
from fencepost.papers.regions.crtree_packing import nodes_needed, pack
from fencepost.papers.regions.crtree_search import (
    ConstraintArrays,
    SearchRoom,
    measure,
    scan,
    search,
    waiting_room,
)
from fencepost.papers.regions.guttman import (
    FREE,
    LEAST,
    MOST_LEVELS,
    NONE,
    QUADRATIC,
    ROOT,
    RSTAR,
    SPLIT,
    USED,
    TreeArrays,
    delete,
    insert_many,
)

Split = Literal["quadratic", "rstar"]
Item = TypeVar("Item", bound=np.generic)
_SPLITS = {"quadratic": QUADRATIC, "rstar": RSTAR}

_FIRST_ROOM = 64
_EXACT = -1.0
_DISJOINT = 1


class CRTree:
    """Constraints on regions, searched by a message's region.

    Parameters
    ----------
    density : float, optional
        Decide between simple polygons by Algorithm 1 with this density, not exactly.
    split : "quadratic" or "rstar"
        How a full node is divided.
    fanout, least : int
        The most and the fewest entries of a node; 2 <= least <= fanout / 2.
    indexed : bool
        False keeps no tree: a search evaluates every constraint, as the paper's comparison does.

    Attributes
    ----------
    evaluated, visited : int
        How many relations all searches have evaluated, and how many nodes they have visited.
    """

    def __init__(
        self,
        *,
        density: float | None = None,
        split: Split = "quadratic",
        fanout: int = 16,
        least: int = 6,
        indexed: bool = True,
    ) -> None:
        if density is not None:
            check_density(density)
        if split not in _SPLITS:
            raise IndexingError(f"no split is called {split!r}; use 'quadratic' or 'rstar'")
        if not 2 <= least <= fanout // 2:
            raise IndexingError(
                f"a node of at most {fanout} entries needs between 2 and {fanout // 2} at least; "
                f"got {least}"
            )
        self._density = _EXACT if density is None else float(density)
        self._indexed = indexed
        self.fanout = fanout
        # The nodes that one insertion, or one deletion with what it inserts again, may take.
        self._reserve = MOST_LEVELS * (least + 2)
        self.shapes = GrowingShapes()
        self._masks = np.zeros((_FIRST_ROOM, 3), np.uint8)
        self._row = np.full(_FIRST_ROOM, -1, np.int64)
        self._length = np.empty(_FIRST_ROOM)
        self._next = 0
        self._free: list[int] = []
        self._live = 0
        self.tree = _empty_tree(self._reserve + _FIRST_ROOM, fanout, _FIRST_ROOM)
        self.tree.state[:] = 0
        self.tree.state[FREE] = NONE
        self.tree.state[USED] = 1
        self.tree.state[LEAST] = least
        self.tree.state[SPLIT] = _SPLITS[split]
        self._room: SearchRoom | None = None
        self._largest = 1, 1  # chains of a shape, points of a chain
        self._out = np.empty(_FIRST_ROOM, np.int64)
        self._counts = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return self._live

    @property
    def evaluated(self) -> int:
        """How many relations all searches have evaluated."""
        return int(self._counts[0])

    @property
    def visited(self) -> int:
        """How many nodes all searches have visited."""
        return int(self._counts[1])

    @property
    def height(self) -> int:
        """The number of levels of the tree."""
        return int(self.tree.level[self.tree.state[ROOT]]) + 1

    def add(self, region: object, mask: int | Sequence[int]) -> int:
        """Add a constraint; its number, by which searches name it.

        Parameters
        ----------
        region : a polygon or several in any accepted form, or Shapes of one
        mask : int, or three
            Relations that satisfy it, as the bits of `Relation.bit`; three where they depend on
            the message's dimension (points, lines, areas), alike for `disjoint`.
        """
        shapes = region if isinstance(region, Shapes) else Shapes.read_one(region)
        return int(self.add_many(shapes, np.array([mask]))[0])

    def add_many(
        self, regions: Shapes, masks: NDArray[np.integer[Any]], *, packed: bool = False
    ) -> NDArray[np.int64]:
        """Add a constraint for each region, with masks (n,) or (n, 3); their numbers.

        Parameters
        ----------
        packed : bool
            Put the nodes of a tree that is still empty together at once: what follows is
            inserted and removed as ever.
        """
        triples = self._checked(regions, masks)
        if packed and self._live:
            raise IndexingError(
                f"only an empty tree can be packed; this one has {self._live} constraints: "
                "leave packed out, or start with another tree"
            )
        ids = self._numbers(len(regions))
        rows = self.shapes.add(regions)
        boxes = np.empty((len(rows), 4))
        lengths = np.empty(len(rows))
        measure(self.shapes.arrays, rows, boxes, lengths)
        self._masks[ids], self._row[ids], self._length[ids] = triples, rows, lengths
        self.tree.bears[ids] = triples[:, 0] & _DISJOINT
        self._live += len(ids)
        chains, points = map(max, _largest(regions), self._largest)
        if (chains, points) != self._largest:
            self._largest = chains, points
            self._room = None
        if self._indexed and packed and len(ids):
            self._make_room(nodes_needed(len(ids), self.fanout))
            pack(self.tree, boxes, ids)
        elif self._indexed:
            done = 0
            while done < len(ids):
                self._reserve_nodes()
                done = insert_many(self.tree, boxes, ids, done, self._reserve)
        return ids

    def remove(self, number: int) -> None:
        """Take a constraint out; its number may be given again."""
        if not (0 <= number < self._next and self._row[number] >= 0):
            raise IndexingError(f"there is no constraint {number}")
        if self._indexed:
            self._reserve_nodes()
            delete(self.tree, number)
        self._row[number] = -1
        self._free.append(number)
        self._live -= 1
        if len(self.shapes) > 2 * self._live + _FIRST_ROOM:
            self._compact()

    def search(self, region: Shapes, row: int = 0) -> NDArray[np.int64]:
        """The numbers of all constraints that a message's geometry satisfies, in no order."""
        if region.arrays.shapes["dimension"][row] < 0:
            raise ModelError(f"row {row} is no usable geometry")
        room = self._search_room(region)
        if len(self._out) < self._live:
            self._out = np.empty(2 * self._live, np.int64)
        constraints = ConstraintArrays(self._masks, self._row, self._length, self.shapes.arrays)
        message = (region.arrays, row, self._density, room, self._out, self._counts)
        if self._indexed:
            found = search(self.tree, constraints, *message)
        else:
            found = scan(constraints, np.flatnonzero(self._row[: self._next] >= 0), *message)
        return self._out[:found].copy()

    def match(self, region: object) -> NDArray[np.int64]:
        """`search` for a geometry in any accepted form."""
        return self.search(region if isinstance(region, Shapes) else Shapes.read_one(region))

    def _checked(self, regions: Shapes, masks: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        if regions.problems:
            raise GeometryError(regions.problems)
        if (regions.arrays.shapes["dimension"][:-1] != AREAS).any():
            raise ModelError("a constraint's region must be a polygon, or several")
        if masks.ndim == 1:
            masks = np.repeat(masks[:, None], 3, axis=1)
        if masks.shape != (len(regions), 3):
            raise ModelError(
                f"{len(regions)} regions need as many masks, or as many rows of three; got an "
                f"array of shape {masks.shape}"
            )
        if ((masks < 0) | (masks > 255)).any():
            raise ModelError("a mask is a set of eight relations: 0 to 255")
        if ((masks & _DISJOINT) != (masks[:, :1] & _DISJOINT)).any():
            raise ModelError(
                "whether `disjoint` satisfies a constraint must not depend on the "
                "message's dimension"
            )
        return masks.astype(np.uint8)

    def _numbers(self, count: int) -> NDArray[np.int64]:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        fresh = range(self._next, self._next + count - len(reused))
        self._next = fresh.stop
        if self._next > len(self._row):
            size = 2 * self._next
            self._masks = _grown(self._masks, size)
            self._row = _grown(self._row, size)
            self._length = _grown(self._length, size)
            self.tree = self.tree._replace(
                leaf_of=_grown(self.tree.leaf_of, size), bears=_grown(self.tree.bears, size)
            )
        return np.array([*reused, *fresh], np.int64)

    def _reserve_nodes(self) -> None:
        if len(self.tree.size) - int(self.tree.state[USED]) < self._reserve:
            self._make_room(2 * len(self.tree.size) + self._reserve)

    def _make_room(self, nodes: int) -> None:
        tree = self.tree
        if nodes > len(tree.size):
            self.tree = tree._replace(
                boxes=_grown(tree.boxes, nodes),
                child=_grown(tree.child, nodes),
                size=_grown(tree.size, nodes),
                level=_grown(tree.level, nodes),
                parent=_grown(tree.parent, nodes),
                disjoint=_grown(tree.disjoint, nodes),
            )

    def _compact(self) -> None:
        """Drop the regions of removed constraints."""
        live = np.flatnonzero(self._row[: self._next] >= 0)
        self.shapes.keep(self._row[live])
        self._row[live] = np.arange(len(live))

    def _search_room(self, message: Shapes) -> SearchRoom:
        """Scratch for the largest of the constraints' regions and messages so far."""
        chains, points = map(max, _largest(message), self._largest)
        if self._room is None or (chains, points) != self._largest:
            self._largest = chains, points
            self._room = SearchRoom(
                waiting_room(self.fanout), new_tree_scratch(chains), sample_room(points)
            )
        return self._room


def _largest(shapes: Shapes) -> tuple[int, int]:
    """The most chains of a shape and the most points of a chain."""
    starts = shapes.arrays.chains["start"].astype(np.int64)
    return shapes.max_chains, int(np.diff(starts).max(initial=1))


def _grown(array: NDArray[Item], size: int) -> NDArray[Item]:
    fresh = np.zeros((size, *array.shape[1:]), array.dtype)
    fresh[: len(array)] = array
    return fresh


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
    """Rows of shapes; a row keeps its number until `keep` renumbers them."""

    def __init__(self) -> None:
        self._at = np.zeros(5, np.int64)  # shapes, chains, points, nodes, touches so far
        self.arrays = _empty(np.full(5, _FIRST_ROOM))

    def __len__(self) -> int:
        return int(self._at[0])

    def add(self, shapes: Shapes) -> NDArray[np.int64]:
        """Copy all rows of `shapes` to the end; their numbers."""
        g = shapes.arrays
        counts = (len(shapes), len(g.chains) - 1, len(g.x), len(g.nodes), len(g.touches))
        needed = self._at + counts + 1
        room = _room(self.arrays)
        if (needed > room).any():
            self._move(np.arange(len(self)), np.where(needed > room, 2 * needed, room))
        first = len(self)
        copy_shapes(g, np.arange(len(shapes)), self.arrays, self._at)
        return np.arange(first, len(self))

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop all rows but these, which become 0, 1, 2, ..."""
        self._move(rows, _room(self.arrays))

    def _move(self, rows: NDArray[np.int64], room: NDArray[np.int64]) -> None:
        fresh = _empty(room)
        at = np.zeros(5, np.int64)
        copy_shapes(self.arrays, rows, fresh, at)
        self.arrays, self._at = fresh, at


def _room(g: ShapeArrays) -> NDArray[np.int64]:
    return np.array([len(g.shapes), len(g.chains), len(g.x), len(g.nodes), len(g.touches)])


def _empty(room: NDArray[np.int64]) -> ShapeArrays:
    shapes, chains, points, nodes, touches = room
    return ShapeArrays(
        np.empty(points),
        np.empty(points),
        np.empty(points, np.uint8),
        np.zeros(chains, CHAIN_DTYPE),
        np.zeros(shapes, SHAPE_DTYPE),
        np.empty(nodes, NODE_DTYPE),
        np.empty(touches, TOUCH_DTYPE),
    )
