"""`relations_sampled`: Algorithm 1, the relation of two simple polygons from boundary samples.

Konstantinidis, Carzaniga, Wolf, sections 3.1 to 3.3. The method is approximate, and exists for
comparison; `fencepost.kernels.geometry.area_relations` is exact and faster.

==============  =================================================================================
the paper       here
==============  =================================================================================
A, B, dA, dB    two areas of one ring each, and their boundaries
D               `density`: samples for each unit of length, besides the vertices
i1, i4          witnesses `MEET`, `OUT`: a sample of dA lies on dB, outside B
i2, i3          witness `IN`: a sample of dA lies inside B; a sample of dB lies inside A
POINTCHECK      `locate_in_area`, after the test of the halo
DISCRETIZE      an edge of length l has floor(l D) equally spaced samples between its ends
halo            a sample at most half its spacing from the other boundary lies *on* it; for a
                vertex, the spacing is the smaller of those of its two edges
==============  =================================================================================

`relate_as_printed` calls POINTCHECK for each sample, which takes O(n l D) steps. `relate_sampled`
returns the same relation without visiting each sample:

- The distance to a segment is convex along a line. So the samples of an edge that lie within the
  halo of an edge of the other boundary are a contiguous run, whose ends follow from an equation.
- The other boundary does not pass between two neighbouring samples if neither lies on it: it would
  pass within half a spacing of one of them. So the result of POINTCHECK holds up to the next run.
- The same is true along a stretch of boundary whose box no edge of the other boundary comes near.

The number of steps does not depend on D, and POINTCHECK is called once between two runs. (The two
functions may differ if edges are as short as a rounding error, or squares of coordinates overflow.)

Differences from the paper: it gives three numbers of samples (l D in all, l D - n besides the n
vertices, D besides the vertices). This module uses the last, as section 5.2 of the paper does.
Polygons whose boxes have no common point are disjoint, as in the CR-tree, whatever the halo.
Polygons with holes or several parts are refused: the four witnesses do not distinguish their
relations.
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
    SampleScratch,
    is_enough,
    length_of,
    spacing_of,
    squared_distance,
    walk,
)

# CONVERSE[relation of B to A] = the relation of A to B.
CONVERSE = np.array(
    [DISJOINT, MEETS, OVERLAPS, EQUALS, CONTAINS, INSIDE, COVERED_BY, COVERS], np.uint8
)


def relations_sampled(
    first: Shapes, second: Shapes, density: float, *, as_printed: bool = False
) -> NDArray[np.uint8]:
    """Return the relation codes of simple polygons by Algorithm 1: one to many, or row by row.

    Parameters
    ----------
    first, second : Shapes
        Both of equal length, or `first` of one polygon.
    density : float
        Samples for each unit of length besides the vertices; 0 or more.
    as_printed : bool
        Visit each sample, as the paper prints it.

    Raises
    ------
    ModelError
        If a shape is not a polygon of one ring, or the density is not a finite number of 0 or more.
    """
    check_density(density)
    for which, shapes in (("first", first), ("second", second)):
        invalid = np.flatnonzero(~are_simple(shapes))
        if len(invalid):
            raise ModelError(
                f"Algorithm 1 relates polygons of one ring; row {invalid[0]} of the {which} is "
                "something else: use the exact relation for holes, several parts, lines and points"
            )
    if len(first) not in (1, len(second)):
        raise ModelError(f"cannot pair {len(first)} polygons with {len(second)}")
    out = np.empty(len(second), np.uint8)
    second_rows = np.arange(len(second))
    first_rows = second_rows if len(first) > 1 else second_rows[:1]
    compute = relate_as_printed if as_printed else relate_sampled
    compute(first.arrays, second.arrays, first_rows, second_rows, float(density), out)
    return out


def check_density(density: float) -> None:
    """Raise ModelError if a density is not a finite number of 0 or more."""
    if not (math.isfinite(density) and density >= 0):
        raise ModelError(f"density must be a finite number of 0 or more; saw {density!r}")


def are_simple(shapes: Shapes) -> NDArray[np.bool_]:
    """Return which shapes are areas of one ring."""
    has_one_ring = np.diff(shapes.arrays.shapes["chain"].astype(np.int64)) == 1
    simple: NDArray[np.bool_] = has_one_ring & (shapes.arrays.shapes["dimension"][:-1] == AREAS)
    return simple


@kernel
def relate_sampled(g, h, first, second, density, out):
    """Write the relation code of areas first[k] of g and second[k] of h to out[k], by samples.

    A `first` of length 1 is used for every k. density : float64.
    """
    scratch = SampleScratch(
        np.empty(STACK_SIZE, np.uint32),
        np.empty(max(longest_ring(g), longest_ring(h)), np.uint32),
        np.empty(max(longest_ring(g), longest_ring(h)), np.uint32),
        np.empty(max(longest_ring(g), longest_ring(h))),
        np.empty(max(longest_ring(g), longest_ring(h))),
    )
    one_to_many = first.shape[0] == 1
    length = perimeter(g, first[0]) if one_to_many else 0.0
    for k in range(second.shape[0]):
        a = first[0 if one_to_many else k]
        if not one_to_many:
            length = perimeter(g, a)
        out[k] = sampled_relation(
            g, a, length, h, second[k], perimeter(h, second[k]), density, scratch
        )


@kernel
def longest_ring(g):
    """Return the number of points of the longest chain, at least 1."""
    longest = np.int64(1)
    for c in range(g.chains.shape[0] - 1):
        longest = max(longest, np.int64(g.chains[c + 1]["start"]) - np.int64(g.chains[c]["start"]))
    return longest


@kernel
def perimeter(g, shape):
    """Return the length of an area's outer ring."""
    chain = g.shapes[shape]["chain"]
    total = 0.0
    for k in range(g.chains[chain]["start"], g.chains[chain + 1]["start"] - 1):
        dx = g.x[k + 1] - g.x[k]
        dy = g.y[k + 1] - g.y[k]
        total += math.sqrt(dx * dx + dy * dy)
    return total


