"""Provides `write_matches`, which writes each match once, through Spark's file sink.

The file sink keeps a log, `_spark_metadata`, of the files of each committed batch. A batch that
runs again after a crash writes new files; the files of the first attempt are not in the log, so
readers of the log ignore them. This module adds what the sink lacks. It rejects a new checkpoint
for an old folder, with which the sink would silently skip batches, because their numbers are in the
log. And it lists the committed files for readers other than Spark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fencepost.errors import StoreError
from fencepost.spark.sinks import start_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_LOG = "_spark_metadata"


def write_matches(
    matches: DataFrame,
    path: str | Path,
    checkpoint: str | Path,
    *,
    available_now: bool = False,
    every: str | None = None,
) -> StreamingQuery:
    """Append the matches of a stream to a folder of Parquet files, each match once.

    Read them with ``spark.read.parquet(path)``, or read the files that `written_files` returns: a
    crash leaves uncommitted files in the folder.

    Parameters
    ----------
    matches : DataFrame
        The matches of a stream, from `fencepost.spark.match`.
    path : str or Path
        The folder to write: a local path.
    checkpoint : str or Path
        Spark's checkpoint of this query; always the same one for a folder.
    available_now : bool
        If true, the query ends when it has processed the data available at its start.
    every : str, optional
        The interval of micro-batches, such as ``"5 seconds"``; by default, each begins when the
        last one has ended.

    Returns
    -------
    StreamingQuery
        The running query.

    Raises
    ------
    StoreError
        If another checkpoint wrote the batches in the folder.
    """
    folder, checkpoint = Path(path).absolute(), Path(checkpoint).absolute()
    _check_checkpoint(folder, checkpoint)
    writer = matches.writeStream.format("parquet")
    return start_query(writer, checkpoint, available_now, every, folder)


def written_files(path: str | Path) -> list[Path]:
    """Return the committed files in a folder of matches, in the order of their batches.

    Parameters
    ----------
    path : str or Path
        The folder that `write_matches` wrote.

    Returns
    -------
    list of Path
        The files to read; other files in the folder belong to interrupted batches.
    """
    log = Path(path) / _LOG
    batches = {int(entry.name.split(".")[0]): entry for entry in _log_entries(log)}
    if not batches:
        return []
    # A compact entry repeats all entries before it. It replaces a plain entry of the same batch.
    compact = [batch for batch, entry in batches.items() if entry.suffix == ".compact"]
    start = max(compact, default=0)
    files: list[Path] = []
    for batch in sorted(batch for batch in batches if batch >= start):
        _, *lines = batches[batch].read_text(encoding="utf-8").splitlines()
        files += [Path(path) / Path(_local_path(json.loads(line)["path"])).name for line in lines]
    return files


def _log_entries(log: Path) -> list[Path]:
    if not log.is_dir():
        return []
    entries = [path for path in log.iterdir() if path.name.removesuffix(".compact").isdigit()]
    return sorted(entries, key=lambda path: path.suffix)


def _local_path(address: str) -> str:
    return unquote(urlsplit(address).path)


def _check_checkpoint(folder: Path, checkpoint: Path) -> None:
    """Raise if the checkpoint is behind the folder, so that it cannot have written it."""
    committed = [int(entry.name.split(".")[0]) for entry in _log_entries(folder / _LOG)]
    if not committed:
        return
    offsets = checkpoint / "offsets"
    planned = [int(entry.name) for entry in offsets.glob("*") if entry.name.isdigit()]
    if max(planned, default=-1) < max(committed):
        raise StoreError(
            f"{folder} has batches up to {max(committed)}, but the checkpoint {checkpoint} ends at "
            f"{max(planned, default=-1)}: another checkpoint wrote the folder, so Spark would skip "
            "the first batches of this one; give the former checkpoint, or another folder"
        )
