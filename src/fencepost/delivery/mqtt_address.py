"""Where an MQTT broker is, and its topics: where events come in, and where messages go out.

    fencepost/TENANT/events                      events come in
    fencepost/TENANT/subscribers/SUBSCRIBER      messages go out, unless another topic is set

A tenant's topics lie below its name; which of its users may use them is up to the broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from fencepost.errors import ModelError


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker is, and who asks it.

    Attributes
    ----------
    host : str
    port : int
    user, password : str, optional
    tls : bool
    cafile : str, optional
        Certificates to trust instead of the system's.
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = None
    tls: bool = False
    cafile: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_broker_address(given: str) -> BrokerAddress:
    """`HOST`, `HOST:PORT`, or a URL as in `mqtts://USER:PASSWORD@HOST:PORT`."""
    try:
        parts = urlsplit(given if "://" in given else f"mqtt://{given}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if (
        parts.scheme not in ("mqtt", "mqtts")
        or not parts.hostname
        or parts.path.strip("/")
        or parts.query
    ):
        raise ModelError(
            "the MQTT broker is HOST:PORT, or mqtt://USER:PASSWORD@HOST:PORT, or mqtts:// for TLS"
        )
    return BrokerAddress(
        parts.hostname,
        port or default_port(parts.scheme == "mqtts"),
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
        parts.scheme == "mqtts",
    )


def default_port(tls: bool) -> int:
    """The port that a broker has where none is named."""
    return 8883 if tls else 1883


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


def validate_topic(given: object, tenant: str) -> str:
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
