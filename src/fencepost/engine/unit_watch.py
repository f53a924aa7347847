"""`UnitWatch`: reports distances in metres that are compared with coordinates in degrees.

With `space="planar"`, distances have the unit of the coordinates. It is probably a mistake if

- a distance is more than `MAX_DEGREES`, and all coordinates that it is compared with could be
  longitude and latitude, or
- points are made of columns named like longitude and latitude, and there is any distance.

The first events after the first subscriptions are looked at, and again each time that there are
twice as many subscriptions, until one mistake is reported.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fencepost.engine.attribute_watch import AttributeWatch
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.snapshot import Snapshot
from fencepost.events.nearest_names import are_lon_lat
from fencepost.events.table import EventTable
from fencepost.geometry.space import Space
from fencepost.kernels.match.check_evaluation import NEAR

MAX_DEGREES = 360.0  # a greater distance in degrees contains nearly everything
_MAX_EVENTS = 20_000  # of a table that are looked at


class UnitWatch:
    """Watches the distances of subscriptions and the coordinates of events.

    Parameters
    ----------
    columns : ColumnRegistry
        What subscriptions compare, and the space.
    watch : AttributeWatch
        Reports the warning.
    snapshot : callable
        Returns the current subscriptions.

    Attributes
    ----------
    is_due : bool
        Whether to look at the next events.
    """

    def __init__(
        self, columns: ColumnRegistry, watch: AttributeWatch, snapshot: Callable[[], Snapshot]
    ) -> None:
        self._columns = columns
        self._watch = watch
        self._snapshot = snapshot
        self._is_on = columns.space is Space.PLANAR
        self._due_count = 1  # of subscriptions
        self.is_due = False

    def subscriptions_changed(self) -> None:
        """Note that there may be more subscriptions."""
        if self._is_on and not self.is_due:
            self.is_due = self._count() >= self._due_count

    def see_table(self, events: EventTable) -> None:
        """Look at events."""
        self.is_due = False
        self._due_count = 2 * self._count()
        events = events.slice(0, _MAX_EVENTS)
        limit_x, limit_y = Space.WGS84.limits
        for name, distance in self._distances().items():
            if distance <= MAX_DEGREES:
                continue
            shapes, rows, _ = events.geometries(name)
            boxes = shapes.arrays.shapes[rows[rows >= 0]]
            if not len(boxes):
                self.is_due = True
            elif (
                min(boxes["x0"].min(), -boxes["x1"].max()) >= -limit_x
                and min(boxes["y0"].min(), -boxes["y1"].max()) >= -limit_y
            ):
                self._report(
                    f'a subscription compares "{name:.60}" with a distance of {distance:,.10g}, '
                    "but coordinates are within -180 to 180 and -90 to 90, as if in degrees; with "
                    "space='planar', distances have the unit of the coordinates; use "
                    "space='wgs84' for metres"
                )
                return

    def see_point_columns(self, x: str, y: str) -> None:
        """Look at the names of the columns of coordinates."""
        if self._is_on and are_lon_lat(x, y) and self._distances():
            self._report(
                f'the columns "{x:.60}" and "{y:.60}" seem to be longitude and latitude, so that '
                "distances are degrees with space='planar'; use space='wgs84' for metres"
            )

    def _report(self, message: str) -> None:
        self._is_on = self.is_due = False
        self._watch.report(message)

    def _count(self) -> int:
        return sum(map(len, self._snapshot()))

    def _distances(self) -> dict[str, float]:
        """Return the largest distance that each attribute is compared with."""
        largest = np.full(len(self._columns.of(Storage.GEOMETRY)), -1.0)
        for segment in self._snapshot():
            checks = segment.arrays.checks
            near = checks[checks["kind"] == NEAR]
            np.maximum.at(largest, near["column"], near["low"])
        return {
            column.source.name: float(distance)  # type: ignore[union-attr]
            for column, distance in zip(self._columns.of(Storage.GEOMETRY), largest, strict=False)
            if distance >= 0
        }
