"""Reads the values of an event that a detector needs: its time, its id and its location."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryError, ModelError
from fencepost.events.times import SECOND, instant_of, parse_instant
from fencepost.events.value_types import is_missing
from fencepost.geometry.readers.any_format import RawShapes, read_geometry
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import Space, reason_outside_wgs84
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls

MAX_TIME_NS = 2**62  # 1823 to 2116; differences of such times fit into 64 bits
MAX_DURATION_NS = 2**63 - 1

_SINGLE_HULL = np.array([0, 1])  # `Hulls.start` of one hull with one corner
_ADVICE = "give ISO 8601 or a datetime, from 1824 to 2115"


class AttributeNames(NamedTuple):
    """The names of the attributes that hold an event's time, location and id."""

    time: str
    geometry: str
    id: str


def duration_ns(seconds: object, name: str) -> int:
    """Return a duration of 0 or more in whole nanoseconds, rounded down."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ModelError(f"{name} must be a number of seconds; saw {short_repr(seconds)}")
    if not (isfinite(seconds) and seconds >= 0):
        raise ModelError(f"{name} must be finite and 0 or more; saw {short_repr(seconds)}")
    return min(int(Fraction(seconds) * SECOND), MAX_DURATION_NS)


def parse_time_ns(value: object, name: str) -> int:
    """Return the time of an event in nanoseconds since 1970; raise ModelError if it is invalid."""
    if is_missing(value):
        raise ModelError(f"the event has no time: its attribute {name!r:.40} is null; {_ADVICE}")
    if isinstance(value, str):
        parsed = parse_instant(value)
        time_ns = None if parsed is None else parsed[0]
    else:
        time_ns = instant_of(value)
    if time_ns is None or not -MAX_TIME_NS < time_ns < MAX_TIME_NS:
        raise ModelError(
            f"the time of the event cannot be read; saw {short_repr(value)}; {_ADVICE}"
        )
    return time_ns


def parse_id(value: object, number: int) -> str | int:
    """Return the id of an event or, if it has none, its number."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if is_missing(value):
        return number
    raise ModelError(
        f"the id of an event must be a string or a whole number; saw {short_repr(value)}"
    )


def read_hull(value: object, name: str) -> Hulls:
    """Return the hull of one location."""
    if is_missing(value):
        raise ModelError(
            f"the event has no location: its attribute {name!r:.40} is null; give it a geometry"
        )
    raw = read_geometry(value)
    if raw.problems:
        raise GeometryError(raw.problems, single=True)
    if len(raw.x) == 1:
        return Hulls(raw.x, raw.y, _SINGLE_HULL)
    return _hull_of(raw)


def check_location(space: Space, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Raise ModelError if a hull lies outside of the space or spans over 180 degrees."""
    if space is not Space.WGS84:
        return
    max_x, max_y = space.limits
    far_x, far_y = float(np.abs(x).max()), float(np.abs(y).max())
    if far_x > max_x or far_y > max_y:
        raise ModelError(f"the location of the event has {reason_outside_wgs84(far_x, far_y)}")
    if is_too_wide(x):
        raise ModelError(
            "the location of the event has longitudes more than 180 degrees apart, so its hull is "
            "ambiguous; give a location on one side of the antimeridian"
        )


def is_too_wide(x: NDArray[np.float64]) -> bool:
    """Return whether longitudes span more than 180 degrees.

    Such a location may as well lie across the antimeridian.
    """
    return bool(x.max() - x.min() > 180.0)


def _hull_of(raw: RawShapes) -> Hulls:
    hull: Hulls = build_hulls(Hulls(raw.x, raw.y, np.array((0, len(raw.x)))))
    return hull
