"""Which parts of an index an event may find anything in.

The router is an index itself, a small one: its subscriptions are the parts, and each asks for what
some subscription of the part needs. So an event is read and compared there as it is anywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from fencepost.index.columns import Columns
from fencepost.index.segment import NEVER, Segment
from fencepost.match.catalogue import Subscription
from fencepost.match.matcher import Matcher
from fencepost.match.segment_files import Entry, open_segment, sync
from fencepost.spark.needs import filters_of, summary

PREFIX = "router-"
_NEEDS = "needs.arrow"


def write_needs(folder: Path, segment: Segment) -> None:
    """Write beside a segment what its subscriptions need."""
    table = summary(segment)
    with (folder / _NEEDS).open("wb") as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        sync(file)


def write(path: Path, entries: Sequence[Entry], columns: Columns, version: int) -> Path:
    """Write a router for segments; its folder."""
    router = Matcher(columns.space, stop_words=columns.tokeniser.stop_words)
    parts = []
    for number, entry in enumerate(entries):
        folder = path / entry["folder"]
        if not (folder / _NEEDS).exists():  # `Matcher.save` does not write them
            write_needs(folder, open_segment(path, entry).segment)
        with pa.memory_map(str(folder / _NEEDS)) as source:
            needed = pa.ipc.open_file(source).read_all()
        name = str(number)
        parts.append(Subscription(name, None, name, int(NEVER), filters_of(needed, columns)))
    router._add(parts, replace=False)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{version}-", dir=path))
    folder.chmod(0o755)
    router.save(folder)
    return folder
