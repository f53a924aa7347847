"""`match_frame`: a table of events joined with the subscriptions that they match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fencepost.errors import ModelError
from fencepost.events.table import EventTable, is_pandas
from fencepost.geometry.space import OtherCrsName

if TYPE_CHECKING:
    from fencepost.engine.matcher import Matcher


def match_frame(
    matcher: Matcher,
    frame: Any,
    x: str | None,
    y: str | None,
    column: str,
    strict: bool,
    crs: OtherCrsName,
) -> Any:
    """Join a table with its matches, as `Matcher.match_frame` does."""
    if (x is None) != (y is None):
        raise ModelError("x and y must be given together: the columns of the points' coordinates")
    is_polars = type(frame).__module__.partition(".")[0] == "polars"
    if not is_polars and not is_pandas(frame) and hasattr(frame, "__arrow_c_stream__"):
        frame = pa.table(frame)  # a stream can be read once
    events = EventTable.read(frame, matcher.view().columns.space)
    if events.column_names is None:
        raise ModelError(
            f"a {type(frame).__name__} is no table of columns; give an Arrow, pandas, GeoPandas or"
            " polars table, or call match_batch"
        )
    if column in events.column_names:
        raise ModelError(f"the table has a column {column!r:.60}; name another one with column=")
    if x is not None and y is not None:
        events = events.with_points(x, y)
        matcher.view().unit_watch.see_point_columns(x, y)
    matches = matcher.match_batch(events, sort=True, strict=strict, crs=crs)
    rows = matches.column("event").to_numpy()
    ids = matches.column("subscription")
    if is_pandas(frame):
        joined = frame.take(rows)
        joined[column] = ids.to_pandas().astype(object).to_numpy()
        return joined
    if is_polars:
        import polars

        texts = polars.Series(column, ids.cast(pa.string()).to_pylist(), dtype=polars.String)
        return frame[np.asarray(rows)].with_columns(texts)
    table = pa.table(frame) if isinstance(frame, pa.RecordBatch) else frame
    return table.take(pa.array(rows)).append_column(column, ids.cast(pa.string()))
