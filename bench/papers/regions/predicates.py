"""`Predicates`: disjunctions of filters, each of two constraints of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from bench.papers.regions.workloads import Workload
from fencepost.cql2.ast import Geometry, Property, SpatialFunction
from fencepost.filters.checks import Column, ColumnKind, Filter, RelateCheck, Term
from fencepost.filters.simplifier import simplify
from fencepost.geometry.relation import RELATIONS

ATTRIBUTE = "area"
# The eight exclusive relations, by code: the last eight functions, in the order of the codes.
FUNCTIONS = tuple(SpatialFunction)[-len(RELATIONS) :]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Predicates:
    """Pairs of constraints of a workload, which are filters, and the predicate of each."""

    workload: Workload
    pairs: Rows  # (filters, 2)
    owner: Rows
    count: int

    def holding(self, constraints: Rows) -> Rows:
        """Return the predicates with a filter that holds, given the constraints that hold."""
        holds = np.zeros(len(self.workload), bool)
        holds[constraints] = True
        return np.unique(self.owner[holds[self.pairs].all(axis=1)])

    def filters(self) -> list[list[Filter]]:
        """Return the filters of each predicate."""
        terms = [
            term(region, int(code))
            for region, code in zip(self.workload.regions, self.workload.relations, strict=True)
        ]
        by_predicate: list[list[Filter]] = [[] for _ in range(self.count)]
        for (first, second), owner in zip(self.pairs.tolist(), self.owner.tolist(), strict=True):
            by_predicate[owner].append((terms[first], terms[second]))
        return by_predicate


def pair_up(workload: Workload, count: int, seed: int) -> Predicates:
    """Return random pairs of all constraints of a workload, distributed over `count` predicates.

    If there are fewer pairs, there are as many predicates as pairs.
    """
    rng = np.random.default_rng([seed, 6])
    order = rng.permutation(len(workload))
    pairs = order[: len(order) // 2 * 2].reshape(-1, 2)
    count = min(count, len(pairs))
    return Predicates(workload, pairs, np.arange(len(pairs)) % count, count)


def term(region: BaseGeometry, code: int) -> Term:
    """Return the constraint that the message's area has a relation, by code, to a region."""
    column = Column(ColumnKind.GEOMETRY, Property(ATTRIBUTE))
    return Term(RelateCheck(column, FUNCTIONS[code], Geometry(region)), False)


def simplified(filters: Sequence[Sequence[Filter]]) -> list[list[Filter]]:
    """Return each predicate's filters after simplification."""
    return [list(simplify(predicate_filters).filters) for predicate_filters in filters]


def size(filters: Sequence[Sequence[Filter]]) -> int:
    """Return the number of constraints in all filters."""
    return sum(len(terms) for predicate_filters in filters for terms in predicate_filters)
