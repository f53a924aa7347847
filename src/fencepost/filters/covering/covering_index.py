"""Which filters cover which: an index over filters, asked with filters.

A filter covers another if each of its terms covers a term of the other. So that not every pair has
to be tried, a filter is filed under one of its terms (`filters.py`), and what it covers has a term
that finds it there:

- A relation to an area is in a tree of boxes, one tree for each function. What it covers is about
  an area whose box meets this one, except for pairs of functions where areas apart will do: x
  inside R2 implies x disjoint from R1. There all filters of the tree are candidates.
- A range is in a tree as a point of the plane, (low, high): the ranges that contain a range lie
  in a quarter of that plane.
- Other terms are in a dictionary.

What is found that way is compared term by term, all pairs in one go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import inf

import numpy as np

from fencepost.filters.covering.area_covering import COVERS, NO, Ints, implication_tables
from fencepost.filters.covering.filter_rows import FilterKeys, FilterPairTest, FilterRows, Pairs
from fencepost.filters.covering.term_covering import AREA, PAIRWISE, RANGE
from fencepost.geometry.relation import Relation
from fencepost.kernels.index import rtree

_FIRST_BLOCK, _GROWTH = 64, 4
_ROWS = 1 << 10  # filters that are looked up at a time

Tree = tuple[int, int]  # a column, and a type of areas or whether the ranges are holes


def find_covered(filters: FilterRows) -> dict[int, int]:
    """The filters that others cover, each with one that does and was still there by then.

    Coverers come in blocks that grow: most of what is covered is found, and left out, before
    the long lists of candidates are made. Of filters that cover each other the first stays.
    """
    filing = FilterKeys(filters)
    covering = FilterPairTest(filters, filing.terms)
    alive = np.ones(len(filters), bool)
    because: dict[int, int] = {}
    low, size = 0, _FIRST_BLOCK
    while low < len(filters):
        rows = np.flatnonzero(alive)
        block = rows[(rows >= low) & (rows < low + size)]
        if len(block):
            coverers = CovererIndex(filters, filing, block)
            parts = [rows[k : k + _ROWS] for k in range(0, len(rows), _ROWS)]
            pairs = [covering.pairs(*coverers.candidates(part)) for part in parts]
            first, second = (np.concatenate(some) for some in zip(*pairs, strict=True))
            for k in np.argsort(first, kind="stable").tolist():
                one, other = int(first[k]), int(second[k])
                if alive[one] and alive[other]:
                    alive[other] = False
                    because[other] = one
        low, size = low + size, size * _GROWTH
    return because


class CovererIndex:
    """Some filters, ready to be asked which of them may cover others."""

    def __init__(self, filters: FilterRows, filing: FilterKeys, rows: Ints) -> None:
        self._filters, self._filing = filters, filing
        self._key = np.zeros(len(filters), np.int64)
        self._key[rows] = filing.key_terms(rows)
        self._by_key: dict[Hashable, list[int]] = {}
        singly = filters.table.family[self._key[rows]] == PAIRWISE
        for row in rows[singly].tolist():
            for name in filing.filed_under(int(self._key[row])):
                self._by_key.setdefault(name, []).append(row)
        self._plant(rows[~singly])

    def _plant(self, rows: Ints) -> None:
        """The trees, all in one forest."""
        table, key = self._filters.table, self._key[rows]
        is_area = table.family[key] == AREA
        points = np.stack((table.ranges.low[key], table.ranges.high[key]) * 2)
        boxes = np.where(is_area, table.areas.box[:, key], points).T
        kind = np.where(is_area, table.areas.type[key], table.ranges.hole[key])
        members: dict[Tree, list[int]] = {}
        for k, tree in enumerate(zip(table.column[key].tolist(), kind.tolist(), strict=True)):
            members.setdefault(tree, []).append(k)
        number = np.zeros(len(rows), np.int64)
        for k, some in enumerate(members.values()):
            number[some] = k
        self._trees = {tree: k for k, tree in enumerate(members)}
        self._rows = {tree: rows[some] for tree, some in members.items()}
        self._forest = rtree.build(boxes, number, rows.astype(np.uint32), len(members))
        self._asked: dict[Tree, list[tuple[Tree, bool]]] = {}
        self._stack = np.empty(rtree.SEARCH_STACK, np.uint32)
        self._room = np.empty(max(len(rows), 1), np.uint32)

    def candidates(self, rows: Ints) -> Pairs:
        """(coverer, covered): all filed filters that cover one of `rows`, and others."""
        filters = self._filters
        found, terms, counts = [np.zeros(0, np.int64)], [], []
        for row in rows.tolist():
            for term in filters.of(row):
                some = list(self._found_by(term))
                found += some
                terms.append(term)
                counts.append(sum(map(len, some)))
        asked_of = np.repeat(rows, filters.size[rows])
        first, second = np.concatenate(found), np.repeat(asked_of, counts)
        states = filters.table.quick(COVERS, self._key[first], np.repeat(terms, counts))
        hopeful = (first != second) & (states > NO)
        return first[hopeful], second[hopeful]

    def _found_by(self, term: int) -> Iterator[Ints]:
        table = self._filters.table
        family, column = int(table.family[term]), int(table.column[term])
        if self._by_key:
            for name in self._filing.looked_up(term):
                if name in self._by_key:
                    yield np.array(self._by_key[name], np.int64)
        if family == AREA:
            box = table.areas.box[:, term].tolist()
            for tree, far in self._trees_for(column, int(table.areas.type[term])):
                yield from [self._rows[tree]] if far else self._search(tree, *box)
        elif family == RANGE:
            yield from self._ranges(term, (column, False), (column, True))

    def _ranges(self, term: int, ranges: Tree, holes: Tree) -> Iterator[Ints]:
        known = self._filters.table.ranges
        low, high = float(known.low[term]), float(known.high[term])
        if known.hole[term]:
            yield from self._search(ranges, -inf, known.highest, known.lowest, inf)
            yield from self._search(holes, low, -inf, inf, high)
        else:
            yield from self._search(ranges, -inf, high, low, inf)
            yield from self._search(holes, -inf, -inf, inf, low)
            yield from self._search(holes, high, -inf, inf, inf)

    def _trees_for(self, column: int, asked: int) -> list[tuple[Tree, bool]]:
        """The trees of areas that may cover a term, and whether areas apart from its may."""
        if (column, asked) not in self._asked:
            allowed = implication_tables()[COVERS, :, asked]
            self._asked[column, asked] = [
                (tree, bool(allowed[tree[1]] & Relation.DISJOINT.bit))
                for tree in self._trees
                if tree[0] == column and allowed[tree[1]]
            ]
        return self._asked[column, asked]

    def _search(self, tree: Tree, x0: float, y0: float, x1: float, y1: float) -> Iterator[Ints]:
        if tree in self._trees:
            number = self._trees[tree]
            count = rtree.search(self._forest, number, x0, y0, x1, y1, self._stack, self._room)
            yield self._room[:count].astype(np.int64)
