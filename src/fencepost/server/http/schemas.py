"""What requests, answers and frames hold, each described once, as a Struct.

Decoding, the limits that are checked, and the schemas of the OpenAPI and AsyncAPI descriptions all
come from these types. `Raw` is JSON that is passed on as it was written.
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


def about(text: str) -> Meta:
    """A description."""
    return Meta(description=text)


Count: TypeAlias = Annotated[int, Meta(ge=0)]
Position: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_POSITION)]
Since: TypeAlias = Annotated[Position | UnsetType, about("The position of the last that was read.")]
Name: TypeAlias = Annotated[str, Meta(min_length=1)]
Text: TypeAlias = Annotated[str, Meta(max_length=10_000, pattern=r"^[^\u0000]*$")]
Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Binary: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "binary"})]
RawObject: TypeAlias = Annotated[Raw, _OBJECT]
Feature: TypeAlias = Annotated[
    Any, _OBJECT, about("A GeoJSON Feature, or any JSON object: its members are attributes.")
]
Scope: TypeAlias = Literal["publish", "subscribe", "admin"]


class Json(Struct, forbid_unknown_fields=True):
    """An object with these members, and no others."""


class Schemas:
    """Schemas of types, and of the types that they refer to.

    Attributes
    ----------
    components : dict
        Those that are referred to, by name.
    """

    def __init__(self) -> None:
        self.components: dict[str, Any] = {}

    def of(self, type: Any) -> dict[str, Any]:
        """The schema of a type."""
        [found], components = msgspec.json.schema_components([type], ref_template=_REF)
        for name, further in _FURTHER.items():
            if name in components:
                components[name] |= further
        self.components |= components
        return dict(found)


def properties(type: type[Struct]) -> dict[str, dict[str, Any]]:
    """The schemas of the members of a Struct."""
    schemas = Schemas()
    schemas.of(type)
    found: dict[str, dict[str, Any]] = schemas.components[type.__name__]["properties"]
    return found


# Parameters of the query, and headers


class PageLimit(Struct):
    """How much of a list is wanted."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="How many at most.")] = 100


class PageByName(PageLimit):
    """A page of a list that is in the order of names."""

    after: Annotated[Text, about("The last name of the page before.")] = ""


class PageAfterPosition(PageLimit):
    """A page of what is in the order of positions."""

    since: Since = UNSET


class StreamQuery(Struct):
    """After which message a reader goes on."""

    since: Since = UNSET


class StreamHeaders(Struct, rename="kebab"):
    """After which message a reader goes on, in a header."""

    last_event_id: Annotated[Position | UnsetType, about("The same, as browsers say it.")] = UNSET


# Subscriptions


class Definition(Json):
    """A subscription whose id the address says."""

    id: Name | UnsetType = UNSET
    subscriber: Annotated[Name | None, about("To whom it belongs; the id if left out.")] = None
    expression: (
        Annotated[str, Meta(min_length=1, description="CQL2, as text or as JSON.")]
        | dict[str, Any]
        | UnsetType
    ) = UNSET
    composite: Annotated[Any, _OBJECT, about("Several events: members, where, within_s.")] = UNSET
    track: Annotated[Any, _OBJECT, about("What moving objects do: key, on, dwell_s, ...")] = UNSET
    expires: Annotated[Time | None, about("As in 2026-01-31T12:00:00Z.")] = None
    payload: Annotated[Any, about("Anything; it comes back with each message.")] = None


class NewSubscription(Definition, kw_only=True):
    """A subscription."""

    id: Name


