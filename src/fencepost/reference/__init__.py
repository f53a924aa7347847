"""Slow, exact reference implementations, against which tests compare the kernels.

- `oracle`: evaluates a condition for an event, as `docs/meaning.md` defines it
- `exact_values`: normalizes, compares and folds attribute values; arithmetic, LIKE, spans of time
- `event_geometries`: reads geometries of events with Shapely
- `exact_relation`: the exact DE-9IM matrix of two geometries, and validity, by brute force
- `exact_distance`: compares planar distances with a bound, exactly
- `ellipsoid`: compares distances on the WGS84 ellipsoid with a bound, to a micrometre
- `exact_ranking`: scores of subscriptions, as `docs/ranking.md` defines them
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
