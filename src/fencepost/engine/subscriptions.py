"""`Subscription`: a compiled subscription; and its readers, for expressions and for tables."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from fencepost.cql2 import ast
from fencepost.cql2.ast import Condition
from fencepost.cql2.parser import parse
from fencepost.cql2.writer import render_json
from fencepost.engine.segment_builder import NEVER_EXPIRES
from fencepost.errors import FencepostError, LanguageError, ModelError
from fencepost.events.arrow_text import split_invalid_utf8
from fencepost.events.table import arrow_table, is_pandas
from fencepost.events.times import instant_of, parse_instant
from fencepost.events.value_types import is_missing
from fencepost.filters.checks import Filter
from fencepost.filters.normal_form import to_filters
from fencepost.filters.query_templates import BoundTemplate, bind_text, invalid_rows
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space


def require_inside_space(condition: ast.Condition, space: Space) -> None:
    """Raise LanguageError if a geometry of a condition is outside the coordinate space."""
    max_x, max_y = space.limits
    for node in ast.walk(condition, ast.ListLiteral):
        if not isinstance(node, ast.Geometry):
            continue
        x0, y0, x1, y1 = node.value.bounds
        if max(-x0, x1) > max_x or max(-y0, y1) > max_y:
            [problem] = Shapes.read_one(node.value).problems_outside(space)
            raise LanguageError(f"a geometry of the expression has {problem}")


_BLOCK_ROWS = 10_000  # rows whose geometries are validated in one call

BadRows: TypeAlias = list[tuple[int, str]]
Expression: TypeAlias = str | Condition | None
Expiry: TypeAlias = dt.date | dt.timedelta | np.datetime64 | np.timedelta64 | str | None
"""When a subscription expires; a timedelta counts from now, and None means never."""


def expression_text(expression: Expression) -> str | None:
    """Return an expression as it was given; a parsed condition becomes CQL2 JSON."""
    if expression is None or isinstance(expression, str):
        return expression
    return json.dumps(render_json(expression))


class Subscription(NamedTuple):
    """A subscription whose expression is compiled to filters, or to a bound query template."""

    id: str
    expression: Expression
    subscriber: str
    expires: int
    compiled: tuple[Filter, ...] | BoundTemplate

    def filters(self, space: Space) -> tuple[Filter, ...]:
        """Return the filters of the subscription: an event matches if it satisfies one of them."""
        if isinstance(self.compiled, BoundTemplate):
            assert isinstance(self.expression, str)
            return tuple(to_filters(parse(self.expression, space), space))
        return self.compiled


def id_text(value: object) -> object:
    """Return the decimal text of an id that is an integer, and any other value unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return value
    return str(int(value))


def validate_id(value: object, what: str = "id") -> str:
    """Return an id or subscriber as text; an integer becomes its decimal text.

    Raise ModelError unless it is an integer or a non-empty UTF-8 string.
    """
    value = id_text(value)
    if not isinstance(value, str) or not value:
        raise ModelError(
            f"the {what} of a subscription must be a string that is not empty, or an integer; saw "
            f"{value!r:.60}{_id_advice(value)}"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"the {what} {value!r:.60} holds a lone surrogate and cannot be stored as UTF-8; "
            "leave that character out"
        ) from error
    return value


