"""What a detector needs of an event: its time, its location and its id."""

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
from fencepost.geometry.space import OUTSIDE_WGS84, Space
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls

MOST_TIME = 2**62  # so that differences are 64-bit integers, too: from 1823 to 2116
LONGEST = 2**63 - 1

_ONE = np.array([0, 1])
_ADVICE = "give ISO 8601 or a datetime, from 1824 to 2115"


class Names(NamedTuple):
    """Which attributes hold what a detector needs."""

    time: str
    geometry: str
    id: str


def nanoseconds(seconds: object, name: str) -> int:
    """A span of time, of 0 or more, in whole nanoseconds rounded down."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ModelError(f"{name} is a number of seconds; saw {short_repr(seconds)}")
    if not (isfinite(seconds) and seconds >= 0):
        raise ModelError(f"{name} is finite and 0 or more; saw {short_repr(seconds)}")
    return min(int(Fraction(seconds) * SECOND), LONGEST)


def time_of(value: object, name: str) -> int:
    """The time of an event; ModelError says what is wrong with it."""
    if is_missing(value):
        raise ModelError(f"the event has no time: its attribute {name!r:.40} is null; {_ADVICE}")
    if isinstance(value, str):
        read = parse_instant(value)
        found = None if read is None else read[0]
    else:
        found = instant_of(value)
    if found is None or not -MOST_TIME < found < MOST_TIME:
        raise ModelError(f"{short_repr(value)} is no time that can be used; {_ADVICE}")
    return found


def id_of(value: object, number: int) -> str | int:
    """How an event is called: by its id or, if it has none, by its number."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if is_missing(value):
        return number
    raise ModelError(f"the id of an event is a string or a whole number; saw {short_repr(value)}")


def location_of(value: object, name: str) -> Hulls:
    """The hull of one location."""
    if is_missing(value):
        raise ModelError(
            f"the event has no location: its attribute {name!r:.40} is null; give it a geometry"
        )
    raw = read_geometry(value)
    if raw.problems:
        raise GeometryError(raw.problems, single=True)
    if len(raw.x) == 1:
        return Hulls(raw.x, raw.y, _ONE)
    return _hull_of(raw)


def check_location(space: Space, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Refuse the corners of a hull that the space does not have, or that go half round it."""
    if space is not Space.WGS84:
        return
    far, high = space.limits
    if np.abs(x).max() > far or np.abs(y).max() > high:
        raise ModelError(f"the location of the event has {OUTSIDE_WGS84}")
    if is_too_wide(x):
        raise ModelError(
            "the location of the event has longitudes more than 180 degrees apart, so its hull is "
            "not known; give one side of the antimeridian"
        )


def is_too_wide(x: NDArray[np.float64]) -> bool:
    """Whether longitudes are so far apart that the shorter way may be the other one."""
    return bool(x.max() - x.min() > 180.0)


def _hull_of(raw: RawShapes) -> Hulls:
    found: Hulls = build_hulls(Hulls(raw.x, raw.y, np.array((0, len(raw.x)))))
    return found
