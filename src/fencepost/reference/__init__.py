"""Slow, exact reference implementations that the tests hold the kernels against.

- `ellipsoid`: Distances of geometries on the WGS84 ellipsoid against a bound, plainly: to a
  micrometre
- `event_geometries`: Geometries of events, in any form that `fencepost.relate` takes, read with
  Shapely
- `exact_distance`: Exact distances of two geometries in the plane, and of their centroids,
  against a bound
- `exact_ranking`: Scores of subscriptions, straight from `docs/ranking.md`: what every ranking is
  tested against
- `exact_relation`: The exact DE-9IM of two geometries by brute force: the oracle of every other
  test
- `exact_values`: What the value of an attribute counts as, and how values compare, calculate and
  have a form
- `oracle`: Whether an event satisfies a condition, straight from `docs/meaning.md`
"""

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
