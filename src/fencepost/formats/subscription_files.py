"""`read_subscriptions`: the subscriptions of a file, read in batches."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fencepost.errors import FencepostError
from fencepost.events.event_attributes import is_feature_row
from fencepost.events.feature_tables import may_have_features
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, raise_dead_letter, shorten
from fencepost.formats.event_files import json_batches
from fencepost.formats.file_formats import (
    STDIN,
    Format,
    file_size,
    format_of,
    open_input,
    read_error,
)
from fencepost.formats.line_batches import (
    MAX_BATCH_ROWS,
    MAX_LINE_BYTES,
    line_batches,
    too_long_reason,
)
from fencepost.formats.parquet_files import ParquetRows

REQUIRED_COLUMNS = ("id", "expression")
COLUMNS = (*REQUIRED_COLUMNS, "subscriber", "expires")


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
    if kind is Format.PARQUET:
        file = ParquetRows(path)
        if not may_have_features(file.names):  # whose columns are properties
            _check_columns(file.names, name)
        return SubscriptionFile(name, file.rows, _from_tables(file, on_dead_letter))
    if kind is Format.CSV:
        lines = _TextLines(path, name)
        return SubscriptionFile(name, file_size(path), _from_csv(lines, name, on_dead_letter))
    total, batches = json_batches(path, name, kind, on_dead_letter)
    return SubscriptionFile(name, total, (_from_objects(batch) for batch in batches))


def _check_columns(names: Sequence[str], name: str) -> None:
    missing = [column for column in REQUIRED_COLUMNS if column not in names]
    if missing:
        raise FencepostError(
            f"{name} has no column {' and no '.join(missing)}; it has: {', '.join(names):.200}; "
            f"the columns of subscriptions are {', '.join(COLUMNS)}"
        )


def _row(values: Mapping[str, Any], row: int, line: int | None, raw: str) -> SubscriptionRow:
    chosen = {name: values.get(name) for name in COLUMNS}
    for name in ("id", "subscriber"):
        if type(chosen[name]) is int:
            chosen[name] = str(chosen[name])
    return SubscriptionRow(chosen, row, line, raw)


def _from_objects(batch: Any) -> tuple[list[SubscriptionRow], int]:
    rows = []
    for number, value in enumerate(batch.events):
        if value.get("type") == "Feature" and isinstance(value.get("properties"), dict):
            value = _values_of_feature(value)
        line = None if batch.lines is None else int(batch.lines[number])
        rows.append(_row(value, int(batch.rows[number]), line, _raw(value)))
    return rows, batch.done


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
            values = _values_of_feature(columns) if is_feature_row(columns) else columns
            rows.append(_row(values, number, None, _raw(values)))
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
    lines: _TextLines, name: str, on_dead_letter: DeadLetterHandler
) -> Iterator[tuple[list[SubscriptionRow], int]]:
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(lines, strict=True)
    header = _header(reader, name)
    rows: list[SubscriptionRow] = []
    number = 0
    while True:
        fields: list[str] = []
        try:
            fields = next(reader)
            if not fields:
                continue
            rows.append(_row_of_csv(fields, header, number, lines.number))
        except StopIteration:
            break
        except (csv.Error, ValueError) as error:
            raw = shorten(",".join(fields))
            on_dead_letter(DeadLetter(name, number, str(error), raw, lines.number))
        number += 1
        if len(rows) == MAX_BATCH_ROWS:
            yield rows, lines.done
            rows = []
    if rows:
        yield rows, lines.done


class _LineTooLongError(ValueError):
    """A line of more than `MAX_LINE_BYTES`; the message is the reason of a dead letter."""


class _TextLines:
    """The lines of a CSV file as text; a line that is too long raises, but does not end them."""

    def __init__(self, path: str, name: str) -> None:
        stream = open_input(path)
        self._name = name
        self._lines = (line for batch in line_batches(stream) for line in batch.lines)
        self.number = self.done = 0

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        try:
            line = next(self._lines)
        except OSError as error:
            raise read_error(self._name, error) from error
        self.number = line.number
        self.done += line.length + 1
        if line.is_too_long:
            raise _LineTooLongError(too_long_reason(line))
        text = line.text.decode("utf-8", "surrogateescape") + "\n"
        return text.removeprefix("\ufeff") if line.number == 1 else text


def _header(reader: Any, name: str) -> list[str]:
    try:
        header = [column.strip().lower() for column in next(reader)]
    except StopIteration:
        raise FencepostError(
            f"{name} is empty; its first line must name the columns: {','.join(COLUMNS)}"
        ) from None
    except _LineTooLongError:
        raise FencepostError(
            f"{name} begins with a line of more than {MAX_LINE_BYTES:,} bytes; its first line must "
            f"name the columns: {','.join(COLUMNS)}; end lines with a newline, or name the format "
            "of the file with --format"
        ) from None
    except csv.Error as error:
        raise FencepostError(f"{name} is no CSV: {error}; write it again") from None
    _check_columns(header, name)
    return header


def _row_of_csv(fields: list[str], header: list[str], number: int, line: int) -> SubscriptionRow:
    if len(fields) != len(header):
        raise ValueError(
            f"it has {len(fields)} fields and the header {len(header)}; put an expression that "
            'has a comma in quotes, as in "S_DWITHIN(place, POINT(1 2), 3)"'
        )
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        raise ValueError("it is not UTF-8; write the file as UTF-8") from None
    values = {column: value or None for column, value in zip(header, fields, strict=True)}
    return _row(values, number, line, shorten(",".join(fields)))
