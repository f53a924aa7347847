"""Where the one subscription is that `fencepost explain` is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fencepost.model.space import Space


@dataclass(frozen=True, slots=True)
class Source:
    """What was given: an id, and an index or a file that has it; or an expression."""

    id: str | None
    index: Path | None
    subscriptions: str | None
    expression: str | None
    stop_words: Path | None
    space: Space
