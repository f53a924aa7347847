"""Every exception that Fencepost raises on purpose.

    FencepostError
    +-- ModelError            a value that is not an event, a subscription or a geometry
    |   +-- GeometryError     a geometry that cannot be used, and where it goes wrong
    +-- LanguageError         an expression that cannot be read or is not supported
    +-- IndexingError         an index that cannot be built, found or opened
    +-- StoreError            durable state that cannot be read or written
    +-- DeliveryError         a notification that cannot be handed over
    +-- RequestRefused        what a server did not do for a client, and why
    +-- Unreachable           a server that a client cannot reach

A message says what was wrong, what was seen, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class FencepostError(Exception):
    """Anything that Fencepost refuses, below one roof."""


class ModelError(FencepostError):
    """A value that is not an event, a subscription or a geometry."""


@dataclass(frozen=True, slots=True)
class GeometryProblem:
    """What is wrong with one geometry: its row, the reason, and the place if there is one."""

    row: int
    reason: str
    place: tuple[float, float] | None = None

    def __str__(self) -> str:
        if self.place is None:
            return self.reason
        return f"{self.reason} at ({self.place[0]:.17g}, {self.place[1]:.17g})"


class GeometryError(ModelError):
    """One or more geometries that cannot be used.

    Attributes
    ----------
    problems : tuple of GeometryProblem
        One for each bad geometry, in row order.
    """

    SHOWN = 10

    def __init__(self, problems: Sequence[GeometryProblem], *, single: bool = False) -> None:
        self.problems = tuple(problems)
        if single:
            message = str(self.problems[0])
        else:
            rows = [f"row {p.row}: {p}" for p in self.problems[: self.SHOWN]]
            hidden = len(self.problems) - len(rows)
            message = "; ".join(rows) + (f"; and {hidden} more" if hidden else "")
        super().__init__(message)


class LanguageError(FencepostError):
    """An expression that cannot be read or is not supported.

    Attributes
    ----------
    position : int or None
        Where in the text of the expression it goes wrong, in characters from 0, where known.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class IndexingError(FencepostError):
    """An index that cannot be built, found or opened."""


class StoreError(FencepostError):
    """Durable state that cannot be read or written."""


class DeliveryError(FencepostError):
    """A notification that cannot be handed over."""


class RequestRefused(FencepostError):
    """What a server did not do for a client.

    Attributes
    ----------
    status : int
        Of HTTP: 401 or 403 a key that does not open it, 404 nothing there, 422 not usable, ...
    problem : mapping
        All that the server said (RFC 9457).
    position : int or None
        Where in an expression it goes wrong, in characters from 0, where known.
    """

    def __init__(self, detail: str, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.status = status
        self.problem = problem
        self.position: int | None = problem.get("position")


class Unreachable(FencepostError):
    """A server that a client cannot reach."""
