"""Provides `build_index`: builds or updates an index of subscriptions as a Spark job.

The job makes two passes over the subscriptions. The first pass validates each row and computes its
partition keys and the event columns that it refers to; Spark keeps the result on the disks of the
workers. In the second pass each part becomes a segment, written by the worker that built it. Then
the manifest, which lists the segments, is replaced in one step.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

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
    encode_manifest,
    manifest_name,
)
from fencepost.engine.storage.segment_files import PREFIX, files_of, open_segment
from fencepost.errors import IndexingError, ModelError
from fencepost.geometry.space import DEFAULT_SPACE, Space, SpaceName
from fencepost.spark.feature_frames import attribute_frame
from fencepost.spark.indexes import build_tasks, compaction, partition_cuts
from fencepost.spark.indexes.build_tasks import DELETED, PART, REASON_COLUMN, REQUESTED_COLUMNS
from fencepost.spark.indexes.index_folders import Folder, folder_of
from fencepost.spark.indexes.partition_cuts import (
    RANDOM,
    Partitioning,
    PartitionKeys,
    choose_partitioning,
)
from fencepost.spark.indexes.subscription_reader import SubscriptionLayout, SubscriptionReader
from fencepost.spark.matches import part_routing
from fencepost.spark.matches.match_frames import (
    DUPLICATE_REASON,
    duplicate_ids,
    plain_names,
    with_plain_names,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Mode: TypeAlias = Literal["create", "replace", "update"]
MODES: tuple[Mode, ...] = get_args(Mode)
REASON = "reason"
_DELETED = "deleted"
_ID = plain_names(1)[0]  # the id is the first column
_FOLDER_PREFIXES = (PREFIX, part_routing.PREFIX)  # of the folders that a version refers to
_SAMPLE_SIZE = 100_000  # subscriptions
_MAX_PART_SIZE = 500_000  # subscriptions that a worker holds at once
# A running job may read a version that is not the newest. So the last `_MIN_VERSIONS` versions are
# kept, and each version until it has not been the newest for `_MIN_AGE_S`.
_MIN_VERSIONS = 3
_MIN_AGE_S = 600.0
_MIN_PART_SIZE = 20_000  # subscriptions; a smaller part is not worth a task


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """The index that `build_index` wrote.

    Attributes
    ----------
    path : str
        The folder of the index, or its address in an object store.
    version : int
        The version that the call published.
    subscriptions : int
        The live subscriptions of the whole index.
    added, removed : int
        The subscriptions that the call added and deleted.
    parts : int
        The segments of the index.
    bytes : int
        The memory that the segments take when mapped.
    dead_letters : int
        The rows that could not be used.
    dead_letters_path : str, optional
        The folder of Parquet files with these rows, each with a `reason`.
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
    mode: Mode = "create",
    regions: Mapping[str, tuple[str, str]] | None = None,
    within: Mapping[str, tuple[str, float | str]] | None = None,
    keywords: Mapping[str, str] | None = None,
    equals: Mapping[str, str] | None = None,
    space: SpaceName = DEFAULT_SPACE,
    stop_words: Iterable[str] = (),
    parts: int | None = None,
) -> BuiltIndex:
    """Build or update an index of subscriptions, as a Spark job.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the job.
    subscriptions : DataFrame
        One subscription a row: `id`, `expression` (CQL2, text or JSON) and, optionally,
        `subscriber` and `expires`. Instead of `expression`, conditions may be in columns, which
        `regions`, `within`, `keywords` and `equals` name. In GeoJSON Features, these columns are
        properties, the `id` and the `geometry`.
    path : str or Path
        A folder that all workers share, or an address in an object store that
        `pyarrow.fs.FileSystem.from_uri` accepts, such as ``s3://bucket/index``. `Matcher.open` also
        opens an index that was built in a folder.
    mode : {"create", "replace", "update"}
        "create" fails if the index exists; "replace" replaces it. With "update", a row replaces the
        subscription with the same id, and a row whose column `deleted` is true deletes it. An
        update writes new segments and marks rows of old ones as deleted; at times it also merges
        small segments.
    regions, within, keywords, equals : mapping, optional
        As in `Matcher.subscribe_columns`, with names of columns instead of arrays.
    space, stop_words
        As in `Matcher`. An update keeps those of the index.
    parts : int, optional
        The number of parts; by default it follows from the number of subscriptions.

    Returns
    -------
    BuiltIndex
        Rows that cannot be used raise no error; the result says how many there are, and where.
    """
    if mode not in MODES:
        raise ModelError(f"mode must be one of {', '.join(MODES)}; saw {mode!r:.40}")
    layout = SubscriptionLayout(regions or {}, within or {}, keywords or {}, equals or {})
    folder = folder_of(str(path))
    _check_mode(folder, mode)
    with folder.build_lock():
        _check_mode(folder, mode)  # another build may have finished before the lock was taken
        previous_text = folder.read_text(MANIFEST)
        previous = None
        if previous_text is not None and mode == "update":
            previous = decode_manifest(folder.name, previous_text)
            space, stop_words = previous.space, previous.stop_words
        reader = SubscriptionReader(layout, space, tuple(stop_words))
        Matcher(space, stop_words=reader.stop_words)  # raises if an argument is invalid
        version = max(_versions_written_s(folder), default=0) + 1
        return _Job(spark, folder, reader, previous_text, previous, version).run(
            subscriptions, parts
        )


