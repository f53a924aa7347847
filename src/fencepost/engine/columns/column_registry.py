"""Which columns the subscriptions of a matcher ask for, and where each is kept."""

from __future__ import annotations

from enum import IntEnum

from fencepost.cql2 import ast
from fencepost.events.tokenizer import EVERY_WORD, Tokenizer
from fencepost.filters.checks import Column, ColumnKind
from fencepost.geometry.space import Space


class Storage(IntEnum):
    """The array of `EventArrays` that a column is a row of."""

    NUMBER = 0
    TRUTH = 1
    MISSING = 2
    STRING = 3
    GEOMETRY = 4
    LIST = 5


STORAGE = {
    ColumnKind.NUMBER: Storage.NUMBER,
    ColumnKind.TIME: Storage.NUMBER,
    ColumnKind.NATIVE_TIME: Storage.NUMBER,
    ColumnKind.SPAN_START: Storage.NUMBER,
    ColumnKind.SPAN_END: Storage.NUMBER,
    ColumnKind.STRING: Storage.STRING,
    ColumnKind.BOOLEAN: Storage.TRUTH,
    ColumnKind.TRUTH: Storage.TRUTH,
    ColumnKind.MISSING: Storage.MISSING,
    ColumnKind.GEOMETRY: Storage.GEOMETRY,
    ColumnKind.LIST: Storage.LIST,
}


class ColumnRegistry:
    """The columns asked for so far; a column keeps its number for ever.

    Attributes
    ----------
    tokenizer : Tokenizer
        How the texts of events, and the keywords beside them, become words.
    space : Space
        What the coordinates of geometries mean.
    size : int
        How many columns there are.
    """

    def __init__(self, tokenizer: Tokenizer = EVERY_WORD, space: Space = Space.PLANAR) -> None:
        self.tokenizer = tokenizer
        self.space = space
        self.by_storage: tuple[list[Column], ...] = tuple([] for _ in Storage)
        self._numbers: dict[Column, int] = {}
        self.size = 0

    def register(self, column: Column) -> int:
        """The row of a column in its array; a new one if it was not asked for before."""
        number = self._numbers.get(column)
        if number is None:
            rows = self.by_storage[STORAGE[column.kind]]
            number = self._numbers[column] = len(rows)
            rows.append(column)
            self.size += 1  # last: who sees it sees the column
        return number

    def number_of(self, column: Column) -> int | None:
        """The row of a column in its array, if it was asked for."""
        return self._numbers.get(column)

    def of(self, storage: Storage) -> list[Column]:
        """The columns kept in one array, in order."""
        return self.by_storage[storage]

    def attributes(self, *storages: Storage) -> set[str]:
        """The attributes of events that the columns in some arrays are made from."""
        return {
            p.name for s in storages for c in self.by_storage[s] for p in ast.properties(c.source)
        }

    def all_attributes(self) -> set[str]:
        """The attributes of events that any column is made from."""
        return self.attributes(*Storage)

    def geometry_attributes(self) -> set[str]:
        """The attributes of events that are compared as geometries."""
        among_events = {
            p.name
            for c in self.by_storage[Storage.TRUTH]
            if isinstance(c.source, (ast.SpatialCondition, ast.NearCondition))
            for p in ast.properties(c.source)
        }
        return self.attributes(Storage.GEOMETRY) | among_events

    def copy(self) -> ColumnRegistry:
        """The columns as they are now, whatever is asked for later."""
        copy = ColumnRegistry(self.tokenizer, self.space)
        copy.by_storage = tuple(list(rows) for rows in self.by_storage)
        copy._numbers = dict(self._numbers)
        copy.size = self.size
        return copy

    def register_all(self, other: ColumnRegistry) -> None:
        """Ask for what a copy of these columns was asked for since."""
        for rows in other.by_storage:
            for column in rows:
                self.register(column)
