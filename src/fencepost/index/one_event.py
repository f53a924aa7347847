"""One event as the kernels of `one_event` take it, at the least cost."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.index.columns import Columns, Storage
from fencepost.index.event_lists import lists_of_values
from fencepost.index.table import string_key
from fencepost.kernels.checking import ITEMS
from fencepost.kernels.matching import EventArrays
from fencepost.kernels.one_event import BETWEEN
from fencepost.language.ast import Property
from fencepost.model.geometry import Shapes
from fencepost.model.geometry_plain import joined, plain, point_of
from fencepost.model.raw_shapes import Plain
from fencepost.plan import evaluate
from fencepost.plan.checks import Column, Kind
from fencepost.plan.evaluate import EventValues, pair_of, truth_of

_EXACT = 2**53  # every whole number up to it is a double
_NO_NUMBER = np.nan, 0.0
_NOWHERE = 0.0, 0.0
_BETWEEN = chr(BETWEEN)
_JOIN = f"{_BETWEEN}s".join
_FIRST_TEXT = 256
_FIRST_ITEMS = 64


# What is not in the arrays: the coordinates of a point, or the arrays of shapes.
OneEvent: TypeAlias = tuple[Any, ...]


class EventLayout:
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

    def __init__(self, columns: Columns) -> None:
        self._columns = columns = columns.frozen()
        numbers, truths, strings = (
            columns.of(storage) for storage in (Storage.NUMBER, Storage.TRUTH, Storage.STRING)
        )
        self._numbers = [(_plain_name(column, Kind.NUMBER), column) for column in numbers]
        self._truths = truths
        self._strings = [(_plain_name(column, Kind.STRING), column) for column in strings]
        self._missing, self._geometries, self._lists = (
            [column.source.name for column in columns.of(storage)]  # type: ignore[union-attr]
            for storage in (Storage.MISSING, Storage.GEOMETRY, Storage.LIST)
        )
        self.events = events = EventArrays(
            number=np.full((len(numbers), 1), np.nan),
            number_rest=np.zeros((len(numbers), 1)),
            truth=np.full((len(truths), 1), -1, np.int8),
            missing=np.zeros((len(self._missing), 1), np.uint8),
            string_start=np.full((len(strings), 1), -1),
            string_stop=np.full((len(strings), 1), -1),
            geometry=np.full((len(self._geometries), 1), -1),
            list_kind=np.zeros((len(self._lists), 1), np.uint8),
            list_start=np.zeros((len(self._lists), 1), np.int64),
            list_stop=np.zeros((len(self._lists), 1), np.int64),
            item_start=np.zeros(_FIRST_ITEMS, np.int64),
            text=np.zeros(_FIRST_TEXT, np.uint8),
            shapes=Shapes.read_one({"type": "Point", "coordinates": [0.0, 0.0]}).arrays,
        )
        # An item of a view is written in half the time that one of an array takes.
        self._number, self._rest = _view(events.number), _view(events.number_rest)
        self._truth, self._gone = _view(events.truth), _view(events.missing)
        self._start, self._stop = _view(events.string_start), _view(events.string_stop)
        self._place, self._list_kind = _view(events.geometry), _view(events.list_kind)
        self._list_start, self._list_stop = _view(events.list_start), _view(events.list_stop)
        self._text = events.text.data
        self.joined = np.zeros(2, np.int64)
        self._joined = self.joined.data
        self.limits = columns.space.limits
        others = (numbers, truths, strings, self._missing, self._lists)
        self._only_place = len(self._geometries) == 1 and not any(others)

    def write(self, event: EventValues) -> OneEvent | None:
        """Write what the arrays hold of an event; what else there is of it.

        None where its geometries are not all of an ordinary form.
        """
        shapes = self._shapes(event)
        if shapes is None or (self._only_place and len(shapes) == 2):
            return shapes
        self._write_numbers(event)
        size = self._write_strings(event)
        if self._lists:
            self._write_items(event, size)
        return shapes

    def _write_numbers(self, event: EventValues) -> None:
        attributes = event.attributes
        for k, (name, column) in enumerate(self._numbers):
            value = attributes.get(name) if name is not None else None
            kind = type(value)
            if kind is float or (kind is int and -_EXACT <= value <= _EXACT):  # type: ignore[operator]
                self._number[k], self._rest[k] = value, 0.0
            else:
                self._number[k], self._rest[k] = pair_of(column, event) or _NO_NUMBER
        for k, column in enumerate(self._truths):
            flag = truth_of(column, event)
            self._truth[k] = -1 if flag is None else int(flag)  # it may be one of NumPy
        for k, name in enumerate(self._missing):
            self._gone[k] = event.get(name) is None

    def _write_strings(self, event: EventValues) -> int:
        """Write where strings begin and end in the text, and the text; how long it is."""
        attributes = event.attributes
        size = 0
        for k, (name, column) in enumerate(self._strings):
            value = attributes.get(name) if name is not None else None
            if type(value) is not str:
                value = evaluate.string(column.source, event)  # type: ignore[arg-type]
                if value is None:
                    self._start[k] = -1
                    continue
            key = string_key(value)
            stop = size + len(key)
            self._fit(stop)
            self._text[size:stop] = key
            self._start[k], self._stop[k] = size, stop
            size = stop
        return size

    def _fit(self, size: int) -> None:
        if size > len(self._text):
            grown = np.zeros(2 * size, np.uint8)
            grown[: len(self._text)] = self.events.text
            self.events = self.events._replace(text=grown)
            self._text = grown.data

    def _write_items(self, event: EventValues, size: int) -> None:
        """Write the lists, and their items behind the first `size` bytes of the text."""
        if len(self._lists) == 1:
            given = event.attributes.get(self._lists[0])
            if type(given) is list and self._write_plain_items(given, size):
                return
        lists = lists_of_values([event.get(name) for name in self._lists], self._columns.tokeniser)
        stop = size + len(lists.text)
        self._fit(stop)
        self._text[size:stop] = lists.text.data
        self.events.list_kind[:, 0] = lists.kind
        self.events.list_start[:, 0] = lists.start
        self.events.list_stop[:, 0] = lists.stop
        count = len(lists.item_start)
        self._fit_items(count)
        self.events.item_start[:count] = lists.item_start + size
        self._joined[1] = self._joined[0]

    def _write_plain_items(self, given: list[Any], size: int) -> bool:
        """Write the only list, in one piece; whether it is one of ASCII strings."""
        try:
            items = dict.fromkeys(given)
            keys = f"s{_JOIN(items)}" if items else ""
        except TypeError:  # what is no string
            return False
        count = len(items)
        if not keys.isascii() or keys.count(_BETWEEN) >= max(count, 1):
            return False
        stop = size + len(keys)
        self._fit(stop)
        self._fit_items(count + 1)
        self._text[size:stop] = keys.encode()
        self._joined[0], self._joined[1] = size, stop
        self._list_kind[0], self._list_start[0], self._list_stop[0] = ITEMS, 0, count
        return True

    def _fit_items(self, count: int) -> None:
        if count > len(self.events.item_start):
            self.events = self.events._replace(item_start=np.zeros(2 * count, np.int64))

    def _shapes(self, event: EventValues) -> OneEvent | None:
        """Write which shape each column has; the shapes, or None if one is of an odd form."""
        if len(self._geometries) == 1:  # nearly always one, of a point
            xy = point_of(event.attributes.get(self._geometries[0]))
            if xy is not None:
                self._place[0] = 0
                return xy
        found: list[Plain] = []
        for k, name in enumerate(self._geometries):
            value = event.get(name)
            if value is None:
                self._place[k] = -1
                continue
            one = plain(value)
            if one is None:
                return None
            self._place[k] = len(found)
            found.append(one)
        return joined(found) if found else _NOWHERE


def _view(array: NDArray[Any]) -> Any:
    """The memory of an array of one dimension, or of a row or column."""
    return array.reshape(-1).data


def _plain_name(column: Column, kind: Kind) -> str | None:
    """The attribute that a column is, if it is no more than one, of its kind."""
    source = column.source
    return source.name if column.kind is kind and isinstance(source, Property) else None
