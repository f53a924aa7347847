"""Slow, exact reference implementations that the tests hold the kernels against."""

from fencepost.match.reference import distance, ellipsoid
from fencepost.match.reference.evaluate import are_near, are_related, evaluate, matches
from fencepost.match.reference.relation import defect, locate, matrix, relation

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