@kernel
def sampled_relation(g, a, a_length, h, b, b_length, density, scratch):
    """Return the relation of two areas of known perimeters by Algorithm 1."""
    if boxes_disjoint(g.shapes, a, h.shapes, b):
        return DISJOINT
    if b_length < a_length:
        return np.int64(CONVERSE[_find_relation(h, b, g, a, density, scratch)])
    return np.int64(_find_relation(g, a, h, b, density, scratch))


@kernel
def _find_relation(g, a, h, b, density, scratch):
    witnesses = walk(g, a, h, b, density, BOTH, scratch)
    if not witnesses & OUT or witnesses & BOTH == BOTH:
        return relation_of_witnesses(witnesses, 0)
    return relation_of_witnesses(witnesses, walk(h, b, g, a, density, 0, scratch))


@inlined
def relation_of_witnesses(a_witnesses, b_witnesses):
    """Return the relation that witnesses of dA and, if needed, of dB imply: lines 15 to 43."""
    if a_witnesses & BOTH == BOTH:
        return OVERLAPS
    if not a_witnesses & OUT:
        if not a_witnesses & IN:
            return EQUALS
        return COVERED_BY if a_witnesses & MEET else INSIDE
    if a_witnesses & MEET:
        return COVERS if b_witnesses & IN else MEETS
    return CONTAINS if b_witnesses & IN else DISJOINT


@kernel
def relate_as_printed(g, h, first, second, density, out):
    """Write the relations as `relate_sampled` does, but visit each sample as the paper prints."""
    one_to_many = first.shape[0] == 1
    for k in range(second.shape[0]):
        a = first[0 if one_to_many else k]
        b = second[k]
        if boxes_disjoint(g.shapes, a, h.shapes, b):
            out[k] = DISJOINT
        elif perimeter(h, b) < perimeter(g, a):
            a_witnesses = _walk_as_printed(h, b, g, a, density, BOTH)
            b_witnesses = (
                _walk_as_printed(g, a, h, b, density, 0) if a_witnesses & BOTH == OUT else 0
            )
            out[k] = CONVERSE[relation_of_witnesses(a_witnesses, b_witnesses)]
        else:
            a_witnesses = _walk_as_printed(g, a, h, b, density, BOTH)
            b_witnesses = (
                _walk_as_printed(h, b, g, a, density, 0) if a_witnesses & BOTH == OUT else 0
            )
            out[k] = relation_of_witnesses(a_witnesses, b_witnesses)


@kernel
def _walk_as_printed(g, a, h, b, density, enough):
    chain, _ = chains_of(g, a)
    start = np.int64(g.chains[chain]["start"])
    stop = np.int64(g.chains[chain + 1]["start"]) - 1
    previous_spacing = spacing_of(g, stop - 1, density)
    witnesses = 0
    for k in range(start, stop):
        spacing = spacing_of(g, k, density)
        steps = np.int64(length_of(g, k) * density)
        for n in range(steps + 1):
            halo = 0.5 * (spacing if n else min(previous_spacing, spacing))
            px = g.x[k] + n * ((g.x[k + 1] - g.x[k]) / (steps + 1.0))
            py = g.y[k] + n * ((g.y[k + 1] - g.y[k]) / (steps + 1.0))
            witnesses |= point_check(h, b, px, py, halo * (1 + RIM))
            if is_enough(witnesses, enough):
                return witnesses
        previous_spacing = spacing
    return witnesses


@kernel
def point_check(h, b, px, py, halo):
    """Return where a point with a halo lies in B, by a ray to the right: POINTCHECK."""
    chain, _ = chains_of(h, b)
    inside = False
    for q in range(h.chains[chain]["start"], h.chains[chain + 1]["start"] - 1):
        qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
        if squared_distance(px, py, qx, qy, mx, my) <= halo * halo:
            return MEET
        if (qy > py) != (my > py) and px < qx + (py - qy) / (my - qy) * (mx - qx):
            inside = not inside
    return IN if inside else OUT
