"""Sinks of matches: NDJSON, CSV, Parquet, GeoParquet, and GeoJSON of the events that match."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.atomic_replace import atomic_write
from fencepost.formats.event_files import Batch, EventFile
from fencepost.formats.feature_writer import event_ids, features, json_text, wkb_of
from fencepost.formats.file_formats import OutputFormat, write_error

COLUMNS = ("event", "event_id", "subscription", "subscriber")
_SCHEMA = pa.schema(
    [
        ("event", pa.int64()),
        ("event_id", pa.string()),
        ("subscription", pa.string()),
        ("subscriber", pa.string()),
    ]
)
_SCORE = ("score", pa.float64())
_GROUP_ROWS = 100_000


class Matches(NamedTuple):
    """The matches of a batch, ordered by event, then by id or, if there are scores, best first.

    Attributes
    ----------
    events : int64 array
        The number of the event in the batch.
    subscriptions, subscribers : string arrays
    scores : float64 array, optional
        The score of each match, from 0 to 1.
    """

    events: NDArray[np.int64]
    subscriptions: pa.Array
    subscribers: pa.Array
    scores: NDArray[np.float64] | None = None


class Sink(Protocol):
    """Writes matches to a file in one format."""

    def write(self, batch: Batch, matches: Matches) -> None:
        """Write the matches of a batch, or keep them to be written later."""

    def close(self) -> None:
        """Write matches that were kept, and the end of the file."""


class NullSink:
    """A sink that discards matches, which are only counted."""

    def write(self, batch: Batch, matches: Matches) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class NdjsonSink:
    """Writes each match as a line of JSON."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, batch: Batch, matches: Matches) -> None:
        """Write the lines of a batch in one call."""
        lines = []
        for event, id, subscription, subscriber, *score in _rows(batch, matches):
            id_member = "" if id is None else f'"event_id": {_json(id)}, '
            score_member = f', "score": {_json(score[0])}' if score else ""
            lines.append(
                f'{{"event": {event}, {id_member}"subscription": {_json(subscription)}, '
                f'"subscriber": {_json(subscriber)}{score_member}}}\n'
            )
        # A lone surrogate becomes its JSON escape.
        self._stream.write("".join(lines).encode("utf-8", "backslashreplace"))
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: all matches are written."""


class CsvSink:
    """Writes a header, and each match as a row of CSV."""

    def __init__(self, stream: BinaryIO, scored: bool) -> None:
        self._stream = stream
        self._put([(*COLUMNS, "score") if scored else COLUMNS])

    def write(self, batch: Batch, matches: Matches) -> None:
        """Write the rows of a batch in one call."""
        self._put(_rows(batch, matches))

    def _put(self, rows: Any) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._stream.write(text.getvalue().encode("utf-8", "replace"))

    def close(self) -> None:
        """Do nothing: all matches are written."""


class ParquetSink:
    """Writes a Parquet table with a row for each match."""

    def __init__(self, stream: BinaryIO, file: EventFile, scored: bool) -> None:
        self.schema = _SCHEMA.append(pa.field(*_SCORE)) if scored else _SCHEMA
        self._file = file
        self._stream = stream
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._size = 0

    def write(self, batch: Batch, matches: Matches) -> None:
        """Keep the rows of a batch until there are enough for a row group."""
        self._pending.append(pa.table(self._columns(batch, matches), schema=self.schema))
        self._size += len(matches.events)
        if self._size >= _GROUP_ROWS:
            self._flush()

    def _columns(self, batch: Batch, matches: Matches) -> list[pa.Array]:
        texts = [None if id is None else _utf8(str(id)) for id in _match_event_ids(batch, matches)]
        return [
            pa.array(batch.rows[matches.events]),
            pa.array(texts, pa.string()),
            matches.subscriptions,
            matches.subscribers,
            *([] if matches.scores is None else [pa.array(matches.scores)]),
        ]

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._stream, self.schema)
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending))
        self._pending, self._size = [], 0

    def close(self) -> None:
        """Write the last row group and the footer."""
        self._flush()
        if self._writer is not None:
            self._writer.close()


class GeoParquetSink(ParquetSink):
    """Writes a GeoParquet table: the columns of `ParquetSink` and the geometry of the event."""

    def __init__(self, stream: BinaryIO, file: EventFile, scored: bool) -> None:
        super().__init__(stream, file, scored)
        column = {"encoding": "WKB", "geometry_types": [], **file.crs}
        geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
        field = pa.field("geometry", pa.binary())
        self.schema = self.schema.append(field).with_metadata({"geo": json.dumps(geo)})

    def _columns(self, batch: Batch, matches: Matches) -> list[pa.Array]:
        chosen, event_of_match = np.unique(matches.events, return_inverse=True)
        shapes = [wkb_of(feature) for feature in features(batch, chosen, self._file.geometry)]
        column = pa.array(shapes, pa.binary()).take(pa.array(event_of_match))
        return [*super()._columns(batch, matches), column]


class GeoJsonSink:
    """Writes a FeatureCollection of the events that match.

    Each Feature has the property `subscriptions`, and `scores` if the matches have scores.
    """

    def __init__(self, stream: BinaryIO, file: EventFile) -> None:
        self._stream, self._file = stream, file
        self._separator = '{"type": "FeatureCollection", "features": [\n'

    def write(self, batch: Batch, matches: Matches) -> None:
        """Write the Features of a batch in one call."""
        chosen, starts = np.unique(matches.events, return_index=True)
        ends = [*starts.tolist()[1:], len(matches.events)]
        matched = features(batch, chosen, self._file.geometry)
        texts = []
        for feature, start, end in zip(matched, starts.tolist(), ends, strict=True):
            names = matches.subscriptions.slice(start, end - start).to_pylist()
            feature["properties"]["subscriptions"] = names
            if matches.scores is not None:
                feature["properties"]["scores"] = matches.scores[start:end].tolist()
            texts.append(self._separator + json_text(feature))
            self._separator = ",\n"
        self._stream.write("".join(texts).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Close the collection."""
        end = self._separator if self._separator.startswith("{") else "\n"
        self._stream.write(f"{end}]}}\n".encode())


def make_sink(
    format: OutputFormat, stream: BinaryIO, file: EventFile, scored: bool = False
) -> Sink:
    """Return a sink of a format; `scored` says whether matches have scores."""
    if format is OutputFormat.NDJSON:
        return NdjsonSink(stream)
    if format is OutputFormat.CSV:
        return CsvSink(stream, scored)
    if format is OutputFormat.PARQUET:
        return ParquetSink(stream, file, scored)
    if format is OutputFormat.GEOPARQUET:
        return GeoParquetSink(stream, file, scored)
    return GeoJsonSink(stream, file)


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write, which replaces `path` when it is complete.

    A pipe or a device is written directly.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
            return
        with atomic_write(path, durable=False) as stream:
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise write_error(path, error) from error


def _match_event_ids(batch: Batch, matches: Matches) -> list[str | int | float | None]:
    chosen, event_of_match = np.unique(matches.events, return_inverse=True)
    ids = event_ids(batch, chosen)
    return [ids[number] for number in event_of_match.tolist()]


def _rows(batch: Batch, matches: Matches) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each match in the order of `COLUMNS`, and its score if it has one."""
    return zip(
        batch.rows[matches.events].tolist(),
        _match_event_ids(batch, matches),
        matches.subscriptions.to_pylist(),
        matches.subscribers.to_pylist(),
        *([] if matches.scores is None else [matches.scores.tolist()]),
        strict=True,
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
