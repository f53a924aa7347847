"""Makes clients of an MQTT broker from the options of a source or sink.

It needs MQTT 5: sessions have an expiry, rejections have reasons, and a client can limit the number
of unacknowledged messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fencepost.delivery.mqtt_address import BrokerAddress, default_port
from fencepost.errors import DeliveryError, FencepostError
from fencepost.extras import requires_extra

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_CONNECT_TIMEOUT_S = 15


def broker_of(options: Mapping[str, str]) -> BrokerAddress:
    """Return the broker in the options host, port, username, password, tls and cafile."""
    tls = flag_option(options, "tls")
    return BrokerAddress(
        options.get("host", "127.0.0.1"),
        integer_option(options, "port", default_port(tls)),
        options.get("username"),
        options.get("password"),
        tls,
        options.get("cafile"),
    )


def new_client(broker: BrokerAddress, client_id: str, *, manual_ack: bool = False) -> Client:
    """Return a client that is not connected yet; it reconnects by itself.

    Parameters
    ----------
    broker : BrokerAddress
        Gives the credentials and TLS settings.
    client_id : str
        Identifies the session at the broker.
    manual_ack : bool
        If true, the caller acknowledges messages.
    """
    with requires_extra("MQTT on Spark", "spark"):
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=client_id,
        protocol=MQTTProtocolVersion.MQTTv5,
        manual_ack=manual_ack,
    )
    client.reconnect_delay_set(1, 30)
    if broker.user is not None:
        client.username_pw_set(broker.user, broker.password)
    if broker.tls:
        client.tls_set(ca_certs=broker.cafile)
    return client


def connect(
    client: Client, broker: BrokerAddress, properties: Mapping[str, int], *, clean: bool
) -> None:
    """Connect to the broker; the client's `on_connect` receives the broker's answer.

    Parameters
    ----------
    client : Client
        From `new_client`.
    broker : BrokerAddress
        Gives the host and port.
    properties : mapping
        MQTT 5 properties of the connection.
    clean : bool
        If true, the broker discards the client's former session.
    """
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    packet_properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    for name, value in properties.items():
        setattr(packet_properties, name, value)
    client.connect_timeout = _CONNECT_TIMEOUT_S
    try:
        client.connect(
            broker.host, broker.port, keepalive=30, clean_start=clean, properties=packet_properties
        )
    except OSError as error:
        raise DeliveryError(
            f"cannot reach an MQTT broker at {broker}: {error}; start it there, or give the "
            "options 'host' and 'port'"
        ) from error


def integer_option(options: Mapping[str, str], name: str, default: int) -> int:
    """Return an option that is a positive whole number."""
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text)):
        raise FencepostError(f"the option {name!r} is {text!r}; give a whole number of at least 1")
    return int(text)


def flag_option(options: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false; by default false."""
    text = options.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise FencepostError(f"the option {name!r} is {text!r}; give true or false")
    return text == "true"
