"""`Relation`: the eight exclusive relations of two geometries, and the text of DE-9IM matrices.

A DE-9IM matrix has nine entries, row by row: interior, boundary and exterior of A against
interior, boundary and exterior of B, each F (empty) or the dimension of the intersection. It is
packed into an integer of two bits an entry, the first entry in the lowest bits: 0 = F, 1 = a point
set, 2 = a curve, 3 = an area.
"""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """A relation of geometry A to geometry B; exactly one of the eight holds for any A and B.

    It equals its name in lower case, such as "meets" or "covered-by".

    - The interiors do not intersect: *disjoint* without contact, else *meets*.
    - The interiors intersect: *equals* if A and B are the same point set; *inside* if A lies within
      B, or *covered-by* if A also touches the boundary of B; *contains* and *covers* likewise if B
      lies within A; else *overlaps*.
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
        """``1 << code``: this relation as a bit mask."""
        return 1 << _CODES[self]

    @property
    def converse(self) -> Relation:
        """The relation of B to A when this is the relation of A to B."""
        return _CONVERSES.get(self, self)

    @classmethod
    def from_code(cls, code: int) -> Relation:
        """Return the relation of a `code`."""
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
    """Return the DE-9IM string, such as ``"2FF11F212"``, of a packed matrix."""
    return "".join("F012"[(code >> (2 * entry)) & 3] for entry in range(9))
