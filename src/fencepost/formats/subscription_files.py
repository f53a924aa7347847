"""`read_subscriptions`: the subscriptions of a file, read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fencepost.errors import FencepostError
from fencepost.events.event_attributes import is_feature_row
from fencepost.events.feature_tables import may_have_features
from fencepost.formats.csv_files import CsvFile, CsvRow
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, raise_dead_letter, shorten
from fencepost.formats.event_files import Batch, json_batches
from fencepost.formats.file_formats import STDIN, Format, file_size, format_of
from fencepost.formats.parquet_files import ParquetRows

REQUIRED_COLUMNS = ("id", "expression")
COLUMNS = (*REQUIRED_COLUMNS, "subscriber", "expires")
_FENCE_ADVICE = "to make a fence of each geometry, give `fencepost index` the option --relation"
_NO_EXPRESSION = f"it has no expression; {_FENCE_ADVICE}"
_COMMA_ADVICE = (
    'put an expression that has a comma in quotes, as in "S_DWITHIN(place, POINT(1 2), 3)"'
)


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """A row of a file of subscriptions: its values, its row and line number, and its raw text."""

    values: dict[str, Any]
    row: int
    line: int | None
    raw: str


@dataclass(frozen=True, slots=True)
class SubscriptionFile:
    """The subscriptions of a file; iterate over it once for pairs of a batch and a position.

    A batch is a list of rows. Positions and `total` are in bytes, characters or rows of the file.
    """

    name: str
    total: int | None
    batches: Iterator[tuple[list[SubscriptionRow], int]]

    def __iter__(self) -> Iterator[tuple[list[SubscriptionRow], int]]:
        return self.batches


def read_subscriptions(
    path: str | Path, dead_letters: DeadLetterHandler | None = None, *, format: Format | None = None
) -> SubscriptionFile:
    """Open a file of subscriptions: `id`, `expression` and, optionally, `subscriber`, `expires`.

    Parameters
    ----------
    path : str or Path
        CSV with a header, newline-delimited JSON, GeoJSON (the properties of each Feature; its
        geometry is ignored) or Parquet; `-` is standard input.
    dead_letters : callable, optional
        Called with each row that cannot be read. Left out, the first such row raises. Expressions
        are not parsed here.
    format : Format, optional
        The format of the file; overrides the ending.

    Raises
    ------
    FencepostError
        If the file as a whole cannot be read, or has no column `id` or `expression`.
    """
    path = str(path)
    on_dead_letter = dead_letters or raise_dead_letter
    kind = format_of(path, format)
    name = "standard input" if path == STDIN else path
    if kind is Format.GEOPACKAGE:
        raise FencepostError(f"{name} is a GeoPackage, which holds no expressions; {_FENCE_ADVICE}")
    if kind is Format.PARQUET:
        file = ParquetRows(path)
        if not may_have_features(file.names):  # whose columns are properties
            _check_columns(file.names, name, file.geometry is not None)
        return SubscriptionFile(name, file.rows, _from_tables(file, on_dead_letter))
    if kind is Format.CSV:
        rows = CsvFile(path, name, ",".join(COLUMNS), _COMMA_ADVICE)
        header = [column.lower() for column in rows.header]
        _check_columns(header, name, False)
        return SubscriptionFile(name, file_size(path), _from_csv(rows, header, on_dead_letter))
    total, batches = json_batches(path, name, kind, on_dead_letter)
    rows_of = partial(_from_objects, name=name, on_dead_letter=on_dead_letter)
    return SubscriptionFile(name, total, map(rows_of, batches))


def _check_columns(names: Sequence[str], name: str, has_geometry: bool) -> None:
    missing = [column for column in REQUIRED_COLUMNS if column not in names]
    if missing:
        raise FencepostError(
            f"{name} has no column {' and no '.join(missing)}; it has: {', '.join(names):.200}; "
            f"the columns of subscriptions are {', '.join(COLUMNS)}"
            f"{f'; {_FENCE_ADVICE}' if has_geometry else ''}"
        )


def subscription_row(
    values: Mapping[str, Any], row: int, line: int | None, raw: str
) -> SubscriptionRow:
    """Return a row of a file as a subscription."""
    return SubscriptionRow({name: values.get(name) for name in COLUMNS}, row, line, raw)


def _from_objects(
    batch: Batch, name: str, on_dead_letter: DeadLetterHandler
) -> tuple[list[SubscriptionRow], int]:
    rows = []
    for number, value in enumerate(batch.events):
        row = int(batch.rows[number])
        line = None if batch.lines is None else int(batch.lines[number])
        is_feature = value.get("type") == "Feature" and isinstance(value.get("properties"), dict)
        values = _values_of_feature(value) if is_feature else value
        if is_feature and _is_fence(value):
            on_dead_letter(DeadLetter(name, row, _NO_EXPRESSION, _raw(values), line))
        else:
            rows.append(subscription_row(values, row, line, _raw(values)))
    return rows, batch.done


def _is_fence(feature: Mapping[str, Any]) -> bool:
    """Return whether a Feature has a place but no expression, as a fence may have."""
    return feature.get("geometry") is not None and "expression" not in (feature["properties"] or {})


def _values_of_feature(feature: Mapping[str, Any]) -> dict[str, Any]:
    properties = feature["properties"] or {}
    id_owner = feature if feature.get("id") is not None else properties
    return {**properties, "id": id_owner.get("id")}


def _raw(values: Mapping[str, Any]) -> str:
    return shorten(f"{values.get('id')!r:.60}: {str(values.get('expression'))[:200]}")


def _from_tables(
    file: ParquetRows, on_dead_letter: DeadLetterHandler
) -> Iterator[tuple[list[SubscriptionRow], int]]:
    for numbers, table, done in file.readable_batches(COLUMNS, on_dead_letter):
        numbered = zip(numbers.tolist(), _microseconds(table).to_pylist(), strict=True)
        rows = []
        for number, columns in numbered:
            is_feature = is_feature_row(columns)
            values = _values_of_feature(columns) if is_feature else columns
            if is_feature and _is_fence(columns):
                on_dead_letter(DeadLetter(file.name, number, _NO_EXPRESSION, _raw(values)))
            else:
                rows.append(subscription_row(values, number, None, _raw(values)))
        yield rows, done


def _microseconds(table: pa.Table) -> pa.Table:
    """Convert the column `expires` to microseconds, which Python can represent."""
    if "expires" in table.column_names:
        index = table.column_names.index("expires")
        column = table.column(index)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
            table = table.set_column(index, "expires", column)
    return table


def _from_csv(
    file: CsvFile, header: list[str], on_dead_letter: DeadLetterHandler
) -> Iterator[tuple[list[SubscriptionRow], int]]:
    for batch in file.batches(on_dead_letter):
        yield [_row_of_csv(row, header) for row in batch.rows], batch.done


def _row_of_csv(row: CsvRow, header: list[str]) -> SubscriptionRow:
    values = {column: value or None for column, value in zip(header, row.fields, strict=True)}
    return subscription_row(values, row.row, row.line, row.raw)
