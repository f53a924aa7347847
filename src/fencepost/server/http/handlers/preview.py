"""Handlers that try an expression, and explain why an event matches a subscription or not."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from fencepost.engine.matcher import Matcher
from fencepost.engine.subscriptions import compile_subscription
from fencepost.errors import FencepostError
from fencepost.geometry.space import parse_space
from fencepost.server.broker.tenant_subscriptions import TenantSubscriptions
from fencepost.server.http import request_bodies
from fencepost.server.http.handlers.events import event_at
from fencepost.server.http.operations import RequestContext, operation
from fencepost.server.http.problems import RequestError, no_such
from fencepost.server.http.schemas import (
    Explanation,
    SampleEvent,
    Text,
    Trial,
    TrialResults,
    description,
)

_NAME = "expression"


@operation("POST", "/v1/try", "subscribe", {200: TrialResults})
async def try_expression(context: RequestContext, body: Trial) -> TrialResults:
    """Match an expression against sample events, and explain each result."""
    expression, max_chars = body.expression, context.service.settings.limits.expression_chars
    text = expression if isinstance(expression, str) else msgspec.json.encode(expression)
    if len(text) > max_chars:
        raise RequestError(422, f"`expression` has more than {max_chars:,} characters")

    def run() -> list[Explanation]:
        matcher = Matcher(context.service.settings.space)
        matcher.add([compile_subscription(parse_space(matcher.space), _NAME, expression)])
        return [_explain(matcher, event, _NAME) for event in body.events]

    return TrialResults(await asyncio.to_thread(run))


class ExplanationQuery(Struct):
    """An event of the log."""

    event: Annotated[Text, description("The position of the event.")] = ""


@operation("GET", "/v1/subscriptions/{id}/explanation", "admin", {200: Explanation})
async def explain_logged(context: RequestContext, query: ExplanationQuery) -> Explanation:
    """Explain why an event of the log matches a subscription or not."""
    event = msgspec.json.decode(event_at(context, query.event).event)
    return await _explanation(context, event)


@operation("POST", "/v1/subscriptions/{id}/explanation", "subscribe", {200: Explanation})
async def explain(context: RequestContext, body: SampleEvent) -> Explanation:
    """Explain why an event matches a subscription or not."""
    return await _explanation(context, body.event)


async def _explanation(context: RequestContext, event: object) -> Explanation:
    tenant_subscriptions, id = context.service.tenant_subscriptions(context.caller), context.id
    if id not in tenant_subscriptions:
        raise no_such("subscription", id)
    return await asyncio.to_thread(_explain_subscription, tenant_subscriptions, event, id)


def _explain_subscription(
    tenant_subscriptions: TenantSubscriptions, event: object, id: str
) -> Explanation:
    try:
        kind = tenant_subscriptions.kind_name(id)
        if kind == "composite":
            return _explain_members(tenant_subscriptions, event, id)
        matcher = tenant_subscriptions.tracked.matcher(id) if kind == "track" else None
    except KeyError:  # removed meanwhile
        raise no_such("subscription", id) from None
    return _explain(matcher or tenant_subscriptions.expressions.matcher, event, id)


def _explain_members(
    tenant_subscriptions: TenantSubscriptions, event: object, id: str
) -> Explanation:
    """Explain for each member of a composite whether an event matches it."""
    matcher = Matcher(tenant_subscriptions.space)
    for name, condition in tenant_subscriptions.composites.atoms(id):
        matcher.subscribe(name, condition)
    explanations = {name: _explain(matcher, event, name) for name in matcher.ids()}
    members: dict[str, Any] = {name: each.explanation for name, each in explanations.items()}
    return Explanation(
        any(each.matches for each in explanations.values()),
        {"members": members},
        "\n".join(f"{name}:\n{each.text}" for name, each in explanations.items()),
    )


def _explain(matcher: Matcher, event: object, id: str) -> Explanation:
    try:
        explanation = matcher.explain(request_bodies.checked_event(event), id)
    except FencepostError as error:
        raise RequestError(422, f"the event cannot be used: {error}") from None
    except KeyError:
        raise no_such("subscription", id) from None
    return Explanation(explanation.matches, explanation.as_dict(), str(explanation))
