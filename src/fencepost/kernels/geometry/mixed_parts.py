"""The parts of a mixed shape: its points, its lines and its areas, each as a shape of one kind.

A mixed shape is a collection of members of several dimensions. Its chains are in the order of their
kind: the chain of all its points, its linestrings, then its rings. The kind of a chain is in the
high bits of its `part`. The trees of the lines and of the areas follow each other. So every part is
a range of the same arrays, and a part is a shape for the kernels of points, lines and areas.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.edge_trees import chains_of
from fencepost.kernels.geometry.shape_arrays import (
    AREAS,
    KIND_SHIFT,
    MIXED,
    POINTS,
    SHAPE_DTYPE,
    ShapeArrays,
    set_box_of_points,
    set_empty_box,
    tree_size,
)
from fencepost.kernels.runtime.compilation import inlined, kernel


@inlined
def are_plain(g, a, h, b):
    """Return whether neither of two shapes is mixed."""
    return g.shapes[a]["dimension"] <= AREAS and h.shapes[b]["dimension"] <= AREAS


@inlined
def top_dimension(g, s):
    """Return the dimension of a shape; of a mixed shape, the largest of its members."""
    dimension = np.int64(g.shapes[s]["dimension"])
    if dimension == MIXED:
        _, stop = chains_of(g, s)
        return np.int64(g.chains[stop - 1]["part"]) >> KIND_SHIFT
    return dimension


@kernel
def parts_of(g, s):
    """Return the points, lines and areas of any shape as shapes 0, 1 and 2.

    A part without members has dimension -1. The other arrays are those of g.
    """
    shapes = np.zeros(AREAS + 2, SHAPE_DTYPE)
    chain, stop = chains_of(g, s)
    node = np.int64(g.shapes[s]["node"])
    for kind in range(AREAS + 1):
        first = chain
        while chain < stop and _kind_of_chain(g, s, chain) == kind:
            chain += 1
        shapes[kind]["chain"] = first
        shapes[kind]["node"] = node
        shapes[kind]["touch"] = g.shapes[s]["touch"]
        if chain == first:
            shapes[kind]["dimension"] = -1
            set_empty_box(shapes, kind)
            continue
        shapes[kind]["dimension"] = kind
        if kind == POINTS:
            low, high = g.chains[first]["start"], g.chains[chain]["start"]
            set_box_of_points(g.x, g.y, low, high, shapes, kind)
            continue
        node += tree_size(g.chains, first, chain)
        shapes[kind]["x0"] = g.nodes[node - 1]["x0"]
        shapes[kind]["y0"] = g.nodes[node - 1]["y0"]
        shapes[kind]["x1"] = g.nodes[node - 1]["x1"]
        shapes[kind]["y1"] = g.nodes[node - 1]["y1"]
    shapes[AREAS + 1]["chain"] = stop
    shapes[AREAS + 1]["node"] = node
    shapes[AREAS + 1]["touch"] = g.shapes[s + 1]["touch"]
    shapes[AREAS + 1]["dimension"] = -1
    return ShapeArrays(g.x, g.y, g.mark, g.chains, shapes, g.nodes, g.touches)


@inlined
def _kind_of_chain(g, s, chain):
    if g.shapes[s]["dimension"] == MIXED:
        return np.int64(g.chains[chain]["part"]) >> KIND_SHIFT
    return np.int64(g.shapes[s]["dimension"])


@inlined
def has_part(parts, kind):
    """Return whether the result of `parts_of` has members of a kind."""
    return parts.shapes[kind]["dimension"] >= POINTS
