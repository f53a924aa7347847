"""`Space`: the coordinate space, a plane, or longitude and latitude on the WGS84 ellipsoid.

`OtherCrs` says what happens to coordinates of another reference system; see `geometry.crs`.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Literal, TypeAlias

from fencepost.errors import ModelError


class Space(StrEnum):
    """The space of coordinates, which sets the unit of distances."""

    PLANAR = "planar"  # distances in the unit of the coordinates
    WGS84 = "wgs84"  # degrees of longitude and latitude; distances in metres

    @property
    def limits(self) -> tuple[float, float]:
        """The largest absolute values of x and of y."""
        max_float = sys.float_info.max
        return (180.0, 90.0) if self is Space.WGS84 else (max_float, max_float)

    @property
    def unit(self) -> str | None:
        """The unit of distances; None if it is that of the coordinates."""
        return "m" if self is Space.WGS84 else None


SpaceName: TypeAlias = Space | Literal["planar", "wgs84"]

DEFAULT_SPACE = Space.WGS84


def parse_space(name: object) -> Space:
    """Return the space of a name. Raise ModelError if there is none."""
    try:
        return Space(name)  # type: ignore[arg-type]
    except ValueError:
        raise ModelError(f"space must be one of {', '.join(Space)}; saw {name!r:.40}") from None


class OtherCrs(StrEnum):
    """What happens to geometries whose CRS is not that of a matcher."""

    REFUSE = "refuse"
    TRANSFORM = "transform"  # their coordinates are transformed


OtherCrsName: TypeAlias = OtherCrs | Literal["refuse", "transform"]


def parse_other_crs(name: object) -> OtherCrs:
    """Return what `crs=` asks for. Raise ModelError if it is neither."""
    try:
        return OtherCrs(name)  # type: ignore[arg-type]
    except ValueError:
        raise ModelError(f"crs must be one of {', '.join(OtherCrs)}; saw {name!r:.40}") from None


OUTSIDE_WGS84 = (
    "a longitude beyond -180 to 180 or a latitude beyond -90 to 90, which space='wgs84' does not "
    "have"
)
_MAX_CROSSING_DEGREES = 540.0  # a geometry that crosses the antimeridian may be written up to here


def reason_outside_wgs84(x: float, y: float) -> str:
    """Return why coordinates up to these absolute values cannot be used, and what to do."""
    max_x, max_y = Space.WGS84.limits
    if x <= max_y and y <= max_x:
        advice = "swapped, the coordinates fit: give the longitude first"
    elif x <= _MAX_CROSSING_DEGREES and y <= max_y:
        advice = "cut geometries that cross the antimeridian in two"
    else:
        advice = "transform the coordinates, or use space='planar'"
    return f"{OUTSIDE_WGS84} ({advice})"
