"""Slow, exact reference implementations that the tests hold the kernels against."""

from fencepost.reference import ellipsoid, exact_distance
from fencepost.reference.exact_relation import defect, locate, matrix, relation
from fencepost.reference.oracle import are_near, are_related, evaluate, matches

__all__ = [
    "are_near",
    "are_related",
    "defect",
    "ellipsoid",
    "evaluate",
    "exact_distance",
    "locate",
    "matches",
    "matrix",
    "relation",
]
