"""`CrsAgreement`: whether geometries have the CRS of a matcher, and transformations if they do not.

With `space="wgs84"` that is longitude and latitude on WGS 84. With `space="planar"` it is the first
CRS that geometries of the matcher declare. Geometries that declare none are taken to have it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

from fencepost.engine.attribute_watch import AttributeWatch
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.errors import GeometryError, ModelError
from fencepost.events.table import EventTable
from fencepost.events.table_crs import crs_of_geometries, crs_of_values
from fencepost.geometry.crs import LON_LAT, Crs, Transformation
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.any_format import read_geometries
from fencepost.geometry.space import OtherCrs, Space

_LOCK = threading.Lock()  # held while the first CRS of a matcher is noted


class CrsAgreement:
    """Compares what geometries declare with the CRS of a matcher.

    Parameters
    ----------
    columns : ColumnRegistry
        Has the space, and the CRS that was declared first.
    watch : AttributeWatch
        Reports warnings.
    """

    def __init__(self, columns: ColumnRegistry, watch: AttributeWatch) -> None:
        self._columns = columns
        self._watch = watch

    def align_events(
        self, table: EventTable, other: OtherCrs, of: str = "the events"
    ) -> EventTable:
        """Return events whose geometries have the CRS of the matcher, as `align` does.

        Only geometries that subscriptions compare are aligned.
        """
        return self.align(table, self._columns.geometry_attributes(), other, of)

    def align(
        self, table: EventTable, names: Iterable[str], other: OtherCrs, of: str
    ) -> EventTable:
        """Return a table whose geometries have the CRS of the matcher.

        Parameters
        ----------
        table : EventTable
            Events, or fences.
        names : iterable of str
            Its columns of geometries.
        other : OtherCrs
            What happens to columns of another CRS.
        of : str
            What the rows are, such as "the fences", for messages.

        Raises
        ------
        ModelError
            If a column has another CRS that is not to be transformed.
        """
        transformations = {}
        for name in sorted(names):
            crs = table.crs(name)
            if crs is not None:
                transformation = self.transformation(
                    crs, other, f'the geometry "{name:.60}" of {of}'
                )
                if transformation is not None:
                    transformations[name] = transformation
        return table.transformed(transformations)

    def read_shapes(self, geometries: object, other: OtherCrs, what: str) -> Shapes:
        """Read geometries of any accepted format in the CRS of the matcher.

        Parameters
        ----------
        geometries : object
            See `fencepost.geometry.readers.any_format`.
        other : OtherCrs
            What happens to geometries of another CRS.
        what : str
            The geometries, such as "regions['area']", for messages.

        Raises
        ------
        ModelError
            If they have another CRS that is not to be transformed, or if one cannot be used.
        """
        crs = crs_of_geometries(geometries, what)
        transformation = None if crs is None else self.transformation(crs, other, what)
        if transformation is None:
            return Shapes.read_all(geometries)
        shapes = Shapes.lay_out(transformation(read_geometries(geometries)))
        if shapes.problems:
            raise GeometryError(shapes.problems)
        return shapes

    def check_event(self, values: Collection[object]) -> None:
        """Raise ModelError if the SRID of a single event's EWKB is that of another CRS."""
        crs = crs_of_values(values, "the event")
        if crs is not None:
            self.transformation(crs, OtherCrs.REFUSE, "a geometry of the event")

    def transformation(self, crs: Crs, other: OtherCrs, what: str) -> Transformation | None:
        """Return how to transform geometries to the CRS of the matcher; None if they have it.

        what : the geometries, such as 'the geometry "area" of the events', for messages.
        """
        columns = self._columns
        if columns.space is Space.WGS84:
            if crs.is_lon_lat():
                return None
            target, wanted = LON_LAT, "space='wgs84' needs longitude and latitude on WGS 84"
            ways = "" if crs.kind == "geographic" else ", or use space='planar'"
        else:
            if self._note(crs) or columns.crs is None or crs.equals(columns.crs):
                return None
            target = columns.crs
            wanted = f"other geometries of this matcher have {target.name}"
            ways = ""
        if other is OtherCrs.TRANSFORM:
            return Transformation(crs, target)
        raise ModelError(
            f'{what} has the CRS {crs.name}, but {wanted}; transform it with crs="transform" '
            f"(--crs transform){ways}"
        )

    def _note(self, crs: Crs) -> bool:
        """Take a CRS as that of a planar matcher, if it is the first. Return whether it is."""
        with _LOCK:
            if self._columns.crs is not None:
                return False
            self._columns.crs = crs
        if crs.kind == "geographic":
            self._watch.report(
                f"the geometries have the CRS {crs.name}, which has degrees, so that distances "
                "are degrees, too, with space='planar'; use space='wgs84' for metres"
            )
        return True
