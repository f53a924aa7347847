"""`RawShapes`: ragged arrays of geometries as read, before rings are closed and validated.

    shape_chain   [ 0 . . 2 . 3 ]            shape s owns chains shape_chain[s]:shape_chain[s+1]
    chain_part    [ 0 . 1 . 0 ]              chain c belongs to part chain_part[c] of its shape
    chain_start   [ 0 . . . 5 . . . . 9 ]    chain c owns points chain_start[c]:chain_start[c+1]
    x, y          [ . . . . . . . . . . ]

A bad row remains a row: its dimension is -1, it owns no chain, and it has one problem. Every reader
of columns ends with `drop_bad_rows`, which removes the coordinates of bad rows. The reader of
GeoJSON reads one row at a time and does not append them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINTS, LINES, AREAS, MIXED, UNREADABLE = 0, 1, 2, 3, -1

MISSING_REASON = "there is no geometry: the value is null; leave the row out or give it a geometry"
EMPTY_REASON = "the geometry is empty; leave the row out or give it at least one point"
CURVES_REASON = (
    "curves and surfaces are not supported; give lines and polygons (segmentise curves first)"
)


class RejectedGeometryError(Exception):
    """A value that is no usable geometry; the message is the problem's reason."""


@dataclass(frozen=True, slots=True)
class RawShapes:
    """Many geometries as flat arrays, and a problem for each row that could not be read.

    Attributes
    ----------
    x, y : float64 arrays
        All points, chain after chain; finite, and never -0.0.
    chain_start : int64 array
        Chain c is points ``chain_start[c]:chain_start[c + 1]``.
    chain_part : int64 array
        The part of its shape that a chain belongs to, from 0. The first chain of a part of an area
        is its shell, the following chains are holes. Each line of a multi-line is a part. All
        points of a multi-point are one chain of part 0. In a collection, the dimension of the
        member is in the bits from `KIND_SHIFT` on.
    shape_chain : int64 array
        Shape s is chains ``shape_chain[s]:shape_chain[s + 1]``.
    dimension : int8 array
        0 points, 1 lines, 2 areas; 3 for a collection, whose chains are those of all its points,
        then its lines, then its areas; -1 for a row that could not be read, which has no chains.
    problems : tuple of GeometryProblem
        A problem for each row that could not be read, in row order.
    """

    x: Floats
    y: Floats
    chain_start: Ints
    chain_part: Ints
    shape_chain: Ints
    dimension: NDArray[np.int8]
    problems: tuple[GeometryProblem, ...]

    def __len__(self) -> int:
        return len(self.dimension)


class UncheckedGeometry(NamedTuple):
    """One geometry as in `RawShapes`, with points that may be infinite, NaN or -0.0."""

    xy: Floats  # (n, 2)
    chain_start: Ints
    chain_part: Ints
    dimension: int


ONE_CHAIN = np.zeros(1, np.int64)


def unreadable_row(reason: str) -> RawShapes:
    """Return one row that could not be read."""
    return RawShapes(
        np.empty(0),
        np.empty(0),
        np.zeros(1, np.int64),
        np.empty(0, np.int64),
        np.zeros(2, np.int64),
        np.full(1, UNREADABLE, np.int8),
        (GeometryProblem(0, reason),),
    )


