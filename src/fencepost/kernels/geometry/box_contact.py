"""Exact tests of a geometry against a box."""

from __future__ import annotations

import numpy as np
from numba import types

from fencepost.kernels.geometry.area_relations import area_relation
from fencepost.kernels.geometry.de9im import DISJOINT, relation_of_matrix
from fencepost.kernels.geometry.edge_trees import chains_of, points_of
from fencepost.kernels.geometry.relation_matrix import compute_matrix
from fencepost.kernels.geometry.shape_arrays import (
    AREAS,
    CHAIN_DTYPE,
    NODE_DTYPE,
    POINTS,
    SHAPE_DTYPE,
    TOUCH_DTYPE,
    ShapeArrays,
    build_trees,
    count_nodes,
)
from fencepost.kernels.runtime.compilation import kernel, no_refcount, outlined


@no_refcount
def fills_its_box(g, a):
    """Return whether a geometry is a point, or a rectangle along the axes."""
    first, stop = chains_of(g, a)
    if stop - first != 1:
        return False
    low, high = points_of(g, first)
    if g.shapes[a]["dimension"] == POINTS:
        return high - low == 1
    if g.shapes[a]["dimension"] != AREAS or high - low != 5:
        return False
    box = g.shapes[a]
    for k in range(low, high):
        if g.x[k] != box["x0"] and g.x[k] != box["x1"]:
            return False
        if g.y[k] != box["y0"] and g.y[k] != box["y1"]:
            return False
    return True


@outlined(returns=types.boolean)
@kernel
def meets_box(g, a, box, scratch):
    """Return whether a geometry has a point in common with a box."""
    h = rectangle(box)
    if g.shapes[a]["dimension"] == AREAS:
        return area_relation(g, a, h, 0, scratch) != DISJOINT
    return relation_of_matrix(compute_matrix(g, a, h, 0, 0, scratch)) != DISJOINT


@kernel
def rectangle(box):
    """Return a box of positive width and height as a shape."""
    chains = np.zeros(2, CHAIN_DTYPE)
    chains[1]["start"] = 5
    shapes = np.zeros(2, SHAPE_DTYPE)
    shapes[0]["dimension"] = AREAS
    shapes[1]["dimension"] = -1
    shapes[1]["chain"] = 1
    g = ShapeArrays(
        x=np.array([box[0], box[2], box[2], box[0], box[0]]),
        y=np.array([box[1], box[1], box[3], box[3], box[1]]),
        mark=np.zeros(5, np.uint8),
        chains=chains,
        shapes=shapes,
        nodes=np.empty(count_nodes(chains, shapes), NODE_DTYPE),
        touches=np.empty(0, TOUCH_DTYPE),
    )
    build_trees(g)
    return g
