"""Matching without an index: the message against each constraint.

The paper compares its method with CGAL's polygon intersection, which tells only whether interiors
meet; GEOS's `intersection` stands in for it. `relate` of GEOS and our exact relation return the
whole relation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import shapely
from numpy.typing import NDArray

from bench.papers.regions.workloads import Workload
from fencepost.engine.relate import relations
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import Relation
from fencepost.papers.regions.algorithm1 import relations_sampled
from fencepost.testing import Geometries

GEOS_INTERSECTION = "GEOS intersection, one by one"
GEOS_RELATE = "GEOS relate, one by one"
EXACT = "our exact relation, one by one"
SAMPLED = "Algorithm 1, one by one"
AS_PRINTED = "Algorithm 1 as printed, one by one"

Ways = dict[str, Callable[[], object]]
Codes = NDArray[np.uint8]
_APART = (Relation.DISJOINT.code, Relation.MEETS.code)


def ways(workload: Workload, regions: Shapes, messages: Geometries, density: float) -> Ways:
    """Return the calls to time; each matches all messages."""
    message_shapes = [Shapes.read_one(message) for message in messages]
    relation_codes = workload.relations

    def matched(codes: Callable[[Shapes], Codes]) -> Callable[[], object]:
        return lambda: [
            np.flatnonzero(codes(message) == relation_codes) for message in message_shapes
        ]

    return {
        GEOS_INTERSECTION: lambda: [interiors_meet(m, workload.regions) for m in messages],
        GEOS_RELATE: lambda: [shapely.relate(m, workload.regions) for m in messages],
        EXACT: matched(lambda message: relations(message, regions)),
        SAMPLED: matched(lambda message: relations_sampled(message, regions, density)),
        AS_PRINTED: matched(
            lambda message: relations_sampled(message, regions, density, as_printed=True)
        ),
    }


def interiors_meet(message: shapely.Geometry, regions: Geometries) -> NDArray[np.bool_]:
    """Return whether the interiors of message and regions meet, by intersecting them."""
    meet: NDArray[np.bool_] = shapely.area(shapely.intersection(message, regions)) > 0
    return meet


def errors(
    workload: Workload, regions: Shapes, messages: Geometries, density: float
) -> dict[str, float]:
    """Return how often Algorithm 1 is wrong, in percent of all pairs, by three criteria.

    intersection : whether interiors meet, which is what the paper could compare.
    relation : the relation, one of eight.
    predicate : whether the constraint, which has one relation, holds.
    """
    wrong = np.zeros(3)
    for message in messages:
        message_shape = Shapes.read_one(message)
        exact = relations(message_shape, regions)
        sampled = relations_sampled(message_shape, regions, density)
        wrong += (
            (np.isin(exact, _APART) != np.isin(sampled, _APART)).sum(),
            (exact != sampled).sum(),
            ((exact == workload.relations) != (sampled == workload.relations)).sum(),
        )
    percent = wrong / (len(messages) * len(workload)) * 100
    return dict(zip(("intersection", "relation", "predicate"), percent.tolist(), strict=True))
