"""Simplifying subscriptions on Spark, and finding which of one subscriber cover others.

Covering is found by comparing the subscriptions of a subscriber, all in one task where they are
few. Those of a subscriber with more than a task should hold are cut into chunks by place. First
each chunk is reduced by itself; then, round by round, two chunks at a time are compared, no
chunk twice in a round, and what is covered is gone before the next round: so no two take each
other out in different tasks. Chunks whose places do not meet are not compared, as no area covers
one that it does not meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fencepost.errors import ModelError
from fencepost.model.space import Space, space_of
from fencepost.model.tokens import Tokeniser
from fencepost.spark.matching import plain_names, plainly
from fencepost.spark.reading import Form
from fencepost.spark.simplify_workers import (
    COUNTS,
    COVERED,
    PLACE,
    REACH,
    READ,
    TASK,
    UNTIL,
    Assign,
    Cover,
    Meaning,
    Read,
    placed,
)
from fencepost.spark.splitting import Cuts, cut

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 20_000  # subscriptions of a chunk; a task compares two
_SAMPLE = 10_000  # of a large subscriber
_COLUMNS = ("id", "subscriber", "expression", "covered_by", "never_matches", *COUNTS, "dropped")
_PAIR = "fencepost_pair"

Box = tuple[float, ...]


def simplify(
    subscriptions: DataFrame,
    *,
    space: str = Space.PLANAR,
    stop_words: Iterable[str] = (),
    most: int = MOST,
) -> DataFrame:
    """Subscriptions, each simplified, and told which of the same subscriber covers it.

    The meaning is that of `fencepost.simplify_many`. What reads and compares runs at once; the
    answer is kept on the executors.

    Parameters
    ----------
    subscriptions : DataFrame
        A row is a subscription: `id`, `expression` (CQL2, text or JSON), and where given
        `subscriber` (the id if left out) and `expires`.
    space, stop_words
        Of the index that they are for.
    most : int
        How many subscriptions of one subscriber a chunk has, about; a task holds two chunks.

    Returns
    -------
    DataFrame
        `id`, `subscriber`, `expression` (simplified), `covered_by` (an id, or null), whether it
        `never_matches`, `filters_before`, `filters_after`, `constraints_before`,
        `constraints_after`, `dropped` (what, and why), and a `reason` where the row cannot be used.
    """
    if subscriptions.isStreaming:
        raise ModelError("a stream of subscriptions cannot be simplified; give a batch DataFrame")
    if most < 1:
        raise ModelError(f"most must be a whole number from 1 on; saw {most!r:.40}")
    from pyspark.sql import functions as F

    meaning = Meaning(space_of(space), Tokeniser.without(stop_words))
    told = _read(subscriptions, meaning).localCheckpoint()
    usable = told.where(F.col("reason").isNull() & ~F.col("never_matches"))
    covered = _covered(
        usable.select("id", "subscriber", "expression", UNTIL, *REACH, *PLACE), meaning, most
    )
    return told.join(covered, "id", "left").select(*_COLUMNS, "reason")


def _read(subscriptions: DataFrame, meaning: Meaning) -> DataFrame:
    """Rows of `READ`."""
    from pyspark.sql import functions as F

    used = Form().used(subscriptions.columns)
    plain = plainly(subscriptions, used)
    id = plain_names(1)[0]
    twice = plain.groupBy(id).count().where("count > 1").toDF("id", "times").where("id IS NOT NULL")
    told = plain.mapInArrow(Read(used, meaning), READ).join(F.broadcast(twice), "id", "left")
    again = F.concat(F.lit("the id is in the table "), F.col("times"), F.lit(" times"))
    reason = F.when(F.col("times").isNotNull(), again).otherwise(F.col("reason"))
    return told.withColumn("reason", reason).drop("times")


def _covered(usable: DataFrame, meaning: Meaning, most: int) -> DataFrame:
    """Rows of `COVERED`."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType, StructField, StructType

    is_placed = F.lit(True)
    for name in REACH:
        is_placed &= F.abs(name) < F.lit(np.inf)
    sizes = usable.groupBy("subscriber").agg(
        F.count("*").alias("all"), F.sum(is_placed.cast("long")).alias("placed")
    )
    large = sizes.where(F.col("all") > most).collect()
    few = sizes.where(F.col("all") <= most).agg(F.sum("all")).collect()[0][0] or 0
    cores = usable.sparkSession.sparkContext.defaultParallelism
    small = max(-(-few // most), min(cores, few), 1)
    assign = Assign(small, _chunks(usable, large, most, small))
    tasks = small + sum(cuts.parts for _, cuts in assign.large.values())
    schema = StructType([*usable.schema, StructField(TASK, IntegerType(), False)])
    assigned = usable.mapInArrow(assign, schema)
    cover = Cover(meaning)
    covered = assigned.repartitionById(tasks, TASK).mapInArrow(cover, COVERED).localCheckpoint()
    if not large:
        return covered
    left = assigned.where(F.col(TASK) >= small).join(covered, "id", "left_anti").localCheckpoint()
    for pairs in rounds_of(_described(left)):
        numbered = [(task, number) for number, pair in enumerate(pairs) for task in pair]
        of_task = left.sparkSession.createDataFrame(numbered, f"{TASK} int, {_PAIR} int")
        more = (
            left.join(F.broadcast(of_task), TASK)
            .repartitionById(len(pairs), _PAIR)
            .mapInArrow(cover, COVERED)
            .localCheckpoint()
        )
        if not more.isEmpty():
            left = left.join(more, "id", "left_anti").localCheckpoint()
            covered = _joined(covered, more).localCheckpoint()
    return covered


def _joined(covered: DataFrame, more: DataFrame) -> DataFrame:
    """What was covered before and now; whose coverer is covered now is covered by the new one."""
    from pyspark.sql import functions as F

    now = more.toDF("covered_by", "instead")
    before = covered.join(now, "covered_by", "left")
    still = before.select("id", F.coalesce("instead", "covered_by").alias("covered_by"))
    return still.unionByName(more)


def _chunks(
    usable: DataFrame, large: Sequence[Any], most: int, first: int
) -> dict[tuple[str, bool], tuple[int, Cuts]]:
    """For each subscriber of many: how those with a place, and the others, are cut into chunks."""
    from pyspark.sql import functions as F

    if not large:
        return {}
    total = sum(row["all"] for row in large)
    fraction = min(1.0, 1.2 * _SAMPLE * len(large) / total)
    owned = usable.where(F.col("subscriber").isin([row["subscriber"] for row in large]))
    sample = owned if fraction == 1.0 else owned.sample(fraction=fraction, seed=0)
    table = sample.select("id", "subscriber", *REACH, *PLACE).toArrow()
    has_place, points = placed(table)
    subscribers = table.column("subscriber").to_numpy()
    found: dict[tuple[str, bool], tuple[int, Cuts]] = {}
    for row in large:
        for kind, count in ((True, row["placed"]), (False, row["all"] - row["placed"])):
            own = points[(subscribers == row["subscriber"]) & (has_place == kind)]
            cuts = cut(own, np.ones(len(own)), max(-(-count // most), 1))
            found[row["subscriber"], kind] = first, cuts
            first += cuts.parts
    return found


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some subscriptions of a subscriber.

    Attributes
    ----------
    task : int
    subscriber : str
    reach, place : Box
        Where they cover, and where they may be covered; see `boxes_of`.
    """

    task: int
    subscriber: str
    reach: Box
    place: Box

    def may_cover(self, other: Chunk) -> bool:
        """Whether one of it may cover one of the other."""
        if not np.isfinite(self.reach).all():
            return True
        (x0, y0, x1, y1), (u0, v0, u1, v1) = self.reach, other.place
        return x0 <= u1 and u0 <= x1 and y0 <= v1 and v0 <= y1


def _described(rows: DataFrame) -> list[Chunk]:
    from pyspark.sql import functions as F

    sides = [
        (F.min if name.endswith("0") else F.max)(name).alias(name) for name in (*REACH, *PLACE)
    ]
    return [
        Chunk(
            row[TASK],
            row["subscriber"],
            tuple(row[name] for name in REACH),
            tuple(row[name] for name in PLACE),
        )
        for row in sorted(rows.groupBy(TASK, "subscriber").agg(*sides).collect())
    ]


def rounds_of(chunks: Sequence[Chunk]) -> list[list[tuple[int, int]]]:
    """Pairs of tasks that have to be compared, in rounds in each of which a task comes once."""
    by_subscriber: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_subscriber.setdefault(chunk.subscriber, []).append(chunk)
    rounds: list[tuple[set[int], list[tuple[int, int]]]] = []
    for owned in by_subscriber.values():
        for one, other in combinations(owned, 2):
            if not (one.may_cover(other) or other.may_cover(one)):
                continue
            pair = one.task, other.task
            for busy, pairs in rounds:
                if busy.isdisjoint(pair):
                    busy.update(pair)
                    pairs.append(pair)
                    break
            else:
                rounds.append((set(pair), [pair]))
    return [pairs for _, pairs in rounds]
