"""Kernels that build `ShapeArrays` from ragged coordinates, check them, and copy shapes."""

from __future__ import annotations

import numpy as np
from numba import types

from fencepost.kernels.geometry.edge_trees import TreeScratch, chains_of
from fencepost.kernels.geometry.shape_arrays import (
    CHAIN_DTYPE,
    NODE_DTYPE,
    SHAPE_ARRAYS_TYPE,
    SHAPE_DTYPE,
    STACK_SIZE,
    TOUCH_DTYPE,
    ShapeArrays,
    build_trees,
    clean_coordinates,
    count_nodes,
    set_empty_box,
)
from fencepost.kernels.geometry.validity import check_areas, mark_line_ends
from fencepost.kernels.runtime.compilation import kernel, outlined

_CONTACT_CAPACITY = 1  # ordinary geometries have no self-contact; for others the count suffices


@kernel
def lay_out(x, y, chain_start, chain_part, shape_chain, dimension, contact_capacity):
    """Lay shapes out and check them.

    Return the arrays (without touches), a defect code and its coordinates for each shape, the
    contacts of shapes with themselves (see `check_areas`) and their number. A shape with a defect
    gets dimension -1. Call again with more capacity if the number exceeds `contact_capacity`.
    """
    shape_count = dimension.shape[0]
    chain_count = chain_part.shape[0]
    out_x = np.empty(x.shape[0] + chain_count)
    out_y = np.empty(x.shape[0] + chain_count)
    out_start = np.empty(chain_count + 1, np.int64)
    defect = np.zeros(shape_count, np.int64)
    place = np.zeros((shape_count, 2))
    points = clean_coordinates(
        x, y, chain_start, chain_part, shape_chain, dimension,
        out_x, out_y, out_start, defect, place,
    )  # fmt: skip
    chains = np.zeros(chain_count + 1, CHAIN_DTYPE)
    for c in range(chain_count):
        chains[c]["start"] = out_start[c]
        chains[c]["part"] = chain_part[c]
    chains[chain_count]["start"] = points
    shapes = np.zeros(shape_count + 1, SHAPE_DTYPE)
    max_chains = 1
    for s in range(shape_count):
        shapes[s]["chain"] = shape_chain[s]
        shapes[s]["dimension"] = -1 if defect[s] else dimension[s]
        max_chains = max(max_chains, shape_chain[s + 1] - shape_chain[s])
    shapes[shape_count]["chain"] = chain_count
    shapes[shape_count]["dimension"] = -1
    nodes = np.empty(count_nodes(chains, shapes), NODE_DTYPE)
    g = ShapeArrays(
        x=out_x[:points],
        y=out_y[:points],
        mark=np.zeros(points, np.uint8),
        chains=chains,
        shapes=shapes,
        nodes=nodes,
        touches=np.empty(0, TOUCH_DTYPE),
    )
    build_trees(g)
    scratch = TreeScratch(
        stack=np.empty(STACK_SIZE, np.uint32),
        pairs=np.empty(2 * STACK_SIZE, np.uint32),
        touched=np.zeros(2 * max_chains, np.uint8),
    )
    contacts = np.empty((contact_capacity, 2), np.int64)
    count = check_areas(g, defect, place, contacts, scratch)
    count = mark_line_ends(g, contacts, count, scratch.stack)
    for s in range(shape_count):
        if defect[s]:
            shapes[s]["dimension"] = -1
            set_empty_box(shapes, s)
    return g, defect, place, contacts, count


@kernel
def lay_out_points(x, y):
    """Lay out shapes of a single point each, as `lay_out` does. Points have no defects."""
    count = x.shape[0]
    chains = np.zeros(count + 1, CHAIN_DTYPE)
    shapes = np.zeros(count + 1, SHAPE_DTYPE)
    for s in range(count + 1):
        chains[s]["start"] = s
        shapes[s]["chain"] = s
    for s in range(count):
        shapes[s]["x0"] = shapes[s]["x1"] = x[s]
        shapes[s]["y0"] = shapes[s]["y1"] = y[s]
    shapes[count]["dimension"] = -1
    return ShapeArrays(
        x=x,
        y=y,
        mark=np.zeros(count, np.uint8),
        chains=chains,
        shapes=shapes,
        nodes=np.empty(0, NODE_DTYPE),
        touches=np.empty(0, TOUCH_DTYPE),
    )


