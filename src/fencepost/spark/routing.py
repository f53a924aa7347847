"""Which parts of an index an event may find anything in.

The router is an index itself, a small one: its subscriptions are the parts, and each asks for what
some subscription of the part needs. So an event is read and compared there as it is anywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace

from fencepost.atomic import replacing
from fencepost.match import Columns, SegmentReader
from fencepost.match.catalogue import Subscription, expiry
from fencepost.match.manifest import SegmentEntry
from fencepost.match.matcher import Matcher
from fencepost.match.requirements import of_segment
from fencepost.match.segment_files import write_segment
from fencepost.spark.folders import Folder, folder_of
from fencepost.spark.needs import filters_of, summary

PREFIX = "router-"
_NEEDS = "needs.arrow"


def write_part(path: str, segment: SegmentReader, prefix: str, version: int = 0) -> SegmentEntry:
    """Write a segment to an index, and beside it what its subscriptions need; its entry."""
    with folder_of(path).writing() as out:
        entry = write_segment(out, segment, version, prefix)
        write_needs(out / entry.folder, segment)
    return replace(entry, memory_bytes=segment.nbytes)


def write_needs(folder: Path, segment: SegmentReader) -> None:
    """Write beside a segment what its subscriptions need."""
    folder.mkdir(exist_ok=True)
    table = summary(of_segment(segment))
    with (
        replacing(folder / _NEEDS, durable=True) as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)


def write(folder: Folder, entries: Sequence[SegmentEntry], columns: Columns, version: int) -> str:
    """Write a router for segments; the name of its folder."""
    router = Matcher(columns.space, stop_words=columns.tokeniser.stop_words)
    files = [f"{entry.folder}/{_NEEDS}" for entry in entries]
    parts = []
    with folder.held(files) as path:
        for number, file in enumerate(files):
            with pa.memory_map(str(path / file)) as source:
                needed = pa.ipc.open_file(source).read_all()
            name = str(number)
            parts.append(Subscription(name, None, name, expiry(None), filters_of(needed, columns)))
    router.add(parts, replace=False)
    with folder.writing() as path:
        own = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{version}-", dir=path))
        own.chmod(0o755)
        router.save(own)
    return own.name
