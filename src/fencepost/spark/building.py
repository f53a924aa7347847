"""Building an index of subscriptions on Spark: validated, divided into parts, written by workers.

Two passes over the subscriptions. The first reads each row, says what is wrong with it or where it
lies, and which columns of events it asks for; what it says is kept beside the index for the second,
in which each part becomes a segment, written by the worker that built it. Then the manifest names
them, in one step.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fencepost.errors import IndexingError, ModelError
from fencepost.index.columns import Columns
from fencepost.index.segment import NEVER_GONE
from fencepost.match import storage
from fencepost.match.matcher import Matcher
from fencepost.match.segment_files import PREFIX, Entry, open_segment
from fencepost.model.space import Space
from fencepost.model.tokens import Tokeniser
from fencepost.spark import placing, routing, workers
from fencepost.spark.matching import plain_names, plainly
from fencepost.spark.placing import CHANCE, Division, Places, divide
from fencepost.spark.reading import Form, Reader
from fencepost.spark.workers import ASKS, DELETED, PART, WRONG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MODES = ("create", "replace", "update")
REASON = "reason"
_DELETED = "deleted"
_ID = plain_names(1)[0]  # it comes first
_STAGING = ".staging-"
_LOCK = ".building"
_SAMPLE = 100_000
_PART_SIZE = 500_000  # subscriptions that a worker holds at once
# A job may be at work with a version that is not the newest: so the last ones are kept, and those
# that were the newest not long ago.
_VERSIONS_KEPT = 3
_KEPT_S = 600.0
_SMALL_PART = 20_000  # fewer are not worth a part


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
        A folder that all workers share. `Matcher.open` opens what is built there, too.
    mode : {"create", "replace", "update"}
        Whether there must be no index yet, or it is replaced, or changed: with "update" a row takes
        the place of the subscription with its id, and one whose column `deleted` is true
        removes it. Only new segments are written then, and which rows of the others are gone.
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
    form = Form(regions or {}, within or {}, keywords or {}, equals or {})
    where = Path(path).absolute()
    _refuse_mode(where, mode)
    with _alone(where):
        _refuse_mode(where, mode)  # somebody may have built one
        before = storage.manifest(where) if mode == "update" else None
        if before is not None:
            space, stop_words = before["space"], before["stop_words"]
        job = _Job(spark, where, form, space, tuple(stop_words), before)
        for left in where.glob(f"{_STAGING}*"):  # by one that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_STAGING, dir=where) as staging:
            return job.run(subscriptions, Path(staging), parts)


def _refuse_mode(path: Path, mode: str) -> None:
    there = storage.exists(path)
    if not there and mode == "update":
        raise IndexingError(f"there is no index in {path} to update; leave mode out")
    if there and mode == "create":
        raise IndexingError(
            f"there is an index in {path} already; give mode='replace' or mode='update'"
        )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else builds there; the system lets go of the lock when the process ends."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / _LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IndexingError(
                f"an index is being built in {path} at this moment; build again when it is done"
            ) from None
        yield


class _Job:
    """One call of `build_index`."""

    def __init__(
        self,
        spark: SparkSession,
        path: Path,
        form: Form,
        space: str,
        stop_words: tuple[str, ...],
        before: storage.Manifest | None,
    ) -> None:
        Matcher(space, stop_words=stop_words)  # says what is wrong with them
        self._spark = spark
        self._path = path
        self._form = form
        self._reader = Reader(form, space, stop_words)
        self._before = before  # of an index to update
        self._version = max(_versions(path), default=0) + 1
        self._prefix = f"{PREFIX}{self._version}-"

    def run(self, given: DataFrame, staging: Path, parts: int | None) -> BuiltIndex:
        from pyspark.sql import functions as F

        used = self._form.used(given.columns)
        _refuse_alike([*used, REASON])
        deleting = self._before is not None and _DELETED in given.columns
        names = plain_names(len(used))
        if deleting:
            plain = plainly(given, [*used, _DELETED])
            flag = F.coalesce(F.col(plain.columns[-1]).cast("boolean"), F.lit(False))
            plain = plain.select(*names, flag.alias(DELETED))
        else:
            plain = plainly(given, used)
        staged = self._staged(plain, used, deleting, staging / "rows")
        good = staged.where(F.col(WRONG).isNull())
        bad = staged.where(F.col(WRONG).isNotNull()).select(*names, WRONG)
        dead = self._dead_letters(bad.toDF(*used, REASON))
        kept = good.where(~F.col(DELETED)) if deleting else good
        columns = self._columns(kept)
        added = kept.count()
        division = self._division(kept, added, parts)
        entries = self._built(kept, used, division, columns) if added else []
        old: list[Entry] = []
        removed = 0
        if self._before is not None:
            old, removed = self._without(
                good.select(F.col(_ID).alias("id")), self._before["segments"]
            )
        return self._published([*old, *entries], columns, added, removed, dead)

    def _staged(self, rows: DataFrame, used: list[str], deleting: bool, path: Path) -> DataFrame:
        """The rows with what is wrong with them or where they lie, kept for the second pass."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

        kinds = {placing.KIND: IntegerType(), ASKS: StringType(), WRONG: StringType()}
        added = (*placing.FIELDS, ASKS, WRONG)
        schema = StructType(
            [*rows.schema, *(StructField(n, kinds.get(n, DoubleType()), True) for n in added)]
        )
        first = workers.Place(used, self._reader, deleting)
        twice = rows.groupBy(_ID).count().where(f"count > 1 AND {_ID} IS NOT NULL")
        told = rows.mapInArrow(first, schema).join(
            F.broadcast(twice.withColumnRenamed("count", "times")), _ID, "left"
        )
        told = told.withColumn(
            WRONG,
            F.when(
                F.col("times").isNotNull(),
                F.concat(F.lit("the id is in the table "), F.col("times"), F.lit(" times")),
            ).otherwise(F.col(WRONG)),
        ).drop("times")
        # Where many lie at one place, chance divides them.
        chance = F.pmod(F.xxhash64(_ID), F.lit(2**32)) / F.lit(float(2**32))
        told.withColumn(CHANCE, chance).write.parquet(str(path))
        return self._spark.read.parquet(str(path))

    def _dead_letters(self, bad: DataFrame) -> tuple[int, str | None]:
        """Write rows that cannot be used; how many, and where."""
        count = bad.count()
        if not count:
            return 0, None
        path = self._path / "dead-letters" / f"version-{self._version}-{uuid.uuid4().hex[:8]}"
        bad.write.parquet(str(path))
        return count, str(path)

    def _columns(self, kept: DataFrame) -> Columns:
        """What the subscriptions ask of events, numbered for all parts alike."""
        columns = Columns(Tokeniser.without(self._reader.stop_words), Space(self._reader.space))
        if self._before is not None:
            columns.adopt(storage.columns_of(self._before))
        asked = sorted(row[0] for row in kept.select(ASKS).distinct().collect())
        for text in asked:
            for row in json.loads(text):
                columns.number(storage.column_of(row))
        return columns

    def _division(self, kept: DataFrame, count: int, parts: int | None) -> Division:
        fraction = min(1.0, 1.2 * _SAMPLE / max(count, 1))
        sample = kept if fraction == 1.0 else kept.sample(fraction=fraction, seed=0)
        table = sample.select(*placing.FIELDS, CHANCE).toArrow()
        if parts is None:
            cores = self._spark.sparkContext.defaultParallelism
            parts = max(min(cores, count // _SMALL_PART), -(-count // _PART_SIZE), 1)
        return divide(Places.of(table), parts)

    def _built(
        self, kept: DataFrame, used: list[str], division: Division, columns: Columns
    ) -> list[Entry]:
        """Build the parts on the workers; what the manifest says of each."""
        from pyspark.sql.types import IntegerType, StructField, StructType

        names = plain_names(len(used))
        rows = kept.select(*names, *placing.FIELDS, CHANCE)
        part = StructField(PART, IntegerType(), False)
        schema = StructType([*(rows.schema[name] for name in names), part])
        placed = rows.mapInArrow(workers.Divide(names, division), schema)
        build = workers.Build(str(self._path), used, self._reader, columns, self._prefix)
        told = placed.repartitionById(division.parts, PART).mapInArrow(
            build, "part int, entry string"
        )
        return [json.loads(row["entry"]) for row in sorted(told.collect())]

    def _without(self, changed: DataFrame, entries: list[Entry]) -> tuple[list[Entry], int]:
        """The old segments, of which those with a changed id are gone; how many that are."""

        entries = [_described(self._path, entry) for entry in entries]
        numbers = self._spark.range(len(entries), numPartitions=max(len(entries), 1))
        rows = numbers.mapInArrow(
            workers.Ids(str(self._path), entries), "id string, segment int, row long"
        )
        hit = rows.join(changed.distinct(), "id", "left_semi").select("segment", "row")
        told = hit.repartitionById(max(len(entries), 1), "segment").mapInArrow(
            workers.Remove(str(self._path), entries, self._version),
            "segment int, gone string, count long, removed long",
        )
        found = {row["segment"]: row for row in told.collect()}
        left = []
        for number, entry in enumerate(entries):
            row = found.get(number)
            if row is not None:
                entry = {**entry, "gone": row["gone"], "gone_count": row["count"]}
            if entry.get("gone_count", 0) < entry["subscriptions"]:
                left.append(entry)
        return left, sum(row["removed"] for row in found.values())

    def _published(
        self,
        entries: list[Entry],
        columns: Columns,
        added: int,
        removed: int,
        dead: tuple[int, str | None],
    ) -> BuiltIndex:
        router = routing.write(self._path, entries, columns, self._version)
        storage.write_manifest(
            self._path, entries, columns, version=self._version, router=router.name
        )
        _remove_unnamed(self._path, time.time())
        return BuiltIndex(
            str(self._path),
            self._version,
            sum(entry["subscriptions"] - entry.get("gone_count", 0) for entry in entries),
            added,
            removed,
            len(entries),
            sum(entry.get("bytes", 0) for entry in entries),
            *dead,
        )


def _versions(path: Path) -> dict[int, Path]:
    """The versions of an index of which there are manifests."""
    found = {file.stem.removeprefix("manifest-"): file for file in path.glob("manifest-*.json")}
    return {int(number): file for number, file in found.items() if number.isdecimal()}


def _described(path: Path, entry: Entry) -> Entry:
    """An entry with what `Matcher.save` does not say: its size, and how many are gone."""
    if "bytes" in entry:
        return entry
    segment = open_segment(path, entry).segment
    gone = int(np.count_nonzero(segment.arrays.gone != NEVER_GONE))
    return {**entry, "bytes": segment.nbytes, "gone_count": gone}


def _remove_unnamed(path: Path, now_s: float) -> None:
    """Remove what no version names that somebody may still read."""
    named, gone = set(), set()
    kept, old = _kept_and_old(_versions(path), now_s)
    for number in kept:
        with suppress(IndexingError):  # of another format, which nobody can read
            found = storage.manifest(path, number)
            named |= {entry["folder"] for entry in found["segments"]} | {found["router"]}
            gone |= {entry["gone"] for entry in found["segments"] if "gone" in entry}
    for file in old:
        file.unlink(missing_ok=True)
    for folder in [*path.glob(f"{PREFIX}*"), *path.glob(f"{routing.PREFIX}*")]:
        if folder.name not in named:
            shutil.rmtree(folder, ignore_errors=True)
    for file in path.glob(f"{PREFIX}*/{workers.GONE}*"):
        if file.name not in gone:
            file.unlink(missing_ok=True)


def _kept_and_old(versions: dict[int, Path], now_s: float) -> tuple[list[int], list[Path]]:
    """The versions to keep, and the manifests of the others."""
    numbers = sorted(versions, reverse=True)
    kept, old = numbers[:_VERSIONS_KEPT], []
    for newer, number in zip(numbers[_VERSIONS_KEPT - 1 :], numbers[_VERSIONS_KEPT:], strict=False):
        if versions[newer].stat().st_mtime > now_s - _KEPT_S:
            kept.append(number)
        else:
            old.append(versions[number])
    return kept, old


def _refuse_alike(names: Sequence[str]) -> None:
    """Columns of dead letters must differ, and not only in case: Spark would not write them."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name or names.count(name) > 1:
            raise ModelError(
                f"the columns {other!r} and {name!r} clash among those of dead letters, which "
                f"have a {REASON!r} besides; rename one"
            )
