"""Why an event matched a subscription or not, condition by condition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from fencepost.errors import LanguageError
from fencepost.language import ast
from fencepost.language.render import render_json, render_text
from fencepost.plan import evaluate
from fencepost.plan.evaluate import EventValues
from fencepost.plan.relate import relation_between

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
    """

    condition: str
    outcome: bool | None
    compared: str = ""
    parts: tuple[Explanation, ...] = field(default=())

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
            "parts": [part.as_dict() for part in self.parts],
        }

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The explanation as indented lines."""
        text = shortened(self.condition)
        compared = f"  ({self.compared})" if self.compared else ""
        yield f"{'  ' * depth}{_WORDS[self.outcome]:<8}{text}{compared}"
        for part in self.parts:
            yield from part.lines(depth + 1)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(condition: ast.Condition, event: EventValues) -> Explanation:
    """The outcome of every part of a condition for an event."""
    outcome = evaluate.truth(condition, event)
    text = written(condition)
    match condition:
        case ast.And(parts) | ast.Or(parts):
            return Explanation(text, outcome, "", tuple(explain(part, event) for part in parts))
        case ast.Not(part):
            return Explanation(text, outcome, "", (explain(part, event),))
    return Explanation(text, outcome, _compared(condition, event))


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
    seen = [f"{name} is {_shown(event.get(name))}" for name in _names(condition)]
    if isinstance(condition, ast.SpatialCondition):
        a = evaluate.geometry(condition.left, event)
        b = evaluate.geometry(condition.right, event)
        if a is not None and b is not None:
            seen.append(f"the relation is {relation_between(a, b).value}")
    return "; ".join(seen)


def _names(condition: ast.Condition) -> list[str]:
    from fencepost.plan.normal import properties

    return list(dict.fromkeys(p.name for p in properties(condition)))


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    try:
        text = repr(value) if not hasattr(value, "wkt") else str(value.wkt)
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__} too long to show"
    return shortened(text)
