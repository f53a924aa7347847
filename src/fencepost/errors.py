"""The exceptions of Fencepost.

    FencepostError
    +-- ModelError            a value that is not an event, a subscription or a geometry
    |   +-- GeometryError     geometries that cannot be used, with row, reason and place
    +-- LanguageError         an expression that cannot be read or is not supported
    +-- IndexingError         an index that cannot be built, found or opened
    +-- StoreError            durable state that cannot be read or written
    +-- DeliveryError         a notification that cannot be delivered
    +-- RequestRefused        a request that a server refused
    +-- Unreachable           a server that a client cannot reach

A message says what was wrong, what was seen, and what to do about it. `FencepostWarning` is about
input that can be used, but probably does not do what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class FencepostError(Exception):
    """Base class of the exceptions that Fencepost raises on purpose."""


class FencepostWarning(UserWarning):
    """Input that can be used, but that probably does not do what was meant."""


class ModelError(FencepostError):
    """A value that is not an event, a subscription or a geometry."""


@dataclass(frozen=True, slots=True)
class GeometryProblem:
    """Why a geometry cannot be used: its row, the reason, and the place if there is one."""

    row: int
    reason: str
    place: tuple[float, float] | None = None

    def __str__(self) -> str:
        if self.place is None:
            return self.reason
        x, y = (repr(value).removesuffix(".0") for value in self.place)
        return f"{self.reason} at ({x}, {y})"


class GeometryError(ModelError):
    """One or more geometries that cannot be used.

    Attributes
    ----------
    problems : tuple of GeometryProblem
        One problem for each bad geometry, in row order.
    """

    MAX_SHOWN = 10

    def __init__(self, problems: Sequence[GeometryProblem], *, single: bool = False) -> None:
        self.problems = tuple(problems)
        if single:
            message = str(self.problems[0])
        else:
            rows = [f"row {p.row}: {p}" for p in self.problems[: self.MAX_SHOWN]]
            hidden = len(self.problems) - len(rows)
            message = "; ".join(rows) + (f"; and {hidden} more" if hidden else "")
        super().__init__(message)


class LanguageError(FencepostError):
    """An expression that cannot be read or is not supported.

    Attributes
    ----------
    position : int or None
        Where the error is in the text of the expression, in characters from 0; None if unknown.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class IndexingError(FencepostError):
    """An index that cannot be built, found or opened."""


class StoreError(FencepostError):
    """Durable state that cannot be read or written."""


class DeliveryError(FencepostError):
    """A notification that cannot be delivered."""


class RequestRefused(FencepostError):
    """A request that a server refused.

    Attributes
    ----------
    status : int
        The HTTP status: 401 or 403 for a missing or insufficient key, 404 for an unknown resource,
        422 for invalid input, ...
    problem : mapping
        The problem details of the response (RFC 9457).
    position : int or None
        Where the error is in an expression, in characters from 0; None if unknown.
    """

    def __init__(self, detail: str, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.status = status
        self.problem = problem
        self.position: int | None = problem.get("position")


class Unreachable(FencepostError):
    """A server that a client cannot reach."""
