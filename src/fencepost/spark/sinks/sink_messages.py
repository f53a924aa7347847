"""Provides messages, and the journal of sent batches and dead letters, of the sinks that send.

The id of a message is the same in every attempt. The folder of a sink:

    folder/
      dead-letters/<query>-<batch>-<n>.jsonl    id, to, body and reason of each message
      <query>/committed                         number of the last completely sent batch
      <query>/pending/                          dead letters of the batch that is being sent

If Spark is stopped before it records a batch as done, it runs that batch again. The sink skips the
batch if the journal has committed it. Otherwise it sends the whole batch again, under the same ids,
so receivers can ignore duplicates. `<query>` is the id in the checkpoint, so a query with a new
checkpoint sends everything again.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from fencepost.atomic_replace import replace_file
from fencepost.errors import FencepostError, ModelError

COLUMNS = ["id", "to", "body"]
_ID_DIGITS = 32
_KEEP_NULLS = {"ignoreNullFields": "false"}


def messages_of(matches: DataFrame, to: str | Column, event: str = "id") -> DataFrame:
    """Return a message for each match.

    Parameters
    ----------
    matches : DataFrame
        Batch or streaming, from `fencepost.spark.match`.
    to : str or Column
        The topic or URL: a string, or an expression over the columns of matches.
    event : str
        The column that identifies an event.

    Returns
    -------
    DataFrame
        `id`: 32 hexadecimal digits, a hash of event and subscription, equal in every run; if the
        event's id is null, a hash of the whole match. `to`: the topic or URL. `body`: a JSON object
        with `id`, `subscription`, `subscriber` and `event`, which holds the other columns (binary
        ones in base64).
    """
    for name in (event, "subscription", "subscriber"):
        if name not in matches.columns:
            raise ModelError(
                f"the matches have no column {name!r}; they have: {', '.join(matches.columns)}"
                + (f"; keep it with match(..., columns=[{name!r}])" if name == event else "")
            )
    event_columns = [name for name in matches.columns if name not in {"subscription", "subscriber"}]
    attributes = f.struct(*(_column(matches, name) for name in event_columns))
    key = f.struct(_column(matches, event).alias("event"), f.col("subscription"))
    match = f.struct(f.col("subscription"), attributes.alias("event"))
    hashed = f.when(_column(matches, event).isNull(), f.to_json(match, _KEEP_NULLS)).otherwise(
        f.to_json(key, _KEEP_NULLS)
    )
    id = f.substring(f.sha2(hashed, 256), 1, _ID_DIGITS)
    body = f.struct(
        id.alias("id"), f.col("subscription"), f.col("subscriber"), attributes.alias("event")
    )
    address = f.lit(to) if isinstance(to, str) else to
    return matches.select(
        id.alias("id"),
        address.cast("string").alias("to"),
        f.to_json(body, _KEEP_NULLS).alias("body"),
    )


def _column(matches: DataFrame, name: str) -> Column:
    return f.col(f"`{name.replace('`', '``')}`").alias(name)


class OutgoingMessage(NamedTuple):
    """A message to send: its id, topic or URL, and JSON body."""

    id: str
    to: str | None
    body: str


class RejectedMessage(NamedTuple):
    """A message that the receiver rejected, and the reason."""

    message: OutgoingMessage
    reason: str


class Sender(Protocol):
    """Sends messages; `send` returns the rejected ones, and raises if the query should stop."""

    def send(self, messages: list[OutgoingMessage]) -> list[RejectedMessage]: ...

    def close(self) -> None: ...


class Journal:
    """The sent batches and dead letters of one query, in the folder of a sink."""

    def __init__(self, folder: Path, query: str) -> None:
        self._query = query
        self._dead_letters = folder / "dead-letters"
        self._query_folder = folder / query
        self._pending = self._query_folder / "pending"
        for path in (self._dead_letters, self._pending):
            path.mkdir(parents=True, exist_ok=True)

    def is_committed(self, batch: int) -> bool:
        """Return whether a batch was sent completely."""
        try:
            return batch <= int((self._query_folder / "committed").read_text())
        except FileNotFoundError:
            return False

    def write_dead_letters(self, rejected: Iterable[RejectedMessage]) -> str | None:
        """Write pending dead letters, which `commit` publishes; return the file name, if any."""
        lines = [
            json.dumps({**rejection.message._asdict(), "reason": rejection.reason}) + "\n"
            for rejection in rejected
        ]
        if not lines:
            return None
        path = self._pending / f"{uuid.uuid4().hex}.jsonl"
        replace_file(path, "".join(lines).encode(), durable=True)
        return path.name

    def commit(self, batch: int, files: Iterable[str]) -> None:
        """Publish the dead letters of a batch, in place of an earlier attempt's, and commit it."""
        for path in self._dead_letters.glob(f"{self._query}-{batch:012d}-*.jsonl"):
            path.unlink()
        for number, name in enumerate(files):
            target = self._dead_letters / f"{self._query}-{batch:012d}-{number}.jsonl"
            (self._pending / name).rename(target)
        replace_file(self._query_folder / "committed", b"%d\n" % batch, durable=True)
        self.clear()

    def clear(self) -> None:
        """Remove pending files, which failed tasks leave behind."""
        for path in self._pending.iterdir():
            path.unlink(missing_ok=True)