def _id_advice(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "; name it with a string"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return (
            f"; give {int(value)}: pandas turns integers into floats beside missing values, unless "
            "the column has the type Int64"
        )
    return ""


def parse_expiry(value: object, now: int | None = None) -> int:
    """Return the time at which a subscription expires, in nanoseconds since 1970.

    now : the time from which a timedelta counts; without it, no timedelta is accepted.
    """
    if value is None:
        return int(NEVER_EXPIRES)
    instant: int | None
    if now is not None and isinstance(value, dt.timedelta | np.timedelta64):
        instant = now + _nanoseconds_of_duration(value)
    elif isinstance(value, str):
        parsed = parse_instant(value)
        instant = None if parsed is None else parsed[0]
    elif isinstance(value, (dt.date, np.datetime64)):
        instant = instant_of(value)
    else:
        instant = None
    if instant is None:
        forms = "a datetime or an ISO 8601 string"
        forms = forms if now is None else f"a timedelta, {forms}"
        raise ModelError(f"expires must be {forms}; saw {value!r:.60}")
    return max(min(instant, int(NEVER_EXPIRES)), 0)


def _nanoseconds_of_duration(value: dt.timedelta | np.timedelta64) -> int:
    if isinstance(value, np.timedelta64):
        return int(value.astype("timedelta64[ns]").astype(np.int64))
    nanoseconds: int = getattr(value, "nanoseconds", 0)  # of a pandas.Timedelta
    return value // dt.timedelta(microseconds=1) * 1000 + nanoseconds


# ----------------------------------------------------------------------------------------- reading


def compile_subscription(
    space: Space,
    id: object,
    expression: object,
    subscriber: object = None,
    expires: object = None,
    now: int | None = None,
) -> Subscription:
    """Compile and validate a subscription, for `Matcher.add`; see `Matcher.subscribe`.

    Any thread may call this function at any time, because it changes nothing.

    now : the time from which a timedelta counts; see `parse_expiry`.
    """
    template = _bind(space, expression)
    if template is not None and not template.has_valid_shapes():
        template = None
    return _subscription(space, id, expression, subscriber, parse_expiry(expires, now), template)


def compile_rows(
    space: Space, table: object, bad: BadRows, now: int | None = None
) -> Iterator[tuple[int, Subscription]]:
    """Yield the subscriptions of a table with their row numbers; see `Matcher.subscribe_many`.

    The geometries of expressions that fit a query template are validated a block at a time.
    """
    rows = iter(iter_rows(table, bad))
    while block := list(islice(rows, _BLOCK_ROWS)):
        templates = [_bind(space, row.get("expression")) for _, row in block]
        invalid = invalid_rows(templates)
        for k, (number, row) in enumerate(block):
            try:
                fields = row.get("id"), row.get("expression"), row.get("subscriber")
                template = None if k in invalid else templates[k]
                expires = parse_expiry(row.get("expires"), now)
                yield number, _subscription(space, *fields, expires, template)
            except FencepostError as error:
                bad.append((number, str(error)))


def compile_condition(condition: Condition, space: Space) -> tuple[Filter, ...]:
    """Compile a condition to filters. Raise LanguageError if a geometry is outside the space."""
    if space is not Space.PLANAR:
        require_inside_space(condition, space)
    return tuple(to_filters(condition, space))


def _bind(space: Space, expression: object) -> BoundTemplate | None:
    """Bind a text that fits a query template, or return None; its geometries may be invalid."""
    return bind_text(expression, space) if isinstance(expression, str) else None


def _subscription(
    space: Space,
    id: object,
    expression: object,
    subscriber: object,
    expires: int,
    template: BoundTemplate | None,
) -> Subscription:
    """Return a subscription: with its bound template, or compiled if `template` is None."""
    name = validate_id(id)
    owner = name if subscriber is None else validate_id(subscriber, "subscriber")
    if not isinstance(expression, str | Mapping | Condition):
        raise ModelError(
            f"the expression of {name!r:.60} must be CQL2 text or JSON; saw {expression!r:.60}"
        )
    if isinstance(expression, str) and template is not None:
        return Subscription(name, expression, owner, expires, template)
    condition = parse(expression, space)
    text = expression if isinstance(expression, str) else json.dumps(render_json(condition))
    return Subscription(name, text, owner, expires, compile_condition(condition, space))


def iter_rows(table: object, bad: BadRows) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Return the numbered rows of a table as mappings; append unreadable rows to `bad`."""
    try:
        whole = table if is_pandas(table) else arrow_table(table)
        if isinstance(whole, pa.Table):
            if len(set(whole.schema.names)) < whole.num_columns:
                raise ModelError("two columns of the table have the same name; rename one of them")
            numbers, readable, unreadable = split_invalid_utf8(whole, whole.column_names)
            bad += unreadable
            return zip(numbers.tolist(), readable.to_pylist(), strict=True)
        if is_pandas(table):
            frame: Any = table
            if len(set(frame.columns)) < len(frame.columns):
                raise ModelError("two columns of the table have the same name; rename one of them")
            return enumerate(
                {k: None if is_missing(v) else v for k, v in row.items()}
                for row in frame.to_dict("records")
            )
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise ModelError(f"the table cannot be read: {error}") from error
    if isinstance(table, (list, tuple)) and all(isinstance(row, Mapping) for row in table):
        return enumerate(table)
    raise ModelError(
        f"a {type(table).__name__} is not a table; give an Arrow table, a pandas DataFrame or a "
        "list of mappings with id and expression"
    )


def bad_rows_error(bad: BadRows) -> ModelError:
    """Return the error for rows of a table of which one cannot be used."""
    shown = "; ".join(f"row {row}: {reason}" for row, reason in sorted(bad)[:10])
    more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
    return ModelError(f"{len(bad)} rows cannot be used, so none was added: {shown}{more}")
