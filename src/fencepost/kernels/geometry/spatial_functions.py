"""The spatial functions of the OGC, decided from a DE-9IM matrix."""

from __future__ import annotations

from fencepost.kernels.geometry.de9im import BB, BE, BI, EB, EI, IB, IE, II, relation_of_matrix
from fencepost.kernels.geometry.shape_arrays import LINES
from fencepost.kernels.runtime.compilation import no_refcount

# In the order of `fencepost.cql2.ast.Spatial`. The eight exclusive relations follow, from
# EH_DISJOINT on.
INTERSECTS, DISJOINT, EQUALS, TOUCHES, WITHIN, CONTAINS, OVERLAPS, CROSSES, FIRST_EH = range(9)


@no_refcount
def spatial_holds(function, mask, m, a_dimension, b_dimension):
    """Return whether a spatial function holds for matrix m of shapes of these dimensions.

    mask : for functions from FIRST_EH on, the set of relations that satisfy the function.
    """
    if function >= FIRST_EH:
        return (mask >> relation_of_matrix(m)) & 1 == 1
    interiors = (m >> II) & 3
    contact = interiors or (m >> IB) & 3 or (m >> BI) & 3 or (m >> BB) & 3
    a_out = (m >> IE) & 3 or (m >> BE) & 3
    b_out = (m >> EI) & 3 or (m >> EB) & 3
    if function == INTERSECTS:
        return contact > 0
    if function == DISJOINT:
        return contact == 0
    if function == EQUALS:
        return interiors > 0 and not a_out and not b_out
    if function == TOUCHES:
        return interiors == 0 and contact > 0
    if function == WITHIN:
        return interiors > 0 and not a_out
    if function == CONTAINS:
        return interiors > 0 and not b_out
    if function == OVERLAPS:
        if a_dimension != b_dimension:
            return False
        overlap = interiors == 2 if a_dimension == LINES else interiors > 0
        return overlap and (m >> IE) & 3 > 0 and (m >> EI) & 3 > 0
    # CROSSES
    if a_dimension < b_dimension:
        return interiors > 0 and (m >> IE) & 3 > 0
    if a_dimension > b_dimension:
        return interiors > 0 and (m >> EI) & 3 > 0
    return a_dimension == LINES and interiors == 1
