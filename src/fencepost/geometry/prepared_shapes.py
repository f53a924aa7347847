"""`Shapes`: geometries that are cleaned, validated and laid out in flat arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryError, GeometryProblem, ModelError
from fencepost.geometry.readers.any_format import RawShapes, read_geometries, read_geometry
from fencepost.geometry.readers.collections import kinds_of_chains, split_collections
from fencepost.geometry.space import Space, reason_outside_wgs84
from fencepost.kernels.geometry import shape_arrays as layout_codes
from fencepost.kernels.geometry.shape_arrays import (
    CHAIN_DTYPE,
    KIND_SHIFT,
    MAX_POINTS,
    MIXED,
    NODE_DTYPE,
    POINTS,
    SHAPE_DTYPE,
    TOUCH,
    TOUCH_DTYPE,
    ShapeArrays,
    set_empty_box,
)
from fencepost.kernels.geometry.shape_layout import copy_shapes, lay_out, lay_out_points

_REASONS = {
    layout_codes.TOO_FEW_POINTS: "too few distinct points (a line needs 2, a ring 3)",
    layout_codes.SPIKE: "a ring doubles back on itself",
    layout_codes.SELF_CONTACT: "a ring touches or crosses itself",
    layout_codes.RINGS_CROSS: "two rings cross",
    layout_codes.SHARED_EDGE: "two rings share a piece of an edge",
    layout_codes.HOLE_OUTSIDE: "a hole lies outside its shell",
    layout_codes.NESTED_HOLES: "a hole lies inside another hole",
    layout_codes.NESTED_PARTS: "a part lies inside another part",
}
_MERGE_ADVICE = (
    "polygons of one collection may only touch in points; merge those that overlap or share an "
    "edge, for example with shapely.union_all"
)
_DISCONNECTED = "touching rings cut the interior in two"
_BETWEEN_POLYGONS = {
    _REASONS[code]
    for code in (layout_codes.RINGS_CROSS, layout_codes.SHARED_EDGE, layout_codes.NESTED_PARTS)
}
_INITIAL_CONTACTS = 64


@dataclass(frozen=True, slots=True)
class Shapes:
    """Many geometries as flat arrays (`fencepost.kernels.geometry.shape_arrays` draws the layout).

    Attributes
    ----------
    arrays : ShapeArrays
        The arrays that kernels take. A row that is no usable geometry has dimension -1.
    problems : tuple of GeometryProblem
        Why these rows cannot be used, in row order.
    """

    arrays: ShapeArrays
    problems: tuple[GeometryProblem, ...] = ()

    @classmethod
    def read(cls, values: object) -> Shapes:
        """Read many geometries of any accepted format; bad geometries join `problems`."""
        return cls.lay_out(read_geometries(values))

    @classmethod
    def read_one(cls, value: object) -> Shapes:
        """Read one geometry. Raise GeometryError if it cannot be used."""
        shapes = cls.lay_out(read_geometry(value))
        if shapes.problems:
            raise GeometryError(shapes.problems, single=True)
        return shapes

    @classmethod
    def read_all(cls, values: object) -> Shapes:
        """Read many geometries. Raise GeometryError with every bad row, if there is any."""
        shapes = cls.read(values)
        if shapes.problems:
            raise GeometryError(shapes.problems)
        return shapes

    @classmethod
    def of_points(cls, x: NDArray[np.float64], y: NDArray[np.float64]) -> Shapes:
        """Return a point for each pair of coordinates, which must be finite."""
        return cls(lay_out_points(x, y))

    @classmethod
    def lay_out(cls, raw: RawShapes) -> Shapes:
        """Lay out ragged coordinates: close and orient rings, drop repeated points, validate."""
        if not raw.problems and len(raw.x) == len(raw) and not raw.dimension.any():
            return cls(lay_out_points(raw.x, raw.y))  # each shape is a point
        if (raw.dimension == MIXED).any():
            return cls._lay_out_collections(raw)
        x, y = _sort_point_sets(raw)
        chain_start = raw.chain_start
        while True:
            arrays, defect, place, contacts = _lay_out_all_contacts(raw, x, y, chain_start)
            if not len(contacts):
                break
            within_edge = contacts[:, 1] < 0
            if not within_edge.any():
                arrays = _with_touches(arrays, contacts)
                _find_disconnected(arrays, defect, place)
                break
            x, y, chain_start = _insert_vertices(arrays, contacts[within_edge])
        if not raw.problems and not defect.any():
            return cls(arrays)
        defects = [
            GeometryProblem(
                int(row),
                _REASONS.get(int(defect[row]), _DISCONNECTED),
                (float(place[row, 0]), float(place[row, 1])),
            )
            for row in np.flatnonzero(defect)
        ]
        problems = sorted((*raw.problems, *defects), key=lambda problem: problem.row)
        return cls(arrays, tuple(problems))

    @classmethod
    def _lay_out_collections(cls, raw: RawShapes) -> Shapes:
        """Lay out the members of each kind as shapes, and join the shapes of each row.

        The chains, nodes and touches of a row lie side by side, so only the records are joined.
        """
        members, owner = split_collections(raw)
        parts = cls.lay_out(members)
        bounds = np.searchsorted(owner, np.arange(len(raw) + 1))
        records = parts.arrays.shapes[:-1]
        shapes = parts.arrays.shapes[bounds]
        counts = np.diff(bounds)
        usable = np.minimum.reduceat(records["dimension"], bounds[:-1]) >= 0
        mixed = (counts > 1) & usable
        for name in ("x0", "y0"):
            shapes[name][:-1] = np.minimum.reduceat(records[name], bounds[:-1])
        for name in ("x1", "y1"):
            shapes[name][:-1] = np.maximum.reduceat(records[name], bounds[:-1])
        shapes["dimension"][:-1][mixed] = MIXED
        for row in np.flatnonzero(~usable).tolist():
            shapes["dimension"][row] = -1
            set_empty_box(shapes, row)
        chain_row = np.repeat(np.arange(len(raw)), np.diff(raw.shape_chain))
        of_mixed = np.flatnonzero(mixed[chain_row])
        parts.arrays.chains["part"][of_mixed] |= (
            kinds_of_chains(raw)[of_mixed] << KIND_SHIFT
        ).astype(np.uint32)
        problems = {problem.row: problem for problem in raw.problems}
        for problem in parts.problems:
            row = int(owner[problem.row])
            reason = problem.reason
            if raw.dimension[row] == MIXED and reason in _BETWEEN_POLYGONS:
                reason = f"{reason}; {_MERGE_ADVICE}"
            problems.setdefault(row, GeometryProblem(row, reason, problem.place))
        arrays = parts.arrays._replace(shapes=shapes)
        return cls(arrays, tuple(problems[row] for row in sorted(problems)))

    @classmethod
    def gather(cls, sources: Sequence[tuple[ShapeArrays, NDArray[np.int64]]]) -> Shapes:
        """Copy rows of several sources, in order."""
        sizes = np.ones(5, np.int64)
        for g, rows in sources:
            next_rows = rows + 1
            chains = g.shapes["chain"].astype(np.int64)
            starts = g.chains["start"].astype(np.int64)
            sizes[0] += len(rows)
            sizes[1] += (chains[next_rows] - chains[rows]).sum()
            sizes[2] += (starts[chains[next_rows]] - starts[chains[rows]]).sum()
            for k, name in ((3, "node"), (4, "touch")):
                ends = g.shapes[name].astype(np.int64)
                sizes[k] += (ends[next_rows] - ends[rows]).sum()
        shapes, chains_room, points, nodes, touches = sizes
        out = ShapeArrays(
            x=np.empty(points - 1),
            y=np.empty(points - 1),
            mark=np.empty(points - 1, np.uint8),
            chains=np.zeros(chains_room, CHAIN_DTYPE),
            shapes=np.zeros(shapes, SHAPE_DTYPE),
            nodes=np.empty(nodes - 1, NODE_DTYPE),
            touches=np.empty(touches - 1, TOUCH_DTYPE),
        )
        written = np.zeros(5, np.int64)
        for g, rows in sources:
            copy_shapes(g, rows, out, written)
        return cls(out)

    def row(self, number: int) -> Shapes:
        """Return a copy of one shape."""
        return Shapes.gather([(self.arrays, np.array([number]))])

    def kinds_of_chains(self, row: int) -> list[int]:
        """Return the dimension of each chain of a usable shape, ascending."""
        record, next_record = self.arrays.shapes[row], self.arrays.shapes[row + 1]
        parts = self.arrays.chains["part"][int(record["chain"]) : int(next_record["chain"])]
        if record["dimension"] == MIXED:
            return [int(part) >> KIND_SHIFT for part in parts]
        return [int(record["dimension"])] * len(parts)

    def rows_outside(self, space: Space) -> NDArray[np.int64]:
        """Return the rows of usable shapes that lie partly outside the coordinates of a space."""
        if space is Space.PLANAR:
            return np.empty(0, np.int64)
        boxes = self.arrays.shapes[:-1]
        max_x, max_y = space.limits
        inside = (boxes["x0"] >= -max_x) & (boxes["x1"] <= max_x)
        inside &= (boxes["y0"] >= -max_y) & (boxes["y1"] <= max_y)
        return np.flatnonzero(~inside & (boxes["dimension"] >= 0))

    def problems_outside(self, space: Space) -> list[GeometryProblem]:
        """Return a problem for each row of `rows_outside`, in row order."""
        problems = []
        for row in self.rows_outside(space).tolist():
            box = self.arrays.shapes[row]
            x, y = max(-box["x0"], box["x1"]), max(-box["y0"], box["y1"])
            reason = reason_outside_wgs84(x, y)
            problems.append(GeometryProblem(row, reason, self._far_point(row)))
        return problems

    def _far_point(self, row: int) -> tuple[float, float]:
        """Return the point of a shape that is farthest outside longitude and latitude."""
        g = self.arrays
        first, stop = (int(g.chains["start"][g.shapes["chain"][row + k]]) for k in (0, 1))
        x, y = g.x[first:stop], g.y[first:stop]
        max_x, max_y = Space.WGS84.limits
        worst = int(np.maximum(np.abs(x) / max_x, np.abs(y) / max_y).argmax())
        return float(x[worst]), float(y[worst])

    def __len__(self) -> int:
        return len(self.arrays.shapes) - 1

    @property
    def max_chains(self) -> int:
        """The largest number of chains of a shape, which sizes the scratch of kernels."""
        return int(np.diff(self.arrays.shapes["chain"]).max(initial=1))


def _sort_point_sets(raw: RawShapes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coordinates with the points of each multi-point in lexicographic order."""
    points = raw.dimension == POINTS
    if not points.any():
        return raw.x, raw.y
    chains = raw.shape_chain[:-1][points]
    sizes = raw.chain_start[chains + 1] - raw.chain_start[chains]
    if not (sizes > 1).any():
        return raw.x, raw.y
    x, y = raw.x.copy(), raw.y.copy()
    chain = np.repeat(np.arange(len(chains)), sizes)
    rows = np.arange(len(chain)) + np.repeat(
        raw.chain_start[chains] - np.cumsum(sizes) + sizes, sizes
    )
    order = rows[np.lexsort((y[rows], x[rows], chain))]
    x[rows], y[rows] = raw.x[order], raw.y[order]
    return x, y


