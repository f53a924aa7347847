"""`explain`: why an event matches a subscription or not, condition by condition.

`plan_filters` returns the access path of each filter of a subscription, and its selectivity.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from fencepost import notebook_html
from fencepost.cql2 import ast
from fencepost.cql2.writer import render_json, render_text
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.explain.findings import NO_FINDING, Finding, find_reasons
from fencepost.engine.filter_table import FilterTable
from fencepost.engine.segment import SegmentReader
from fencepost.engine.selectivity import AccessPath
from fencepost.errors import LanguageError
from fencepost.events.event_values import EventValues
from fencepost.filters import evaluation
from fencepost.filters.filter_conditions import condition_of_filter
from fencepost.filters.normal_form import to_filters

_OUTCOMES = {True: "true", False: "false", None: "unknown"}
_COLOURS = {True: "#15803d", False: "#b91c1c", None: "#a16207"}
_MAX_TEXT_LENGTH = 72


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The outcome of a condition for an event, the values that it compared, and its parts.

    Attributes
    ----------
    condition : str
        The condition in CQL2.
    outcome : bool or None
        None if it is unknown.
    compared : str
        Values of the event that the condition reads; empty for AND, OR and NOT.
    parts : tuple of Explanation
        Operands of AND, OR and NOT.
    finding : Finding
        By how much the condition failed, or why it is unknown; empty for AND, OR and NOT.
    """

    condition: str
    outcome: bool | None
    compared: str = ""
    parts: tuple[Explanation, ...] = ()
    finding: Finding = NO_FINDING

    @property
    def matches(self) -> bool:
        """Whether the outcome is true."""
        return self.outcome is True

    def as_dict(self) -> dict[str, object]:
        """Return the explanation for JSON."""
        return {
            "condition": self.condition,
            "outcome": _OUTCOMES[self.outcome],
            "compared": self.compared,
            "finding": self.finding.as_dict(),
            "parts": [part.as_dict() for part in self.parts],
        }

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the explanation as indented lines."""
        details = self._details()
        suffix = f"  ({details})" if details else ""
        yield f"{'  ' * depth}{_OUTCOMES[self.outcome]:<8}{shorten(self.condition)}{suffix}"
        for part in self.parts:
            yield from part.lines(depth + 1)

    def _details(self) -> str:
        return "; ".join(filter(None, (self.compared, *self.finding.phrases())))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = {True: "It matches", False: "It does not match", None: "It is unknown"}
        return notebook_html.card(title[self.outcome], {}, self._tree())

    def _tree(self) -> str:
        """Return the explanation as a tree of HTML."""
        return notebook_html.tree_node(
            _OUTCOMES[self.outcome],
            _COLOURS[self.outcome],
            shorten(self.condition),
            self._details(),
            [part._tree() for part in self.parts],
        )


def explain(condition: ast.Condition, event: EventValues, required: bool = True) -> Explanation:
    """Explain every part of a condition for an event; `required` is false under a NOT."""
    outcome = evaluation.evaluate_condition(condition, event)
    text = condition_text(condition)
    match condition:
        case ast.And(parts) | ast.Or(parts):
            explained = tuple(explain(part, event, required) for part in parts)
            return Explanation(text, outcome, parts=explained)
        case ast.Not(part):
            return Explanation(text, outcome, parts=(explain(part, event, not required),))
    finding = find_reasons(condition, event, outcome, required)
    return Explanation(text, outcome, _compared_values(condition, event), finding=finding)


def condition_text(condition: ast.Condition) -> str:
    """Return a condition as CQL2 text, or as JSON if text cannot express it."""
    try:
        return render_text(condition)
    except LanguageError:
        return json.dumps(render_json(condition))


def shorten(text: str) -> str:
    """Cut a long text, so that it fits in a line with other text."""
    return text if len(text) <= _MAX_TEXT_LENGTH else text[:_MAX_TEXT_LENGTH] + "..."


def _compared_values(condition: ast.Condition, event: EventValues) -> str:
    names = dict.fromkeys(attribute.name for attribute in ast.properties(condition))
    return "; ".join(f"{name} is {_shown(event.get(name))}" for name in names)


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    try:
        text = repr(value) if not hasattr(value, "wkt") else str(value.wkt)
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__} too long to show"
    return shorten(text)


_PATH_PHRASES = {
    AccessPath.WORDS: "required words, in the required box",
    AccessPath.REGION: "the region tree, which decides the relation",
    AccessPath.BOX: "a box that the event must meet",
    AccessPath.EQUALITY: "a required value",
    AccessPath.INTERVAL: "an interval for a number, or for the start or end of a string",
    AccessPath.SIGNATURE: "several required strings together, in the required box",
    AccessPath.SCAN: "a scan: every event is compared with it",
}


@dataclass(frozen=True, slots=True)
class PlannedFilter:
    """A filter of a subscription, and the access path by which events find it.

    Attributes
    ----------
    condition : str
        The filter, in CQL2.
    path : str
        "words", "region", "box", "equality", "interval", "signature" or "scan".
    selectivity : float
        Estimated fraction of the events that find the filter; its other conditions are evaluated
        for these events only.
    expected_from : str
        Source of the estimate: "events" if it is a sample of the events, or "subscriptions" if it
        is how often other subscriptions have equal conditions.
    """

    condition: str
    path: str
    selectivity: float
    expected_from: str

    def as_dict(self) -> dict[str, object]:
        """Return the plan for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        path = _PATH_PHRASES[AccessPath[self.path.upper()]]
        condition = shorten(self.condition)
        return (
            f"{self.path:<9}{self.selectivity:8.2%}  {condition}  (by {path}; expected from "
            f"{self.expected_from})"
        )


def plan_filters(
    segment: SegmentReader, row: int, condition: ast.Condition, columns: ColumnRegistry
) -> tuple[PlannedFilter, ...]:
    """Return the plan of each filter of a subscription, given its row of a segment."""
    arrays = segment.arrays
    filter_numbers = iter(np.flatnonzero(arrays.filter_subscription == row).tolist())
    planned = []
    for terms in to_filters(condition, columns.space):
        table = FilterTable(columns.copy())
        table.add(0, [terms])
        if table.postings and not table.checks:
            path, selectivity = AccessPath.WORDS, _posting_selectivity(segment, row)
        else:
            number = next(filter_numbers)
            path, selectivity = (
                AccessPath(int(arrays.path[number])),
                float(arrays.selectivity[number]),
            )
        text = condition_text(condition_of_filter(terms))
        # The sample of events has no words.
        is_sampled = segment.sampled_events > 0 and path != AccessPath.WORDS
        source = "events" if is_sampled else "subscriptions"
        planned.append(PlannedFilter(text, path.name.lower(), selectivity, source))
    return tuple(planned)


def _posting_selectivity(segment: SegmentReader, row: int) -> float:
    """Return the fraction of all postings that are in the posting lists of a subscription."""
    entries, _ = segment.posting_entries_of(np.array([row]))
    lists = np.unique(segment.posting_lists_of(entries))
    postings = segment.arrays.postings
    return float(postings.lists["count"][lists].sum() / max(len(postings.owner), 1))
