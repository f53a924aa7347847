"""What a subscription is: its id, subscriber, expression and expiry, and which are accepted."""

from __future__ import annotations

import datetime as dt
import json
from typing import NamedTuple, TypeAlias

import numpy as np

from fencepost.errors import ModelError
from fencepost.index.segment import NEVER
from fencepost.language import ast
from fencepost.language.parse import parse
from fencepost.language.render import render_json
from fencepost.model.space import Space
from fencepost.model.times import instant_of, parse_instant
from fencepost.plan.checks import Filter
from fencepost.plan.forms import Filled
from fencepost.plan.normal import filters

Expression: TypeAlias = str | ast.Condition | None


def as_text(expression: Expression) -> str | None:
    """An expression as it was given or, of a condition that was made otherwise, in CQL2 JSON."""
    if expression is None or isinstance(expression, str):
        return expression
    return json.dumps(render_json(expression))


class Subscription(NamedTuple):
    """A subscription as it was given, and what it asks."""

    id: str
    expression: Expression
    subscriber: str
    expires: int
    asked: tuple[Filter, ...] | Filled

    def filters(self, space: Space) -> tuple[Filter, ...]:
        """The filters of which one must hold, of a matcher of some space."""
        if isinstance(self.asked, Filled):
            assert isinstance(self.expression, str)
            return tuple(filters(parse(self.expression, space), space))
        return self.asked


def checked_id(value: object, what: str = "id") -> str:
    """An id or subscriber: a string that is not empty and can be written as UTF-8."""
    if not isinstance(value, str) or not value:
        raise ModelError(
            f"the {what} of a subscription must be a string that is not empty; saw {value!r:.60}"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"the {what} {value!r:.60} holds a lone surrogate and cannot be stored as UTF-8; "
            "leave that character out"
        ) from error
    return value


def expiry(value: object) -> int:
    """When a subscription ends, in nanoseconds since 1970."""
    if value is None:
        return int(NEVER)
    instant: int | None
    if isinstance(value, str):
        parsed = parse_instant(value)
        instant = None if parsed is None else parsed[0]
    elif isinstance(value, (dt.date, np.datetime64)):
        instant = instant_of(value)
    else:
        instant = None
    if instant is None:
        raise ModelError(f"expires must be a datetime or an ISO 8601 string; saw {value!r:.60}")
    return max(min(instant, int(NEVER)), 0)
