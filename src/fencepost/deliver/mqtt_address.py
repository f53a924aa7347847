"""Where an MQTT broker is: for the server, and for sources and sinks of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

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


def broker_address(given: str) -> BrokerAddress:
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
