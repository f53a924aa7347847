"""`nearest_name`: which of several names may be meant; `point_columns`: names of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

_LONGITUDES = ("lon", "lng", "long", "longitude", "x")
_LATITUDES = ("lat", "latitude", "y")
_MIN_PREFIX_LENGTH = 3
_MAX_LENGTH = 100


def nearest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is spelled most like a name that does not exist, ignoring case.

    If none is, a name that begins like the other: `lon` for `longitude`. None if no name is alike.
    """
    wanted = name[:_MAX_LENGTH].lower()
    lower = {other.lower(): other for other in reversed(names) if len(other) <= _MAX_LENGTH}
    near = get_close_matches(wanted, lower, 1)
    near = near or [other for other in lower if _begins_alike(other, wanted)]
    return lower[near[0]] if near else None


def _begins_alike(first: str, second: str) -> bool:
    shorter, longer = sorted((first, second), key=len)
    return len(shorter) >= _MIN_PREFIX_LENGTH and longer.startswith(shorter)


def point_columns(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the names that look like those of x and y, or of longitude and latitude."""
    longitude, latitude = _first_of(_LONGITUDES, names), _first_of(_LATITUDES, names)
    return (longitude, latitude) if longitude and latitude else None


def are_lon_lat(x: str, y: str) -> bool:
    """Return whether two names are those of longitude and latitude, not only of x and y."""
    return x.lower() in _LONGITUDES[:-1] and y.lower() in _LATITUDES[:-1]


def _first_of(candidates: Sequence[str], names: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in candidates if name in lower), None)
