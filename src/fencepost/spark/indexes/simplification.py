"""Simplifying subscriptions on Spark, and finding which of one subscriber cover others.

Rows go to tasks by their subscriber and are sorted by it there. A task reads its batches in turn
and simplifies all subscribers of which it has every row, so it holds at most a batch and the
subscriptions of one subscriber.
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
from fencepost.geometry.space import Space, parse_space
from fencepost.spark.indexes.subscription_rows import SubscriptionLayout, with_names_as_text
from fencepost.spark.matches.match_frames import (
    DUPLICATE_REASON,
    duplicate_ids,
    plain_names,
    with_plain_names,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OWNER = "fencepost_owner"
_COUNTS = ("filters_before", "filters_after", "constraints_before", "constraints_after")
_GIVEN = ("id", "subscriber", "expression")  # told of rows that cannot be used, too
_RESULT = pa.schema(
    [
        *((name, pa.string()) for name in (*_GIVEN, "covered_by")),
        ("never_matches", pa.bool_()),
        *((name, pa.int32()) for name in _COUNTS),
        ("dropped", pa.list_(pa.string())),
        ("reason", pa.string()),
    ]
)


def simplify(
    subscriptions: DataFrame,
    *,
    space: str = Space.PLANAR,
    stop_words: Iterable[str] = (),
) -> DataFrame:
    """Subscriptions, each simplified, and told which of the same subscriber covers it.

    The meaning is that of `fencepost.simplify_many`. One task compares all subscriptions of a
    subscriber, in its memory.

    Parameters
    ----------
    subscriptions : DataFrame
        A row is a subscription: `id`, `expression` (CQL2, text or JSON), and where given
        `subscriber` (the id if left out) and `expires`.
    space, stop_words
        Of the index that they are for.

    Returns
    -------
    DataFrame
        `id`, `subscriber`, `expression` (simplified), `covered_by` (an id, or null), whether it
        `never_matches`, `filters_before`, `filters_after`, `constraints_before`,
        `constraints_after`, `dropped` (what, and why), and a `reason` where the row cannot be used.
    """
    if subscriptions.isStreaming:
        raise ModelError("a stream of subscriptions cannot be simplified; give a batch DataFrame")
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    work = _Simplify(
        tuple(SubscriptionLayout().used(subscriptions.columns)),
        parse_space(space),
        tuple(stop_words),
    )
    Tokenizer.without(work.stop_words)  # says what is wrong with them
    plain = with_plain_names(subscriptions, work.names)
    renamed = dict(zip(work.names, plain_names(len(work.names)), strict=True))
    id = renamed["id"]
    owners = [F.col(renamed.get(name, id)).cast("string") for name in ("subscriber", "id")]
    rows = plain.join(F.broadcast(duplicate_ids(plain, id)), id, "left")
    owned = rows.withColumn(_OWNER, F.coalesce(*owners, F.lit("")))
    by_owner = owned.repartition(_OWNER).sortWithinPartitions(_OWNER)
    return by_owner.mapInArrow(work, from_arrow_schema(_RESULT))


@dataclass(frozen=True, slots=True)
class _Simplify:
    """Rows, sorted by `_OWNER`, to rows of `_RESULT`."""

    names: tuple[str, ...]  # of the first columns
    space: Space
    stop_words: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_subscribers(batches):
            yield from self._told(table).to_batches()

    def _told(self, table: pa.Table) -> pa.Table:
        own = table.select(range(len(self.names))).rename_columns(list(self.names))
        own = with_names_as_text(own)
        reasons = table.column(DUPLICATE_REASON).to_pylist()
        once = np.flatnonzero([reason is None for reason in reasons])
        bad: list[tuple[int, str]] = []
        found = simplify_many(
            own.take(once), bad, stop_words=self.stop_words, space=self.space.value
        )
        for row, reason in bad:
            reasons[once[row]] = reason
        wrong = np.flatnonzero([reason is not None for reason in reasons])
        letters = {
            name: _texts(own.column(name).take(wrong)) for name in _GIVEN if name in self.names
        }
        letters["reason"] = pa.array([reasons[row] for row in wrong], pa.string())
        good = pa.Table.from_pylist([_row(one) for one in found], _RESULT)
        return pa.concat_tables([good, pa.table(letters)], promote_options="default")


def whole_subscribers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches, sorted by `_OWNER`, as tables in which every owner has all of its rows."""
    held: pa.Table | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        held = table if held is None else pa.concat_tables([held, table])
        owners = held.column(_OWNER)
        whole = pc.index(owners, owners[-1]).as_py()  # the last owner may go on in the next batch
        if whole:
            yield held.slice(0, whole)
            held = held.slice(whole)
    if held is not None:
        yield held


def _row(own: SimplifiedSubscription) -> dict[str, Any]:
    simple = own.simplification
    return {
        "id": own.id,
        "subscriber": own.subscriber,
        "expression": simple.expression,
        "covered_by": own.covered_by,
        "never_matches": simple.never_matches,
        **{name: getattr(simple, name) for name in _COUNTS},
        "dropped": [part.line() for part in simple.dropped],
    }


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of strings as it is, UTF-8 or not; of any other type, nulls."""
    if pa.types.is_string(column.type):
        return column
    return pa.chunked_array([pa.nulls(len(column), pa.string())])