def _check_mode(folder: Folder, mode: Mode) -> None:
    exists = folder.has_index()
    if not exists and mode == "update":
        raise IndexingError(f"there is no index in {folder.name} to update; leave mode out")
    if exists and mode == "create":
        raise IndexingError(
            f"an index exists in {folder.name}; give mode='replace' or mode='update'"
        )


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of `build_index`."""

    spark: SparkSession
    folder: Folder
    reader: SubscriptionReader
    previous_text: str | None  # of the manifest before the build, if there is an index
    previous: Manifest | None  # of the index to update
    version: int

    @property
    def prefix(self) -> str:
        """The prefix of the names of new segments."""
        return f"{PREFIX}{self.version}-"

    def run(self, subscriptions: DataFrame, parts: int | None) -> BuiltIndex:
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        subscriptions = attribute_frame(subscriptions)
        used = self.reader.layout.used(subscriptions.columns)
        _check_column_names([*used, REASON])
        deleting = self.previous is not None and _DELETED in subscriptions.columns
        names = plain_names(len(used))
        if deleting:
            plain = with_plain_names(subscriptions, [*used, _DELETED])
            flag = F.coalesce(F.col(plain.columns[-1]).cast("boolean"), F.lit(False))
            plain = plain.select(*names, flag.alias(DELETED))
        else:
            plain = with_plain_names(subscriptions, used)
        keyed = self._with_keys(plain, used, deleting)
        # Checked on the source: reading the staged rows back would take additional memory.
        if self._has_duplicate_ids(plain):
            keyed = self._mark_duplicate_ids(keyed, plain)
        staged = keyed.persist(StorageLevel.DISK_ONLY)
        try:
            return self._build_staged(staged, used, deleting, parts)
        finally:
            staged.unpersist()

    def _build_staged(
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
        totals = staged.groupBy(REQUESTED_COLUMNS).agg(*counts).collect()
        columns = self._column_registry(text for text, _, _ in totals if text is not None)
        added, invalid_count = (sum(row[k] for row in totals) for k in (1, 2))
        invalid = staged.where(F.col(REASON_COLUMN).isNotNull()).select(*names, REASON_COLUMN)
        dead_letters = self._dead_letters(invalid, [*used, REASON]) if invalid_count else (0, None)
        good = staged.where(F.col(REASON_COLUMN).isNull())
        # A hash of the id separates subscriptions at the same place.
        random = F.pmod(F.xxhash64(_ID), F.lit(2**32)) / F.lit(float(2**32))
        kept = staged.where(is_kept).withColumn(RANDOM, random)
        partitioning = self._choose_partitioning(kept, added, parts)
        entries = self._build_segments(kept, used, partitioning, columns) if added else []
        removed = 0
        if self.previous is not None:
            old_entries, removed = self._delete_changed(
                good.select(F.col(_ID).cast("string").alias("id")), self.previous.segments
            )
            new_entries = [replace(entry, is_partition=False) for entry in entries]
            entries = self._compact([*old_entries, *new_entries])
        return self._publish(entries, columns, added, removed, dead_letters)

    def _with_keys(self, rows: DataFrame, used: list[str], deleting: bool) -> DataFrame:
        """Return the rows with their partition keys, or the reason why they are invalid."""
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
        """Return whether ids, or their hashes, occur more than once in the table."""
        from pyspark.sql import functions as F

        named = rows.where(F.col(_ID).isNotNull())
        return not named.groupBy(F.xxhash64(_ID)).count().where("count > 1").isEmpty()

    def _mark_duplicate_ids(self, keyed: DataFrame, rows: DataFrame) -> DataFrame:
        """Return `keyed` with a reason in every row whose id occurs more than once."""
        from pyspark.sql import functions as F

        duplicates = F.broadcast(duplicate_ids(rows, _ID))
        reason = F.coalesce(DUPLICATE_REASON, REASON_COLUMN)
        return (
            keyed.join(duplicates, _ID, "left")
            .withColumn(REASON_COLUMN, reason)
            .drop(DUPLICATE_REASON)
        )

    def _dead_letters(self, invalid: DataFrame, names: list[str]) -> tuple[int, str | None]:
        """Write invalid rows; return their number and the path."""
        name = f"dead-letters/version-{self.version}-{uuid.uuid4().hex[:8]}"
        write = build_tasks.DeadLetterTask(self.folder.uri, name, names)
        count = sum(row["rows"] for row in invalid.mapInArrow(write, "rows long").collect())
        return count, self.folder.address_of(name)

    def _column_registry(self, requested: Iterable[str]) -> ColumnRegistry:
        """Return the columns of events that subscriptions refer to, numbered alike for all parts.

        requested : values of `REQUESTED_COLUMNS`, also of rows with duplicate ids.
        """
        entries = [entry for text in sorted(requested) for entry in columns_from_json(text)]
        if self.previous is not None:
            entries = [entry for rows in self.previous.columns for entry in rows] + entries
        return columns_of(entries, self.reader.stop_words, Space(self.reader.space))

    def _choose_partitioning(self, kept: DataFrame, count: int, parts: int | None) -> Partitioning:
        fraction = min(1.0, 1.2 * _SAMPLE_SIZE / max(count, 1))
        sample = kept if fraction == 1.0 else kept.sample(fraction=fraction, seed=0)
        table = sample.select(*partition_cuts.KEY_COLUMNS, RANDOM).toArrow()
        return choose_partitioning(
            PartitionKeys.of(table), self._part_count(count) if parts is None else parts
        )

    def _part_count(self, count: int) -> int:
        """Return the number of parts for `count` subscriptions."""
        cores = self.spark.sparkContext.defaultParallelism
        return max(min(cores, count // _MIN_PART_SIZE), -(-count // _MAX_PART_SIZE), 1)

    def _build_segments(
        self, kept: DataFrame, used: list[str], partitioning: Partitioning, columns: ColumnRegistry
    ) -> list[SegmentEntry]:
        """Build a segment of each part on the workers; return their manifest entries."""
        rows = kept.select(*plain_names(len(used)), partitioning.column().alias(PART))
        requested = columns_as_json(columns)
        build = build_tasks.SegmentBuildTask(
            self.folder.uri, used, self.reader, requested, self.prefix
        )
        written = rows.repartitionById(partitioning.parts, PART).mapInArrow(
            build, "part int, entry string"
        )
        return [decode_segment_entry(row["entry"]) for row in sorted(written.collect())]

    def _delete_changed(
        self, changed: DataFrame, entries: list[SegmentEntry]
    ) -> tuple[list[SegmentEntry], int]:
        """Mark rows with changed ids as deleted.

        Returns the entries of the old segments that still have live rows, and the number of rows
        deleted.
        """
        entries = [_complete_entry(self.folder, entry) for entry in entries]
        numbers = self.spark.range(len(entries), numPartitions=max(len(entries), 1))
        rows = numbers.mapInArrow(
            build_tasks.SegmentIdsTask(self.folder.uri, entries), "id string, segment int, row long"
        )
        replaced = rows.join(changed.distinct(), "id", "left_semi").select("segment", "row")
        marked = replaced.repartitionById(max(len(entries), 1), "segment").mapInArrow(
            build_tasks.DeletionTask(self.folder.uri, entries, self.version),
            "segment int, entry string, removed long",
        )
        results = marked.collect()
        for row in results:
            entries[row["segment"]] = decode_segment_entry(row["entry"])
        remaining = [entry for entry in entries if entry.live]
        return remaining, sum(row["removed"] for row in results)

    def _compact(self, entries: list[SegmentEntry]) -> list[SegmentEntry]:
        """Rewrite small segments and segments with many deleted rows; return all entries."""
        groups = compaction.choose_merges(entries, _MAX_PART_SIZE)
        if not groups:
            return entries
        pieces = [piece for group in groups for piece in self._pieces(entries, group)]
        rewrite = compaction.RewriteTask(self.folder.uri, entries, pieces, self.prefix)
        numbers = self.spark.range(len(pieces), numPartitions=len(pieces))
        written = numbers.mapInArrow(rewrite, "piece int, entry string").collect()
        merged = {number for group in groups for number in group.numbers}
        remaining = [entry for number, entry in enumerate(entries) if number not in merged]
        return remaining + [decode_segment_entry(row["entry"]) for row in sorted(written)]

    def _pieces(
        self, entries: list[SegmentEntry], group: compaction.MergeGroup
    ) -> list[compaction.OutputPiece]:
        """Return the segments to write for a group: one piece a part."""
        count = sum(entries[number].live for number in group.numbers)
        # A rewrite of the whole index uses all cores; a merge of updates makes as few segments as
        # the part size allows.
        parts = self._part_count(count) if group.is_partition else -(-count // _MAX_PART_SIZE)
        if parts <= 1 or len(group.numbers) == 1:
            return [compaction.OutputPiece(group, None, 0)]
        segments = [entries[number] for number in group.numbers]
        sample = compaction.SampleTask(self.folder.uri, segments, min(1.0, _SAMPLE_SIZE / count))
        numbers = self.spark.range(len(segments), numPartitions=len(segments))
        schema = ", ".join(f"{name} double" for name in (*partition_cuts.KEY_COLUMNS, RANDOM))
        partitioning = choose_partitioning(
            PartitionKeys.of(numbers.mapInArrow(sample, schema).toArrow()), parts
        )
        return [
            compaction.OutputPiece(group, partitioning, part) for part in range(partitioning.parts)
        ]

    def _publish(
        self,
        entries: list[SegmentEntry],
        columns: ColumnRegistry,
        added: int,
        removed: int,
        dead_letters: tuple[int, str | None],
    ) -> BuiltIndex:
        folder, version = self.folder, self.version
        router = part_routing.write_router(folder, entries, columns, version)
        text = encode_manifest(build_manifest(entries, columns, version, router)).decode()
        if folder.read_text(MANIFEST) != self.previous_text:
            raise IndexingError(
                f"another build published an index in {folder.name} meanwhile; build again"
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
            *dead_letters,
        )


def _versions_written_s(folder: Folder) -> dict[int, float]:
    """Return the versions that have a manifest, and when each manifest was written."""
    written_s = {
        name.removeprefix("manifest-").removesuffix(".json"): at
        for name, at in folder.modified_s().items()
    }
    return {int(number): at for number, at in written_s.items() if number.isdecimal()}


def _complete_entry(folder: Folder, entry: SegmentEntry) -> SegmentEntry:
    """Return the entry with its sizes and write its routing keys, which `Matcher.save` omits."""
    if entry.memory_bytes is not None:
        return entry
    with folder.local_files(files_of(entry)) as path:
        segment = open_segment(path, entry)
    with folder.staging_folder() as path:
        entry = part_routing.write_routing_keys(path, entry, segment)
    return replace(entry, deleted=segment.deleted_count)


def _remove_unreferenced(folder: Folder, now_s: float) -> None:
    """Remove manifests of old versions, and files that no remaining version refers to."""
    kept, old = _split_versions(_versions_written_s(folder), now_s)
    referenced = {name for number in kept for name in _referenced_names(folder, number)}
    folders = {name.partition("/")[0] for name in referenced}
    # A file in a folder that is kept is removed with the last version that referred to it.
    files = {name for number in old for name in _referenced_names(folder, number) if "/" in name}
    unreferenced = {name for name in files - referenced if name.partition("/")[0] in folders}
    unreferenced |= {manifest_name(number) for number in old}
    unreferenced |= {
        n for n in folder.modified_s() if n.startswith(_FOLDER_PREFIXES) and n not in folders
    }
    folder.remove(sorted(unreferenced))


def _referenced_names(folder: Folder, version: int) -> set[str]:
    """Return the folders that a version refers to, and its files of deleted rows."""
    try:
        manifest = folder.manifest(version)
    except IndexingError:  # another format, which this version cannot read
        return set()
    entries = manifest.segments
    deleted = {f"{e.folder}/{e.deleted_file}" for e in entries if e.deleted_file is not None}
    return deleted | {e.folder for e in entries} | ({manifest.router} if manifest.router else set())


def _split_versions(written_s: dict[int, float], now_s: float) -> tuple[list[int], list[int]]:
    """Return the versions to keep, and those to remove.

    A version stops being the newest when the next one is written.
    """
    numbers = sorted(written_s, reverse=True)
    kept = numbers[:_MIN_VERSIONS]
    removable: list[int] = []
    for successor, number in zip(
        numbers[_MIN_VERSIONS - 1 :], numbers[_MIN_VERSIONS:], strict=False
    ):
        (kept if written_s[successor] > now_s - _MIN_AGE_S else removable).append(number)
    return kept, removable


def _check_column_names(names: Sequence[str]) -> None:
    """Raise if column names of dead letters are equal but for case: Spark could not write them."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name or names.count(name) > 1:
            raise ModelError(
                f"the columns {other!r} and {name!r} clash in the table of dead letters, which "
                f"also has a column {REASON!r}; rename one"
            )
