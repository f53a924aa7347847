"""Which relations the boxes of two places leave open: the paper's Table 2, corrected.

The paper (section 4.1) lists, for each relation of a constraint, the relations between minimum
bounding rectangles under which it can hold. We keep it the other way round, as a mask of the
relations that remain possible for each relation of the boxes, so that a constraint may ask for
any set of relations: it cannot hold where the masks have nothing in common, and holds without
a look at the boundaries where every remaining relation is in its set.

Where we differ:

- `covered-by` also admits the box relation *inside*, and `covers` *contains*. The printed rows
  lose matches: A touches the reentrant corner of an L-shaped B, its box well inside B's.
- `disjoint` also admits *equal* boxes: regions of several parts can lie in opposite corners.

Boxes of points and level lines have no area. They count as within another box before they count
as touching it, which keeps every row of the table right for them.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined
from fencepost.kernels.matrices import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
)

# The relations of boxes under which each relation of what they bound can hold.
TABLE_2 = {
    DISJOINT: (DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY),
    MEETS: (MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY),
    OVERLAPS: (OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY),
    EQUALS: (EQUALS,),
    INSIDE: (INSIDE,),
    CONTAINS: (CONTAINS,),
    COVERS: (COVERS, CONTAINS, EQUALS),
    COVERED_BY: (COVERED_BY, INSIDE, EQUALS),
}

# CANDIDATES[relation of the boxes] = the set of relations that remain possible, as a mask.
CANDIDATES = np.array(
    [sum(1 << relation for relation in TABLE_2 if box in TABLE_2[relation]) for box in range(8)],
    np.uint8,
)


@inlined
def box_relation(ax0, ay0, ax1, ay1, bx0, by0, bx1, by1):
    """The relation of box a to box b."""
    if ax0 > bx1 or bx0 > ax1 or ay0 > by1 or by0 > ay1:
        return DISJOINT
    a_within = ax0 >= bx0 and ay0 >= by0 and ax1 <= bx1 and ay1 <= by1
    b_within = bx0 >= ax0 and by0 >= ay0 and bx1 <= ax1 and by1 <= ay1
    if a_within and b_within:
        return EQUALS
    if a_within:
        if ax0 > bx0 and ay0 > by0 and ax1 < bx1 and ay1 < by1:
            return INSIDE
        return COVERED_BY
    if b_within:
        if bx0 > ax0 and by0 > ay0 and bx1 < ax1 and by1 < ay1:
            return CONTAINS
        return COVERS
    if ax0 == bx1 or bx0 == ax1 or ay0 == by1 or by0 == ay1:
        return MEETS
    return OVERLAPS
