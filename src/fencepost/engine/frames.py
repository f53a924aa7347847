"""`subscribe_frame` and `match_frame`: tables of geometries, and of events, joined by matching.

The first adds a subscription for each geometry of a table. The second joins a table of events with
the subscriptions that they match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.engine.best_matches import MatchLimits
from fencepost.engine.fence_frames import FenceColumns, drop_repeated_ids, read_fence_frame
from fencepost.engine.fence_subscriptions import Fence
from fencepost.engine.segment import Segment
from fencepost.engine.segment_builder import build
from fencepost.engine.segment_manager import id_in_use_message
from fencepost.engine.subscriptions import bad_rows_error
from fencepost.errors import ModelError
from fencepost.events.table import EventTable, arrow_table, is_pandas
from fencepost.geometry.space import OtherCrs, OtherCrsName

if TYPE_CHECKING:
    from fencepost.engine.matcher import DeadLetters, Matcher


def subscribe_frame(
    matcher: Matcher,
    frame: Any,
    fence: Fence,
    columns: FenceColumns,
    replace: bool,
    dead_letters: DeadLetters | None,
    other_crs: OtherCrs,
) -> int:
    """Add a subscription for each geometry of a table, as `Matcher.subscribe_frame` does."""
    bad: DeadLetters = []
    space = matcher._columns.space

    def align(table: EventTable, name: str) -> EventTable:
        return matcher.view().crs_agreement.align(table, [name], other_crs, "the fences")

    fences = read_fence_frame(frame, columns, space, matcher._clock(), bad, align)
    fences = drop_repeated_ids(fences, bad)
    with matcher._segments.lock:
        ids_in_use = set() if replace else matcher._segments.ids_in_use(fences.ids)
        if ids_in_use:
            is_in_use = pc.is_in(fences.ids, pa.array([*ids_in_use], pa.string())).to_numpy(
                zero_copy_only=False
            )
            bad += [
                (int(fences.rows[k]), id_in_use_message(fences.ids[k].as_py()))
                for k in np.flatnonzero(is_in_use).tolist()
            ]
            fences = fences.take(np.flatnonzero(~is_in_use))
        if bad and dead_letters is None:
            raise bad_rows_error(bad)
        if len(fences):
            registry = matcher._columns.copy()
            table = fence.table(registry, fences)
            if table is None:
                matcher.add(fence.subscriptions(fences, space), replace)
            else:
                sample = matcher._segments.event_sampler.sample()
                arrays = build(table, fences.expires, sample=sample)
                matcher._add_segment(Segment(arrays, fences.names()), registry)
    if dead_letters is not None:
        dead_letters.extend(sorted(bad))
    return len(fences)


def match_frame(
    matcher: Matcher,
    frame: Any,
    x: str | None,
    y: str | None,
    column: str,
    strict: bool,
    crs: OtherCrsName,
    limits: MatchLimits | None,
    score_column: str,
) -> Any:
    """Join a table with its matches, as `Matcher.match_frame` does."""
    if (x is None) != (y is None):
        raise ModelError("x and y must be given together: the columns of the points' coordinates")
    is_polars = type(frame).__module__.partition(".")[0] == "polars"
    if not is_polars and not is_pandas(frame):
        frame = arrow_table(frame)  # a stream can be read once
    events = EventTable.read(frame, matcher.view().columns.space)
    columns = events.column_names
    if columns is None and is_pandas(frame):  # a column has values of several types
        columns = [*map(str, frame.columns)]
    if columns is None:
        raise ModelError(
            f"a {type(frame).__name__} is no table of columns; give an Arrow, pandas, GeoPandas or"
            " polars table, or call match_batch"
        )
    names = (
        {"column": column} if limits is None else {"column": column, "score_column": score_column}
    )
    for option, name in names.items():
        if name in columns or [*names.values()].count(name) > 1:
            raise ModelError(
                f"the table has a column {name!r:.60}; name another one with {option}="
            )
    if x is not None and y is not None:
        events = events.with_points(x, y)
        matcher.view().unit_watch.see_point_columns(x, y)
    if limits is None:
        matches = matcher.match_batch(events, sort=True, strict=strict, crs=crs)
    else:
        matches = matcher.match_batch(
            events, strict=strict, crs=crs, top_k=limits.top_k, min_score=limits.min_score
        )
    rows = matches.column("event").to_numpy()
    ids = matches.column("subscription")
    scores = None if limits is None else matches.column("score")
    if is_pandas(frame):
        joined = frame.take(rows)
        joined[column] = ids.to_pandas().astype(object).to_numpy()
        if scores is not None:
            joined[score_column] = scores.to_numpy()
        return joined
    if is_polars:
        import polars

        added = [polars.Series(column, polars.from_arrow(ids.cast(pa.large_string())))]
        if scores is not None:
            added.append(polars.Series(score_column, scores.to_numpy()))
        return frame[np.asarray(rows)].with_columns(added)
    table = _without_views(frame).take(pa.array(rows)).append_column(column, ids.cast(pa.string()))
    return table if scores is None else table.append_column(score_column, scores)


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table whose columns of string views are plain, because Arrow takes no rows of views.

    Polars exports strings so.
    """
    for number, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type) or pa.types.is_binary_view(field.type):
            is_text = pa.types.is_string_view(field.type)
            plain = field.with_type(pa.large_string() if is_text else pa.large_binary())
            column = table.column(number).cast(plain.type)
            table = table.set_column(number, plain, column)
    return table