@dataclass
class _TaskCommit(WriterCommitMessage):
    """The message from a task to the driver; `file` holds its pending dead letters."""

    query: str
    batch: int
    file: str | None


class MessageStreamWriter(DataSourceStreamArrowWriter):
    """A streaming writer of Spark; each task makes a `Sender` and sends its rows.

    Parameters
    ----------
    names : list of str
        The columns of the stream; they must be `COLUMNS`.
    folder : str
        The folder of the sink.
    make_sender : callable
        Makes the `Sender` of a task.
    """

    def __init__(self, names: list[str], folder: str, make_sender: Callable[[], Sender]) -> None:
        if sorted(names) != sorted(COLUMNS):
            raise FencepostError(
                f"this sink writes the columns {', '.join(COLUMNS)}; the stream has: "
                f"{', '.join(names)}; make the columns with fencepost.spark.messages_of"
            )
        self._folder = folder
        self._make_sender = make_sender

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the messages of a partition; runs in a task."""
        task = TaskContext.get()
        assert task is not None
        query = task.getLocalProperty("sql.streaming.queryId")
        batch = task.getLocalProperty("streaming.sql.batchId")
        assert query is not None
        assert batch is not None
        journal = Journal(Path(self._folder), query)
        if journal.is_committed(int(batch)):
            for _ in iterator:
                pass
            return _TaskCommit(query, int(batch), None)
        rejected: list[RejectedMessage] = []
        with closing(self._make_sender()) as sender:
            for rows in iterator:
                columns = (rows.column(name).to_pylist() for name in COLUMNS)
                rejected += sender.send(
                    [OutgoingMessage(*row) for row in zip(*columns, strict=True)]
                )
        return _TaskCommit(query, int(batch), journal.write_dead_letters(rejected))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a batch that all tasks have sent; runs beside the driver."""
        commits = [message for message in messages if isinstance(message, _TaskCommit)]
        if commits:
            journal = Journal(Path(self._folder), commits[0].query)
            if not journal.is_committed(batchId):
                journal.commit(batchId, [task.file for task in commits if task.file is not None])

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Clear the journal after a task failed; Spark sends the batch again."""
        commits = [message for message in messages if isinstance(message, _TaskCommit)]
        if commits:
            Journal(Path(self._folder), commits[0].query).clear()


def absolute_path(folder: str | os.PathLike[str]) -> str:
    """Return the absolute path of a folder, so that an option means the same in every process."""
    return str(Path(folder).absolute())
