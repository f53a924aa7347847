"""What the sinks that send have in common: messages, which batches are done, what was not sent.

A message has an id that is the same whenever it is sent. The folder of a sink:

    folder/
      dead-letters/<query>-<batch>-<n>.jsonl    id, to, body and reason of each message
      <query>/committed                         the last batch that was sent as a whole
      <query>/pending/                          dead letters of a batch that is being sent

Spark runs the last batch again when it was stopped before it noted that the batch is done. A
batch that this folder calls committed is then not sent again. One that was stopped before is
sent again from its beginning, every message under the id it had: receivers that remember ids
see each once. `<query>` is the id in the checkpoint, so a new checkpoint sends anew.
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
_ID_LETTERS = 32
_NULLS = {"ignoreNullFields": "false"}


def messages_of(matches: DataFrame, to: str | Column, event: str = "id") -> DataFrame:
    """A message for each match.

    Parameters
    ----------
    matches : DataFrame
        What `fencepost.spark.match` gives, batch or streaming.
    to : str or Column
        Where each goes, a topic or a URL: one for all, or an expression of the match's columns.
    event : str
        The column that tells events apart.

    Returns
    -------
    DataFrame
        `id`: 32 hexadecimal letters, a hash of event and subscription, the same for the same
        match in every run; where the event's id is null, a hash of the whole match instead.
        `to`. `body`: a JSON object of that id, `subscription`, `subscriber`, and `event`, which
        has the other columns (binary ones in base64).
    """
    for name in (event, "subscription", "subscriber"):
        if name not in matches.columns:
            raise ModelError(
                f"the matches have no column {name!r}; they have: {', '.join(matches.columns)}"
                + (f"; keep it with match(..., columns=[{name!r}])" if name == event else "")
            )
    own = [name for name in matches.columns if name not in {"subscription", "subscriber"}]
    attributes = f.struct(*(_named(matches, name) for name in own))
    key = f.struct(_named(matches, event).alias("event"), f.col("subscription"))
    whole = f.struct(f.col("subscription"), attributes.alias("event"))
    text = f.when(_named(matches, event).isNull(), f.to_json(whole, _NULLS)).otherwise(
        f.to_json(key, _NULLS)
    )
    id = f.substring(f.sha2(text, 256), 1, _ID_LETTERS)
    body = f.struct(
        id.alias("id"), f.col("subscription"), f.col("subscriber"), attributes.alias("event")
    )
    address = f.lit(to) if isinstance(to, str) else to
    return matches.select(
        id.alias("id"), address.cast("string").alias("to"), f.to_json(body, _NULLS).alias("body")
    )


def _named(matches: DataFrame, name: str) -> Column:
    return f.col(f"`{name.replace('`', '``')}`").alias(name)


class OutgoingMessage(NamedTuple):
    """A message to send."""

    id: str
    to: str | None
    body: str


class RejectedMessage(NamedTuple):
    """A message that was not taken, and why."""

    message: OutgoingMessage
    reason: str


class Sender(Protocol):
    """Sends messages; says which were not taken, and raises where the rest should wait."""

    def send(self, messages: list[OutgoingMessage]) -> list[RejectedMessage]: ...

    def close(self) -> None: ...


class Journal:
    """The folder of a sink, for one query."""

    def __init__(self, folder: Path, query: str) -> None:
        self._query = query
        self._letters = folder / "dead-letters"
        self._own = folder / query
        self._pending = self._own / "pending"
        for path in (self._letters, self._pending):
            path.mkdir(parents=True, exist_ok=True)

    def is_committed(self, batch: int) -> bool:
        """Whether all of a batch was sent."""
        try:
            return batch <= int((self._own / "committed").read_text())
        except FileNotFoundError:
            return False

    def write_dead_letters(self, refused: Iterable[RejectedMessage]) -> str | None:
        """Write dead letters, on disk but not yet valid; the name of the file, if there are any."""
        lines = [
            json.dumps({**refusal.message._asdict(), "reason": refusal.reason}) + "\n"
            for refusal in refused
        ]
        if not lines:
            return None
        path = self._pending / f"{uuid.uuid4().hex}.jsonl"
        replace_file(path, "".join(lines).encode(), durable=True)
        return path.name

    def commit(self, batch: int, files: Iterable[str]) -> None:
        """Make the dead letters of a batch valid, in place of former ones; then it is done."""
        for path in self._letters.glob(f"{self._query}-{batch:012d}-*.jsonl"):
            path.unlink()
        for number, name in enumerate(files):
            made = self._letters / f"{self._query}-{batch:012d}-{number}.jsonl"
            (self._pending / name).rename(made)
        replace_file(self._own / "committed", b"%d\n" % batch, durable=True)
        self.clear()

    def clear(self) -> None:
        """Remove what tasks that failed have left."""
        for path in self._pending.iterdir():
            path.unlink(missing_ok=True)


@dataclass
class _TaskCommit(WriterCommitMessage):
    """What a task tells the driver."""

    query: str
    batch: int
    file: str | None


class MessageStreamWriter(DataSourceStreamArrowWriter):
    """A streaming writer of Spark; each task sends with a `Sender` that it makes."""

    def __init__(self, names: list[str], folder: str, make: Callable[[], Sender]) -> None:
        if sorted(names) != sorted(COLUMNS):
            raise FencepostError(
                f"this sink writes the columns {', '.join(COLUMNS)}; the stream has: "
                f"{', '.join(names)}; make them with fencepost.spark.messages_of"
            )
        self._folder = folder
        self._make = make

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
        refused: list[RejectedMessage] = []
        with closing(self._make()) as sender:
            for rows in iterator:
                columns = (rows.column(name).to_pylist() for name in COLUMNS)
                refused += sender.send(
                    [OutgoingMessage(*row) for row in zip(*columns, strict=True)]
                )
        return _TaskCommit(query, int(batch), journal.write_dead_letters(refused))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks have sent theirs; runs beside the driver."""
        sent = [message for message in messages if isinstance(message, _TaskCommit)]
        if sent:
            journal = Journal(Path(self._folder), sent[0].query)
            if not journal.is_committed(batchId):
                journal.commit(batchId, [one.file for one in sent if one.file is not None])

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """A task has failed; the batch will be sent again."""
        sent = [message for message in messages if isinstance(message, _TaskCommit)]
        if sent:
            Journal(Path(self._folder), sent[0].query).clear()


def absolute_path(folder: str | os.PathLike[str]) -> str:
    """A folder as an option that means the same in every process."""
    return str(Path(folder).absolute())
