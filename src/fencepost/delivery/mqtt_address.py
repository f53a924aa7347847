"""`BrokerAddress`, the address of an MQTT broker, and the topics of events and messages.

    fencepost/TENANT/events                      incoming events
    fencepost/TENANT/subscribers/SUBSCRIBER      outgoing messages, unless another topic is set

All topics of a tenant begin with its name; the broker decides which of its users may use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from fencepost.errors import ModelError


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The address of a broker, and the credentials to use.

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


def parse_broker_address(text: str) -> BrokerAddress:
    """Parse `HOST`, `HOST:PORT`, or a URL such as `mqtts://USER:PASSWORD@HOST:PORT`."""
    try:
        parts = urlsplit(text if "://" in text else f"mqtt://{text}")
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
    """Return the standard port of a broker."""
    return 8883 if tls else 1883


EVENTS_TOPIC_FILTER = "fencepost/+/events"
_MAX_TOPIC_LENGTH = 1_000
_MAX_MQTT_STRING_LENGTH = 65_535


def tenant_of(topic: str) -> str:
    """Return the tenant of a topic of incoming events."""
    return topic.split("/")[1]


def events_topic(tenant: str) -> str:
    """Return the topic of a tenant's incoming events."""
    return f"fencepost/{tenant}/events"


def default_topic(tenant: str, subscriber: str) -> str:
    """Return the default topic of a subscriber's messages; its name is percent-encoded."""
    topic = f"fencepost/{tenant}/subscribers/{quote(subscriber, safe='')}"
    if len(topic) > _MAX_MQTT_STRING_LENGTH:
        raise ModelError("the name of the subscriber is too long for a topic; give `topic`")
    return topic


def validate_topic(topic: object, tenant: str) -> str:
    """Return a topic if a tenant may have messages sent to it.

    Raises
    ------
    ModelError
        If the tenant may not, or the text is not a topic.
    """
    if not isinstance(topic, str) or not 0 < len(topic) <= _MAX_TOPIC_LENGTH:
        raise ModelError(f"`topic` is a text of at most {_MAX_TOPIC_LENGTH:,} characters")
    if any(wildcard in topic for wildcard in "+#") or not topic.isprintable():
        raise ModelError("`topic` contains +, # or unprintable characters; name exactly one topic")
    prefix = f"fencepost/{tenant}/"
    if not topic.startswith(prefix) or topic == prefix:
        raise ModelError(f"`topic` must begin with {prefix}; saw {topic!r:.60}")
    if topic == events_topic(tenant):
        raise ModelError(
            "`topic` is the topic of incoming events; messages there would be published as events"
        )
    return topic
