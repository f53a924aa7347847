"""Why an event matched a subscription or not, condition by condition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.errors import LanguageError
from fencepost.language import ast
from fencepost.language.render import render_json, render_text
from fencepost.match.findings import NOTHING, Finding, finding
from fencepost.plan import evaluate
from fencepost.plan.evaluate import EventValues

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
    outcome = evaluate.truth(condition, event)
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
