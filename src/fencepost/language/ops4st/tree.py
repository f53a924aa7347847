"""What the notation says that CQL2 does not: regions with a radius, and events related in space."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from fencepost.language.ast import Compare, Condition, Geometry


class Place(Enum):
    """How the location of an event is related to a region, or to that of another event."""

    IN = "in"
    OVLP = "ovlp"
    SPL = "spl"
    DIST = "dist"


@dataclass(frozen=True, slots=True)
class Region:
    """A constant place: a geometry or, where the radius is above 0, the disc round a point."""

    geometry: Geometry
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What an operator asks, apart from whom.

    Attributes
    ----------
    place : Place
    compare : Compare or None
        Of DIST: LT, LE, EQ, GE or GT; of SPL: LT.
    distance : float or None
        What the distance, for SPL that of the centroids, is compared with.
    tolerance : float
        With EQ, how far the distance may be off; otherwise 0.
    """

    place: Place
    compare: Compare | None = None
    distance: float | None = None
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class Composed:
    """An operator that needs more than one event: of a subscription, or on one that is composed."""

    asked: Asked
    argument: Region | Node
    subject: Node


Node: TypeAlias = Condition | Composed
