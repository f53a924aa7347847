"""`read_events`: the events of a file, read in batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import FencepostError
from fencepost.events import EventTable
from fencepost.events.event_attributes import is_feature_row
from fencepost.formats.csv_files import CsvEvents, PointColumns
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, raise_dead_letter, shorten
from fencepost.formats.file_formats import (
    STDIN,
    Format,
    file_size,
    format_of,
    open_input,
    read_error,
)
from fencepost.formats.geopackage_files import GeoPackageRows
from fencepost.formats.json_elements import (
    InvalidRowError,
    check_object,
    elements,
    parse_object_line,
)
from fencepost.formats.line_batches import MAX_BATCH_ROWS, Line, line_batches, too_long_reason
from fencepost.formats.parquet_files import ParquetRows
from fencepost.geometry.crs import Crs


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of a file.

    Attributes
    ----------
    events : Arrow table, or list of JSON objects
        The rows that can be used.
    rows : array of int64
        The row number of each event in the file, from 0.
    lines : array of int64, or None
        The line of each event, from 1; None if the file has no lines.
    done : int
        How much of the file has been read, in the unit of `EventFile.total`.
    pause : bool
        Whether a pipe has no further data at the moment.
    """

    events: pa.Table | list[dict[str, Any]]
    rows: NDArray[np.int64]
    lines: NDArray[np.int64] | None
    done: int
    pause: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Batch:
        """Return the events from `start` to `stop`."""
        events = self.events
        chosen = (
            events[start:stop] if isinstance(events, list) else events.slice(start, stop - start)
        )
        lines = None if self.lines is None else self.lines[start:stop]
        return Batch(chosen, self.rows[start:stop], lines, self.done, self.pause)

    def event(self, number: int) -> dict[str, Any]:
        """Return one event, by its number in the batch: an object, or the columns of a row."""
        if isinstance(self.events, list):
            return self.events[number]
        try:
            row = EventTable(self.events.slice(number, 1)).row(0)
        except FencepostError as error:
            raise FencepostError(
                f"row {self.rows[number]} has a value that Python cannot represent: {error}"
            ) from error
        return {**row, "type": "Feature"} if is_feature_row(row) else {**row}


@dataclass(frozen=True, slots=True)
class EventFile:
    """The events of a file; iterate over it once for the batches.

    Attributes
    ----------
    name : str
        The name of the file in messages.
    total : int or None
        The size of the file in bytes, characters or rows; None if unknown.
    geometry : str or None
        The primary geometry column of GeoParquet.
    crs : dict
        The member `crs` of that column's metadata; empty if absent.
    names : sequence of str
        The names of all columns of a table, whether or not they are read; else empty.
    declared_crs : mapping of str to Crs
        The CRS of columns that declare one.
    """

    name: str
    total: int | None
    batches: Iterator[Batch]
    geometry: str | None
    crs: dict[str, Any]
    names: Sequence[str] = ()
    declared_crs: Mapping[str, Crs] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches


def read_events(
    path: str | Path,
    dead_letters: DeadLetterHandler | None = None,
    *,
    format: Format | None = None,
    columns: Collection[str] | None = None,
    points: PointColumns | None = None,
    layer: str | None = None,
) -> EventFile:
    """Open a file of events.

    Parameters
    ----------
    path : str or Path
        GeoJSON, newline-delimited JSON, Parquet, GeoParquet, GeoPackage or CSV, by the ending of
        its name; `-` is standard input with newline-delimited JSON.
    dead_letters : callable, optional
        Called with each row that cannot be used. Left out, the first such row raises.
    format : Format, optional
        The format of the file; overrides the ending.
    columns : collection of str, optional
        The attributes to read from a Parquet file or a GeoPackage; all columns if left out.
    points : PointColumns, optional
        The columns of a CSV file that hold the x and the y of points.
    layer : str, optional
        The layer of a GeoPackage.

    Raises
    ------
    FencepostError
        If the file as a whole cannot be read.
    """
    path = str(path)
    on_dead_letter = dead_letters or raise_dead_letter
    kind = format_of(path, format)
    name = "standard input" if path == STDIN else path
    check_file_options(name, kind, points, layer)
    if kind is Format.CSV:
        rows = CsvEvents(path, name, points)
        csv_batches = _batches_of_csv(rows, name, on_dead_letter)
        return EventFile(name, file_size(path), csv_batches, None, {}, rows.names)
    if kind in (Format.PARQUET, Format.GEOPACKAGE):
        file = ParquetRows(path) if kind is Format.PARQUET else GeoPackageRows(path, layer)
        tables = _table_batches(file, columns, on_dead_letter)
        return EventFile(
            name, file.rows, tables, file.geometry, file.crs, file.names, file.declared_crs
        )
    total, batches = json_batches(path, name, kind, on_dead_letter)
    return EventFile(name, total, batches, None, {})


