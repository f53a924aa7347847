"""Slow, exact reference implementations that the tests hold the kernels against."""

from fencepost.match.reference import distance, ellipsoid
from fencepost.match.reference.evaluate import evaluate, matches
from fencepost.match.reference.relation import defect, locate, matrix, relation
from fencepost.match.reference.space import are_near, are_related

__all__ = [
    "are_near",
    "are_related",
    "defect",
    "distance",
    "ellipsoid",
    "evaluate",
    "locate",
    "matches",
    "matrix",
    "relation",
]
