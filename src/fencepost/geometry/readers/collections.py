"""GeometryCollections: their members, each read like any geometry, become one row of `RawShapes`.

A collection is the union of its members. Its reader takes them out of nested collections and reads
each as a row. `insert_collections` makes one row of the members of each collection;
`split_collections` makes rows of one kind again, to be laid out and validated. Members of one kind
are then a multi-geometry: all points are one chain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryProblem
from fencepost.geometry.readers.raw_shapes import (
    EMPTY_REASON,
    MIXED,
    POINTS,
    UNREADABLE,
    Ints,
    RawShapes,
    concatenate_shapes,
    expand_ranges,
    offsets_of,
    reorder_shapes,
)
from fencepost.kernels.geometry.shape_arrays import KIND_SHIFT

MAX_COLLECTION_DEPTH = 32
"""How deep collections may nest."""

TOO_DEEP_REASON = (
    f"collections nest more than {MAX_COLLECTION_DEPTH} deep; give their members in one collection"
)


def insert_collections(
    plain: RawShapes,
    rows: Ints,
    members: RawShapes,
    owner: Ints,
    damaged: Sequence[GeometryProblem] = (),
) -> RawShapes:
    """Return all geometries of a column of which some are collections.

    Parameters
    ----------
    plain : RawShapes
        The geometries that are no collections, in order.
    rows : (n,) int64
        The rows of the collections in the column, ascending.
    members : RawShapes
        The members of all collections.
    owner : (members,) int64
        The index in `rows` of each member's collection, ascending.
    damaged : sequence of GeometryProblem
        Why the members of some collections are not known; by index in `rows`.
    """
    others = np.ones(len(plain) + len(rows), bool)
    others[rows] = False
    order = np.argsort(np.concatenate((np.flatnonzero(others), rows)))
    joined = _join_members(members, owner, len(rows), damaged)
    return reorder_shapes(concatenate_shapes((plain, joined)), order)


def _join_members(
    members: RawShapes, owner: Ints, rows: int, damaged: Sequence[GeometryProblem]
) -> RawShapes:
    """Return a row of the members of each collection; empty members are left out."""
    reasons = {problem.row: problem.reason for problem in damaged}
    for problem in members.problems:
        collection = int(owner[problem.row])
        place = problem.row - int(np.searchsorted(owner, collection))
        if problem.reason != EMPTY_REASON:
            reasons.setdefault(collection, f"member {place} of the collection: {problem.reason}")
    filled = np.bincount(owner[members.dimension >= 0], minlength=rows)
    for collection in np.flatnonzero(filled == 0).tolist():
        reasons.setdefault(collection, EMPTY_REASON)

    member = np.repeat(np.arange(len(members)), np.diff(members.shape_chain))
    chains = np.flatnonzero(~np.isin(owner[member], list(reasons)))
    kind = members.dimension.astype(np.int64)[member]
    chains = chains[np.lexsort((kind[chains], owner[member[chains]]))]
    member, kind, part = member[chains], kind[chains], members.chain_part[chains]
    row = owner[member]
    sizes = np.diff(members.chain_start)[chains]
    points = expand_ranges(members.chain_start[chains], sizes)

    opens_kind = _differs(row) | _differs(kind)
    # The members' parts are numbered anew within each kind.
    number = np.cumsum(_differs(member) | _differs(part))
    first_number = number[opens_kind][np.cumsum(opens_kind) - 1]
    is_point = kind == POINTS
    part = np.where(is_point, 0, number - first_number) | kind << KIND_SHIFT
    heads = np.flatnonzero(opens_kind | ~is_point)  # all points of a row are one chain
    dimension = np.full(rows, UNREADABLE, np.int8)
    dimension[row] = MIXED
    return RawShapes(
        members.x[points],
        members.y[points],
        offsets_of(np.add.reduceat(sizes, heads) if len(heads) else sizes),
        part[heads],
        offsets_of(np.bincount(row[heads], minlength=rows)),
        dimension,
        tuple(GeometryProblem(n, reasons[n]) for n in sorted(reasons)),
    )


def _differs(values: Ints) -> NDArray[np.bool_]:
    """Return whether each value differs from the one before; the first does."""
    differs = np.ones(len(values), bool)
    differs[1:] = values[1:] != values[:-1]
    return differs


def split_collections(raw: RawShapes) -> tuple[RawShapes, Ints]:
    """Return rows of one kind each, without problems, and the row of `raw` that each is from."""
    row = np.repeat(np.arange(len(raw)), np.diff(raw.shape_chain))
    heads = np.flatnonzero(_differs(row) | _differs(kinds_of_chains(raw)))
    # Rows without chains, which could not be read, remain rows.
    unread = np.flatnonzero(np.diff(raw.shape_chain) == 0)
    owner = np.concatenate((row[heads], unread))
    sizes = np.concatenate((np.diff(np.append(heads, len(row))), np.zeros_like(unread)))
    dimension = np.concatenate((kinds_of_chains(raw)[heads], raw.dimension[unread]))
    order = np.argsort(owner, kind="stable")
    parts = RawShapes(
        raw.x,
        raw.y,
        raw.chain_start,
        raw.chain_part & (1 << KIND_SHIFT) - 1,
        offsets_of(sizes[order]),
        dimension[order].astype(np.int8),
        (),
    )
    return parts, owner[order]


def kinds_of_chains(raw: RawShapes) -> Ints:
    """Return the dimension of each chain."""
    dimension = np.repeat(raw.dimension, np.diff(raw.shape_chain)).astype(np.int64)
    return np.where(dimension == MIXED, raw.chain_part >> KIND_SHIFT, dimension)
