"""The JSON objects of requests, responses and frames, each declared once as a Struct.

Decoding, validation and the schemas of the OpenAPI and AsyncAPI documents all come from these
types. `Raw` is JSON that is passed on unchanged.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from fencepost.events.times import format_instant
from fencepost.store import api_keys
from fencepost.store.endpoint_rows import DeadLetter as StoredDeadLetter
from fencepost.store.subscription_rows import StoredSubscription

MAX_POSITION = 2**63 - 1
_REF = "#/components/schemas/{name}"
_OBJECT = Meta(extra_json_schema={"type": "object"})


def description(text: str) -> Meta:
    """Return the description of a member in the schema."""
    return Meta(description=text)


Count: TypeAlias = Annotated[int, Meta(ge=0)]
Position: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_POSITION)]
Since: TypeAlias = Annotated[
    Position | UnsetType, description("Position after which the list or the stream begins.")
]
Name: TypeAlias = Annotated[str, Meta(min_length=1)]
Text: TypeAlias = Annotated[str, Meta(max_length=10_000, pattern=r"^[^\u0000]*$")]
Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Binary: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "binary"})]
RawObject: TypeAlias = Annotated[Raw, _OBJECT]
Feature: TypeAlias = Annotated[
    Any,
    _OBJECT,
    description("A GeoJSON Feature, or any JSON object, whose members are attributes."),
]
Scope: TypeAlias = Literal["publish", "subscribe", "admin"]


class Json(Struct, forbid_unknown_fields=True):
    """A JSON object that is rejected if it has other members."""


class Schemas:
    """JSON schemas of types, and of the types that they refer to.

    Attributes
    ----------
    components : dict
        Schemas that are referred to, by name.
    """

    def __init__(self) -> None:
        self.components: dict[str, Any] = {}

    def of(self, type: Any) -> dict[str, Any]:
        """Return the schema of a type."""
        [schema], components = msgspec.json.schema_components([type], ref_template=_REF)
        for name, constraints in _CONSTRAINTS.items():
            if name in components:
                components[name] |= constraints
        self.components |= components
        return dict(schema)


def properties(type: type[Struct]) -> dict[str, dict[str, Any]]:
    """Return the schemas of the members of a Struct."""
    schemas = Schemas()
    schemas.of(type)
    members: dict[str, dict[str, Any]] = schemas.components[type.__name__]["properties"]
    return members


# Query parameters and headers


class PageLimit(Struct):
    """The length of a page."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of results.")] = 100


class PageByName(PageLimit):
    """A page of a list that is ordered by name."""

    after: Annotated[Text, description("The last name of the previous page.")] = ""


class PageAfterPosition(PageLimit):
    """A page of a list that is ordered by position."""

    since: Since = UNSET


class StreamQuery(Struct):
    """The position after which a stream begins."""

    since: Since = UNSET


class StreamHeaders(Struct, rename="kebab"):
    """The position after which a stream begins, in the header that browsers send."""

    last_event_id: Annotated[
        Position | UnsetType, description("As `since`; sent by browsers when they reconnect.")
    ] = UNSET


# Subscriptions


class Definition(Json):
    """A subscription whose id is in the address."""

    id: Name | UnsetType = UNSET
    subscriber: Annotated[
        Name | None, description("Receiver of the messages; the id if left out.")
    ] = None
    expression: (
        Annotated[str, Meta(min_length=1, description="CQL2, as text or as JSON.")]
        | dict[str, Any]
        | UnsetType
    ) = UNSET
    composite: Annotated[
        Any, _OBJECT, description("A composite of several events: members, where, within_s.")
    ] = UNSET
    track: Annotated[
        Any, _OBJECT, description("Rules for tracking moving objects: key, on, dwell_s, ...")
    ] = UNSET
    expires: Annotated[
        Time | None, description("When it is removed, as in 2026-01-31T12:00:00Z.")
    ] = None
    payload: Annotated[Any, description("Any JSON; each message contains it.")] = None


class NewSubscription(Definition, kw_only=True):
    """A subscription."""

    id: Name


