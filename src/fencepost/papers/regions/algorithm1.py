"""Algorithm 1: the relation of two simple polygons from samples of their boundaries.

Konstantinidis, Carzaniga, Wolf, sections 3.1 to 3.3. Approximate by design: it is the published
method, kept for comparison; `fencepost.kernels.geometry.area_relations` is exact and faster.

==============  =================================================================================
the paper       here
==============  =================================================================================
A, B, dA, dB    two areas of one ring each, and their boundaries
D               `density`: samples for each unit of length, besides the vertices
i1, i4          `MEET`, `OUT`: some sample of dA lies on dB, outside B
i2, i3          `IN`: some sample of dA lies inside B; of dB, inside A
POINTCHECK      `locate_in_area`, once the halo has been looked at
DISCRETIZE      an edge of length l has floor(l D) samples between its ends, equally spaced
halo            a sample at most half its spacing from the other boundary lies *on* it; a vertex
                takes the narrower of the spacings of its two edges
==============  =================================================================================

`relate_literally` does what is printed: it asks POINTCHECK about each sample, which takes
O(n l D) steps. `relate_sampled` gives the same answer without visiting each sample:

- The samples of an edge within the halo of an edge of the other boundary are a contiguous run,
  as distance to a segment is convex along a line; its two ends are found by solving for them.
- Between two neighbouring samples of which neither is on the other boundary, that boundary does
  not pass: it would pass within half a spacing of one of them. So what POINTCHECK says of one
  sample holds up to the next run.
- A stretch of boundary whose box no edge of the other comes near is one such stretch.

So the steps do not depend on D at all, and POINTCHECK is asked once for each run of samples. (The
two may part where edges are as short as a rounding error, or squares of coordinates overflow.)

Where we differ: the paper says three things about the number of samples (l D in all, l D - n
besides the n vertices, D besides the vertices); we take the last, which its section 5.2 uses. Boxes
with no common point are disjoint, as the CR-tree has it, whatever the halo. Holes and several
parts are refused: with them the four witnesses do not tell the relations apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.geometry.de9im import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
)
from fencepost.kernels.geometry.edge_trees import boxes_disjoint, chains_of
from fencepost.kernels.geometry.shape_arrays import AREAS, STACK_SIZE
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.regions.boundary_samples import (
    BOTH,
    IN,
    MEET,
    OUT,
    RIM,
    SampleRoom,
    is_enough,
    length_of,
    spacing_of,
    squared_distance,
    walk,
)

# What A is to B, by what B is to A.
CONVERSE = np.array(
    [DISJOINT, MEETS, OVERLAPS, EQUALS, CONTAINS, INSIDE, COVERED_BY, COVERS], np.uint8
)


def relations_sampled(
    first: Shapes, second: Shapes, density: float, *, literally: bool = False
) -> NDArray[np.uint8]:
    """The relation codes of simple polygons by Algorithm 1: one to many, or row by row.

    Parameters
    ----------
    first, second : Shapes
        Of equal length, or `first` of one polygon.
    density : float
        Samples for each unit of length besides the vertices; 0 or more.
    literally : bool
        Visit each sample, as printed.

    Raises
    ------
    ModelError
        For anything but polygons without holes, or a density that is no such number.
    """
    check_density(density)
    for which, shapes in (("first", first), ("second", second)):
        refused = np.flatnonzero(~are_simple(shapes))
        if len(refused):
            raise ModelError(
                f"Algorithm 1 takes polygons of one ring; row {refused[0]} of the {which} is "
                "something else: use the exact relation for holes, several parts, lines and points"
            )
    if len(first) not in (1, len(second)):
        raise ModelError(f"cannot pair {len(first)} polygons with {len(second)}")
    out = np.empty(len(second), np.uint8)
    rows = np.arange(len(second))
    left = rows if len(first) > 1 else rows[:1]
    compute = relate_literally if literally else relate_sampled
    compute(first.arrays, second.arrays, left, rows, float(density), out)
    return out


def check_density(density: float) -> None:
    """Refuse what is no density."""
    if not (math.isfinite(density) and density >= 0):
        raise ModelError(f"a density is a finite number, 0 or more; got {density!r}")


def are_simple(shapes: Shapes) -> NDArray[np.bool_]:
    """Which shapes are areas of one ring."""
    one = np.diff(shapes.arrays.shapes["chain"].astype(np.int64)) == 1
    simple: NDArray[np.bool_] = one & (shapes.arrays.shapes["dimension"][:-1] == AREAS)
    return simple


@kernel
def relate_sampled(g, h, first, second, density, out):
    """out[k] = the code of the relation of areas first[k] of g and second[k] of h, by samples.

    A `first` of length one stands for as many as there are in `second`. density : float64.
    """
    room = SampleRoom(
        np.empty(STACK_SIZE, np.uint32),
        np.empty(max(longest_ring(g), longest_ring(h)), np.uint32),
        np.empty(max(longest_ring(g), longest_ring(h)), np.uint32),
        np.empty(max(longest_ring(g), longest_ring(h))),
        np.empty(max(longest_ring(g), longest_ring(h))),
    )
    one = first.shape[0] == 1
    length = perimeter(g, first[0]) if one else 0.0
    for k in range(second.shape[0]):
        a = first[0 if one else k]
        if not one:
            length = perimeter(g, a)
        out[k] = sampled_relation(
            g, a, length, h, second[k], perimeter(h, second[k]), density, room
        )


@kernel
def longest_ring(g):
    """The number of points of the longest chain, at least 1."""
    most = np.int64(1)
    for c in range(g.chains.shape[0] - 1):
        most = max(most, np.int64(g.chains[c + 1]["start"]) - np.int64(g.chains[c]["start"]))
    return most


@kernel
def perimeter(g, shape):
    """The length of an area's outer ring."""
    chain = g.shapes[shape]["chain"]
    total = 0.0
    for k in range(g.chains[chain]["start"], g.chains[chain + 1]["start"] - 1):
        dx = g.x[k + 1] - g.x[k]
        dy = g.y[k + 1] - g.y[k]
        total += math.sqrt(dx * dx + dy * dy)
    return total


