"""Which relations can follow from two others: the composition table of the eight relations.

If X has relation r to B, and B has relation s to C, then X has one of ``compose(r, s)`` to C
(Egenhofer 1991, "Reasoning about binary topological relations", table 2; the same table as that
of RCC-8, so it holds for areas with holes and several parts). B and C are areas; X may be an area,
a line or a set of points.

A set of relations is a mask: bit ``code`` of each relation in it.
"""

from __future__ import annotations

from fencepost.model.relation import RELATIONS, Relation

EVERY = 0xFF

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
# Rows: the relation of X to B; columns: of B to C, in the order d m e i b c v o.
_ORDER = "dmeibcvo"
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
    for column, letters in zip(_ORDER, cells.split(), strict=True)
}


def compose(first: Relation, second: Relation) -> int:
    """The mask of relations that X can have to C, from those of X to B and of B to C."""
    return _COMPOSED[first, second]


def reachable(mask: int, between: Relation) -> int:
    """The relations X can have to C if it has one of `mask` to B, and B has `between` to C."""
    result = 0
    for relation in RELATIONS:
        if mask & relation.bit:
            result |= _COMPOSED[relation, between]
    return result
