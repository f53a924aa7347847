"""Files of subscriptions, a batch of rows at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fencepost.errors import FencepostError
from fencepost.formats.dead_letters import DeadLetter, Letters, refuse, shortened
from fencepost.formats.event_files import json_batches
from fencepost.formats.file_formats import (
    STDIN,
    Format,
    cannot_read,
    file_size,
    format_of,
    open_input,
)
from fencepost.formats.line_batches import BATCH_ROWS, LINE_BYTES, line_batches, too_long
from fencepost.formats.parquet_files import ParquetRows

NEEDED = ("id", "expression")
COLUMNS = (*NEEDED, "subscriber", "expires")


@dataclass(frozen=True, slots=True)
class Row:
    """A subscription as it stands in a file, and where."""

    values: dict[str, Any]
    row: int
    line: int | None
    raw: str


@dataclass(frozen=True, slots=True)
class SubscriptionFile:
    """The subscriptions of a file: iterate for batches of rows and how much is read, once."""

    name: str
    total: int | None
    batches: Iterator[tuple[list[Row], int]]

    def __iter__(self) -> Iterator[tuple[list[Row], int]]:
        return self.batches


def read_subscriptions(
    path: str | Path, dead_letters: Letters | None = None, *, format: Format | None = None
) -> SubscriptionFile:
    """The subscriptions of a file: `id`, `expression` and, where given, `subscriber`, `expires`.

    Parameters
    ----------
    path : str or Path
        CSV with a header, newline-delimited JSON, GeoJSON (of each Feature the properties; its
        geometry is not looked at), Parquet; `-` is standard input.
    dead_letters : callable, optional
        Takes rows that cannot be read; without it the first one raises. Whether an expression
        can be used is not looked at here.
    format : Format, optional
        What the file holds, whatever its name.

    Raises
    ------
    FencepostError
        Where the file as a whole cannot be read, or has no column `id` or `expression`.
    """
    path = str(path)
    letters = dead_letters or refuse
    kind = format_of(path, format)
    name = "standard input" if path == STDIN else path
    if kind is Format.PARQUET:
        file = ParquetRows(path)
        _check_columns(file.names, name)
        return SubscriptionFile(name, file.rows, _from_tables(file, letters))
    if kind is Format.CSV:
        lines = _TextLines(path, name)
        return SubscriptionFile(name, file_size(path), _from_csv(lines, name, letters))
    total, batches = json_batches(path, name, kind, letters)
    return SubscriptionFile(name, total, (_from_objects(batch) for batch in batches))


def _check_columns(names: Sequence[str], name: str) -> None:
    missing = [column for column in NEEDED if column not in names]
    if missing:
        raise FencepostError(
            f"{name} has no column {' and no '.join(missing)}; it has: {', '.join(names):.200}; "
            f"the columns of subscriptions are {', '.join(COLUMNS)}"
        )


def _row(values: Mapping[str, Any], row: int, line: int | None, raw: str) -> Row:
    chosen = {name: values.get(name) for name in COLUMNS}
    for name in ("id", "subscriber"):
        if type(chosen[name]) is int:
            chosen[name] = str(chosen[name])
    return Row(chosen, row, line, raw)


def _from_objects(batch: Any) -> tuple[list[Row], int]:
    rows = []
    for number, value in enumerate(batch.events):
        properties = value.get("properties")
        if value.get("type") == "Feature" and isinstance(properties, dict):
            named = value if value.get("id") is not None else properties
            value = {**properties, "id": named.get("id")}
        line = None if batch.lines is None else int(batch.lines[number])
        rows.append(_row(value, int(batch.rows[number]), line, _raw(value)))
    return rows, batch.done


def _raw(values: Mapping[str, Any]) -> str:
    return shortened(f"{values.get('id')!r:.60}: {str(values.get('expression'))[:200]}")


def _from_tables(file: ParquetRows, letters: Letters) -> Iterator[tuple[list[Row], int]]:
    for numbers, table, done in file.readable_batches(COLUMNS, letters):
        given = zip(numbers.tolist(), _microseconds(table).to_pylist(), strict=True)
        yield [_row(values, number, None, _raw(values)) for number, values in given], done


def _microseconds(table: pa.Table) -> pa.Table:
    """Times as Python can hold them."""
    if "expires" in table.column_names:
        index = table.column_names.index("expires")
        column = table.column(index)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
            table = table.set_column(index, "expires", column)
    return table


def _from_csv(lines: _TextLines, name: str, letters: Letters) -> Iterator[tuple[list[Row], int]]:
    csv.field_size_limit(LINE_BYTES)
    reader = csv.reader(lines, strict=True)
    header = _header(reader, name)
    rows: list[Row] = []
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
            raw = shortened(",".join(fields))
            letters(DeadLetter(name, number, str(error), raw, lines.number))
        number += 1
        if len(rows) == BATCH_ROWS:
            yield rows, lines.done
            rows = []
    if rows:
        yield rows, lines.done


class _TextLines:
    """The lines of a CSV file as text; one that is too long raises, and the next can be read."""

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
            raise cannot_read(self._name, error) from error
        self.number = line.number
        self.done += line.length + 1
        if line.too_long:
            raise ValueError(too_long(line))
        text = line.text.decode("utf-8", "surrogateescape") + "\n"
        return text.removeprefix("\ufeff") if line.number == 1 else text


def _header(reader: Any, name: str) -> list[str]:
    try:
        header = [column.strip().lower() for column in next(reader)]
    except StopIteration:
        raise FencepostError(
            f"{name} is empty; its first line must name the columns: {','.join(COLUMNS)}"
        ) from None
    except csv.Error as error:
        raise FencepostError(f"{name} is no CSV: {error}; write it again") from None
    _check_columns(header, name)
    return header


def _row_of_csv(fields: list[str], header: list[str], number: int, line: int) -> Row:
    if len(fields) != len(header):
        raise ValueError(
            f"it has {len(fields)} fields and the header {len(header)}; put an expression that "
            'holds a comma in quotes, as in "S_DWITHIN(place, POINT(1 2), 3)"'
        )
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        raise ValueError("it is not UTF-8; write the file as UTF-8") from None
    values = {column: value or None for column, value in zip(header, fields, strict=True)}
    return _row(values, number, line, shortened(",".join(fields)))
