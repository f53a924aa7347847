"""Why an event matched a subscription or not, condition by condition, and how one is found.

`planned` has the access path of each filter of a subscription, and why it is that one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from fencepost.cql2 import ast
from fencepost.cql2.writer import render_json, render_text
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.explain.findings import NOTHING, Finding, finding
from fencepost.engine.filter_table import FilterTable
from fencepost.engine.segment import SegmentReader
from fencepost.engine.selectivity import AccessPath
from fencepost.errors import LanguageError
from fencepost.events.event_values import EventValues
from fencepost.filters import evaluation
from fencepost.filters.filter_conditions import condition_of_filter
from fencepost.filters.normal_form import to_filters

_WORDS = {True: "true", False: "false", None: "unknown"}
_LONG = 72


@dataclass(frozen=True, slots=True)
class Explanation:
    """A condition, its outcome for an event, what was compared, and its parts.

    Attributes
    ----------
    condition : str
        The condition in CQL2.
    outcome : bool or None
        None is unknown.
    compared : str
        What the event had to compare with; empty for AND, OR and NOT.
    parts : tuple of Explanation
        Of AND, OR and NOT.
    found : Finding
        By how much it failed, or why it is unknown; nothing for AND, OR and NOT.
    """

    condition: str
    outcome: bool | None
    compared: str = ""
    parts: tuple[Explanation, ...] = ()
    found: Finding = NOTHING

    @property
    def matches(self) -> bool:
        """Whether the event matches: the outcome is true."""
        return self.outcome is True

    def as_dict(self) -> dict[str, object]:
        """The explanation for JSON."""
        return {
            "condition": self.condition,
            "outcome": _WORDS[self.outcome],
            "compared": self.compared,
            "found": self.found.as_dict(),
            "parts": [part.as_dict() for part in self.parts],
        }

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The explanation as indented lines."""
        text = shortened(self.condition)
        seen = "; ".join(filter(None, (self.compared, *self.found.phrases())))
        yield f"{'  ' * depth}{_WORDS[self.outcome]:<8}{text}{f'  ({seen})' if seen else ''}"
        for part in self.parts:
            yield from part.lines(depth + 1)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(condition: ast.Condition, event: EventValues, wanted: bool = True) -> Explanation:
    """The outcome of every part of a condition for an event; `wanted` is false under a NOT."""
    outcome = evaluation.evaluate_condition(condition, event)
    text = written(condition)
    match condition:
        case ast.And(parts) | ast.Or(parts):
            explained = tuple(explain(part, event, wanted) for part in parts)
            return Explanation(text, outcome, parts=explained)
        case ast.Not(part):
            return Explanation(text, outcome, parts=(explain(part, event, not wanted),))
    found = finding(condition, event, outcome, wanted)
    return Explanation(text, outcome, _compared(condition, event), found=found)


def written(condition: ast.Condition) -> str:
    """A condition as CQL2 text, or as JSON where text cannot say it."""
    try:
        return render_text(condition)
    except LanguageError:
        return json.dumps(render_json(condition))


def shortened(text: str) -> str:
    """A text that may be long, for a line among others."""
    return text if len(text) <= _LONG else text[:_LONG] + "..."


def _compared(condition: ast.Condition, event: EventValues) -> str:
    names = dict.fromkeys(one.name for one in ast.properties(condition))
    return "; ".join(f"{name} is {_shown(event.get(name))}" for name in names)


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    try:
        text = repr(value) if not hasattr(value, "wkt") else str(value.wkt)
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__} too long to show"
    return shortened(text)


_FOUND_BY = {
    AccessPath.WORDS: "words that it needs, in the box that it needs",
    AccessPath.REGION: "the walk over regions, which decides the relation",
    AccessPath.BOX: "a box that the event must meet",
    AccessPath.EQUALITY: "a value that it needs",
    AccessPath.INTERVAL: "an interval for a number, or for the beginning or end of a string",
    AccessPath.SIGNATURE: "several strings that it needs at once, in the box that it needs",
    AccessPath.SCAN: "nothing: every event is compared with it",
}


@dataclass(frozen=True, slots=True)
class PlannedFilter:
    """One alternative of a subscription, and how events find it.

    Attributes
    ----------
    condition : str
        What must hold, in CQL2.
    path : str
        "words", "region", "place", "equality", "interval", "combined" or "scan".
    share : float
        Of all events, how many are expected to find it, and so to be compared with the rest.
    expected_from : str
        "events" where that is learned from a sample of those that went by, else "subscriptions":
        from how often others ask for the same.
    """

    condition: str
    path: str
    selectivity: float
    expected_from: str

    def as_dict(self) -> dict[str, object]:
        """The plan for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        filters_on = _FOUND_BY[AccessPath[self.path.upper()]]
        condition = shortened(self.condition)
        return (
            f"{self.path:<9}{self.selectivity:8.2%}  {condition}  (by {filters_on}; expected from "
            f"{self.expected_from})"
        )


def plan_filters(
    segment: SegmentReader, row: int, condition: ast.Condition, columns: ColumnRegistry
) -> tuple[PlannedFilter, ...]:
    """The plan of a subscription that is a row of a segment."""
    arrays = segment.arrays
    rows = iter(np.flatnonzero(arrays.filter_subscription == row).tolist())
    found = []
    for terms in to_filters(condition, columns.space):
        table = FilterTable(columns.copy())
        table.add(0, [terms])
        if table.postings and not table.checks:
            path, selectivity = AccessPath.WORDS, _share_of_posts(segment, row)
        else:
            number = next(rows)
            path, selectivity = (
                AccessPath(int(arrays.path[number])),
                float(arrays.selectivity[number]),
            )
        text = written(condition_of_filter(terms))
        # How often words occur is not in the sample.
        learned = segment.sampled_events > 0 and path != AccessPath.WORDS
        source = "events" if learned else "subscriptions"
        found.append(PlannedFilter(text, path.name.lower(), selectivity, source))
    return tuple(found)


def _share_of_posts(segment: SegmentReader, row: int) -> float:
    """How many of the postings are in the lists of a subscription's own."""
    entries, _ = segment.posting_entries_of(np.array([row]))
    lists = np.unique(segment.posting_lists_of(entries))
    postings = segment.arrays.postings
    return float(postings.lists["count"][lists].sum() / max(len(postings.owner), 1))
