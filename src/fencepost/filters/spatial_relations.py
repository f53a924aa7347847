"""Spatial functions: `evaluate_spatial`, the relations each accepts, and how relations compose.

If X has relation r to B, and B has relation s to C, then X has one of the relations
``compose(r, s)`` to C (Egenhofer 1991, "Reasoning about binary topological relations", table 2;
RCC-8 has the same table, so it holds for areas with holes and several parts). B and C are areas; X
may be an area, a line or a set of points.

A set of relations is a mask: bit ``code`` of each relation in it. A function accepts a set of
relations to an area; for other geometries it is defined by the DE-9IM matrix.
"""

from __future__ import annotations

import numpy as np

from fencepost.cql2.ast import SpatialFunction
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import RELATIONS, Relation
from fencepost.kernels.geometry.area_relations import MATRIX_OF_FACTS, relate_areas
from fencepost.kernels.geometry.de9im import relation_of_matrix
from fencepost.kernels.geometry.edge_trees import new_tree_scratch
from fencepost.kernels.geometry.relation_matrix import compute_matrices
from fencepost.kernels.geometry.shape_arrays import AREAS
from fencepost.kernels.geometry.spatial_functions import spatial_holds

ALL_RELATIONS = 0xFF

_LETTERS = {
    "d": Relation.DISJOINT,
    "m": Relation.MEETS,
    "o": Relation.OVERLAPS,
    "e": Relation.EQUALS,
    "i": Relation.INSIDE,
    "b": Relation.COVERED_BY,
    "c": Relation.CONTAINS,
    "v": Relation.COVERS,
}
# Rows: the relation of X to B. Columns: the relation of B to C, in the order d m e i b c v o.
_COLUMNS = "dmeibcvo"
_TABLE = {
    "d": "dmeibcvo dmibo d dmibo dmibo d d dmibo",
    "m": "dmcvo dmebvo m ibo mibo d dm dmibo",
    "e": "d m e i b c v o",
    "i": "d d i i i dmeibcvo dmibo dmibo",
    "b": "d dm b i ib dmcvo dmebvo dmibo",
    "c": "dmcvo cvo c eibcvo cvo c c cvo",
    "v": "dmcvo mcvo v ibo ebvo c cv cvo",
    "o": "dmcvo dmcvo o ibo ibo dmcvo dmcvo dmeibcvo",
}


def _mask(letters: str) -> int:
    mask = 0
    for letter in letters:
        mask |= _LETTERS[letter].bit
    return mask


_COMPOSED = {
    (_LETTERS[row], _LETTERS[column]): _mask(letters)
    for row, cells in _TABLE.items()
    for column, letters in zip(_COLUMNS, cells.split(), strict=True)
}


def compose(first: Relation, second: Relation) -> int:
    """Return the mask of relations that X can have to C, from those of X to B and of B to C."""
    return _COMPOSED[first, second]


def compose_mask(first: int, second: Relation) -> int:
    """Return the mask of relations that X can have to C.

    X has one of the relations in the mask `first` to B, and B has the relation `second` to C.
    """
    result = 0
    for relation in RELATIONS:
        if first & relation.bit:
            result |= _COMPOSED[relation, second]
    return result


FUNCTIONS_BY_CODE = tuple(SpatialFunction)
FUNCTION_CODES = {function: code for code, function in enumerate(FUNCTIONS_BY_CODE)}

CONVERSES = {
    SpatialFunction.S_WITHIN: SpatialFunction.S_CONTAINS,
    SpatialFunction.S_CONTAINS: SpatialFunction.S_WITHIN,
    SpatialFunction.EH_INSIDE: SpatialFunction.EH_CONTAINS,
    SpatialFunction.EH_CONTAINS: SpatialFunction.EH_INSIDE,
    SpatialFunction.EH_COVERS: SpatialFunction.EH_COVEREDBY,
    SpatialFunction.EH_COVEREDBY: SpatialFunction.EH_COVERS,
}

_EXCLUSIVE = {
    SpatialFunction.EH_DISJOINT: Relation.DISJOINT,
    SpatialFunction.EH_MEET: Relation.MEETS,
    SpatialFunction.EH_OVERLAP: Relation.OVERLAPS,
    SpatialFunction.EH_EQUALS: Relation.EQUALS,
    SpatialFunction.EH_INSIDE: Relation.INSIDE,
    SpatialFunction.EH_CONTAINS: Relation.CONTAINS,
    SpatialFunction.EH_COVERS: Relation.COVERS,
    SpatialFunction.EH_COVEREDBY: Relation.COVERED_BY,
}

_BETWEEN_AREAS = {
    SpatialFunction.S_INTERSECTS: ALL_RELATIONS & ~Relation.DISJOINT.bit,
    SpatialFunction.S_DISJOINT: Relation.DISJOINT.bit,
    SpatialFunction.S_EQUALS: Relation.EQUALS.bit,
    SpatialFunction.S_TOUCHES: Relation.MEETS.bit,
    SpatialFunction.S_WITHIN: Relation.EQUALS.bit | Relation.INSIDE.bit | Relation.COVERED_BY.bit,
    SpatialFunction.S_CONTAINS: Relation.EQUALS.bit | Relation.CONTAINS.bit | Relation.COVERS.bit,
    SpatialFunction.S_OVERLAPS: Relation.OVERLAPS.bit,
    SpatialFunction.S_CROSSES: 0,
}
# For a point or line and an area, the OGC calls "crosses" what is OVERLAPS here.
_POINTS_OR_LINES_WITH_AREA = {
    **_BETWEEN_AREAS,
    SpatialFunction.S_OVERLAPS: 0,
    SpatialFunction.S_CROSSES: Relation.OVERLAPS.bit,
}


def relation_mask(function: SpatialFunction, event_dimension: int) -> int:
    """Return the mask of relations to an area that a function accepts, by the event's dimension."""
    if function in _EXCLUSIVE:
        return _EXCLUSIVE[function].bit
    return (_BETWEEN_AREAS if event_dimension == AREAS else _POINTS_OR_LINES_WITH_AREA)[function]


def packed_matrix(a: Shapes, b: Shapes) -> int:
    """Return the packed DE-9IM matrix of two single shapes."""
    scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
    row = np.zeros(1, np.int64)
    if a.arrays.shapes["dimension"][0] == b.arrays.shapes["dimension"][0] == AREAS:
        facts = np.empty(1, np.uint8)
        relate_areas(a.arrays, b.arrays, row, row, 1, scratch, facts)
        return int(MATRIX_OF_FACTS[facts[0]])
    packed = np.empty(1, np.int64)
    compute_matrices(a.arrays, b.arrays, row, row, 1, scratch, packed)
    return int(packed[0])


def dimension_of(shape: Shapes) -> int:
    """Return the dimension of a single shape; of a collection, the largest of its members."""
    return shape.kinds_of_chains(0)[-1]


def evaluate_spatial(function: SpatialFunction, a: Shapes, b: Shapes) -> bool:
    """Return whether a spatial function holds for two single shapes."""
    packed = packed_matrix(a, b)
    exclusive = _EXCLUSIVE[function].bit if function in _EXCLUSIVE else 0
    return bool(
        spatial_holds(FUNCTION_CODES[function], exclusive, packed, dimension_of(a), dimension_of(b))
    )


def relation_between(a: Shapes, b: Shapes) -> Relation:
    """Return the relation of two single shapes."""
    return Relation.from_code(int(relation_of_matrix(packed_matrix(a, b))))
