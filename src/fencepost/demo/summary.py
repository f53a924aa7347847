"""What the demonstration counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

COLUMNS = ("events", "matched", "matches")


def summary(
    happened: Sequence[dict[str, Any]], pairs: Sequence[tuple[str, str]]
) -> list[tuple[str, int, int, int]]:
    """For each kind of event and for all: events, those that matched, and matches."""
    kinds = {event["id"]: event["kind"] for event in happened}
    events = Counter(kinds.values())
    matched = Counter(kinds[event] for event in {event for event, _ in pairs})
    matches = Counter(kinds[event] for event, _ in pairs)
    rows = [(kind, events[kind], matched[kind], matches[kind]) for kind in sorted(events)]
    return [*rows, ("all", len(happened), sum(matched.values()), len(pairs))]
