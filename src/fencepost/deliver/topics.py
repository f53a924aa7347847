"""Topics of MQTT: where events come in, and where messages go out.

    fencepost/TENANT/events                      events come in
    fencepost/TENANT/subscribers/SUBSCRIBER      messages go out, unless another topic is set

A tenant's topics lie below its name; which of its users may use them is up to the broker.
"""

from __future__ import annotations

from urllib.parse import quote

from fencepost.errors import ModelError

EVERY_TENANT = "fencepost/+/events"
_LONGEST = 1_000
_LONGEST_OF_MQTT = 65_535


def tenant_of(topic: str) -> str:
    """The tenant whose events come in at a topic."""
    return topic.split("/")[1]


def events_topic(tenant: str) -> str:
    """Where events of a tenant come in."""
    return f"fencepost/{tenant}/events"


def default_topic(tenant: str, subscriber: str) -> str:
    """Where messages of a subscriber go; what a topic cannot hold is percent-encoded."""
    found = f"fencepost/{tenant}/subscribers/{quote(subscriber, safe='')}"
    if len(found) > _LONGEST_OF_MQTT:
        raise ModelError("the name of the subscriber is too long for a topic; give `topic`")
    return found


def checked_topic(given: object, tenant: str) -> str:
    """A topic that a tenant may have messages sent to."""
    if not isinstance(given, str) or not 0 < len(given) <= _LONGEST:
        raise ModelError(f"`topic` is a text of at most {_LONGEST:,} characters")
    if any(mark in given for mark in "+#") or not given.isprintable():
        raise ModelError("`topic` holds +, # or what cannot be seen; it names one topic")
    start = f"fencepost/{tenant}/"
    if not given.startswith(start) or given == start:
        raise ModelError(f"`topic` begins with {start}; saw {given!r:.60}")
    if given == events_topic(tenant):
        raise ModelError("events come in at this topic; messages there would be events again")
    return given
