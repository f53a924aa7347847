"""`ColumnRegistry`: the columns of events that subscriptions compare, and their numbers."""

from __future__ import annotations

from enum import IntEnum

from fencepost.cql2 import ast
from fencepost.events.tokenizer import DEFAULT_TOKENIZER, Tokenizer
from fencepost.filters.checks import Column, ColumnKind
from fencepost.geometry.crs import Crs
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
    """Numbers the columns that subscriptions compare. A column never changes its number.

    Attributes
    ----------
    tokenizer : Tokenizer
        Splits texts of events and keywords of subscriptions into words.
    space : Space
        The coordinate space of geometries.
    crs : Crs or None
        With a planar space, the CRS of geometries, once some have declared it.
    size : int
        Number of columns.
    """

    def __init__(
        self, tokenizer: Tokenizer = DEFAULT_TOKENIZER, space: Space = Space.PLANAR
    ) -> None:
        self.tokenizer = tokenizer
        self.space = space
        self.crs: Crs | None = None
        self.by_storage: tuple[list[Column], ...] = tuple([] for _ in Storage)
        self._numbers: dict[Column, int] = {}
        self.size = 0

    def register(self, column: Column) -> int:
        """Return the row of a column in its array, a new row if the column is new."""
        number = self._numbers.get(column)
        if number is None:
            rows = self.by_storage[STORAGE[column.kind]]
            number = self._numbers[column] = len(rows)
            rows.append(column)
            # The column is appended before `size` is raised. A match relies on it, because it
            # reads `size` first, and copies the columns again only if `size` has changed.
            self.size += 1
        return number

    def number_of(self, column: Column) -> int | None:
        """Return the row of a column in its array, or None if it is not registered."""
        return self._numbers.get(column)

    def of(self, storage: Storage) -> list[Column]:
        """Return the columns that are rows of an array, in order."""
        return self.by_storage[storage]

    def attributes(self, *storages: Storage) -> set[str]:
        """Return the attributes of events that the columns of some arrays are computed from."""
        return {
            p.name for s in storages for c in self.by_storage[s] for p in ast.properties(c.source)
        }

    def all_attributes(self) -> set[str]:
        """Return the attributes of events that any column is computed from."""
        return self.attributes(*Storage)

    def geometry_attributes(self) -> set[str]:
        """Return the attributes of events that are compared as geometries.

        These include attributes that are compared with other attributes of the same event.
        """
        compared_in_event = {
            p.name
            for c in self.by_storage[Storage.TRUTH]
            if isinstance(c.source, (ast.SpatialCondition, ast.NearCondition))
            for p in ast.properties(c.source)
        }
        return self.attributes(Storage.GEOMETRY) | compared_in_event

    def copy(self) -> ColumnRegistry:
        """Return a copy, to which later columns are not added."""
        copy = ColumnRegistry(self.tokenizer, self.space)
        copy.by_storage = tuple(list(rows) for rows in self.by_storage)
        copy.crs = self.crs
        copy._numbers = dict(self._numbers)
        copy.size = self.size
        return copy

    def register_all(self, other: ColumnRegistry) -> None:
        """Register the columns that were added to a copy of this registry, and take its CRS."""
        self.crs = self.crs or other.crs
        for rows in other.by_storage:
            for column in rows:
                self.register(column)