@kernel
def sampled_relation(g, a, a_length, h, b, b_length, density, room):
    """Algorithm 1 for one pair of areas, whose perimeters are known."""
    if boxes_disjoint(g.shapes, a, h.shapes, b):
        return DISJOINT
    if b_length < a_length:
        return np.int64(CONVERSE[_find_relation(h, b, g, a, density, room)])
    return np.int64(_find_relation(g, a, h, b, density, room))


@kernel
def _find_relation(g, a, h, b, density, room):
    seen = walk(g, a, h, b, density, BOTH, room)
    if not seen & OUT or seen & BOTH == BOTH:
        return relation_of_witnesses(seen, 0)
    return relation_of_witnesses(seen, walk(h, b, g, a, density, 0, room))


@inlined
def relation_of_witnesses(seen, other):
    """What the samples of dA and, where they are needed, those of dB mean: lines 15 to 43."""
    if seen & BOTH == BOTH:
        return OVERLAPS
    if not seen & OUT:
        if not seen & IN:
            return EQUALS
        return COVERED_BY if seen & MEET else INSIDE
    if seen & MEET:
        return COVERS if other & IN else MEETS
    return CONTAINS if other & IN else DISJOINT


@kernel
def relate_literally(g, h, first, second, density, out):
    """The same as `relate_sampled`, sample by sample: what the paper prints."""
    one = first.shape[0] == 1
    for k in range(second.shape[0]):
        a = first[0 if one else k]
        b = second[k]
        if boxes_disjoint(g.shapes, a, h.shapes, b):
            out[k] = DISJOINT
        elif perimeter(h, b) < perimeter(g, a):
            seen = _walk_literally(h, b, g, a, density, BOTH)
            other = _walk_literally(g, a, h, b, density, 0) if seen & BOTH == OUT else 0
            out[k] = CONVERSE[relation_of_witnesses(seen, other)]
        else:
            seen = _walk_literally(g, a, h, b, density, BOTH)
            other = _walk_literally(h, b, g, a, density, 0) if seen & BOTH == OUT else 0
            out[k] = relation_of_witnesses(seen, other)


@kernel
def _walk_literally(g, a, h, b, density, enough):
    chain, _ = chains_of(g, a)
    start = np.int64(g.chains[chain]["start"])
    stop = np.int64(g.chains[chain + 1]["start"]) - 1
    before = spacing_of(g, stop - 1, density)
    seen = 0
    for k in range(start, stop):
        spacing = spacing_of(g, k, density)
        steps = np.int64(length_of(g, k) * density)
        for n in range(steps + 1):
            halo = 0.5 * (spacing if n else min(before, spacing))
            px = g.x[k] + n * ((g.x[k + 1] - g.x[k]) / (steps + 1.0))
            py = g.y[k] + n * ((g.y[k + 1] - g.y[k]) / (steps + 1.0))
            seen |= point_check(h, b, px, py, halo * (1 + RIM))
            if is_enough(seen, enough):
                return seen
        before = spacing
    return seen


@kernel
def point_check(h, b, px, py, halo):
    """POINTCHECK by a ray to the right, with a halo, looking at each edge."""
    chain, _ = chains_of(h, b)
    inside = False
    for q in range(h.chains[chain]["start"], h.chains[chain + 1]["start"] - 1):
        qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
        if squared_distance(px, py, qx, qy, mx, my) <= halo * halo:
            return MEET
        if (qy > py) != (my > py) and px < qx + (py - qy) / (my - qy) * (mx - qx):
            inside = not inside
    return IN if inside else OUT
