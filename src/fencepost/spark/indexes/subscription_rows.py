"""Rows of a table of subscriptions to a matcher of them; bad rows get a reason.

A row has an `id` and, where given, a `subscriber`. What it asks for is an `expression`, beside
which it may have an `expires`; or it is in columns, as `Matcher.subscribe_columns` takes them,
which a `Form` names.
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
from fencepost.geometry.space import Space

BadRows = list[tuple[int, str]]
Required = tuple[NDArray[np.int64], Requirements]  # of rows of a table
_RELATIONS = {function.name for function in SpatialFunction}


@dataclass(frozen=True, slots=True)
class SubscriptionLayout:
    """Which columns hold what: as `Matcher.subscribe_columns`, with names in place of arrays.

    Attributes
    ----------
    regions : mapping of attribute to (column of geometries, relation or column of relations)
    within : mapping of attribute to (column of geometries, distance or column of distances)
    keywords, equals : mapping of attribute to column
    """

    regions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    within: Mapping[str, tuple[str, float | str]] = field(default_factory=dict)
    keywords: Mapping[str, str] = field(default_factory=dict)
    equals: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_columnar(self) -> bool:
        """Whether conditions are in columns, and not in an expression."""
        return bool(self.regions or self.within or self.keywords or self.equals)

    def used(self, given: Sequence[str]) -> list[str]:
        """The columns that are needed of those that there are.

        Raises
        ------
        ModelError
            Where one is missing.
        """
        named = ["id"]
        if not self.is_columnar:
            named.append("expression")
        for place, relation in self.regions.values():
            named += [place] if relation.upper() in _RELATIONS else [place, relation]
        for place, distance in self.within.values():
            named += [place, distance] if isinstance(distance, str) else [place]
        named += [*self.keywords.values(), *self.equals.values()]
        missing = [name for name in named if name not in given]
        if missing:
            raise ModelError(
                f"the subscriptions have no column {missing[0]!r}; they have: {', '.join(given)}"
            )
        optional = ["subscriber"] if self.is_columnar else ["subscriber", "expires"]
        return list(dict.fromkeys([*named, *(name for name in optional if name in given)]))


@dataclass(frozen=True, slots=True)
class SubscriptionReader:
    """Reads tables of subscriptions.

    Attributes
    ----------
    form : Form
    space, stop_words
        Of the matchers.
    """

    form: SubscriptionLayout
    space: str
    stop_words: tuple[str, ...]

    def __call__(
        self, table: pa.Table, columns: ColumnRegistry | None = None
    ) -> tuple[Matcher, BadRows]:
        """A matcher of the rows that can be read, and why the others cannot.

        columns : what it asks for from the beginning, so that others number them alike.
        """
        if columns is None:
            matcher = Matcher(self.space, stop_words=self.stop_words)
        else:
            matcher = matcher_from_segments(columns.copy(), ())
        bad: BadRows = []
        table = with_names_as_text(table)
        if self.form.is_columnar:
            _add_bisecting(
                table, 0, bad, lambda some, _: matcher.subscribe_columns(**self._arguments(some))
            )
        else:
            matcher.subscribe_many(table, bad)
        matcher.compact()
        return matcher, bad

    def required(self, table: pa.Table) -> tuple[list[Required], ColumnRegistry, BadRows]:
        """What the same rows require, of which no matcher is made, and which columns they ask for.

        An id that comes twice is no reason to refuse a row here.
        """
        columns = columns_of((), self.stop_words, Space(self.space))
        found: list[Required] = []
        bad: BadRows = []

        def add(some: pa.Table, first: int) -> None:
            rows = np.arange(first, first + some.num_rows)
            found.append((rows, requirements_of_columns(columns, **self._arguments(some))))

        table = with_names_as_text(table)
        if self.form.is_columnar:
            _add_bisecting(table, 0, bad, add)
        else:
            found.append(requirements_of_rows(columns, table, bad))
        return found, columns, bad

    def _arguments(self, table: pa.Table) -> dict[str, Any]:
        """What `Matcher.subscribe_columns` is given."""

        def column(name: str) -> pa.Array:
            found: pa.Array = table.column(name).combine_chunks()
            return found

        def or_value(given: Any) -> Any:
            return (
                column(given) if isinstance(given, str) and given in table.column_names else given
            )

        ids = column("id")
        found: dict[str, Any] = {
            "ids": ids,
            "subscribers": None,
            "regions": {
                own: (column(place), _listed(or_value(relation)))
                for own, (place, relation) in self.form.regions.items()
            },
            "within": {
                own: (column(place), _numbers(or_value(distance)))
                for own, (place, distance) in self.form.within.items()
            },
            "keywords": {own: column(name) for own, name in self.form.keywords.items()},
            "equals": {own: column(name).to_pylist() for own, name in self.form.equals.items()},
        }
        if "subscriber" in table.column_names:
            owners = column("subscriber")
            if pa.types.is_null(owners.type):
                owners = ids
            elif owners.null_count and pa.types.is_string(owners.type):
                owners = owners.fill_null(ids)
            found["subscribers"] = owners
        return found


def with_names_as_text(table: pa.Table) -> pa.Table:
    """Ids and subscribers that are integers, as tables of databases have them, as strings."""
    for place, own in enumerate(table.schema):
        if own.name in ("id", "subscriber") and pa.types.is_integer(own.type):
            text = table.column(place).cast(pa.string())
            table = table.set_column(place, own.name, text)
    return table


def _add_bisecting(
    table: pa.Table, first: int, bad: BadRows, add: Callable[[pa.Table, int], None]
) -> None:
    """Add rows, from that number on; where one is bad, the halves, until it is alone."""
    if not table.num_rows:
        return
    try:
        add(table, first)
    except (FencepostError, UnicodeDecodeError) as error:
        if table.num_rows == 1:
            odd = isinstance(error, UnicodeDecodeError)
            told = f"a text is not UTF-8: {error}" if odd else _without_row(str(error))
            bad.append((first, told))
            return
        half = table.num_rows // 2
        _add_bisecting(table.slice(0, half), first, bad, add)
        _add_bisecting(table.slice(half), first + half, bad, add)


# How errors name the row, which is the first and only one of its table. In that of the user
# rows have no numbers.
_NAMED_ROW = re.compile(r"^row 0(?:: | of )| in row 0\b")


def _without_row(reason: str) -> str:
    return _NAMED_ROW.sub("", reason).replace("; row 0 is ", "; saw ")


def _listed(given: Any) -> Any:
    return given.to_pylist() if isinstance(given, pa.Array) else given


def _numbers(given: Any) -> Any:
    return given.to_numpy(zero_copy_only=False) if isinstance(given, pa.Array) else given
