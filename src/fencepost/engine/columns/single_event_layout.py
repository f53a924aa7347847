"""`SingleEventLayout`: encodes single events for the kernels of `kernels.match.single_event`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.columns.event_columns import RowWriter
from fencepost.engine.columns.event_items import lists_from_values
from fencepost.events.event_values import EventValues
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.raw_shapes import UncheckedGeometry
from fencepost.geometry.readers.single_geometry import join_unchecked, parse_point, read_unchecked
from fencepost.kernels.match.check_evaluation import ITEMS
from fencepost.kernels.match.segment_search import EventArrays
from fencepost.kernels.match.single_event import ITEM_SEPARATOR

_NO_POINT = 0.0, 0.0
_SEPARATOR = chr(ITEM_SEPARATOR)
_join_items = f"{_SEPARATOR}s".join
_INITIAL_ITEMS = 64


# The coordinates of a point, or the arrays of shapes; the arrays of the event do not hold them.
GeometryArguments: TypeAlias = tuple[Any, ...]


class SingleEventLayout:
    """Encodes single events as the columns that a registry has now.

    For one thread at a time.

    Attributes
    ----------
    events : EventArrays
        The arrays of the event that was written last; their only shape is a point.
    joined_items : array
        Where joined items, which a kernel has yet to split, begin and end in the text; see
        `kernels.match.single_event`.
    limits : pair of float
        The greatest absolute values of coordinates.
    """

    def __init__(self, columns: ColumnRegistry) -> None:
        self._columns = columns = columns.copy()
        all_columns = [
            (storage, number, column)
            for storage in Storage
            for number, column in enumerate(columns.of(storage))
        ]
        self._geometries, self._lists = (
            [column.source.name for column in columns.of(storage)]  # type: ignore[union-attr]
            for storage in (Storage.GEOMETRY, Storage.LIST)
        )
        self._has_only_geometry = len(all_columns) == len(self._geometries) == 1

        def zeros(storage: Storage, dtype: type[np.generic]) -> Any:
            return np.zeros((len(columns.of(storage)), 1), dtype)

        self.events = EventArrays(
            number=zeros(Storage.NUMBER, np.float64),
            number_rest=zeros(Storage.NUMBER, np.float64),
            truth=zeros(Storage.TRUTH, np.int8),
            missing=zeros(Storage.MISSING, np.uint8),
            string_start=zeros(Storage.STRING, np.int64),
            string_stop=zeros(Storage.STRING, np.int64),
            geometry=zeros(Storage.GEOMETRY, np.int64),
            list_kind=zeros(Storage.LIST, np.uint8),
            list_start=zeros(Storage.LIST, np.int64),
            list_stop=zeros(Storage.LIST, np.int64),
            item_start=np.zeros(_INITIAL_ITEMS, np.int64),
            text=np.zeros(0, np.uint8),
            shapes=Shapes.read_one({"type": "Point", "coordinates": [0.0, 0.0]}).arrays,
        )
        self._writer = RowWriter(self.events, all_columns, 1)
        self.events = self.events._replace(text=self._writer.text)
        self._geometry = self.events.geometry.reshape(-1).data
        self._list_kind, self._list_start, self._list_stop = (
            array.reshape(-1).data
            for array in (self.events.list_kind, self.events.list_start, self.events.list_stop)
        )
        self.joined_items = np.zeros(2, np.int64)
        self._joined_items = self.joined_items.data
        self.limits = columns.space.limits

    def write(self, attributes: Mapping[str, object]) -> GeometryArguments | None:
        """Write an event to the arrays. Return its geometries as arguments for a kernel.

        Return None if a geometry has a form that needs the general reader.
        """
        point = None
        if len(self._geometries) == 1:  # the usual case: one geometry column, with a point
            point = parse_point(attributes.get(self._geometries[0]))
            if point is not None:
                self._geometry[0] = 0
                if self._has_only_geometry:
                    return point
        event = EventValues(attributes, self._columns.tokenizer, self._columns.space)
        shapes = self._shapes(event) if point is None else point
        if shapes is None:
            return None
        self._writer.size = 0
        self._writer.write(0, event)
        if self._lists:
            self._write_items(event)
        if self._writer.text is not self.events.text:  # the writer has enlarged it
            self.events = self.events._replace(text=self._writer.text)
        return shapes

    def _write_items(self, event: EventValues) -> None:
        """Write the lists, and append their items to the text."""
        size = self._writer.size
        if len(self._lists) == 1:
            value = event.attributes.get(self._lists[0])
            if type(value) is list and self._write_joined_items(value):
                return
        lists = lists_from_values(
            [event.get(name) for name in self._lists], self._columns.tokenizer
        )
        self._writer.append(lists.text.data)
        self.events.list_kind[:, 0] = lists.kind
        self.events.list_start[:, 0] = lists.start
        self.events.list_stop[:, 0] = lists.stop
        count = len(lists.item_start)
        self._allocate_items(count)
        self.events.item_start[:count] = lists.item_start + size
        self._joined_items[1] = self._joined_items[0]

    def _write_joined_items(self, values: list[Any]) -> bool:
        """Write the items of the only list, joined by separators.

        Return False, without writing, if they are not all ASCII strings without a separator.
        """
        try:
            items = dict.fromkeys(values)
            keys = f"s{_join_items(items)}" if items else ""
        except TypeError:  # an item is no string
            return False
        count = len(items)
        if not keys.isascii() or keys.count(_SEPARATOR) >= max(count, 1):
            return False
        self._allocate_items(count + 1)
        self._joined_items[0] = self._writer.size
        self._writer.append(keys.encode())
        self._joined_items[1] = self._writer.size
        self._list_kind[0], self._list_start[0], self._list_stop[0] = ITEMS, 0, count
        return True

    def _allocate_items(self, count: int) -> None:
        if count > len(self.events.item_start):
            self.events = self.events._replace(item_start=np.zeros(2 * count, np.int64))

    def _shapes(self, event: EventValues) -> GeometryArguments | None:
        """Write the shape number of each geometry column, and return the shapes.

        Return None if a geometry has a form that needs the general reader.
        """
        geometries: list[UncheckedGeometry] = []
        for k, name in enumerate(self._geometries):
            value = event.get(name)
            if value is None:
                self._geometry[k] = -1
                continue
            geometry = read_unchecked(value)
            if geometry is None:
                return None
            self._geometry[k] = len(geometries)
            geometries.append(geometry)
        return join_unchecked(geometries) if geometries else _NO_POINT
