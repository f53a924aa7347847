"""Covering and conflict of relations to areas, many pairs at a time.

They follow from the composition table (`composition.py`), not from reasoning case by case, which
the paper's own example gets wrong: x covered by A and x disjoint from B can both hold where A
overlaps B. Let T be the relations to R1 that remain possible for an x that satisfies the second
term, about R2. The first term covers the second if it asks for all of T, and conflicts with it if
it asks for none of T; for points, lines and areas alike, as an event may be any of them. This is
sufficient, not necessary, and sound only where R1 and R2 are areas.
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

COVERS, CONFLICTS = 0, 1  # what is asked of two terms
NO, UNSURE, YES = 0, 1, 2

# A point or line never takes in an area.
_THIN = ALL_RELATIONS & ~(Relation.EQUALS.bit | Relation.CONTAINS.bit | Relation.COVERS.bit)
_POSSIBLE = {POINTS: _THIN, LINES: _THIN, AREAS: ALL_RELATIONS}

_IN_ANY_CASE = Relation.DISJOINT.bit | Relation.MEETS.bit | Relation.OVERLAPS.bit
_WITHIN = Relation.INSIDE.bit | Relation.COVERED_BY.bit
_AROUND = Relation.CONTAINS.bit | Relation.COVERS.bit


@cache
def implication_tables() -> NDArray[np.uint8]:
    """[ask, type of c1, type of c2]: the relations of R2 to R1 for which the answer is yes.

    The type of a term is twice its function's code, and one more if it is negated.
    """
    types = range(2 * len(FUNCTIONS_BY_CODE))
    bits = 1 << np.arange(len(RELATIONS))
    tables = np.full((2, len(types), len(types)), ALL_RELATIONS, np.uint8)
    for dimension, possible in _POSSIBLE.items():
        asked = [_mask_of_type(one, dimension) & possible for one in types]
        remaining = np.array(
            [[compose_mask(own, between) & possible for between in RELATIONS] for own in asked]
        )
        for one, own in enumerate(asked):
            tables[COVERS, one] &= ((remaining & ~own == 0) @ bits).astype(np.uint8)
            tables[CONFLICTS, one] &= ((remaining & own == 0) @ bits).astype(np.uint8)
    return tables


def _mask_of_type(number: int, dimension: int) -> int:
    own = relation_mask(FUNCTIONS_BY_CODE[number // 2], dimension)
    return ALL_RELATIONS & ~own if number % 2 else own


class AreaTerms:
    """Those of some terms that are relations to areas.

    Attributes
    ----------
    rows : array of int
        Which they are.
    type : array of int
        By the number of the term; see `area_tables`.
    box : (4, n) array
        x0, y0, x1, y1 of the area.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        found = [(k, c) for k, c in enumerate(t.check for t in terms) if isinstance(c, RelateCheck)]
        numbers: dict[Geometry, int] = {}
        rows = np.array([k for k, _ in found], np.int64)
        self._place = np.zeros(len(terms), np.int64)
        self._place[rows] = [numbers.setdefault(c.geometry, len(numbers)) for _, c in found]
        self.type = np.zeros(len(terms), np.int64)
        self.type[rows] = [
            2 * FUNCTION_CODES[check.function] + terms[k].negated for k, check in found
        ]
        self._shapes = Shapes.read_all([geometry.value for geometry in numbers])
        shapes = self._shapes.arrays.shapes[self._place[rows]]
        self.box = np.zeros((4, len(terms)))
        self.box[:, rows] = [shapes[name] for name in ("x0", "y0", "x1", "y1")]
        self.rows = rows[shapes["dimension"] == AREAS]

    def quick(self, ask: int, first: Ints, second: Ints) -> States:
        """NO, YES or UNSURE, from what the boxes allow as the relation of R2 to R1."""
        states = np.zeros(len(first), np.int8)
        allowed = implication_tables()[ask, self.type[first], self.type[second]]
        some = np.flatnonzero(allowed)
        allowed, one, other = allowed[some], first[some], second[some]
        (x0, y0, x1, y1), (u0, v0, u1, v1) = self.box[:, one], self.box[:, other]
        within = (x0 <= u0) & (y0 <= v0) & (x1 >= u1) & (y1 >= v1)
        around = (x0 >= u0) & (y0 >= v0) & (x1 <= u1) & (y1 <= v1)
        apart = (x0 > u1) | (y0 > v1) | (x1 < u0) | (y1 < v0)
        possible = np.full(len(some), _IN_ANY_CASE, np.uint8)
        possible[within] |= _WITHIN
        possible[around] |= _AROUND
        possible[within & around] |= Relation.EQUALS.bit
        possible[apart] = Relation.DISJOINT.bit
        found = np.where(possible & ~allowed == 0, YES, UNSURE)
        states[some] = np.where(possible & allowed == 0, NO, found)
        return states

    def exact(self, ask: int, first: Ints, second: Ints) -> Bools:
        """The answers, from the exact relation of R2 to R1."""
        if not len(first):
            return np.zeros(0, bool)
        places = np.stack((self._place[second], self._place[first]))
        pairs, back = np.unique(places, axis=1, return_inverse=True)
        facts = np.empty(pairs.shape[1], np.uint8)
        g, room = self._shapes.arrays, new_tree_scratch(self._shapes.max_chains)
        relate_areas(g, g, pairs[0].copy(), pairs[1].copy(), 0, room, facts)
        allowed = implication_tables()[ask, self.type[first], self.type[second]]
        return np.asarray(allowed >> RELATION_OF_FACTS[facts][back] & 1 == 1)
