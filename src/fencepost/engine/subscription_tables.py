"""`subscription_table`: the subscriptions of a matcher as an Arrow table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.decompiler import condition_of
from fencepost.engine.explain.explanation import condition_text
from fencepost.engine.segment import SegmentReader
from fencepost.engine.segment_builder import NEVER_EXPIRES
from fencepost.engine.snapshot import Snapshot

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("subscriber", pa.string()),
        ("expression", pa.large_string()),
        ("expires", pa.timestamp("ns", "UTC")),
    ]
)


def subscription_table(
    snapshot: Snapshot, columns: ColumnRegistry, now: int, with_expressions: bool
) -> pa.Table:
    """Return the live subscriptions of a snapshot, as `Matcher.subscriptions` does."""
    schema = SCHEMA if with_expressions else SCHEMA.remove(SCHEMA.names.index("expression"))
    parts = [pa.table({field.name: [] for field in schema}, schema=schema)]
    for segment in snapshot:
        rows = segment.live_rows(now, snapshot.version)
        if not len(rows):
            continue
        numbers = pa.array(rows)
        values = {
            "id": segment.column("id").take(numbers),
            "subscriber": segment.column("subscriber").take(numbers),
            "expires": _times(segment.expires[rows]),
        }
        if with_expressions:
            values["expression"] = _expressions(segment, rows, columns)
        parts.append(pa.table([values[name] for name in schema.names], schema=schema))
    table = pa.concat_tables(parts)
    return table.take(pc.sort_indices(table.column("id")))


def _times(expires: NDArray[np.int64]) -> pa.Array:
    """Return times of expiry; null for subscriptions that never expire."""
    return pa.array(expires, mask=expires == NEVER_EXPIRES).cast(SCHEMA.field("expires").type)


def _expressions(
    segment: SegmentReader, rows: NDArray[np.int64], columns: ColumnRegistry
) -> pa.ChunkedArray | pa.Array:
    """Return the expressions of rows: stored ones, and others made from their checks."""
    kind = SCHEMA.field("expression").type
    names = segment.names
    stored = pa.nulls(len(rows), kind)
    if "expression" in names.column_names:
        stored = names.column("expression").take(pa.array(rows)).cast(kind)
    missing = stored.is_null().to_numpy(zero_copy_only=False) if stored.null_count else None
    if missing is None:
        return stored
    texts = [condition_text(condition_of(segment, row, columns)) for row in rows[missing].tolist()]
    return pc.replace_with_mask(stored, pa.array(missing), pa.array(texts, kind))