def _lay_out_all_contacts(
    raw: RawShapes,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    chain_start: NDArray[np.int64],
) -> tuple[ShapeArrays, NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    if len(x) + len(raw.chain_part) > MAX_POINTS:
        raise ModelError(
            f"{len(x):,} points are too many for one batch; give at most {MAX_POINTS:,} at a time"
        )
    max_contacts = _INITIAL_CONTACTS
    while True:
        arrays, defect, place, contacts, count = lay_out(
            x, y, chain_start, raw.chain_part, raw.shape_chain, raw.dimension, max_contacts
        )
        if count <= max_contacts:
            return arrays, defect, place, contacts[:count]
        max_contacts = count


def _insert_vertices(
    arrays: ShapeArrays, contacts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Insert each vertex of `contacts` in the edge on which it lies. Return points and chains."""
    x, y = arrays.x, arrays.y
    edge = -1 - contacts[:, 1]
    new_x, new_y = x[contacts[:, 0]], y[contacts[:, 0]]
    # An edge is ordered by x, or by y if it is vertical; comparison of coordinates is exact.
    along_x = np.where(x[edge + 1] >= x[edge], new_x, -new_x)
    along_y = np.where(y[edge + 1] >= y[edge], new_y, -new_y)
    order = np.lexsort((along_y, along_x, edge))
    edge, new_x, new_y = edge[order], new_x[order], new_y[order]
    chain_start = arrays.chains["start"] + np.searchsorted(edge, arrays.chains["start"])
    return np.insert(x, edge + 1, new_x), np.insert(y, edge + 1, new_y), chain_start


def _with_touches(arrays: ShapeArrays, contacts: NDArray[np.int64]) -> ShapeArrays:
    """Return the arrays with `touches`: cycles of the vertices of a shape that share a point."""
    vertices = np.unique(contacts)
    chain = np.searchsorted(arrays.chains["start"], vertices, side="right") - 1
    shape = np.searchsorted(arrays.shapes["chain"], chain, side="right") - 1
    x, y = arrays.x[vertices], arrays.y[vertices]
    order = np.lexsort((vertices, y, x, shape))
    x, y, owner = x[order], y[order], shape[order]
    opens = np.ones(len(order), bool)
    opens[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1]) | (owner[1:] != owner[:-1])
    group = np.cumsum(opens) - 1
    first_of_group = np.flatnonzero(opens)
    following = np.arange(1, len(order) + 1)
    last = np.append(opens[1:], True)
    following[last] = first_of_group[group[last]]
    next_vertex = np.empty(len(order), np.int64)
    next_vertex[order] = vertices[order[following]]
    arrays.mark[vertices] |= TOUCH
    arrays.shapes["touch"] = np.searchsorted(shape, np.arange(len(arrays.shapes)))
    touches = np.empty(len(vertices), TOUCH_DTYPE)
    touches["vertex"], touches["next"] = vertices, next_vertex
    return arrays._replace(touches=touches)


def _find_disconnected(
    arrays: ShapeArrays, defect: NDArray[np.int64], place: NDArray[np.float64]
) -> None:
    """Mark areas whose touching rings disconnect the interior.

    Take rings, and the points where they touch, as the nodes of a graph. The graph is a forest if
    and only if the interior of each part is connected. Touches are rare, so plain Python suffices.
    """
    leader: dict[object, object] = {}

    def find(node: object) -> object:
        while leader.setdefault(node, node) != node:
            node = leader[node]
        return node

    chains = np.searchsorted(arrays.chains["start"], arrays.touches["vertex"], side="right") - 1
    shapes = np.searchsorted(arrays.shapes["chain"], chains, side="right") - 1
    for vertex, chain, shape in zip(
        arrays.touches["vertex"].tolist(), chains.tolist(), shapes.tolist(), strict=True
    ):
        x, y = float(arrays.x[vertex]), float(arrays.y[vertex])
        ring = find(chain)
        spot = find((shape, int(arrays.chains["part"][chain]), x, y))
        if ring == spot and not defect[shape]:
            defect[shape] = -1
            place[shape] = x, y
            arrays.shapes["dimension"][shape] = -1
            set_empty_box(arrays.shapes, shape)
        leader[ring] = spot


def is_convex(ring: list[list[Any]]) -> bool:
    """Return whether a simple ring of three or more points is convex."""
    points = [(Fraction(x), Fraction(y)) for x, y in ring]
    turns = set()
    for k, (x, y) in enumerate(points):
        (u, v), (p, q) = points[k - 1], points[k - 2]
        turn = (u - p) * (y - q) - (v - q) * (x - p)
        turns.add((turn > 0) - (turn < 0))
    return not {1, -1} <= turns