def check_file_options(
    name: str, kind: Format, points: PointColumns | None, layer: str | None
) -> None:
    """Raise FencepostError if options are given that the format of a file does not have."""
    if points is not None and kind is not Format.CSV:
        raise FencepostError(
            f"{name} is no CSV, and --x and --y name columns of a CSV file; leave them out"
        )
    if layer is not None and kind is not Format.GEOPACKAGE:
        raise FencepostError(f"{name} is no GeoPackage, so it has no layers; leave out --layer")


def _table_batches(
    file: ParquetRows | GeoPackageRows,
    columns: Collection[str] | None,
    on_dead_letter: DeadLetterHandler,
) -> Iterator[Batch]:
    for rows, table, done in file.readable_batches(columns, on_dead_letter):
        yield Batch(table, rows, None, done)


def _batches_of_csv(
    file: CsvEvents, name: str, on_dead_letter: DeadLetterHandler
) -> Iterator[Batch]:
    for batch in file.batches(on_dead_letter):
        good, events = [], []
        for row in batch.rows:
            try:
                events.append(file.event(row))
                good.append(row)
            except InvalidRowError as error:
                on_dead_letter(DeadLetter(name, row.row, str(error), row.raw, row.line))
        rows = np.array([row.row for row in good], np.int64)
        lines = np.array([row.line for row in good], np.int64)
        yield Batch(events, rows, lines, batch.done, batch.pause)


def json_batches(
    path: str, name: str, kind: Format, on_dead_letter: DeadLetterHandler
) -> tuple[int | None, Iterator[Batch]]:
    """Open a GeoJSON or newline-delimited JSON file. Return its size, if known, and batches."""
    stream = open_input(path)
    if kind is Format.NDJSON:
        return file_size(path), _batches_of_lines(stream, name, on_dead_letter)
    try:
        text = stream.read().decode("utf-8-sig")
    except OSError as error:
        raise read_error(path, error) from error
    except UnicodeDecodeError as error:
        raise FencepostError(
            f"{name} is not UTF-8 at byte {error.start + 1:,}, so it is no JSON; write it as "
            "UTF-8, or name its format with --format"
        ) from None
    finally:
        if path != STDIN:
            stream.close()
    return len(text), _batches_of_text(text, name, on_dead_letter)


def _batches_of_lines(stream: Any, name: str, on_dead_letter: DeadLetterHandler) -> Iterator[Batch]:
    row = 0
    try:
        for batch in line_batches(stream):
            builder = _BatchBuilder(name, on_dead_letter, row)
            for line in batch.lines:
                try:
                    value = _parse_line(line)
                except InvalidRowError as error:
                    builder.reject(str(error), line.text, line.number)
                else:
                    if value is not None:
                        builder.add(value, line.number)
            row = builder.row
            yield builder.batch(batch.done, batch.pause)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise read_error(name, error) from error


def _parse_line(line: Line) -> dict[str, Any] | None:
    if line.is_too_long:
        raise InvalidRowError(too_long_reason(line))
    return parse_object_line(line.text)


def _batches_of_text(text: str, name: str, on_dead_letter: DeadLetterHandler) -> Iterator[Batch]:
    builder = _BatchBuilder(name, on_dead_letter, 0)
    end = 0
    for element in elements(text, name):
        try:
            builder.add(check_object(element.value, element.text))
        except InvalidRowError as error:
            builder.reject(str(error), element.text)
        end = element.end
        if len(builder.events) == MAX_BATCH_ROWS:
            yield builder.batch(end)
            builder = _BatchBuilder(name, on_dead_letter, builder.row)
    if builder.events:
        yield builder.batch(end)


class _BatchBuilder:
    """Collects objects into a batch; objects that cannot be used become dead letters."""

    def __init__(self, name: str, on_dead_letter: DeadLetterHandler, row: int) -> None:
        self._name, self._on_dead_letter = name, on_dead_letter
        self.row = row
        self.events: list[dict[str, Any]] = []
        self._rows: list[int] = []
        self._lines: list[int] = []

    def add(self, event: dict[str, Any], line: int | None = None) -> None:
        """Add an object that can be used."""
        self.events.append(event)
        self._rows.append(self.row)
        if line is not None:
            self._lines.append(line)
        self.row += 1

    def reject(self, reason: str, raw: str | bytes, line: int | None = None) -> None:
        """Report a row that cannot be used as a dead letter."""
        self._on_dead_letter(DeadLetter(self._name, self.row, reason, shorten(raw), line))
        self.row += 1

    def batch(self, done: int, pause: bool = False) -> Batch:
        """Return the batch of the objects that were added."""
        lines = np.array(self._lines, np.int64) if self._lines else None
        return Batch(self.events, np.array(self._rows, np.int64), lines, done, pause)
