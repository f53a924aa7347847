"""One event as the kernels of `one_event` take it, at the least cost."""

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

_NOWHERE = 0.0, 0.0
_BETWEEN = chr(ITEM_SEPARATOR)
_JOIN = f"{_BETWEEN}s".join
_FIRST_ITEMS = 64


# What is not in the arrays: the coordinates of a point, or the arrays of shapes.
GeometryArguments: TypeAlias = tuple[Any, ...]


class SingleEventLayout:
    """Writes events, one at a time, for the columns that a matcher asks for now.

    Not for two threads at once.

    Attributes
    ----------
    events : EventArrays
        Where they are written; the shape is a point.
    joined : array
        Where items begin and end in the text that are left to be told apart; see `one_event`.
    limits : pair of float
        How far from 0 coordinates may be.
    """

    def __init__(self, columns: ColumnRegistry) -> None:
        self._columns = columns = columns.copy()
        every = [
            (storage, number, column)
            for storage in Storage
            for number, column in enumerate(columns.of(storage))
        ]
        self._geometries, self._lists = (
            [column.source.name for column in columns.of(storage)]  # type: ignore[union-attr]
            for storage in (Storage.GEOMETRY, Storage.LIST)
        )
        self._only_place = len(every) == len(self._geometries) == 1

        def room(storage: Storage, kind: type[np.generic]) -> Any:
            return np.zeros((len(columns.of(storage)), 1), kind)

        self.events = EventArrays(
            number=room(Storage.NUMBER, np.float64),
            number_rest=room(Storage.NUMBER, np.float64),
            truth=room(Storage.TRUTH, np.int8),
            missing=room(Storage.MISSING, np.uint8),
            string_start=room(Storage.STRING, np.int64),
            string_stop=room(Storage.STRING, np.int64),
            geometry=room(Storage.GEOMETRY, np.int64),
            list_kind=room(Storage.LIST, np.uint8),
            list_start=room(Storage.LIST, np.int64),
            list_stop=room(Storage.LIST, np.int64),
            item_start=np.zeros(_FIRST_ITEMS, np.int64),
            text=np.zeros(0, np.uint8),
            shapes=Shapes.read_one({"type": "Point", "coordinates": [0.0, 0.0]}).arrays,
        )
        self._writer = RowWriter(self.events, every, 1)
        self.events = self.events._replace(text=self._writer.text)
        self._place = self.events.geometry.reshape(-1).data
        self._list_kind, self._list_start, self._list_stop = (
            array.reshape(-1).data
            for array in (self.events.list_kind, self.events.list_start, self.events.list_stop)
        )
        self.joined = np.zeros(2, np.int64)
        self._joined = self.joined.data
        self.limits = columns.space.limits

    def write(self, attributes: Mapping[str, object]) -> GeometryArguments | None:
        """Write what the arrays hold of an event; what else there is of it.

        None where its geometries are not all of an ordinary form.
        """
        point = None
        if len(self._geometries) == 1:  # nearly always one, of a point
            point = parse_point(attributes.get(self._geometries[0]))
            if point is not None:
                self._place[0] = 0
                if self._only_place:
                    return point
        event = EventValues(attributes, self._columns.tokenizer, self._columns.space)
        shapes = self._shapes(event) if point is None else point
        if shapes is None:
            return None
        self._writer.size = 0
        self._writer.write(0, event)
        if self._lists:
            self._write_items(event)
        if self._writer.text is not self.events.text:  # it grew
            self.events = self.events._replace(text=self._writer.text)
        return shapes

    def _write_items(self, event: EventValues) -> None:
        """Write the lists, and their items behind the text of strings."""
        size = self._writer.size
        if len(self._lists) == 1:
            given = event.attributes.get(self._lists[0])
            if type(given) is list and self._write_plain_items(given):
                return
        lists = lists_from_values(
            [event.get(name) for name in self._lists], self._columns.tokenizer
        )
        self._writer.append(lists.text.data)
        self.events.list_kind[:, 0] = lists.kind
        self.events.list_start[:, 0] = lists.start
        self.events.list_stop[:, 0] = lists.stop
        count = len(lists.item_start)
        self._fit_items(count)
        self.events.item_start[:count] = lists.item_start + size
        self._joined[1] = self._joined[0]

    def _write_plain_items(self, given: list[Any]) -> bool:
        """Write the only list, in one piece; whether it is one of ASCII strings."""
        try:
            items = dict.fromkeys(given)
            keys = f"s{_JOIN(items)}" if items else ""
        except TypeError:  # what is no string
            return False
        count = len(items)
        if not keys.isascii() or keys.count(_BETWEEN) >= max(count, 1):
            return False
        self._fit_items(count + 1)
        self._joined[0] = self._writer.size
        self._writer.append(keys.encode())
        self._joined[1] = self._writer.size
        self._list_kind[0], self._list_start[0], self._list_stop[0] = ITEMS, 0, count
        return True

    def _fit_items(self, count: int) -> None:
        if count > len(self.events.item_start):
            self.events = self.events._replace(item_start=np.zeros(2 * count, np.int64))

    def _shapes(self, event: EventValues) -> GeometryArguments | None:
        """Write which shape each column has; the shapes, or None if one is of an odd form."""
        found: list[UncheckedGeometry] = []
        for k, name in enumerate(self._geometries):
            value = event.get(name)
            if value is None:
                self._place[k] = -1
                continue
            one = read_unchecked(value)
            if one is None:
                return None
            self._place[k] = len(found)
            found.append(one)
        return join_unchecked(found) if found else _NOWHERE
