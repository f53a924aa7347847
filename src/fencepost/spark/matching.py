"""Events of a DataFrame against a saved index, in `mapInArrow`.

Every worker process maps the index once and keeps it (`fencepost.spark.worker`); nothing but the
path travels. The same call serves batch and streaming, because it is a map over rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fencepost.errors import ModelError
from fencepost.match.batch import match_pairs, names_of
from fencepost.match.matcher import Matcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADDED = ("subscription", "subscriber")


def match(events: DataFrame, path: str | Path, columns: Sequence[str] | None = None) -> DataFrame:
    """Every pair of an event and a subscription of a saved index that it answers.

    Parameters
    ----------
    events : DataFrame
        Batch or streaming; a row is an event, its columns are the attributes. A binary column
        used as a geometry is WKB, a string column is WKT.
    path : str or Path
        A folder that `Matcher.save` wrote and that every worker can read.
    columns : sequence of str, optional
        Which columns of the event to keep; all if left out. Fewer are faster: in batch, only
        those and the ones that the subscriptions ask for travel to the workers.

    Returns
    -------
    DataFrame
        Those columns, `subscription` and `subscriber`; one row a match.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    kept = list(events.columns if columns is None else columns)
    unknown = [name for name in kept if name not in events.columns]
    if unknown:
        raise ModelError(
            f"the events have no column {unknown[0]!r}; they have: {', '.join(events.columns)}"
        )
    clash = [name for name in kept if name in ADDED]
    if clash:
        raise ModelError(f"the column {clash[0]!r} clashes with a column of the result; rename it")
    where = str(Path(path).absolute())
    asked = Matcher.open(where).attributes_asked()
    # A stream may outlive this index: the next one may ask for any column. And there must be
    # at least one, or there would be no rows.
    needed = [n for n in events.columns if events.isStreaming or n in asked or n in kept]
    needed = needed or events.columns[:1]
    schema = StructType(
        [events.schema[name] for name in kept]
        + [StructField(name, StringType(), False) for name in ADDED]
    )
    # `mapInArrow` reads dots and ticks in names as syntax, so columns travel under plain names.
    quoted = [f"`{name.replace('`', '``')}`" for name in needed]
    plain = events.selectExpr(*quoted).toDF(*(f"c{k}" for k in range(len(needed))))
    return plain.mapInArrow(_Matches(where, needed, kept), schema)


class _Matches:
    """What runs on the workers: batches of events in, batches of matches out."""

    def __init__(self, path: str, names: Sequence[str], kept: Sequence[str]) -> None:
        self._path = path
        self._names = list(names)
        self._kept = list(kept)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from fencepost.spark import worker

        matcher = worker.matcher(self._path)
        shelves = matcher.snapshot()
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(self._names)
            pairs = match_pairs(matcher, shelves, table)
            rows = pa.array(pairs[:, 0])
            result = [table.column(name).combine_chunks().take(rows) for name in self._kept]
            result += [names_of(shelves, own, pairs[:, 1]) for own in ("id", "subscriber")]
            yield pa.RecordBatch.from_arrays(result, [*self._kept, *ADDED])