def drop_bad_rows(
    x: Floats,
    y: Floats,
    chain_start: Ints,
    chain_part: Ints,
    shape_chain: Ints,
    dimension: NDArray[np.int8],
    reasons: dict[int, str],
) -> RawShapes:
    """Return shapes in new, contiguous arrays, without the coordinates of bad rows.

    The rows of `reasons` are bad, and rows that are empty, have an empty part or a coordinate that
    is not finite. `reasons` gets the latter; a row keeps its first reason.
    """
    _find_empty(chain_start, chain_part, shape_chain, dimension, reasons)
    _find_not_finite(x, y, chain_start, chain_part, shape_chain, dimension, reasons)
    if reasons:
        keep = np.ones(len(dimension), bool)
        keep[list(reasons)] = False
        chains, points = np.diff(shape_chain), np.diff(chain_start)
        keep_chain = np.repeat(keep, chains)
        keep_point = np.repeat(keep_chain, points)
        x, y, chain_part = x[keep_point], y[keep_point], chain_part[keep_chain]
        chain_start = offsets_of(points[keep_chain])
        shape_chain = offsets_of(np.where(keep, chains, 0))
        dimension = np.where(keep, dimension, UNREADABLE)
    return RawShapes(
        x + 0.0,  # a copy in which -0.0 becomes 0.0
        y + 0.0,
        np.ascontiguousarray(chain_start, np.int64),
        np.ascontiguousarray(chain_part, np.int64),
        np.ascontiguousarray(shape_chain, np.int64),
        np.ascontiguousarray(dimension, np.int8),
        tuple(GeometryProblem(row, reasons[row]) for row in sorted(reasons)),
    )


def _find_empty(
    chain_start: Ints,
    chain_part: Ints,
    shape_chain: Ints,
    dimension: NDArray[np.int8],
    reasons: dict[int, str],
) -> None:
    for row in np.flatnonzero(np.diff(chain_start[shape_chain]) == 0).tolist():
        reasons.setdefault(row, EMPTY_REASON)
    for chain in np.flatnonzero(np.diff(chain_start) == 0).tolist():
        row = int(np.searchsorted(shape_chain, chain, side="right")) - 1
        if row not in reasons:
            where = _chain_name(chain, chain_part, int(shape_chain[row]), int(dimension[row]))
            reasons[row] = empty_part_reason(where)


def _find_not_finite(
    x: Floats,
    y: Floats,
    chain_start: Ints,
    chain_part: Ints,
    shape_chain: Ints,
    dimension: NDArray[np.int8],
    reasons: dict[int, str],
) -> None:
    bad = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
    if not len(bad):
        return
    chains = np.searchsorted(chain_start, bad, side="right") - 1
    rows, first = np.unique(
        np.searchsorted(shape_chain, chains, side="right") - 1, return_index=True
    )
    for row, chain, point in zip(
        rows.tolist(), chains[first].tolist(), bad[first].tolist(), strict=True
    ):
        if row not in reasons:
            where = _chain_name(chain, chain_part, int(shape_chain[row]), int(dimension[row]))
            reasons[row] = not_finite_reason(
                float(x[point]), float(y[point]), point - int(chain_start[chain]), where
            )


def _chain_name(chain: int, chain_part: Ints, first: int, dimension: int) -> str:
    part = int(chain_part[chain])
    return chain_name(dimension, part, int(np.count_nonzero(chain_part[first:chain] == part)))


def chain_name(dimension: int, part: int, ring: int) -> str:
    """Return the name of a chain in messages; empty for points, which are a single chain."""
    if dimension == POINTS:
        return ""
    return f"line {part}" if dimension == LINES else f"ring {ring} of part {part}"


def not_finite_reason(x: float, y: float, point: int, where: str) -> str:
    """Return the reason for a point with a coordinate that is NaN or infinite."""
    bad = [f"{name} = {v}" for name, v in (("x", x), ("y", y)) if not np.isfinite(v)]
    place = f"point {point} of {where}" if where else f"point {point}"
    return f"{place} has {' and '.join(bad)}; saw ({x}, {y}); give finite coordinates"


def empty_part_reason(where: str) -> str:
    """Return the reason for a geometry with an empty part."""
    return f"{where} is empty; leave it out or give it points"


