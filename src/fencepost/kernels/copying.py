"""Copying shapes from one set of arrays to the end of another."""

from __future__ import annotations

from fencepost.kernels.compiling import kernel
from fencepost.kernels.trees import chains_of


@kernel
def copy_shapes(g, rows, out, at):
    """Append shapes `rows` of g to `out`; at : (5,) shapes, chains, points, nodes, touches so far.

    `out` has room for them and for the sentinels, which are written. Whoever reads the shapes that
    were there meanwhile is not disturbed: what a sentinel says of them is never other than it was.
    """
    shape, chain, point, node, touch = at[0], at[1], at[2], at[3], at[4]
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
    at[0], at[1], at[2], at[3], at[4] = shape, chain, point, node, touch
