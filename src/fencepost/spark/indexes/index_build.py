"""Building an index of subscriptions on Spark: validated, divided into parts, written by workers.

Two passes over the subscriptions. The first reads each row, says what is wrong with it or where it
lies, and which columns of events it asks for; what it says is kept on the disks of the workers for
the second, in which each part becomes a segment, written by the worker that built it. Then the
manifest names them, in one step.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fencepost.engine import ColumnRegistry
from fencepost.engine.matcher import Matcher
from fencepost.engine.storage.manifest import (
    MANIFEST,
    Manifest,
    SegmentEntry,
    build_manifest,
    columns_as_json,
    columns_from_json,
    columns_of,
    decode_manifest,
    decode_segment_entry,
    encode_json,
    manifest_name,
)
from fencepost.engine.storage.segment_files import PREFIX, files_of, open_segment
from fencepost.errors import IndexingError, ModelError
from fencepost.geometry.space import Space
from fencepost.spark.indexes import build_tasks, compaction, partition_cuts
from fencepost.spark.indexes.build_tasks import DELETED, PART, REASON_COLUMN, REQUESTED_COLUMNS
from fencepost.spark.indexes.index_folders import Folder, folder_of
from fencepost.spark.indexes.partition_cuts import (
    RANDOM,
    Partitioning,
    PartitionKeys,
    choose_partitioning,
)
from fencepost.spark.indexes.subscription_rows import SubscriptionLayout, SubscriptionReader
from fencepost.spark.matches import part_routing
from fencepost.spark.matches.match_frames import (
    DUPLICATE_REASON,
    duplicate_ids,
    plain_names,
    with_plain_names,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MODES = ("create", "replace", "update")
REASON = "reason"
_DELETED = "deleted"
_ID = plain_names(1)[0]  # it comes first
_FOLDER_PREFIXES = (
    PREFIX,
    part_routing.PREFIX,
)  # with which the names of folders begin that versions name
_SAMPLE = 100_000
_MAX_PART_SIZE = 500_000  # subscriptions that a worker holds at once
# A job may be at work with a version that is not the newest: so the last ones are kept, and those
# that were the newest not long ago.
_MIN_VERSIONS = 3
_MIN_AGE_S = 600.0
_MIN_PART_SIZE = 20_000  # fewer are not worth a part


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """What `build_index` made.

    Attributes
    ----------
    path : str
    version : int
    subscriptions : int
        In all parts, those that are gone left out.
    added, removed : int
        By this call.
    parts : int
    bytes : int
    dead_letters : int
        Rows that could not be used; they are in `dead_letters_path`, Parquet, with a `reason`.
    dead_letters_path : str, optional
    """

    path: str
    version: int
    subscriptions: int
    added: int
    removed: int
    parts: int
    bytes: int
    dead_letters: int
    dead_letters_path: str | None


def build_index(
    spark: SparkSession,
    subscriptions: DataFrame,
    path: str | Path,
    *,
    mode: str = "create",
    regions: Mapping[str, tuple[str, str]] | None = None,
    within: Mapping[str, tuple[str, float | str]] | None = None,
    keywords: Mapping[str, str] | None = None,
    equals: Mapping[str, str] | None = None,
    space: str = "planar",
    stop_words: Iterable[str] = (),
    parts: int | None = None,
) -> BuiltIndex:
    """Build an index of subscriptions, or bring one up to date, as a Spark job.

    Parameters
    ----------
    subscriptions : DataFrame
        A row is a subscription: `id` and `expression` (CQL2, text or JSON), and where given
        `subscriber` and `expires`; or, in place of an expression, columns that the next
        arguments name.
    path : str or Path
        A folder that all workers share, or an address in an object store that
        `pyarrow.fs.FileSystem.from_uri` takes, such as ``s3://bucket/index``. `Matcher.open` opens
        what is built in a folder, too.
    mode : {"create", "replace", "update"}
        Whether there must be no index yet, or it is replaced, or changed: with "update" a row takes
        the place of the subscription with its id, and one whose column `deleted` is true
        removes it. Only new segments are written then, and which rows of the others are gone; at
        times, small segments of former updates together as one.
    regions, within, keywords, equals : mapping, optional
        As in `Matcher.subscribe_columns`, with the names of columns in place of arrays.
    space, stop_words
        As of a `Matcher`; with "update" those of the index.
    parts : int, optional
        Into how many parts to divide them; by their number if left out.

    Returns
    -------
    BuiltIndex
        Rows that cannot be used are no error: it says how many there are, and where.
    """
    if mode not in MODES:
        raise ModelError(f"mode must be one of {', '.join(MODES)}; saw {mode!r:.40}")
    form = SubscriptionLayout(regions or {}, within or {}, keywords or {}, equals or {})
    folder = folder_of(str(path))
    _check_mode(folder, mode)
    with folder.build_lock():
        _check_mode(folder, mode)  # somebody may have built one
        seen = folder.text(MANIFEST)
        before = None
        if seen is not None and mode == "update":
            before = decode_manifest(folder.name, seen)
            space, stop_words = before.space, before.stop_words
        reader = SubscriptionReader(form, space, tuple(stop_words))
        Matcher(space, stop_words=reader.stop_words)  # says what is wrong with them
        version = max(_versions(folder), default=0) + 1
        return _Job(spark, folder, reader, seen, before, version).run(subscriptions, parts)


def _check_mode(folder: Folder, mode: str) -> None:
    there = folder.has_index()
    if not there and mode == "update":
        raise IndexingError(f"there is no index in {folder.name} to update; leave mode out")
    if there and mode == "create":
        raise IndexingError(
            f"there is an index in {folder.name} already; give mode='replace' or mode='update'"
        )


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of `build_index`."""

    spark: SparkSession
    folder: Folder
    reader: SubscriptionReader
    seen: str | None  # the manifest that was there
    before: Manifest | None  # of an index to update
    version: int

    @property
    def prefix(self) -> str:
        """With which the names of new segments begin."""
        return f"{PREFIX}{self.version}-"

    def run(self, given: DataFrame, parts: int | None) -> BuiltIndex:
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        used = self.reader.form.used(given.columns)
        _check_column_names([*used, REASON])
        deleting = self.before is not None and _DELETED in given.columns
        names = plain_names(len(used))
        if deleting:
            plain = with_plain_names(given, [*used, _DELETED])
            flag = F.coalesce(F.col(plain.columns[-1]).cast("boolean"), F.lit(False))
            plain = plain.select(*names, flag.alias(DELETED))
        else:
            plain = with_plain_names(given, used)
        told = self._told(plain, used, deleting)
        # Of the source, not of what is kept of it: reading that back takes memory besides.
        if self._has_duplicate_ids(plain):
            told = self._mark_duplicate_ids(told, plain)
        staged = told.persist(StorageLevel.DISK_ONLY)
        try:
            return self._run(staged, used, deleting, parts)
        finally:
            staged.unpersist()

    def _run(
        self, staged: DataFrame, used: list[str], deleting: bool, parts: int | None
    ) -> BuiltIndex:
        from pyspark.sql import functions as F

        names = plain_names(len(used))
        is_kept = (
            F.col(REASON_COLUMN).isNull() & ~F.col(DELETED)
            if deleting
            else F.col(REASON_COLUMN).isNull()
        )
        counts = (F.count(F.when(is_kept, 1)), F.count(REASON_COLUMN))
        asked = staged.groupBy(REQUESTED_COLUMNS).agg(*counts).collect()
        columns = self._columns(asks for asks, _, _ in asked if asks is not None)
        added, wrong = (sum(row[k] for row in asked) for k in (1, 2))
        bad = staged.where(F.col(REASON_COLUMN).isNotNull()).select(*names, REASON_COLUMN)
        dead = self._dead_letters(bad, [*used, REASON]) if wrong else (0, None)
        good = staged.where(F.col(REASON_COLUMN).isNull())
        # Where many lie at one place, chance divides them.
        chance = F.pmod(F.xxhash64(_ID), F.lit(2**32)) / F.lit(float(2**32))
        kept = staged.where(is_kept).withColumn(RANDOM, chance)
        division = self._division(kept, added, parts)
        entries = self._build_segments(kept, used, division, columns) if added else []
        removed = 0
        if self.before is not None:
            old, removed = self._delete_changed(
                good.select(F.col(_ID).cast("string").alias("id")), self.before.segments
            )
            fresh = [replace(entry, is_partition=False) for entry in entries]
            entries = self._compact([*old, *fresh])
        return self._publish(entries, columns, added, removed, dead)

    def _told(self, rows: DataFrame, used: list[str], deleting: bool) -> DataFrame:
        """The rows with what is wrong with them or where they lie."""
        from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

        kinds = {
            partition_cuts.KIND: IntegerType(),
            REQUESTED_COLUMNS: StringType(),
            REASON_COLUMN: StringType(),
        }
        added = (*partition_cuts.KEY_COLUMNS, REQUESTED_COLUMNS, REASON_COLUMN)
        schema = StructType(
            [*rows.schema, *(StructField(n, kinds.get(n, DoubleType()), True) for n in added)]
        )
        return rows.mapInArrow(build_tasks.PartitionKeyTask(used, self.reader, deleting), schema)

    def _has_duplicate_ids(self, rows: DataFrame) -> bool:
        """Whether some ids are in the table more than once, or hashes of theirs are."""
        from pyspark.sql import functions as F

        named = rows.where(F.col(_ID).isNotNull())
        return not named.groupBy(F.xxhash64(_ID)).count().where("count > 1").isEmpty()

    def _mark_duplicate_ids(self, told: DataFrame, rows: DataFrame) -> DataFrame:
        """What is told of rows, of which those are wrong whose id is there more than once."""
        from pyspark.sql import functions as F

        twice = F.broadcast(duplicate_ids(rows, _ID))
        wrong = F.coalesce(DUPLICATE_REASON, REASON_COLUMN)
        return told.join(twice, _ID, "left").withColumn(REASON_COLUMN, wrong).drop(DUPLICATE_REASON)

    def _dead_letters(self, bad: DataFrame, names: list[str]) -> tuple[int, str | None]:
        """Write rows that cannot be used; how many, and where."""
        name = f"dead-letters/version-{self.version}-{uuid.uuid4().hex[:8]}"
        write = build_tasks.DeadLetterTask(self.folder.uri, name, names)
        count = sum(row["rows"] for row in bad.mapInArrow(write, "rows long").collect())
        return count, self.folder.within(name)

    def _columns(self, asked: Iterable[str]) -> ColumnRegistry:
        """What the subscriptions ask of events, numbered for all parts alike.

        asked : texts of `ASKS`; also for rows that are not kept, because their ids come twice.
        """
        entries = [own for text in sorted(asked) for own in columns_from_json(text)]
        if self.before is not None:
            entries = [own for rows in self.before.columns for own in rows] + entries
        return columns_of(entries, self.reader.stop_words, Space(self.reader.space))

    def _division(self, kept: DataFrame, count: int, parts: int | None) -> Partitioning:
        fraction = min(1.0, 1.2 * _SAMPLE / max(count, 1))
        sample = kept if fraction == 1.0 else kept.sample(fraction=fraction, seed=0)
        table = sample.select(*partition_cuts.KEY_COLUMNS, RANDOM).toArrow()
        return choose_partitioning(
            PartitionKeys.of(table), self._parts(count) if parts is None else parts
        )

    def _parts(self, count: int) -> int:
        """Into how many parts to divide so many subscriptions."""
        cores = self.spark.sparkContext.defaultParallelism
        return max(min(cores, count // _MIN_PART_SIZE), -(-count // _MAX_PART_SIZE), 1)

    def _build_segments(
        self, kept: DataFrame, used: list[str], division: Partitioning, columns: ColumnRegistry
    ) -> list[SegmentEntry]:
        """Build the parts on the workers; what the manifest says of each."""
        placed = kept.select(*plain_names(len(used)), division.column().alias(PART))
        asks = columns_as_json(columns)
        build = build_tasks.SegmentBuildTask(self.folder.uri, used, self.reader, asks, self.prefix)
        told = placed.repartitionById(division.parts, PART).mapInArrow(
            build, "part int, entry string"
        )
        return [decode_segment_entry(row["entry"]) for row in sorted(told.collect())]

    def _delete_changed(
        self, changed: DataFrame, entries: list[SegmentEntry]
    ) -> tuple[list[SegmentEntry], int]:
        """The old segments, of which those with a changed id are gone; how many that are."""
        entries = [_complete_entry(self.folder, entry) for entry in entries]
        numbers = self.spark.range(len(entries), numPartitions=max(len(entries), 1))
        rows = numbers.mapInArrow(
            build_tasks.SegmentIdsTask(self.folder.uri, entries), "id string, segment int, row long"
        )
        hit = rows.join(changed.distinct(), "id", "left_semi").select("segment", "row")
        told = hit.repartitionById(max(len(entries), 1), "segment").mapInArrow(
            build_tasks.DeletionTask(self.folder.uri, entries, self.version),
            "segment int, entry string, removed long",
        )
        found = told.collect()
        for row in found:
            entries[row["segment"]] = decode_segment_entry(row["entry"])
        left = [entry for entry in entries if entry.live]
        return left, sum(row["removed"] for row in found)

    def _compact(self, entries: list[SegmentEntry]) -> list[SegmentEntry]:
        """Segments with those rewritten together that are too many, or of which much is gone."""
        groups = compaction.choose_merges(entries, _MAX_PART_SIZE)
        if not groups:
            return entries
        pieces = [piece for group in groups for piece in self._pieces(entries, group)]
        rewrite = compaction.RewriteTask(self.folder.uri, entries, pieces, self.prefix)
        numbers = self.spark.range(len(pieces), numPartitions=len(pieces))
        told = numbers.mapInArrow(rewrite, "piece int, entry string").collect()
        taken = {number for group in groups for number in group.numbers}
        left = [entry for number, entry in enumerate(entries) if number not in taken]
        return left + [decode_segment_entry(row["entry"]) for row in sorted(told)]

    def _pieces(
        self, entries: list[SegmentEntry], group: compaction.MergeGroup
    ) -> list[compaction.OutputPiece]:
        """What is to be written of a group: a piece for each part."""
        count = sum(entries[number].live for number in group.numbers)
        # What updates wrote stays few; the parts of all of it are for as many cores.
        parts = self._parts(count) if group.is_partition else -(-count // _MAX_PART_SIZE)
        if parts <= 1 or len(group.numbers) == 1:
            return [compaction.OutputPiece(group, None, 0)]
        own = [entries[number] for number in group.numbers]
        sample = compaction.SampleTask(self.folder.uri, own, min(1.0, _SAMPLE / count))
        numbers = self.spark.range(len(own), numPartitions=len(own))
        kinds = ", ".join(f"{name} double" for name in (*partition_cuts.KEY_COLUMNS, RANDOM))
        division = choose_partitioning(
            PartitionKeys.of(numbers.mapInArrow(sample, kinds).toArrow()), parts
        )
        return [compaction.OutputPiece(group, division, part) for part in range(division.parts)]

    def _publish(
        self,
        entries: list[SegmentEntry],
        columns: ColumnRegistry,
        added: int,
        removed: int,
        dead: tuple[int, str | None],
    ) -> BuiltIndex:
        folder, version = self.folder, self.version
        router = part_routing.write(folder, entries, columns, version)
        text = encode_json(build_manifest(entries, columns, version, router))
        if folder.text(MANIFEST) != self.seen:
            raise IndexingError(
                f"another index was written to {folder.name} while this one was built; build again"
            )
        folder.replace(manifest_name(version), text)
        folder.replace(MANIFEST, text)
        _remove_unreferenced(folder, time.time())
        return BuiltIndex(
            folder.name,
            self.version,
            sum(entry.live for entry in entries),
            added,
            removed,
            len(entries),
            sum(entry.memory_bytes or 0 for entry in entries),
            *dead,
        )


def _versions(folder: Folder) -> dict[int, float]:
    """The versions of an index of which there are manifests, and when those were written."""
    found = {
        name.removeprefix("manifest-").removesuffix(".json"): at
        for name, at in folder.modified_s().items()
    }
    return {int(number): at for number, at in found.items() if number.isdecimal()}


def _complete_entry(folder: Folder, entry: SegmentEntry) -> SegmentEntry:
    """An entry with what `Matcher.save` does not write: sizes, what is gone, what it needs."""
    if entry.memory_bytes is not None:
        return entry
    with folder.held(files_of(entry)) as path:
        segment = open_segment(path, entry)
    with folder.writing() as path:
        part_routing.write_routing_keys(path / entry.folder, segment)
    return replace(entry, memory_bytes=segment.nbytes, deleted=segment.deleted_count)


def _remove_unreferenced(folder: Folder, now_s: float) -> None:
    """Remove what no version names that somebody may still read."""
    kept, old = _split_versions(_versions(folder), now_s)
    named = {name for number in kept for name in _named(folder, number)}
    tops = {name.partition("/")[0] for name in named}
    # A file in a folder that is kept goes with the last version that named it.
    files = {name for number in old for name in _named(folder, number) if "/" in name}
    unnamed = {name for name in files - named if name.partition("/")[0] in tops}
    unnamed |= {manifest_name(number) for number in old}
    unnamed |= {n for n in folder.modified_s() if n.startswith(_FOLDER_PREFIXES) and n not in tops}
    folder.remove(sorted(unnamed))


def _named(folder: Folder, version: int) -> set[str]:
    """Folders that a version names, and files that say what is gone."""
    try:
        found = folder.manifest(version)
    except IndexingError:  # of another format, which nobody can read
        return set()
    entries = found.segments
    gone = {f"{own.folder}/{own.deleted_file}" for own in entries if own.deleted_file is not None}
    return gone | {own.folder for own in entries} | ({found.router} if found.router else set())


def _split_versions(written_s: dict[int, float], now_s: float) -> tuple[list[int], list[int]]:
    """The versions to keep, and the others; by when each was written, and so the last replaced."""
    numbers = sorted(written_s, reverse=True)
    kept = numbers[:_MIN_VERSIONS]
    old: list[int] = []
    for newer, number in zip(numbers[_MIN_VERSIONS - 1 :], numbers[_MIN_VERSIONS:], strict=False):
        (kept if written_s[newer] > now_s - _MIN_AGE_S else old).append(number)
    return kept, old


def _check_column_names(names: Sequence[str]) -> None:
    """Columns of dead letters must differ, and not only in case: Spark would not write them."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name or names.count(name) > 1:
            raise ModelError(
                f"the columns {other!r} and {name!r} clash among those of dead letters, which "
                f"have a {REASON!r} besides; rename one"
            )