@outlined(returns=types.Tuple((SHAPE_ARRAYS_TYPE, types.boolean)))
@kernel
def lay_out_unchecked(xy, chain_start, chain_part, shape_chain, dimension, max_x, max_y):
    """Lay out shapes whose points are (n, 2). Return the arrays, and whether they are usable.

    They are not if a shape has a defect or touches itself, or if a coordinate exceeds max_x or
    max_y in size. Both limits are finite.
    """
    x = np.empty(xy.shape[0])
    y = np.empty(xy.shape[0])
    inside = True
    for k in range(xy.shape[0]):
        x[k] = xy[k, 0] + 0.0  # turns -0.0 into 0.0
        y[k] = xy[k, 1] + 0.0
        inside &= abs(x[k]) <= max_x and abs(y[k]) <= max_y
    shapes, defect, _, _, contacts = lay_out(
        x, y, chain_start, chain_part, shape_chain, dimension, _CONTACT_CAPACITY
    )
    return shapes, inside and contacts == 0 and not defect.any()


@kernel
def copy_shapes(g, rows, out, sizes):
    """Append the shapes `rows` of g to `out`.

    sizes : (5,) numbers of shapes, chains, points, nodes and touches in `out`. `out` has capacity
    for the new shapes and for the sentinels, which are written. Readers of the existing shapes may
    run meanwhile, because the fields of a sentinel that bound existing shapes never change.
    """
    shape, chain, point, node, touch = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    for s in rows:
        first, stop = chains_of(g, s)
        low = g.chains[first]["start"]
        high = g.chains[stop]["start"]
        out.shapes[shape]["x0"] = g.shapes[s]["x0"]
        out.shapes[shape]["y0"] = g.shapes[s]["y0"]
        out.shapes[shape]["x1"] = g.shapes[s]["x1"]
        out.shapes[shape]["y1"] = g.shapes[s]["y1"]
        out.shapes[shape]["dimension"] = g.shapes[s]["dimension"]
        out.shapes[shape]["chain"] = chain
        out.shapes[shape]["node"] = node
        out.shapes[shape]["touch"] = touch
        for k in range(g.shapes[s]["touch"], g.shapes[s + 1]["touch"]):
            out.touches[touch]["vertex"] = g.touches[k]["vertex"] - low + point
            out.touches[touch]["next"] = g.touches[k]["next"] - low + point
            touch += 1
        first_node = g.shapes[s]["node"]
        start_node = node
        for k in range(first_node, g.shapes[s + 1]["node"]):
            out.nodes[node] = g.nodes[k]
            out.nodes[node]["first"] = g.nodes[k]["first"] - low + point
            if g.nodes[k]["children"] > 0:
                out.nodes[node]["child"] = g.nodes[k]["child"] - first_node + start_node
            if g.nodes[k]["chain"] >= 0:
                out.nodes[node]["chain"] = g.nodes[k]["chain"] - first + chain
            node += 1
        for c in range(first, stop):
            out.chains[chain]["part"] = g.chains[c]["part"]
            out.chains[chain]["start"] = g.chains[c]["start"] - low + point
            chain += 1
        for k in range(low, high):
            out.x[point + k - low] = g.x[k]
            out.y[point + k - low] = g.y[k]
            out.mark[point + k - low] = g.mark[k]
        point += high - low
        shape += 1
    out.shapes[shape]["chain"] = chain
    out.shapes[shape]["node"] = node
    out.shapes[shape]["touch"] = touch
    out.shapes[shape]["dimension"] = -1
    out.chains[chain]["start"] = point
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = shape, chain, point, node, touch
