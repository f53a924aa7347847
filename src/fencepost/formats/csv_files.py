"""`CsvFile`: the rows of a CSV file with a header; `CsvEvents`: such rows as events with points."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, BinaryIO, NamedTuple

from fencepost.errors import FencepostError
from fencepost.events.nearest_names import point_columns
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, shorten
from fencepost.formats.file_formats import name_advice, open_input, read_error
from fencepost.formats.json_elements import InvalidRowError
from fencepost.formats.line_batches import (
    MAX_BATCH_ROWS,
    MAX_LINE_BYTES,
    Line,
    line_batches,
    too_long_reason,
)

GEOMETRY = "geometry"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII).fullmatch
_MAX_NUMBER_LENGTH = 400
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}
_BOOLEANS = {"true": True, "false": False}


class CsvRow(NamedTuple):
    """The fields of a row, its number from 0, and the line on which it ends, from 1."""

    fields: list[str]
    row: int
    line: int

    @property
    def raw(self) -> str:
        """The row as text, shortened."""
        return shorten(",".join(self.fields))


class CsvBatch(NamedTuple):
    """Some rows, the bytes read up to their end, and whether a pipe has no data after them."""

    rows: list[CsvRow]
    done: int
    pause: bool


class CsvFile:
    """The rows of a CSV file.

    Parameters
    ----------
    path, name : str
        The path of the file, and its name in messages.
    columns : str
        The names that the first line may have, for the message if there is none.
    advice : str
        How to write a field with a comma, for rows that have too many fields.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    """

    def __init__(self, path: str, name: str, columns: str, advice: str) -> None:
        csv.field_size_limit(MAX_LINE_BYTES)
        self._name, self._advice = name, advice
        self._lines = _TextLines(path, name)
        self._reader = csv.reader(self._lines, strict=True)
        self.header = self._read_header(columns)

    def _read_header(self, columns: str) -> list[str]:
        try:
            header = [column.strip() for column in next(self._reader)]
        except StopIteration:
            raise FencepostError(
                f"{self._name} is empty; its first line must name the columns: {columns}"
            ) from None
        except _LineTooLongError:
            raise FencepostError(
                f"{self._name} begins with a line of more than {MAX_LINE_BYTES:,} bytes; its first "
                f"line must name the columns: {columns}; end lines with a newline, or name the "
                "format of the file with --format"
            ) from None
        except csv.Error as error:
            raise FencepostError(f"{self._name} is no CSV: {error}; write it again") from None
        separator = next((mark for mark in _OTHER_SEPARATORS if mark in "".join(header)), None)
        if len(header) == 1 and separator is not None:
            raise FencepostError(
                f"{self._name} separates its columns with {_OTHER_SEPARATORS[separator]}; write it "
                f"with commas, as in {columns}"
            )
        return header

    def batches(self, on_dead_letter: DeadLetterHandler) -> Iterator[CsvBatch]:
        """Yield the rows below the header; rows that cannot be used become dead letters."""
        rows: list[CsvRow] = []
        number = 0
        lines = self._lines
        while True:
            fields: list[str] = []
            try:
                fields = next(self._reader)
                if fields:
                    self._check(fields)
                    rows.append(CsvRow(fields, number, lines.number))
            except StopIteration:
                break
            except (csv.Error, ValueError) as error:
                raw = shorten(",".join(fields))
                on_dead_letter(DeadLetter(self._name, number, str(error), raw, lines.number))
                number += 1
            else:
                number += bool(fields)
            if len(rows) == MAX_BATCH_ROWS or (lines.pause and rows):
                yield CsvBatch(rows, lines.done, lines.pause)
                rows = []
        if rows:
            yield CsvBatch(rows, lines.done, False)

    def _check(self, fields: list[str]) -> None:
        if len(fields) != len(self.header):
            raise ValueError(
                f"it has {len(fields)} fields and the header {len(self.header)}; {self._advice}"
            )
        try:
            "".join(fields).encode()
        except UnicodeEncodeError:
            raise ValueError("it is not UTF-8; write the file as UTF-8") from None


class _LineTooLongError(ValueError):
    """A line of more than `MAX_LINE_BYTES`; the message is the reason of a dead letter."""


class _TextLines:
    """The lines of a CSV file as text; a line that is too long raises, but does not end them."""

    def __init__(self, path: str, name: str) -> None:
        self._name = name
        self._lines = self._read(open_input(path))
        self.number = self.done = 0
        self.pause = False  # whether a pipe has no data after the current line

    def _read(self, stream: BinaryIO) -> Iterator[Line]:
        for batch in line_batches(stream):
            last = len(batch.lines) - 1
            for number, line in enumerate(batch.lines):
                self.pause = batch.pause and number == last
                yield line

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


@dataclass(frozen=True, slots=True)
class PointColumns:
    """The names of the columns that hold the x and the y of points."""

    x: str
    y: str


class CsvEvents:
    """The rows of a CSV file as events.

    A field that is a number in JSON is a number, `true` and `false` are booleans, an empty field is
    a missing attribute, and all else is text. The geometry is the point of two columns, or a column
    `geometry` of well-known text.

    Attributes
    ----------
    names : list of str
        The attributes of the events.

    Raises
    ------
    FencepostError
        If the file has no such columns.
    """

    def __init__(self, path: str, name: str, points: PointColumns | None) -> None:
        self._file = CsvFile(
            path, name, "id,lon,lat,kind", 'put a text that has a comma in quotes, as in "a, b"'
        )
        self._points = points
        header = [column for column in self._file.header if column]
        repeated = next((column for column in header if header.count(column) > 1), None)
        if repeated is not None:
            raise FencepostError(f"{name} has several columns {repeated}; rename all but one")
        self.names = header if GEOMETRY in header else [*header, GEOMETRY]
        if points is None:
            if GEOMETRY not in header:
                raise FencepostError(_no_geometry_problem(name, header))
            return
        for option, column in (("--x", points.x), ("--y", points.y)):
            if column not in header:
                raise FencepostError(
                    f"{name} has no column {column}, which {option} names; "
                    f"{name_advice(column, header)}"
                )
        if GEOMETRY in header:
            raise FencepostError(
                f"{name} has a column {GEOMETRY}; leave out --x and --y, or rename that column"
            )

    def batches(self, on_dead_letter: DeadLetterHandler) -> Iterator[CsvBatch]:
        """Yield the rows below the header; rows that cannot be used become dead letters."""
        return self._file.batches(on_dead_letter)

    def event(self, row: CsvRow) -> dict[str, Any]:
        """Return a row as an event. Raise InvalidRowError if its point cannot be made."""
        named = dict(zip(self._file.header, row.fields, strict=True))
        event: dict[str, Any] = {
            name: _value(text) for name, text in named.items() if name and text
        }
        points = self._points
        if points is not None and (named[points.x] or named[points.y]):
            position = [_coordinate(name, named[name]) for name in (points.x, points.y)]
            event[GEOMETRY] = {"type": "Point", "coordinates": position}
        return event


def _no_geometry_problem(name: str, header: Sequence[str]) -> str:
    columns = point_columns(header)
    options = "--x and --y" if columns is None else f"--x {columns[0]} --y {columns[1]}"
    return (
        f"{name} has no column {GEOMETRY}; make points of two columns with {options}, or name a "
        f"column of well-known text {GEOMETRY}; it has: {', '.join(header):.200}"
    )


def _value(text: str) -> str | int | float | bool:
    if _NUMBER(text) and len(text) <= _MAX_NUMBER_LENGTH:
        number = float(text)
        if isfinite(number):
            return int(text) if text.removeprefix("-").isdigit() else number
    return _BOOLEANS.get(text.lower(), text)


def _coordinate(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or "_" in text:
        raise InvalidRowError(
            f"its {name} is {text!r:.60}, so it has no point; give a number with a decimal point, "
            "as in 8.5"
        )
    return number
