"""DE-9IM matrices as integers, and the eight exclusive relations that they stand for.

A matrix takes two bits an entry, row by row from the lowest bits: 0 = empty, 1 = points,
2 = curves, 3 = areas. The codes of relations are those of `fencepost.geometry.relation`.
"""

from __future__ import annotations

from fencepost.kernels.runtime.compilation import no_refcount

DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY = range(8)

# Entries as bit shifts: interior, boundary, exterior of A against those of B.
II, IB, IE, BI, BB, BE, EI, EB, EE = range(0, 18, 2)


@no_refcount
def transpose(m):
    """Return the matrix of (b, a), given the matrix of (a, b)."""
    diagonal = m & ((3 << II) | (3 << BB) | (3 << EE))
    up = ((m >> BI) & 3) << IB | ((m >> EI) & 3) << IE | ((m >> EB) & 3) << BE
    down = ((m >> IB) & 3) << BI | ((m >> IE) & 3) << EI | ((m >> BE) & 3) << EB
    return diagonal | up | down


@no_refcount
def relations_of_matrices(matrices, out):
    """Set out[k] to the relation that matrices[k] stands for."""
    for k in range(matrices.shape[0]):
        out[k] = relation_of_matrix(matrices[k])


@no_refcount
def relation_of_matrix(m):
    """Return the code of the relation that a matrix stands for."""
    if not (m >> II) & 3:
        return MEETS if (m >> IB) & 3 or (m >> BI) & 3 or (m >> BB) & 3 else DISJOINT
    a_within = not (m >> IE) & 3 and not (m >> BE) & 3
    b_within = not (m >> EI) & 3 and not (m >> EB) & 3
    if a_within and b_within:
        return EQUALS
    if a_within:
        return COVERED_BY if (m >> IB) & 3 or (m >> BB) & 3 else INSIDE
    if b_within:
        return COVERS if (m >> BI) & 3 or (m >> BB) & 3 else CONTAINS
    return OVERLAPS