_ONE_OF = [{"required": ["expression"]}, {"required": ["composite"]}]
_FURTHER: dict[str, dict[str, Any]] = {
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
        """A subscription as it is told."""
        return Subscription(
            id=stored.id,
            subscriber=stored.subscriber,
            **stored.definition,
            expires=UNSET if stored.expires is None else format_instant(stored.expires),
            created=format_instant(stored.created),
        )


class Subscriptions(Json):
    """Subscriptions."""

    subscriptions: list[Subscription]
    next: Annotated[str | None, about("`after` of the next page.")]


class RejectedRow(Json):
    """What of many was refused."""

    row: Count
    reason: str


class PutResult(Json):
    """What became of many."""

    created: Count
    replaced: Count
    rejected: list[RejectedRow]


class Explanation(Struct):
    """Whether an event matches, and why."""

    matches: bool | None
    explanation: dict[str, Any]
    text: str


class Trial(Json):
    """An expression, and events to try it on."""

    expression: str | dict[str, Any]
    events: Annotated[list[Feature], Meta(max_length=1_000)]


class TrialResults(Json):
    """Of each event whether it matches, and why."""

    results: list[Explanation]


class SampleEvent(Json):
    """An event that is not published."""

    event: Feature


# Events


class PublishResult(Json, kw_only=True):
    """What became of them."""

    accepted: Count
    first: Annotated[Count | UnsetType, about("The position of the first event in the log.")] = (
        UNSET
    )
    last: Count | UnsetType = UNSET
    messages: Annotated[Count, about("How many messages the events gave.")]
    rejected: list[RejectedRow]


class Event(Json):
    """The event."""

    position: Count
    received: Time
    event: RawObject


class Events(Json):
    """Events."""

    events: list[Event]


# Messages and who reads them


class Message(Struct, kw_only=True):
    """A CloudEvent. `source` and `id` name it: sent again, it has the same."""

    specversion: Literal["1.0"]
    source: str
    id: str
    type: Literal["fencepost.match", "fencepost.detection", "fencepost.notification"]
    time: Time
    datacontenttype: Literal["application/json"] = "application/json"
    position: Annotated[Count, about("What to acknowledge, and to go on after.")]
    data: dict[str, Any]


class Acknowledgement(Json):
    """Up to which position all messages are read."""

    position: Annotated[
        Position | Annotated[float, Meta(ge=0, le=9.2e18, multiple_of=1)],
        about("Of the last message that was read: a whole number."),
    ]


class ReadState(Json):
    """How far the subscriber has read."""

    acknowledged: Count
    depth: Annotated[Count, about("Messages that are not acknowledged yet.")]


class Endpoint(Json, kw_only=True):
    """What is told of an endpoint of any kind; each transport has members of its own."""

    failures: Annotated[Count, about("How often in a row handing over failed.")]
    retry_at: Time | None
    problem: str | None
    disabled: Annotated[bool, about("Whether it is not tried until set anew.")]


class SafeRegion(Json):
    """The region."""

    region: Annotated[RawObject, about("What a `SafeClient` accepts.")]
    valid_s: Annotated[float, about("For how many seconds it may be used.")]


# Keys, dead letters, numbers


class NewKey(Json):
    """What a key is good for."""

    scopes: Annotated[
        list[Scope], Meta(min_length=1, description="One or more of publish, subscribe, admin.")
    ]
    name: Annotated[str, Meta(max_length=200)] = ""
    expires: Time | None = None


class Key(Json):
    """The key."""

    id: str
    tenant: str
    name: str
    scopes: list[str]
    created: Time
    expires: Time | None
    key: Annotated[str | UnsetType, about("The key itself, told once when it is made.")] = UNSET

    @staticmethod
    def of(stored: api_keys.Key) -> Key:
        """A key without its secret."""
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
    """What could not be read or handed over, and why."""

    number: Count
    at: Time
    source: str
    subscriber: str | None
    message: Count | None
    reason: str
    body: str

    @staticmethod
    def of(stored: StoredDeadLetter) -> DeadLetter:
        """A dead letter as it is told."""
        return DeadLetter(**{**stored._asdict(), "at": format_instant(stored.at)})


class DeadLetters(Json):
    """Dead letters."""

    dead_letters: list[DeadLetter]


class RemovalCount(Json):
    """How many there were."""

    removed: Count


class Health(Json):
    """It is up, and can write."""

    status: Literal["ok"]
    version: str


class Identity(Json):
    """The tenant and the scopes."""

    tenant: str
    scopes: list[str]
    space: Literal["wgs84", "planar"]
    needs_key: bool


class Match(Json):
    """A message, as the console shows it."""

    subscriber: str
    at: Time
    event: Count | None
    type: str
    data: RawObject


class Matches(Json):
    """Messages."""

    matches: list[Match]
    left_out: Annotated[Count, about("How many more there are, or 1 where it is not known.")]


class Problem(Struct):
    """What was refused, and why (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    position: Annotated[Count | UnsetType, about("Where in an expression it goes wrong.")] = UNSET


# Frames

ObjectKey: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1, max_length=256, description="What the publisher calls the thing that moves."
    ),
]
FrameId: TypeAlias = Annotated[Any, about("Of a frame: its answer has the same.")]


class Move(Json):
    """The event of a thing that moves."""

    event: Feature
    key: ObjectKey | None = None
    id: FrameId = None


class Forget(Json):
    """A thing that sends nothing more."""

    forget: ObjectKey


class MoveResult(Struct, kw_only=True):
    """What became of an event."""

    id: FrameId = UNSET
    key: ObjectKey | UnsetType = UNSET
    position: Annotated[Count, about("Of the event in the log.")] | UnsetType = UNSET
    messages: Annotated[Count, about("How many messages it gave.")] | UnsetType = UNSET
    region: Annotated[
        RawObject | UnsetType,
        about("Where the thing may go without a word (docs/safe-regions.md)."),
    ] = UNSET
    problem: Problem | UnsetType = UNSET


class Withdrawal(Json):
    """A region that does not hold any more."""

    withdrawn: ObjectKey
    version: Annotated[Count, about("Its regions of a version before this one are void.")]


class LiveMatch(Struct):
    """A message about an event, as the console shows it."""

    subscriber: str
    type: str
    subscriptions: list[str]


class LiveEvent(Struct):
    """An event as it is shown; without its body where that is long."""

    position: Count
    event: RawObject | None
    messages: Count
    matched: list[LiveMatch]


class OmittedCounts(Struct):
    """How much is not shown."""

    events: int
    messages: int


class LiveFrame(Struct):
    """Some of what was committed, and how much was left out."""

    events: list[LiveEvent]
    left_out: OmittedCounts | UnsetType = UNSET
    subscriptions_changed: bool = False