_ONE_OF = [{"required": ["expression"]}, {"required": ["composite"]}]
_CONSTRAINTS: dict[str, dict[str, Any]] = {
    "Definition": {"oneOf": _ONE_OF},
    "NewSubscription": {"oneOf": _ONE_OF},
}


class Subscription(Struct, kw_only=True):
    """The subscription."""

    id: str
    subscriber: str
    expression: Any = UNSET
    composite: Any = UNSET
    track: Any = UNSET
    payload: Any = UNSET
    expires: Time | UnsetType = UNSET
    created: Time

    @staticmethod
    def of(stored: StoredSubscription) -> Subscription:
        """Return a stored subscription as JSON shows it."""
        return Subscription(
            id=stored.id,
            subscriber=stored.subscriber,
            **stored.definition,
            expires=UNSET if stored.expires is None else format_instant(stored.expires),
            created=format_instant(stored.created),
        )


class Subscriptions(Json):
    """A page of subscriptions."""

    subscriptions: list[Subscription]
    next: Annotated[
        str | None, description("The value of `after` for the next page; null on the last page.")
    ]


class RejectedRow(Json):
    """A row of the request that was rejected, and the reason."""

    row: Count
    reason: str


class PutResult(Json):
    """How many subscriptions were created, replaced and rejected."""

    created: Count
    replaced: Count
    rejected: list[RejectedRow]


class Explanation(Struct):
    """Whether an event matches a subscription, and why."""

    matches: bool | None
    explanation: dict[str, Any]
    text: str


class Trial(Json):
    """An expression, and sample events to match it against."""

    expression: str | dict[str, Any]
    events: Annotated[list[Feature], Meta(max_length=1_000)]


class TrialResults(Json):
    """For each event, whether it matches and why."""

    results: list[Explanation]


class SampleEvent(Json):
    """An event that is not published."""

    event: Feature


# Events


class PublishResult(Json, kw_only=True):
    """How many events were accepted and rejected, and their positions in the log."""

    accepted: Count
    first: Annotated[
        Count | UnsetType, description("Position of the first accepted event in the log.")
    ] = UNSET
    last: Annotated[
        Count | UnsetType, description("Position of the last accepted event in the log.")
    ] = UNSET
    messages: Annotated[Count, description("Number of messages that the events caused.")]
    rejected: list[RejectedRow]


class Event(Json):
    """An event of the log."""

    position: Count
    received: Time
    event: RawObject


class Events(Json):
    """A page of events."""

    events: list[Event]


# Messages and their acknowledgement


class Message(Struct, kw_only=True):
    """A message as a CloudEvent. A repeated message has the same `source` and `id`."""

    specversion: Literal["1.0"]
    source: str
    id: str
    type: Literal["fencepost.match", "fencepost.detection", "fencepost.notification"]
    time: Time
    datacontenttype: Literal["application/json"] = "application/json"
    position: Annotated[Count, description("Position to acknowledge, and to continue after.")]
    data: dict[str, Any]


class Acknowledgement(Json):
    """The position up to which all messages are read."""

    position: Annotated[
        Position | Annotated[float, Meta(ge=0, le=9.2e18, multiple_of=1)],
        description("Position of the last message that was read, a whole number."),
    ]


class ReadState(Json):
    """How far a subscriber has read."""

    acknowledged: Annotated[Count, description("Position up to which messages are read.")]
    depth: Annotated[Count, description("Number of unacknowledged messages.")]


class Endpoint(Json, kw_only=True):
    """Members of an endpoint of every kind; each transport adds its own."""

    failures: Annotated[Count, description("Number of failed deliveries in a row.")]
    retry_at: Annotated[Time | None, description("When the delivery is tried again.")]
    problem: Annotated[str | None, description("Why the last delivery failed.")]
    disabled: Annotated[
        bool, description("Whether deliveries stopped until the endpoint is set again.")
    ]


class SafeRegion(Json):
    """A safe region."""

    region: Annotated[RawObject, description("The region, as a `SafeClient` accepts it.")]
    valid_s: Annotated[float, description("Seconds for which the region may be used.")]


# Keys, dead letters, statistics


