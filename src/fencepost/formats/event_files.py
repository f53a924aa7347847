"""Files of events, a batch at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import FencepostError
from fencepost.formats.dead_letters import DeadLetter, Letters, refuse, shortened
from fencepost.formats.file_formats import (
    STDIN,
    Format,
    cannot_read,
    file_size,
    format_of,
    open_input,
)
from fencepost.formats.json_elements import NotUsable, checked_object, elements, object_of_line
from fencepost.formats.line_batches import BATCH_ROWS, Line, line_batches, too_long
from fencepost.formats.parquet_files import ParquetRows


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a file.

    Attributes
    ----------
    events : Arrow table, or list of JSON objects
        The rows that can be used.
    rows : array of int64
        The number of each in the file, from 0.
    lines : array of int64, or None
        The line of each, from 1, where the file has lines.
    done : int
        How much of the file is read, in the unit of `EventFile.total`.
    pause : bool
        Whether the sender is silent after these rows.
    """

    events: pa.Table | list[dict[str, Any]]
    rows: NDArray[np.int64]
    lines: NDArray[np.int64] | None
    done: int
    pause: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Batch:
        """Some of the rows."""
        events = self.events
        chosen = (
            events[start:stop] if isinstance(events, list) else events.slice(start, stop - start)
        )
        lines = None if self.lines is None else self.lines[start:stop]
        return Batch(chosen, self.rows[start:stop], lines, self.done, self.pause)

    def event(self, number: int) -> dict[str, Any]:
        """One event, counted within the batch."""
        if isinstance(self.events, list):
            return self.events[number]
        try:
            event: dict[str, Any] = self.events.slice(number, 1).to_pylist()[0]
        except (ValueError, OverflowError) as error:
            raise FencepostError(
                f"row {self.rows[number]} holds a value that Python cannot: {error}"
            ) from error
        return event


@dataclass(frozen=True, slots=True)
class EventFile:
    """The events of a file: iterate for the batches, once.

    Attributes
    ----------
    name : str
        For messages.
    total : int or None
        Bytes, characters or rows of the whole file, where known.
    geometry : str or None
        The primary geometry column of GeoParquet.
    crs : dict
        What GeoParquet says about its coordinates.
    """

    name: str
    total: int | None
    batches: Iterator[Batch]
    geometry: str | None
    crs: dict[str, Any]

    def __iter__(self) -> Iterator[Batch]:
        return self.batches


def read_events(
    path: str | Path,
    dead_letters: Letters | None = None,
    *,
    format: Format | None = None,
    columns: Collection[str] | None = None,
) -> EventFile:
    """The events of a file.

    Parameters
    ----------
    path : str or Path
        GeoJSON, newline-delimited JSON, Parquet or GeoParquet, by its ending; `-` is standard
        input with newline-delimited JSON.
    dead_letters : callable, optional
        Takes rows that cannot be used; without it the first one raises.
    format : Format, optional
        What the file holds, whatever its name.
    columns : collection of str, optional
        Which columns of a Parquet file are wanted; all if left out.

    Raises
    ------
    FencepostError
        Where the file as a whole cannot be read.
    """
    path = str(path)
    letters = dead_letters or refuse
    kind = format_of(path, format)
    name = "standard input" if path == STDIN else path
    if kind is Format.CSV:
        raise FencepostError(
            f"{name} is CSV, which does not say what is a number, a time or a place; give events "
            "as GeoJSON, newline-delimited JSON, Parquet or GeoParquet"
        )
    if kind is Format.PARQUET:
        file = ParquetRows(path)
        batches = _table_batches(file, columns, letters)
        return EventFile(name, file.rows, batches, file.geometry, file.crs)
    total, batches = json_batches(path, name, kind, letters)
    return EventFile(name, total, batches, None, {})


def _table_batches(
    file: ParquetRows, columns: Collection[str] | None, letters: Letters
) -> Iterator[Batch]:
    for rows, table, done in file.readable_batches(columns, letters):
        yield Batch(table, rows, None, done)


def json_batches(
    path: str, name: str, kind: Format, letters: Letters
) -> tuple[int | None, Iterator[Batch]]:
    """The objects of a GeoJSON or newline-delimited file, and how large it is."""
    stream = open_input(path)
    if kind is Format.NDJSON:
        return file_size(path), _batches_of_lines(stream, name, letters)
    try:
        text = stream.read().decode("utf-8-sig")
    except OSError as error:
        raise cannot_read(path, error) from error
    except UnicodeDecodeError as error:
        raise FencepostError(
            f"{name} is not UTF-8 at byte {error.start + 1:,}, so it is no JSON; write it as "
            "UTF-8, or say what it holds with --format"
        ) from None
    finally:
        if path != STDIN:
            stream.close()
    return len(text), _batches_of_text(text, name, letters)


def _batches_of_lines(stream: Any, name: str, letters: Letters) -> Iterator[Batch]:
    row = 0
    try:
        for batch in line_batches(stream):
            collected = _Collected(name, letters, row)
            for line in batch.lines:
                try:
                    value = _object(line)
                except NotUsable as error:
                    collected.set_aside(str(error), line.text, line.number)
                else:
                    if value is not None:
                        collected.add(value, line.number)
            row = collected.row
            yield collected.batch(batch.done, batch.pause)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise cannot_read(name, error) from error


def _object(line: Line) -> dict[str, Any] | None:
    if line.too_long:
        raise NotUsable(too_long(line))
    return object_of_line(line.text)


def _batches_of_text(text: str, name: str, letters: Letters) -> Iterator[Batch]:
    collected = _Collected(name, letters, 0)
    end = 0
    for element in elements(text, name):
        try:
            collected.add(checked_object(element.value, element.text))
        except NotUsable as error:
            collected.set_aside(str(error), element.text)
        end = element.end
        if len(collected.events) == BATCH_ROWS:
            yield collected.batch(end)
            collected = _Collected(name, letters, collected.row)
    if collected.events:
        yield collected.batch(end)


class _Collected:
    """Objects being collected into a batch; those that cannot be used go to the dead letters."""

    def __init__(self, name: str, letters: Letters, row: int) -> None:
        self._name, self._letters = name, letters
        self.row = row
        self.events: list[dict[str, Any]] = []
        self._rows: list[int] = []
        self._lines: list[int] = []

    def add(self, event: dict[str, Any], line: int | None = None) -> None:
        """Take an object that can be used."""
        self.events.append(event)
        self._rows.append(self.row)
        if line is not None:
            self._lines.append(line)
        self.row += 1

    def set_aside(self, reason: str, raw: str | bytes, line: int | None = None) -> None:
        """Count a row that cannot be used."""
        self._letters(DeadLetter(self._name, self.row, reason, shortened(raw), line))
        self.row += 1

    def batch(self, done: int, pause: bool = False) -> Batch:
        """What was collected."""
        lines = np.array(self._lines, np.int64) if self._lines else None
        return Batch(self.events, np.array(self._rows, np.int64), lines, done, pause)
