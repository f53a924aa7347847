"""`AreaTerms` tests relations to areas for covering and conflict, many pairs at a time.

The answers follow from the composition table (`spatial_relations.py`). Reasoning case by case fails
even in the paper's example: x covered by A and x disjoint from B can both hold where A overlaps B.

Let the first term be about area R1 and the second about R2, and let T be the set of relations to R1
that remain possible for an x that satisfies the second term. The first term covers the second if it
accepts all of T, and conflicts with it if it accepts none of T. This must hold for x of each
dimension, since an event may be a point, a line or an area. The test is sufficient, not necessary,
and sound only if R1 and R2 are areas.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fencepost.cql2.ast import Geometry
from fencepost.filters.checks import RelateCheck, Term
from fencepost.filters.spatial_relations import (
    ALL_RELATIONS,
    FUNCTION_CODES,
    FUNCTIONS_BY_CODE,
    compose_mask,
    relation_mask,
)
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import RELATIONS, Relation
from fencepost.kernels.geometry.area_relations import RELATION_OF_FACTS, relate_areas
from fencepost.kernels.geometry.edge_trees import new_tree_scratch
from fencepost.kernels.geometry.shape_arrays import AREAS, LINES, POINTS

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
States = NDArray[np.int8]

COVERS, CONFLICTS = 0, 1  # kinds of tests of two terms
NO, UNSURE, YES = 0, 1, 2  # states of a test

# A point or line never equals, contains or covers an area.
_OF_POINT_OR_LINE = ALL_RELATIONS & ~(
    Relation.EQUALS.bit | Relation.CONTAINS.bit | Relation.COVERS.bit
)
_POSSIBLE = {POINTS: _OF_POINT_OR_LINE, LINES: _OF_POINT_OR_LINE, AREAS: ALL_RELATIONS}

_REGARDLESS_OF_BOXES = Relation.DISJOINT.bit | Relation.MEETS.bit | Relation.OVERLAPS.bit
_WITHIN = Relation.INSIDE.bit | Relation.COVERED_BY.bit
_AROUND = Relation.CONTAINS.bit | Relation.COVERS.bit


@cache
def implication_tables() -> NDArray[np.uint8]:
    """Return a table of masks: the relations of R2 to R1 for which a test is true.

    Its axes are the kind of the test, the type of the first term and the type of the second. The
    type of a term is twice the code of its function, plus one if the term is negated.
    """
    term_types = range(2 * len(FUNCTIONS_BY_CODE))
    bits = 1 << np.arange(len(RELATIONS))
    tables = np.full((2, len(term_types), len(term_types)), ALL_RELATIONS, np.uint8)
    for dimension, possible in _POSSIBLE.items():
        masks = [_mask_of_type(term_type, dimension) & possible for term_type in term_types]
        remaining = np.array(
            [[compose_mask(mask, relation) & possible for relation in RELATIONS] for mask in masks]
        )
        for term_type, mask in enumerate(masks):
            tables[COVERS, term_type] &= ((remaining & ~mask == 0) @ bits).astype(np.uint8)
            tables[CONFLICTS, term_type] &= ((remaining & mask == 0) @ bits).astype(np.uint8)
    return tables


def _mask_of_type(term_type: int, dimension: int) -> int:
    mask = relation_mask(FUNCTIONS_BY_CODE[term_type // 2], dimension)
    return ALL_RELATIONS & ~mask if term_type % 2 else mask


class AreaTerms:
    """The terms of a table that are relations to areas.

    Attributes
    ----------
    rows : array of int
        The numbers of these terms.
    type : array of int
        By number: the type of the term, as in `implication_tables`.
    box : (4, n) array
        By number: x0, y0, x1, y1 of the area.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        checks = [
            (k, c) for k, c in enumerate(t.check for t in terms) if isinstance(c, RelateCheck)
        ]
        row_of_geometry: dict[Geometry, int] = {}
        rows = np.array([k for k, _ in checks], np.int64)
        self._shape_row = np.zeros(len(terms), np.int64)
        self._shape_row[rows] = [
            row_of_geometry.setdefault(c.geometry, len(row_of_geometry)) for _, c in checks
        ]
        self.type = np.zeros(len(terms), np.int64)
        self.type[rows] = [
            2 * FUNCTION_CODES[check.function] + terms[k].negated for k, check in checks
        ]
        self._shapes = Shapes.read_all([geometry.value for geometry in row_of_geometry])
        shapes = self._shapes.arrays.shapes[self._shape_row[rows]]
        self.box = np.zeros((4, len(terms)))
        self.box[:, rows] = [shapes[name] for name in ("x0", "y0", "x1", "y1")]
        self.rows = rows[shapes["dimension"] == AREAS]

    def test_quickly(self, kind: int, first: Ints, second: Ints) -> States:
        """Return NO, YES or UNSURE, from the relations of R2 to R1 that the boxes allow."""
        states = np.zeros(len(first), np.int8)
        allowed = implication_tables()[kind, self.type[first], self.type[second]]
        rows = np.flatnonzero(allowed)
        allowed, first_rows, second_rows = allowed[rows], first[rows], second[rows]
        (x0, y0, x1, y1), (u0, v0, u1, v1) = self.box[:, first_rows], self.box[:, second_rows]
        within = (x0 <= u0) & (y0 <= v0) & (x1 >= u1) & (y1 >= v1)
        around = (x0 >= u0) & (y0 >= v0) & (x1 <= u1) & (y1 <= v1)
        apart = (x0 > u1) | (y0 > v1) | (x1 < u0) | (y1 < v0)
        possible = np.full(len(rows), _REGARDLESS_OF_BOXES, np.uint8)
        possible[within] |= _WITHIN
        possible[around] |= _AROUND
        possible[within & around] |= Relation.EQUALS.bit
        possible[apart] = Relation.DISJOINT.bit
        yes_or_unsure = np.where(possible & ~allowed == 0, YES, UNSURE)
        states[rows] = np.where(possible & allowed == 0, NO, yes_or_unsure)
        return states

    def test_exactly(self, kind: int, first: Ints, second: Ints) -> Bools:
        """Return the results of tests, from the exact relation of R2 to R1."""
        if not len(first):
            return np.zeros(0, bool)
        shape_rows = np.stack((self._shape_row[second], self._shape_row[first]))
        pairs, inverse = np.unique(shape_rows, axis=1, return_inverse=True)
        facts = np.empty(pairs.shape[1], np.uint8)
        shapes, scratch = self._shapes.arrays, new_tree_scratch(self._shapes.max_chains)
        relate_areas(shapes, shapes, pairs[0].copy(), pairs[1].copy(), 0, scratch, facts)
        allowed = implication_tables()[kind, self.type[first], self.type[second]]
        return np.asarray(allowed >> RELATION_OF_FACTS[facts][inverse] & 1 == 1)
