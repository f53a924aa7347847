"""Provides `simplify`, which simplifies subscriptions and finds which one covers another.

Spark sends rows to tasks by subscriber and sorts them by it. A task reads its batches in turn and
simplifies each subscriber once it has all of that subscriber's rows, so it holds at most one batch
and the subscriptions of one subscriber.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.engine.simplify import SimplifiedSubscription, simplify_many
from fencepost.errors import ModelError
from fencepost.events.tokenizer import Tokenizer
from fencepost.geometry.space import DEFAULT_SPACE, Space, SpaceName, parse_space
from fencepost.spark.feature_frames import attribute_frame
from fencepost.spark.indexes.subscription_reader import SubscriptionLayout, with_names_as_text
from fencepost.spark.matches.match_frames import (
    DUPLICATE_REASON,
    duplicate_ids,
    plain_names,
    with_plain_names,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SUBSCRIBER = "fencepost_owner"
_COUNTS = ("filters_before", "filters_after", "constraints_before", "constraints_after")
_INPUT = ("id", "subscriber", "expression")  # columns that rejected rows have in the result, too
_RESULT_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in (*_INPUT, "covered_by")),
        ("never_matches", pa.bool_()),
        *((name, pa.int32()) for name in _COUNTS),
        ("dropped", pa.list_(pa.string())),
        ("reason", pa.string()),
    ]
)


def simplify(
    subscriptions: DataFrame,
    *,
    space: SpaceName = DEFAULT_SPACE,
    stop_words: Iterable[str] = (),
) -> DataFrame:
    """Simplify subscriptions, and find which other subscription of a subscriber covers each.

    The results are those of `fencepost.simplify_many`. One task compares all subscriptions of a
    subscriber, in its memory.

    Parameters
    ----------
    subscriptions : DataFrame
        One subscription a row: `id`, `expression` (CQL2, text or JSON) and, optionally,
        `subscriber` (the id by default) and `expires`. It must not be streaming.
    space : str
        The coordinate space of the index that the subscriptions are for.
    stop_words : iterable of str
        The stop words of that index.

    Returns
    -------
    DataFrame
        `id`, `subscriber`, `expression` (simplified), `covered_by` (an id, or null),
        `never_matches`, `filters_before`, `filters_after`, `constraints_before`,
        `constraints_after`, `dropped` (the removed conditions, and why), and a `reason` if the row
        cannot be used.
    """
    if subscriptions.isStreaming:
        raise ModelError("a stream of subscriptions cannot be simplified; give a batch DataFrame")
    subscriptions = attribute_frame(subscriptions)
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    task = _SimplifyTask(
        tuple(SubscriptionLayout().used(subscriptions.columns)),
        parse_space(space),
        tuple(stop_words),
    )
    Tokenizer.without(task.stop_words)  # raises if a stop word is invalid
    plain = with_plain_names(subscriptions, task.names)
    renamed = dict(zip(task.names, plain_names(len(task.names)), strict=True))
    id = renamed["id"]
    subscribers = [F.col(renamed.get(name, id)).cast("string") for name in ("subscriber", "id")]
    rows = plain.join(F.broadcast(duplicate_ids(plain, id)), id, "left")
    keyed = rows.withColumn(_SUBSCRIBER, F.coalesce(*subscribers, F.lit("")))
    grouped = keyed.repartition(_SUBSCRIBER).sortWithinPartitions(_SUBSCRIBER)
    return grouped.mapInArrow(task, from_arrow_schema(_RESULT_SCHEMA))


@dataclass(frozen=True, slots=True)
class _SimplifyTask:
    """Turns rows that are sorted by `_SUBSCRIBER` into rows of `_RESULT_SCHEMA`."""

    names: tuple[str, ...]  # the original names of the first columns
    space: Space
    stop_words: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subscribers(batches):
            yield from self._simplified(table).to_batches()

    def _simplified(self, table: pa.Table) -> pa.Table:
        subscriptions = table.select(range(len(self.names))).rename_columns(list(self.names))
        subscriptions = with_names_as_text(subscriptions)
        reasons = table.column(DUPLICATE_REASON).to_pylist()
        unique = np.flatnonzero([reason is None for reason in reasons])
        bad: list[tuple[int, str]] = []
        results = simplify_many(
            subscriptions.take(unique), bad, stop_words=self.stop_words, space=self.space.value
        )
        for row, reason in bad:
            reasons[unique[row]] = reason
        rejected = np.flatnonzero([reason is not None for reason in reasons])
        rejected_columns = {
            name: _texts(subscriptions.column(name).take(rejected))
            for name in _INPUT
            if name in self.names
        }
        rejected_columns["reason"] = pa.array([reasons[row] for row in rejected], pa.string())
        accepted = pa.Table.from_pylist([_row(result) for result in results], _RESULT_SCHEMA)
        return pa.concat_tables([accepted, pa.table(rejected_columns)], promote_options="default")


def whole_subscribers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Regroup sorted batches into tables that hold all rows of each of their subscribers."""
    held: pa.Table | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        held = table if held is None else pa.concat_tables([held, table])
        subscribers = held.column(_SUBSCRIBER)
        complete = pc.index(subscribers, subscribers[-1]).as_py()  # the last may continue
        if complete:
            yield held.slice(0, complete)
            held = held.slice(complete)
    if held is not None:
        yield held


def _row(subscription: SimplifiedSubscription) -> dict[str, Any]:
    simplification = subscription.simplification
    return {
        "id": subscription.id,
        "subscriber": subscription.subscriber,
        "expression": simplification.expression,
        "covered_by": subscription.covered_by,
        "never_matches": simplification.never_matches,
        **{name: getattr(simplification, name) for name in _COUNTS},
        "dropped": [part.line() for part in simplification.dropped],
    }


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of strings unchanged, UTF-8 or not; nulls for a column of another type."""
    if pa.types.is_string(column.type):
        return column
    return pa.chunked_array([pa.nulls(len(column), pa.string())])