class NewKey(Json):
    """The scopes of a new key."""

    scopes: Annotated[
        list[Scope], Meta(min_length=1, description="One or more of publish, subscribe, admin.")
    ]
    name: Annotated[str, Meta(max_length=200)] = ""
    expires: Time | None = None


class Key(Json):
    """A key."""

    id: str
    tenant: str
    name: str
    scopes: list[str]
    created: Time
    expires: Time | None
    key: Annotated[
        str | UnsetType, description("The key itself, shown only when it is created.")
    ] = UNSET

    @staticmethod
    def of(stored: api_keys.Key) -> Key:
        """Return a stored key without its secret."""
        return Key(
            id=stored.id,
            tenant=stored.tenant_name,
            name=stored.name,
            scopes=sorted(stored.scopes),
            created=format_instant(stored.created),
            expires=None if stored.expires is None else format_instant(stored.expires),
        )


class Keys(Json):
    """Keys, without their secrets."""

    keys: list[Key]


class DeadLetter(Json):
    """Input that could not be used, or a message that could not be delivered, and the reason."""

    number: Count
    at: Time
    source: str
    subscriber: str | None
    message: Count | None
    reason: str
    body: str

    @staticmethod
    def of(stored: StoredDeadLetter) -> DeadLetter:
        """Return a stored dead letter as JSON shows it."""
        return DeadLetter(**{**stored._asdict(), "at": format_instant(stored.at)})


class DeadLetters(Json):
    """A page of dead letters."""

    dead_letters: list[DeadLetter]


class RemovalCount(Json):
    """How many dead letters were removed."""

    removed: Count


class Health(Json):
    """The server is up and can write."""

    status: Literal["ok"]
    version: str


class Identity(Json):
    """The tenant and the scopes of the caller."""

    tenant: str
    scopes: list[str]
    space: Literal["wgs84", "planar"]
    needs_key: bool


class Match(Json):
    """A message about an event, as the console shows it."""

    subscriber: str
    at: Time
    event: Count | None
    type: str
    data: RawObject


class Matches(Json):
    """Messages about an event, or of a subscription."""

    matches: list[Match]
    left_out: Annotated[
        Count, description("Number of further messages; 1 if there are more but not how many.")
    ]


class Problem(Struct):
    """Why a request was rejected (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    position: Annotated[
        Count | UnsetType, description("Offset of the error in the expression.")
    ] = UNSET


# Frames

ObjectKey: TypeAlias = Annotated[
    str,
    Meta(min_length=1, max_length=256, description="The publisher's key of the moving object."),
]
FrameId: TypeAlias = Annotated[Any, description("Id of a frame; its reply has the same id.")]


class Move(Json):
    """An event of a moving object."""

    event: Feature
    key: ObjectKey | None = None
    id: FrameId = None


class Forget(Json):
    """A moving object that sends no more events."""

    forget: ObjectKey


class MoveResult(Struct, kw_only=True):
    """The reply to an event of a moving object."""

    id: FrameId = UNSET
    key: ObjectKey | UnsetType = UNSET
    position: Annotated[Count, description("Position of the event in the log.")] | UnsetType = UNSET
    messages: Annotated[Count, description("Number of messages it caused.")] | UnsetType = UNSET
    region: Annotated[
        RawObject | UnsetType,
        description("Where the object need not send its events (docs/safe-regions.md)."),
    ] = UNSET
    problem: Problem | UnsetType = UNSET


class Withdrawal(Json):
    """The withdrawal of a safe region."""

    withdrawn: ObjectKey
    version: Annotated[Count, description("Regions of the object with a lower version are void.")]


class LiveMatch(Struct):
    """A message of the live feed."""

    subscriber: str
    type: str
    subscriptions: list[str]


class LiveEvent(Struct):
    """An event of the live feed; `event` is null if its JSON is long."""

    position: Count
    event: RawObject | None
    messages: Count
    matched: list[LiveMatch]


class OmittedCounts(Struct):
    """Numbers of events and messages that the live feed left out."""

    events: int
    messages: int


class LiveFrame(Struct):
    """A frame of the live feed: a sample of committed events, and how much was left out."""

    events: list[LiveEvent]
    left_out: OmittedCounts | UnsetType = UNSET
    subscriptions_changed: bool = False
