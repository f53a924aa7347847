"""Matches as Parquet files, each match once, by Spark's own file sink.

That sink keeps a log, `_spark_metadata`, of the files of each batch that is done. A batch that is
run again after a crash writes new files; those of the first attempt are in no log, and who reads
through the log does not see them. So nothing is built here but what the sink lacks: it must not
be given a new checkpoint for an old folder (it would take the first batches for done and skip
them without a word), and readers other than Spark need the list of files.
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

    Read them with ``spark.read.parquet(path)``, or take the files from `written_files`: a crash
    leaves files in the folder that do not count.

    Parameters
    ----------
    matches : DataFrame
        Streaming.
    path : str or Path
        The folder; a local path.
    checkpoint : str or Path
        Spark's checkpoint of this query; it belongs to the folder.
    available_now : bool
        Whether to end when what is there now is done.
    every : str, optional
        How often a batch begins, such as ``"5 seconds"``; as soon as the last is done otherwise.

    Returns
    -------
    StreamingQuery
        Running.

    Raises
    ------
    StoreError
        If the folder has batches of another checkpoint.
    """
    folder, checkpoint = Path(path).absolute(), Path(checkpoint).absolute()
    _check_belongs(folder, checkpoint)
    writer = matches.writeStream.format("parquet")
    return start_query(writer, checkpoint, available_now, every, folder)


def written_files(path: str | Path) -> list[Path]:
    """The files of a folder of matches that count: those of batches that are done, in order."""
    log = Path(path) / _LOG
    batches = {int(entry.name.split(".")[0]): entry for entry in _entries(log)}
    if not batches:
        return []
    # A compact entry holds all before it; where there is one beside a plain one it is the same.
    compact = [batch for batch, entry in batches.items() if entry.suffix == ".compact"]
    start = max(compact, default=0)
    found: list[Path] = []
    for batch in sorted(batch for batch in batches if batch >= start):
        _, *lines = batches[batch].read_text(encoding="utf-8").splitlines()
        found += [Path(path) / Path(_local(json.loads(line)["path"])).name for line in lines]
    return found


def _entries(log: Path) -> list[Path]:
    if not log.is_dir():
        return []
    named = [path for path in log.iterdir() if path.name.removesuffix(".compact").isdigit()]
    return sorted(named, key=lambda path: path.suffix)


def _local(address: str) -> str:
    return unquote(urlsplit(address).path)


def _check_belongs(folder: Path, checkpoint: Path) -> None:
    """Refuse a checkpoint that has not come as far as the folder has."""
    done = [int(entry.name.split(".")[0]) for entry in _entries(folder / _LOG)]
    if not done:
        return
    offsets = checkpoint / "offsets"
    planned = [int(entry.name) for entry in offsets.glob("*") if entry.name.isdigit()]
    if max(planned, default=-1) < max(done):
        raise StoreError(
            f"{folder} has batches up to {max(done)}, and the checkpoint {checkpoint} has come to "
            f"{max(planned, default=-1)}: it is not the one that wrote them, and its first batches "
            "would be taken for done; give that checkpoint, or another folder"
        )
