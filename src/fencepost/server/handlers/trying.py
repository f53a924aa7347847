"""What an expression would answer, and why an event matches or not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.responses import JSONResponse, Response

from fencepost.errors import FencepostError
from fencepost.match.catalogue import compiled
from fencepost.match.explain import Explanation
from fencepost.match.matcher import Matcher
from fencepost.model.space import space_of
from fencepost.server import reading
from fencepost.server.handlers.events import event_at
from fencepost.server.handlers.parameters import position_parameter
from fencepost.server.operations import Asked, Body, Operation
from fencepost.server.problems import Refusal, not_found
from fencepost.server.questions import Questions
from fencepost.server.schemas import ref

_MOST_EVENTS = 1_000
_NAME = "expression"


async def try_expression(asked: Asked) -> Response:
    """An expression against sample events; nothing is kept."""
    limits = asked.service.settings.limits
    given = reading.object_of(await reading.body_of(asked.request, limits))
    events = given.get("events")
    if not isinstance(events, list) or len(events) > _MOST_EVENTS:
        raise Refusal(422, f"`events` is a list of at most {_MOST_EVENTS:,} events")
    expression = given.get("expression")
    length = len(expression if isinstance(expression, str) else json.dumps(expression))
    if length > limits.expression_chars:
        raise Refusal(422, f"`expression` has more than {limits.expression_chars:,} characters")

    def run() -> list[dict[str, Any]]:
        matcher = Matcher(asked.service.settings.space)
        matcher.add([compiled(space_of(matcher.space), _NAME, expression)])
        return [explained(matcher, one, _NAME) for one in events]

    return JSONResponse({"results": await asyncio.to_thread(run)})


async def explain(asked: Asked) -> Response:
    """Why an event matches a subscription or not."""
    if asked.request.method == "GET":
        given = asked.request.query_params.get("event", "")
        event = json.loads(event_at(asked, given))["event"]
    else:
        limits = asked.service.settings.limits
        event = reading.object_of(await reading.body_of(asked.request, limits)).get("event")
    questions = asked.service.questions(asked.caller)
    if asked.id not in questions:
        raise not_found("subscription", asked.id)
    return JSONResponse(await asyncio.to_thread(_explained, questions, event, asked.id))


def _explained(questions: Questions, event: Any, id: str) -> dict[str, Any]:
    try:
        kind = questions.kind(id)
        if kind == "composite":
            return _explained_parts(questions, event, id)
        matcher = questions.tracked.matcher(id) if kind == "track" else None
    except KeyError:  # removed since it was looked for
        raise not_found("subscription", id) from None
    return explained(matcher or questions.expressions.matcher, event, id)


def _explained_parts(questions: Questions, event: Any, id: str) -> dict[str, Any]:
    """Which parts of a composite an event can play, and why not the others."""
    matcher = Matcher(questions.space)
    for name, part in questions.composites.atoms(id):
        matcher.subscribe(name, part)
    found = {name: explained(matcher, event, name) for name in matcher.ids()}
    return {
        "matches": any(one["matches"] for one in found.values()),
        "explanation": {"members": {name: one["explanation"] for name, one in found.items()}},
        "text": "\n".join(f"{name}:\n{one['text']}" for name, one in found.items()),
    }


def explained(matcher: Matcher, event: Any, id: str) -> dict[str, Any]:
    """An explanation as JSON."""
    try:
        found: Explanation = matcher.explain(reading.event_of(event), id)
    except FencepostError as error:
        raise Refusal(422, f"the event cannot be used: {error}") from None
    except KeyError:
        raise not_found("subscription", id) from None
    return {"matches": found.matches, "explanation": found.as_dict(), "text": str(found)}


_EXPLAINED = {200: ("The explanation.", {"application/json": ref("Explanation")})}

OPERATIONS = (
    Operation(
        "POST",
        "/v1/try",
        "subscribe",
        try_expression,
        "Try an expression against sample events.",
        {200: ("Of each event whether it matches, and why.", {"application/json": ref("Tried")})},
        body=Body({"application/json": ref("Trial")}),
    ),
    Operation(
        "GET",
        "/v1/subscriptions/{id}/explanation",
        "admin",
        explain,
        "Why an event of the log matches a subscription or not.",
        _EXPLAINED,
        query=(position_parameter("event", "The position of the event."),),
    ),
    Operation(
        "POST",
        "/v1/subscriptions/{id}/explanation",
        "subscribe",
        explain,
        "Why an event matches a subscription or not.",
        _EXPLAINED,
        body=Body({"application/json": ref("ToExplain")}),
    ),
)
