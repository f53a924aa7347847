"""Provides `SubscriptionReader`, which reads rows of subscriptions into a `Matcher`.

A row has an `id` and, optionally, a `subscriber`. Its conditions are an `expression`, with an
optional `expires`, or they are in columns, as `Matcher.subscribe_columns` takes them; a
`SubscriptionLayout` names those columns. An invalid row gets a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.cql2.ast import SpatialFunction
from fencepost.engine import ColumnRegistry
from fencepost.engine.matcher import Matcher, matcher_from_segments
from fencepost.engine.requirements import (
    Requirements,
    requirements_of_columns,
    requirements_of_rows,
)
from fencepost.engine.storage.manifest import columns_of
from fencepost.errors import FencepostError, ModelError
from fencepost.geometry.space import Space, SpaceName

BadRows = list[tuple[int, str]]
RowRequirements = tuple[NDArray[np.int64], Requirements]  # rows of a table, what they require
_RELATIONS = {function.name for function in SpatialFunction}


@dataclass(frozen=True, slots=True)
class SubscriptionLayout:
    """The columns of conditions: arguments of `Matcher.subscribe_columns`, as column names.

    Attributes
    ----------
    regions : mapping
        Attribute to (column of geometries, relation or column of relations).
    within : mapping
        Attribute to (column of geometries, distance or column of distances).
    keywords, equals : mapping
        Attribute to column.
    """

    regions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    within: Mapping[str, tuple[str, float | str]] = field(default_factory=dict)
    keywords: Mapping[str, str] = field(default_factory=dict)
    equals: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_columnar(self) -> bool:
        """Whether conditions are in columns instead of an expression."""
        return bool(self.regions or self.within or self.keywords or self.equals)

    def used(self, available: Sequence[str]) -> list[str]:
        """Return those of the available columns that are read.

        Raises
        ------
        ModelError
            If a required column is missing.
        """
        required = ["id"]
        if not self.is_columnar:
            required.append("expression")
        for geometries, relation in self.regions.values():
            required += [geometries] if relation.upper() in _RELATIONS else [geometries, relation]
        for geometries, distance in self.within.values():
            required += [geometries, distance] if isinstance(distance, str) else [geometries]
        required += [*self.keywords.values(), *self.equals.values()]
        missing = [name for name in required if name not in available]
        if missing:
            raise ModelError(
                f"the subscriptions have no column {missing[0]!r}; they have: "
                f"{', '.join(available)}"
            )
        optional = ["subscriber"] if self.is_columnar else ["subscriber", "expires"]
        return list(dict.fromkeys([*required, *(name for name in optional if name in available)]))


@dataclass(frozen=True, slots=True)
class SubscriptionReader:
    """Reads tables of subscriptions.

    Attributes
    ----------
    layout : SubscriptionLayout
        The columns of the tables.
    space : {"wgs84", "planar"}
        The coordinate space of the matchers.
    stop_words : tuple of str
        The stop words of the matchers.
    """

    layout: SubscriptionLayout
    space: SpaceName
    stop_words: tuple[str, ...]

    def __call__(
        self, table: pa.Table, columns: ColumnRegistry | None = None
    ) -> tuple[Matcher, BadRows]:
        """Return a matcher of the valid rows, and the invalid rows with reasons.

        Parameters
        ----------
        table : Table
            The subscriptions.
        columns : ColumnRegistry, optional
            The columns that the matcher starts with; matchers that start alike number them alike.
        """
        if columns is None:
            matcher = Matcher(self.space, stop_words=self.stop_words)
        else:
            matcher = matcher_from_segments(columns.copy(), ())
        bad: BadRows = []
        table = with_names_as_text(table)
        if self.layout.is_columnar:
            _add_isolating_bad_rows(
                table, 0, bad, lambda rows, _: matcher.subscribe_columns(**self._arguments(rows))
            )
        else:
            matcher.subscribe_many(table, bad)
        matcher.compact()
        return matcher, bad

    def required(self, table: pa.Table) -> tuple[list[RowRequirements], ColumnRegistry, BadRows]:
        """Return what the valid rows require of events, the columns they refer to, and bad rows.

        It builds no matcher, and it accepts duplicate ids.
        """
        columns = columns_of((), self.stop_words, Space(self.space))
        requirements: list[RowRequirements] = []
        bad: BadRows = []

        def add(part: pa.Table, first: int) -> None:
            rows = np.arange(first, first + part.num_rows)
            requirements.append((rows, requirements_of_columns(columns, **self._arguments(part))))

        table = with_names_as_text(table)
        if self.layout.is_columnar:
            _add_isolating_bad_rows(table, 0, bad, add)
        else:
            requirements.append(requirements_of_rows(columns, table, bad))
        return requirements, columns, bad

    def _arguments(self, table: pa.Table) -> dict[str, Any]:
        """Return the arguments of `Matcher.subscribe_columns`."""

        def column(name: str) -> pa.Array:
            array: pa.Array = table.column(name).combine_chunks()
            return array

        def column_or_value(value: Any) -> Any:
            return (
                column(value) if isinstance(value, str) and value in table.column_names else value
            )

        ids = column("id")
        arguments: dict[str, Any] = {
            "ids": ids,
            "subscribers": None,
            "regions": {
                attribute: (column(geometries), _as_list(column_or_value(relation)))
                for attribute, (geometries, relation) in self.layout.regions.items()
            },
            "within": {
                attribute: (column(geometries), _as_numpy(column_or_value(distance)))
                for attribute, (geometries, distance) in self.layout.within.items()
            },
            "keywords": {
                attribute: column(name) for attribute, name in self.layout.keywords.items()
            },
            "equals": {
                attribute: column(name).to_pylist()
                for attribute, name in self.layout.equals.items()
            },
        }
        if "subscriber" in table.column_names:
            subscribers = column("subscriber")
            if pa.types.is_null(subscribers.type):
                subscribers = ids
            elif subscribers.null_count and pa.types.is_string(subscribers.type):
                subscribers = subscribers.fill_null(ids)
            arguments["subscribers"] = subscribers
        return arguments


def with_names_as_text(table: pa.Table) -> pa.Table:
    """Return the table with integer ids and subscribers, as databases have them, as strings."""
    for index, column in enumerate(table.schema):
        if column.name in ("id", "subscriber") and pa.types.is_integer(column.type):
            text = table.column(index).cast(pa.string())
            table = table.set_column(index, column.name, text)
    return table


def _add_isolating_bad_rows(
    table: pa.Table, first: int, bad: BadRows, add: Callable[[pa.Table, int], None]
) -> None:
    """Add rows; if that fails, add each half by itself, until a bad row is alone.

    first : the number of the table's first row.
    """
    if not table.num_rows:
        return
    try:
        add(table, first)
    except (FencepostError, UnicodeDecodeError) as error:
        if table.num_rows == 1:
            not_utf8 = isinstance(error, UnicodeDecodeError)
            reason = f"a text is not UTF-8: {error}" if not_utf8 else _without_row(str(error))
            bad.append((first, reason))
            return
        half = table.num_rows // 2
        _add_isolating_bad_rows(table.slice(0, half), first, bad, add)
        _add_isolating_bad_rows(table.slice(half), first + half, bad, add)


# How errors name the only row of a table of one row. This number means nothing to the user.
_NAMED_ROW = re.compile(r"^row 0(?:: | of )| in row 0\b")


def _without_row(reason: str) -> str:
    return _NAMED_ROW.sub("", reason).replace("; row 0 is ", "; saw ")


def _as_list(values: Any) -> Any:
    return values.to_pylist() if isinstance(values, pa.Array) else values


def _as_numpy(values: Any) -> Any:
    return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values
