"""What coordinates mean: points of a plane, or longitude and latitude on the WGS84 ellipsoid."""

from __future__ import annotations

import sys
from enum import StrEnum

from fencepost.errors import ModelError


class Space(StrEnum):
    """What coordinates mean, and in which unit distances are."""

    PLANAR = "planar"  # any unit, that of the coordinates
    WGS84 = "wgs84"  # degrees of longitude and latitude; distances in metres

    @property
    def limits(self) -> tuple[float, float]:
        """How far from 0 an x and a y may be."""
        most = sys.float_info.max
        return (180.0, 90.0) if self is Space.WGS84 else (most, most)

    @property
    def unit(self) -> str | None:
        """The unit of distances, where there is one."""
        return "m" if self is Space.WGS84 else None


def parse_space(name: object) -> Space:
    """The space of a name; raises ModelError where there is none."""
    try:
        return Space(name)  # type: ignore[arg-type]
    except ValueError:
        raise ModelError(f"space must be one of {', '.join(Space)}; saw {name!r:.40}") from None


OUTSIDE_WGS84 = (
    "a longitude beyond -180 to 180 or a latitude beyond -90 to 90, which space='wgs84' does not "
    "have (cut in two what crosses the antimeridian)"
)
