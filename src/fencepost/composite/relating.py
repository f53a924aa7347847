"""Which pairs of items are related as a condition asks: exactly, many pairs at a time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fencepost.composite.exact import compares, exact_points, middle, square_between, square_of_gap
from fencepost.composite.live import Items, LiveMembers
from fencepost.kernels.calipers import DISJOINT, IN, relate_hull_pairs
from fencepost.kernels.members import centroids_of, distance_bounds
from fencepost.language.ast import Compare
from fencepost.language.ops4st.tree import Asked, Place

Mask = NDArray[np.bool_]
Bounds = NDArray[np.float64]


def related(live: LiveMembers, asked: Asked, left: Items, right: Items) -> Mask:
    """For each pair of items whether it is related as asked; of IN, the left lies in the right."""
    if asked.place in (Place.IN, Place.OVLP):
        codes = np.empty(len(left), np.uint8)
        relate_hull_pairs(live.hulls, live.hulls, 2 * left, 2 * right, codes)
        return codes == IN if asked.place is Place.IN else codes != DISJOINT
    if asked.place is Place.SPL:
        low, high = _between_centroids(live, left, right)
        return _compared(live, asked, low, high, left, right, _exact_same_place)
    low, high = np.empty(len(left)), np.empty(len(left))
    distance_bounds(live.hulls, 2 * left, 2 * right, low, high)
    return _compared(live, asked, low, high, left, right, _exact_distance)


def _between_centroids(live: LiveMembers, left: Items, right: Items) -> tuple[Bounds, Bounds]:
    a, b = np.empty((len(left), 3)), np.empty((len(left), 3))
    centroids_of(live.hulls, 2 * left, a)
    centroids_of(live.hulls, 2 * right, b)
    distance = np.hypot(a[:, 0] - b[:, 0], a[:, 1] - b[:, 1])
    error = a[:, 2] + b[:, 2] + distance * 2.0**-48 + 1e-300
    return np.maximum(distance - error, 0.0), distance + error


def _compared(
    live: LiveMembers,
    asked: Asked,
    low: Bounds,
    high: Bounds,
    left: Items,
    right: Items,
    exactly: Callable[[LiveMembers, Asked, int, int], bool],
) -> Mask:
    """Distances that lie between bounds, compared; where the bounds leave it open, exactly."""
    least, most = _bounds(asked)
    yes = (low > least) & (high < most)
    if yes.all():
        return yes
    unsure = ~(yes | (high < least) | (low > most))
    for k in unsure.nonzero()[0].tolist():
        if high[k] == 0.0:  # they have a point in common
            yes[k] = compares(asked, Fraction(0))
        else:
            yes[k] = exactly(live, asked, int(left[k]), int(right[k]))
    return yes


def _bounds(asked: Asked) -> tuple[float, float]:
    """Between which distances the condition surely holds, but for a rounding at the ends."""
    assert asked.distance is not None
    d = asked.distance
    if asked.compare in (Compare.LT, Compare.LE):
        return -1.0, d
    if asked.compare in (Compare.GT, Compare.GE):
        return d, np.inf
    return d - asked.tolerance, d + asked.tolerance


def _exact_distance(live: LiveMembers, asked: Asked, left: int, right: int) -> bool:
    a, b = (exact_points(*_lists(live, item)) for item in (left, right))
    return compares(asked, square_of_gap(a, b))


def _exact_same_place(live: LiveMembers, asked: Asked, left: int, right: int) -> bool:
    a, b = (middle(exact_points(*_lists(live, item))) for item in (left, right))
    return compares(asked, square_between(a, b))


def _lists(live: LiveMembers, item: int) -> tuple[list[float], list[float]]:
    x, y = live.corners(item)
    return x.tolist(), y.tolist()
