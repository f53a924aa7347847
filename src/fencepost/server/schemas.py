"""JSON Schemas of what requests and answers hold."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
NAME = {"type": "string", "minLength": 1}
TIME = {"type": "string", "format": "date-time"}
ANY_OBJECT = {"type": "object", "additionalProperties": True}


def ref(name: str) -> dict[str, str]:
    """A schema of `SCHEMAS` by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def an_object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    """An object with these members, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }


def a_list(items: Any) -> dict[str, Any]:
    """A list of the same."""
    return {"type": "array", "items": items}


_EXPRESSION = {
    "description": "CQL2, as text or as JSON.",
    "oneOf": [{"type": "string", "minLength": 1}, ANY_OBJECT],
}
_DEFINITION = {
    "id": NAME,
    "subscriber": {**NAME, "description": "To whom it belongs; the id if left out."},
    "expression": _EXPRESSION,
    "composite": {
        **ANY_OBJECT,
        "description": "Several events together: members, where, within_s.",
    },
    "track": {**ANY_OBJECT, "description": "What moving objects do to it: key, on, dwell_s, ..."},
    "expires": {"oneOf": [TIME, {"type": "null"}]},
    "payload": {"description": "Anything; it comes back with each message."},
}
_EXPLANATION = {
    "type": "object",
    "properties": {
        "matches": {"oneOf": [{"type": "boolean"}, {"type": "null"}]},
        "explanation": ANY_OBJECT,
        "text": TEXT,
    },
    "required": ["matches", "explanation", "text"],
}

SCHEMAS: dict[str, Any] = {
    "Problem": {
        "type": "object",
        "description": "What was refused, and why (RFC 9457).",
        "properties": {
            "type": TEXT,
            "title": TEXT,
            "status": {"type": "integer"},
            "detail": TEXT,
            "position": {**COUNT, "description": "Where in an expression it goes wrong."},
        },
        "required": ["type", "title", "status", "detail"],
    },
    "NewSubscription": {
        "type": "object",
        "properties": _DEFINITION,
        "required": ["id"],
        "oneOf": [{"required": ["expression"]}, {"required": ["composite"]}],
        "additionalProperties": False,
    },
    "Definition": {
        "type": "object",
        "description": "A subscription whose id the address says.",
        "properties": _DEFINITION,
        "oneOf": [{"required": ["expression"]}, {"required": ["composite"]}],
        "additionalProperties": False,
    },
    "Subscription": {
        "type": "object",
        "properties": {**_DEFINITION, "created": TIME},
        "required": ["id", "subscriber", "created"],
    },
    "Subscriptions": an_object(
        ("subscriptions", "next"),
        subscriptions=a_list(ref("Subscription")),
        next={"description": "`after` of the next page.", "oneOf": [TEXT, {"type": "null"}]},
    ),
    "Feature": {
        "type": "object",
        "description": "A GeoJSON Feature, or any JSON object: its members are attributes.",
        "additionalProperties": True,
    },
    "Published": an_object(
        ("accepted", "messages", "rejected"),
        accepted=COUNT,
        first={**COUNT, "description": "The position of the first event in the log."},
        last=COUNT,
        messages={**COUNT, "description": "How many messages the events gave."},
        rejected=a_list(an_object(("row", "reason"), row=COUNT, reason=TEXT)),
    ),
    "Event": an_object(
        ("position", "received", "event"), position=COUNT, received=TIME, event=ref("Feature")
    ),
    "Events": an_object(("events",), events=a_list(ref("Event"))),
    "Message": {
        "type": "object",
        "description": "A CloudEvent. `source` and `id` name it: sent again, it has the same.",
        "properties": {
            "specversion": {"const": "1.0"},
            "source": TEXT,
            "id": TEXT,
            "type": {"enum": ["fencepost.match", "fencepost.detection", "fencepost.notification"]},
            "time": TIME,
            "datacontenttype": {"const": "application/json"},
            "position": {**COUNT, "description": "What to acknowledge, and to go on after."},
            "data": ANY_OBJECT,
        },
        "required": ["specversion", "source", "id", "type", "time", "position", "data"],
    },
    "Messages": a_list(ref("Message")),
    "Subscriber": an_object(
        ("subscriber", "acknowledged", "depth", "lag_s", "connections", "endpoint"),
        subscriber=TEXT,
        acknowledged=COUNT,
        depth={**COUNT, "description": "Messages that are not acknowledged."},
        lag_s={"type": "number", "description": "The age of the oldest of them, in seconds."},
        connections=COUNT,
        endpoint={"oneOf": [ref("Endpoint"), {"type": "null"}]},
    ),
    "Subscribers": an_object(
        ("subscribers", "next"),
        subscribers=a_list(ref("Subscriber")),
        next={"oneOf": [TEXT, {"type": "null"}]},
    ),
    "Endpoint": an_object(
        ("kind", "failures", "retry_at", "problem", "disabled"),
        kind={"enum": ["webhook", "mqtt"]},
        url=TEXT,
        headers={**a_list(TEXT), "description": "The names of further headers."},
        batch=COUNT,
        topic=TEXT,
        secret={**TEXT, "description": "What signs requests; told once, if the server made it."},
        failures={**COUNT, "description": "How often in a row handing over failed."},
        retry_at={"oneOf": [TIME, {"type": "null"}]},
        problem={"oneOf": [TEXT, {"type": "null"}]},
        disabled={"type": "boolean", "description": "Whether it is not tried until set anew."},
    ),
    "NewEndpoint": {
        "oneOf": [
            an_object(
                ("kind", "url"),
                kind={"const": "webhook"},
                url={"type": "string", "pattern": "^https?://", "maxLength": 2_000},
                secret={
                    "type": "string",
                    "minLength": 16,
                    "maxLength": 200,
                    "description": "What signs requests; made and told once if left out.",
                },
                headers={
                    "type": "object",
                    "description": "Sent with every request.",
                    "maxProperties": 20,
                    "additionalProperties": {"type": "string", "maxLength": 1_000},
                },
                batch={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 1_000,
                    "default": 1,
                    "description": "1: a request holds one message. More: a list of so many.",
                },
            ),
            an_object(
                ("kind",),
                kind={"const": "mqtt"},
                topic={"type": "string", "minLength": 1, "maxLength": 1_000},
            ),
        ]
    },
    "Acknowledgement": an_object(("position",), position={**COUNT, "maximum": 2**63 - 1}),
    "Acknowledged": an_object(
        ("acknowledged", "depth"),
        acknowledged=COUNT,
        depth={**COUNT, "description": "Messages that are not acknowledged yet."},
    ),
    "Trial": an_object(
        ("expression", "events"),
        expression=_EXPRESSION,
        events={**a_list(ref("Feature")), "maxItems": 1_000},
    ),
    "Tried": an_object(("results",), results=a_list(_EXPLANATION)),
    "ToExplain": an_object(("event",), event=ref("Feature")),
    "Explanation": _EXPLANATION,
    "SafeRegion": an_object(
        ("region", "valid_s"),
        region={**ANY_OBJECT, "description": "What a `SafeClient` accepts."},
        valid_s={"type": "number", "description": "For how many seconds it may be used."},
    ),
    "NewKey": an_object(
        ("scopes",),
        scopes={**a_list({"enum": ["publish", "subscribe", "admin"]}), "minItems": 1},
        name={"type": "string", "maxLength": 200},
        expires={"oneOf": [TIME, {"type": "null"}]},
    ),
    "Key": an_object(
        ("id", "tenant", "name", "scopes", "created", "expires"),
        id=TEXT,
        tenant=TEXT,
        name=TEXT,
        scopes=a_list(TEXT),
        created=TIME,
        expires={"oneOf": [TIME, {"type": "null"}]},
        key={**TEXT, "description": "The key itself, told once when it is made."},
    ),
    "Keys": an_object(("keys",), keys=a_list(ref("Key"))),
    "DeadLetter": an_object(
        ("number", "at", "source", "reason", "body"),
        number=COUNT,
        at=TIME,
        source=TEXT,
        subscriber={"oneOf": [TEXT, {"type": "null"}]},
        message={"oneOf": [COUNT, {"type": "null"}]},
        reason=TEXT,
        body=TEXT,
    ),
    "DeadLetters": an_object(("dead_letters",), dead_letters=a_list(ref("DeadLetter"))),
    "Removed": an_object(("removed",), removed=COUNT),
    "Put": an_object(
        ("created", "replaced", "rejected"),
        created=COUNT,
        replaced=COUNT,
        rejected=a_list(an_object(("row", "reason"), row=COUNT, reason=TEXT)),
    ),
    "Health": an_object(("status", "version"), status={"const": "ok"}, version=TEXT),
    "Stats": ANY_OBJECT,
    "Me": an_object(
        ("tenant", "scopes", "space", "needs_key"),
        tenant=TEXT,
        scopes=a_list(TEXT),
        space={"enum": ["wgs84", "planar"]},
        needs_key={"type": "boolean"},
    ),
    "Matches": an_object(
        ("matches", "left_out"),
        matches=a_list(
            an_object(
                ("subscriber", "at", "event", "type", "data"),
                subscriber=TEXT,
                at=TIME,
                event={"oneOf": [COUNT, {"type": "null"}]},
                type=TEXT,
                data=ANY_OBJECT,
            )
        ),
        left_out={**COUNT, "description": "How many more there are, or 1 where it is not known."},
    ),
}
