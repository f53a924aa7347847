"""The eight exclusive relations between two places, and how DE-9IM decides among them.

A DE-9IM matrix has nine entries, row by row: interior, boundary and exterior of A against
interior, boundary and exterior of B, each F (empty) or the dimension of the intersection.
It travels as an integer, two bits an entry, the first entry in the lowest bits:
0 = F, 1 = a point set, 2 = a curve, 3 = an area.
"""

from __future__ import annotations

from enum import Enum


class Relation(Enum):
    """One of eight relations; exactly one holds for any two geometries.

    With the interiors apart, two places in contact *meet*, others are *disjoint*. With the
    interiors meeting, they are *equals* as point sets; or A lies within B: *inside*, or
    *covered-by* where A reaches B's boundary; or B within A: *contains*, or *covers*; or
    else they *overlap*.
    """

    DISJOINT = "disjoint"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    EQUALS = "equals"
    INSIDE = "inside"
    CONTAINS = "contains"
    COVERS = "covers"
    COVERED_BY = "covered-by"

    @property
    def code(self) -> int:
        """The number that stands for this relation in arrays, 0 to 7."""
        return _CODES[self]

    @property
    def bit(self) -> int:
        """``1 << code``: this relation as a set of one in a mask."""
        return 1 << _CODES[self]

    @property
    def converse(self) -> Relation:
        """The relation of B to A when this is the relation of A to B."""
        return _CONVERSES.get(self, self)

    @classmethod
    def from_code(cls, code: int) -> Relation:
        """The relation that a number in an array stands for."""
        return RELATIONS[code]


RELATIONS: tuple[Relation, ...] = tuple(Relation)
_CODES = {relation: code for code, relation in enumerate(RELATIONS)}
_CONVERSES = {
    Relation.INSIDE: Relation.CONTAINS,
    Relation.CONTAINS: Relation.INSIDE,
    Relation.COVERS: Relation.COVERED_BY,
    Relation.COVERED_BY: Relation.COVERS,
}


def matrix_text(code: int) -> str:
    """The DE-9IM string, such as ``"2FF11F212"``, of a packed matrix."""
    return "".join("F012"[(code >> (2 * entry)) & 3] for entry in range(9))
