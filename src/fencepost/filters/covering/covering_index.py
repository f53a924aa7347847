"""`find_covered` finds the filters that other filters cover, with an index over filters.

A filter covers another if each of its terms covers a term of the other. To avoid a test of every
pair, the index posts a filter under one of its terms, its key term (`filter_rows.py`). Each filter
that it covers has a term that the key term covers, and the lookup of that term finds the posted
filter:

- A relation to an area is in a tree of boxes, one tree for each function. The term that it covers
  is a relation to an area whose box meets the box of this area. For some pairs of functions areas
  apart cover each other as well (x inside R2 implies x disjoint from R1); there all filters of the
  tree are candidates.
- A range is in a tree as the point (low, high) of the plane. The ranges that contain a range lie in
  a quarter of that plane.
- Other terms are in a dictionary, under posting keys.

The candidates are then tested term by term, all pairs in one call.
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

Tree = tuple[int, int]  # a column; then a type of area terms, or whether the ranges are holes


def find_covered(filters: FilterRows) -> dict[int, int]:
    """Return the filters that other filters cover, each with a filter that covers it.

    The covering filter may itself be covered; the chain ends at a filter that stays. Of filters
    that cover each other the first stays. Coverers are indexed in blocks that grow, so that most
    covered filters are dropped before the long lists of candidates are built.
    """
    keys = FilterKeys(filters)
    pair_test = FilterPairTest(filters, keys.terms)
    alive = np.ones(len(filters), bool)
    coverer_of: dict[int, int] = {}
    low, size = 0, _FIRST_BLOCK
    while low < len(filters):
        rows = np.flatnonzero(alive)
        block = rows[(rows >= low) & (rows < low + size)]
        if len(block):
            coverers = CovererIndex(filters, keys, block)
            parts = [rows[k : k + _ROWS] for k in range(0, len(rows), _ROWS)]
            pairs = [pair_test.covering_pairs(*coverers.candidates(part)) for part in parts]
            first, second = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
            for k in np.argsort(first, kind="stable").tolist():
                coverer, covered = int(first[k]), int(second[k])
                if alive[coverer] and alive[covered]:
                    alive[covered] = False
                    coverer_of[covered] = coverer
        low, size = low + size, size * _GROWTH
    return coverer_of


class CovererIndex:
    """An index over some filters, which finds candidates that may cover given filters."""

    def __init__(self, filters: FilterRows, keys: FilterKeys, rows: Ints) -> None:
        self._filters, self._keys = filters, keys
        self._key_term = np.zeros(len(filters), np.int64)
        self._key_term[rows] = keys.key_terms(rows)
        self._postings: dict[Hashable, list[int]] = {}
        is_pairwise = filters.table.family[self._key_term[rows]] == PAIRWISE
        for row in rows[is_pairwise].tolist():
            for posting_key in keys.posting_keys(int(self._key_term[row])):
                self._postings.setdefault(posting_key, []).append(row)
        self._build_trees(rows[~is_pairwise])

    def _build_trees(self, rows: Ints) -> None:
        """Build the trees of filters whose key terms are areas or ranges, all in one forest."""
        table, key_term = self._filters.table, self._key_term[rows]
        is_area = table.family[key_term] == AREA
        points = np.stack((table.ranges.low[key_term], table.ranges.high[key_term]) * 2)
        boxes = np.where(is_area, table.areas.box[:, key_term], points).T
        kind = np.where(is_area, table.areas.type[key_term], table.ranges.hole[key_term])
        members: dict[Tree, list[int]] = {}
        for k, tree in enumerate(zip(table.column[key_term].tolist(), kind.tolist(), strict=True)):
            members.setdefault(tree, []).append(k)
        tree_number = np.zeros(len(rows), np.int64)
        for k, tree_members in enumerate(members.values()):
            tree_number[tree_members] = k
        self._trees = {tree: k for k, tree in enumerate(members)}
        self._rows = {tree: rows[tree_members] for tree, tree_members in members.items()}
        self._forest = rtree.build(boxes, tree_number, rows.astype(np.uint32), len(members))
        self._trees_by_type: dict[Tree, list[tuple[Tree, bool]]] = {}
        self._stack = np.empty(rtree.SEARCH_STACK, np.uint32)
        self._results = np.empty(max(len(rows), 1), np.uint32)

    def candidates(self, rows: Ints) -> Pairs:
        """Return pairs (coverer, covered): all indexed filters that may cover one of `rows`."""
        filters = self._filters
        candidate_rows, terms, counts = [np.zeros(0, np.int64)], [], []
        for row in rows.tolist():
            for term in filters.terms_of(row):
                posted_rows = list(self._candidates_of(term))
                candidate_rows += posted_rows
                terms.append(term)
                counts.append(sum(map(len, posted_rows)))
        row_of_term = np.repeat(rows, filters.size[rows])
        coverers, covered = np.concatenate(candidate_rows), np.repeat(row_of_term, counts)
        states = filters.table.test_quickly(
            COVERS, self._key_term[coverers], np.repeat(terms, counts)
        )
        possible = (coverers != covered) & (states > NO)
        return coverers[possible], covered[possible]

    def _candidates_of(self, term: int) -> Iterator[Ints]:
        table = self._filters.table
        family, column = int(table.family[term]), int(table.column[term])
        if self._postings:
            for lookup_key in self._keys.lookup_keys(term):
                if lookup_key in self._postings:
                    yield np.array(self._postings[lookup_key], np.int64)
        if family == AREA:
            box = table.areas.box[:, term].tolist()
            for tree, includes_distant in self._trees_for(column, int(table.areas.type[term])):
                yield from [self._rows[tree]] if includes_distant else self._search(tree, *box)
        elif family == RANGE:
            yield from self._search_ranges(term, (column, False), (column, True))

    def _search_ranges(self, term: int, ranges: Tree, holes: Tree) -> Iterator[Ints]:
        table = self._filters.table.ranges
        low, high = float(table.low[term]), float(table.high[term])
        if table.hole[term]:
            yield from self._search(ranges, -inf, table.highest, table.lowest, inf)
            yield from self._search(holes, low, -inf, inf, high)
        else:
            yield from self._search(ranges, -inf, high, low, inf)
            yield from self._search(holes, -inf, -inf, inf, low)
            yield from self._search(holes, high, -inf, inf, inf)

    def _trees_for(self, column: int, area_type: int) -> list[tuple[Tree, bool]]:
        """Return the trees whose areas may cover a term of some type.

        With each tree, whether areas that lie apart from the area of the term may cover it.
        """
        if (column, area_type) not in self._trees_by_type:
            allowed = implication_tables()[COVERS, :, area_type]
            self._trees_by_type[column, area_type] = [
                (tree, bool(allowed[tree[1]] & Relation.DISJOINT.bit))
                for tree in self._trees
                if tree[0] == column and allowed[tree[1]]
            ]
        return self._trees_by_type[column, area_type]

    def _search(self, tree: Tree, x0: float, y0: float, x1: float, y1: float) -> Iterator[Ints]:
        if tree in self._trees:
            number = self._trees[tree]
            count = rtree.search(self._forest, number, x0, y0, x1, y1, self._stack, self._results)
            yield self._results[:count].astype(np.int64)