def offsets_of(lengths: NDArray[np.integer]) -> Ints:
    """Return the offsets of runs of these lengths: the start of each, and the end of the last."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def concatenate_shapes(pieces: Sequence[RawShapes]) -> RawShapes:
    """Concatenate shapes; the rows of problems are numbered anew."""
    if len(pieces) == 1:
        return pieces[0]
    rows = offsets_of(np.array([len(p) for p in pieces], np.int64)).tolist()
    empty: list[NDArray[np.int64]] = [np.empty(0, np.int64)]  # if there are no pieces
    return RawShapes(
        np.concatenate([np.empty(0), *(p.x for p in pieces)]),
        np.concatenate([np.empty(0), *(p.y for p in pieces)]),
        offsets_of(np.concatenate(empty + [np.diff(p.chain_start) for p in pieces])),
        np.concatenate(empty + [p.chain_part for p in pieces]),
        offsets_of(np.concatenate(empty + [np.diff(p.shape_chain) for p in pieces])),
        np.concatenate([np.empty(0, np.int8), *(p.dimension for p in pieces)]),
        tuple(
            GeometryProblem(row + problem.row, problem.reason, problem.place)
            for row, piece in zip(rows, pieces, strict=False)
            for problem in piece.problems
        ),
    )


def reorder_shapes(shapes: RawShapes, order: Ints) -> RawShapes:
    """Reorder shapes: row ``order[i]`` becomes row i; `order` is a permutation."""
    chains = np.diff(shapes.shape_chain)[order]
    chain = expand_ranges(shapes.shape_chain[order], chains)
    points = np.diff(shapes.chain_start)[chain]
    point = expand_ranges(shapes.chain_start[chain], points)
    row = np.empty_like(order)
    row[order] = np.arange(len(order))
    problems = [GeometryProblem(int(row[p.row]), p.reason, p.place) for p in shapes.problems]
    return RawShapes(
        shapes.x[point],
        shapes.y[point],
        offsets_of(points),
        shapes.chain_part[chain],
        offsets_of(chains),
        shapes.dimension[order],
        tuple(sorted(problems, key=lambda problem: problem.row)),
    )


def expand_ranges(first: Ints, lengths: Ints) -> Ints:
    """Return the integers of many ranges, given by first integer and length, concatenated."""
    begin = offsets_of(lengths)
    return np.arange(begin[-1]) + np.repeat(first - begin[:-1], lengths)


def read_boxes(bounds: Floats, reasons: dict[int, str] | None = None) -> RawShapes:
    """Return closed counter-clockwise rectangles of rows xmin, ymin, xmax, ymax.

    reasons : rows that are known to be bad, with the reason
    """
    reasons = {} if reasons is None else reasons
    xmin, ymin, xmax, ymax = bounds.T
    finite = np.isfinite(bounds).all(axis=1)
    for row in np.flatnonzero(~(finite & (xmin < xmax) & (ymin < ymax))).tolist():
        reasons.setdefault(row, _bad_box(*bounds[row].tolist()))
    boxes = len(bounds)
    return drop_bad_rows(
        np.column_stack((xmin, xmax, xmax, xmin, xmin)).ravel(),
        np.column_stack((ymin, ymin, ymax, ymax, ymin)).ravel(),
        np.arange(0, 5 * boxes + 1, 5),
        np.zeros(boxes, np.int64),
        np.arange(boxes + 1),
        np.full(boxes, AREAS, np.int8),
        reasons,
    )


def _bad_box(xmin: float, ymin: float, xmax: float, ymax: float) -> str:
    saw = f"saw xmin, ymin, xmax, ymax = {xmin}, {ymin}, {xmax}, {ymax}"
    for name, value in (("xmin", xmin), ("ymin", ymin), ("xmax", xmax), ("ymax", ymax)):
        if not np.isfinite(value):
            return f"{name} of the box is {value}; {saw}; give finite bounds"
    axis = "x" if xmin >= xmax else "y"
    hint = "give the lesser bound first"
    if axis == "x" and xmin > xmax:
        hint += " (a box that crosses the antimeridian must be split there)"
    return f"the box has no area: {axis}min is not less than {axis}max; {saw}; {hint}"


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 3, 50, 50, 50
_MAX_LENGTH = 60


def short_repr(value: object) -> str:
    """Return the repr of a value for messages: one line of at most 60 characters."""
    try:
        if isinstance(value, bytes | bytearray):
            text = repr(value[:_MAX_LENGTH])
        else:
            text = _SHORT.repr(value)
        text = text.encode("utf-8", "backslashreplace").decode()
    except Exception:  # a repr may raise anything; an int of 5,000 digits has none
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 3] + "..."
