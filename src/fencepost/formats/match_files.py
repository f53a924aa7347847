"""Matches into files: lines, CSV, Parquet, GeoParquet, or GeoJSON with the events themselves."""

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
from fencepost.formats.feature_writer import features, ids, json_text, wkb_of
from fencepost.formats.file_formats import OutFormat, cannot_write

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
    """The matches of a batch, by event, then by id; or best first, if they have scores.

    events : which event of the batch
    subscriptions, subscribers : columns of strings
    scores : how well each fits, or None
    """

    events: NDArray[np.int64]
    subscriptions: pa.Array
    subscribers: pa.Array
    scores: NDArray[np.float64] | None = None


class Sink(Protocol):
    """Where matches go."""

    def write(self, batch: Batch, matches: Matches) -> None:
        """Take the matches of a batch."""

    def close(self) -> None:
        """Write what is still to be written."""


class Nowhere:
    """Takes matches that are only counted."""

    def write(self, batch: Batch, matches: Matches) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Lines:
    """One JSON object a line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, batch: Batch, matches: Matches) -> None:
        """Write the lines of a batch at once."""
        lines = []
        for event, id, subscription, subscriber, *score in _rows(batch, matches):
            named = "" if id is None else f'"event_id": {_json(id)}, '
            scored = f', "score": {_json(score[0])}' if score else ""
            lines.append(
                f'{{"event": {event}, {named}"subscription": {_json(subscription)}, '
                f'"subscriber": {_json(subscriber)}{scored}}}\n'
            )
        # A lone surrogate becomes its JSON escape.
        self._stream.write("".join(lines).encode("utf-8", "backslashreplace"))
        self._stream.flush()

    def close(self) -> None:
        """Nothing is left to write."""


class Csv:
    """A header and one row a match."""

    def __init__(self, stream: BinaryIO, scored: bool) -> None:
        self._stream = stream
        self._put([(*COLUMNS, "score") if scored else COLUMNS])

    def write(self, batch: Batch, matches: Matches) -> None:
        """Write the rows of a batch at once."""
        self._put(_rows(batch, matches))

    def _put(self, rows: Any) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._stream.write(text.getvalue().encode("utf-8", "replace"))

    def close(self) -> None:
        """Nothing is left to write."""


class Parquet:
    """A table with one row a match."""

    def __init__(self, stream: BinaryIO, file: EventFile, scored: bool) -> None:
        self.schema = _SCHEMA.append(pa.field(*_SCORE)) if scored else _SCHEMA
        self._file = file
        self._stream = stream
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._size = 0

    def write(self, batch: Batch, matches: Matches) -> None:
        """Keep the rows of a batch until there are enough for a row group."""
        self._waiting.append(pa.table(self._columns(batch, matches), schema=self.schema))
        self._size += len(matches.events)
        if self._size >= _GROUP_ROWS:
            self._flush()

    def _columns(self, batch: Batch, matches: Matches) -> list[pa.Array]:
        texts = [None if id is None else _utf8(str(id)) for id in _ids(batch, matches)]
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
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting, self._size = [], 0

    def close(self) -> None:
        """Write the last row group and the footer."""
        self._flush()
        if self._writer is not None:
            self._writer.close()


class GeoParquet(Parquet):
    """The same with the geometry of the event."""

    def __init__(self, stream: BinaryIO, file: EventFile, scored: bool) -> None:
        super().__init__(stream, file, scored)
        about = {"encoding": "WKB", "geometry_types": [], **file.crs}
        geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}}
        field = pa.field("geometry", pa.binary())
        self.schema = self.schema.append(field).with_metadata({"geo": json.dumps(geo)})

    def _columns(self, batch: Batch, matches: Matches) -> list[pa.Array]:
        chosen, each = np.unique(matches.events, return_inverse=True)
        shapes = [wkb_of(feature) for feature in features(batch, chosen, self._file.geometry)]
        column = pa.array(shapes, pa.binary()).take(pa.array(each))
        return [*super()._columns(batch, matches), column]


class Features:
    """A FeatureCollection of the events that match.

    Each has the property `subscriptions`, and `scores` where the matches have any.
    """

    def __init__(self, stream: BinaryIO, file: EventFile) -> None:
        self._stream, self._file = stream, file
        self._before = '{"type": "FeatureCollection", "features": [\n'

    def write(self, batch: Batch, matches: Matches) -> None:
        """Write the Features of a batch at once."""
        chosen, starts = np.unique(matches.events, return_index=True)
        ends = [*starts.tolist()[1:], len(matches.events)]
        found = features(batch, chosen, self._file.geometry)
        texts = []
        for feature, start, end in zip(found, starts.tolist(), ends, strict=True):
            names = matches.subscriptions.slice(start, end - start).to_pylist()
            feature["properties"]["subscriptions"] = names
            if matches.scores is not None:
                feature["properties"]["scores"] = matches.scores[start:end].tolist()
            texts.append(self._before + json_text(feature))
            self._before = ",\n"
        self._stream.write("".join(texts).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Close the collection."""
        before = self._before if self._before.startswith("{") else "\n"
        self._stream.write(f"{before}]}}\n".encode())


def sink_for(form: OutFormat, stream: BinaryIO, file: EventFile, scored: bool = False) -> Sink:
    """What writes matches in a format; `scored` says whether they have scores."""
    if form is OutFormat.NDJSON:
        return Lines(stream)
    if form is OutFormat.CSV:
        return Csv(stream, scored)
    if form is OutFormat.PARQUET:
        return Parquet(stream, file, scored)
    if form is OutFormat.GEOPARQUET:
        return GeoParquet(stream, file, scored)
    return Features(stream, file)


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which is in its place only when it is whole.

    A pipe or a device is written to as it is.
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
        raise cannot_write(path, error) from error


def _ids(batch: Batch, matches: Matches) -> list[str | int | float | None]:
    chosen, each = np.unique(matches.events, return_inverse=True)
    found = ids(batch, chosen)
    return [found[number] for number in each.tolist()]


def _rows(batch: Batch, matches: Matches) -> Iterator[tuple[Any, ...]]:
    """The values of each match, in the order of `COLUMNS`, and its score where it has one."""
    return zip(
        batch.rows[matches.events].tolist(),
        _ids(batch, matches),
        matches.subscriptions.to_pylist(),
        matches.subscribers.to_pylist(),
        *([] if matches.scores is None else [matches.scores.tolist()]),
        strict=True,
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
