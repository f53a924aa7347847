"""Clients of an MQTT broker, made from the options of a source or a sink.

MQTT 5, because its sessions say how long they last, its refusals carry reasons, and a client can
say how many messages it takes before it acknowledges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fencepost.delivery.mqtt_address import BrokerAddress, default_port
from fencepost.errors import DeliveryError, FencepostError

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_WAIT_S = 15


def broker_of(options: Mapping[str, str]) -> BrokerAddress:
    """The broker that options name: host, port, username, password, tls, cafile."""
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
    """A client that is not connected yet; it connects again by itself when it lost the broker."""
    try:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
    except ImportError as error:
        raise FencepostError(
            "MQTT needs the package paho-mqtt; install it with: pip install 'fencepost[spark]'"
        ) from error
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
    """Reach the broker; the answer to the connection itself comes to `on_connect`."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    asked: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    for name, value in properties.items():
        setattr(asked, name, value)
    client.connect_timeout = _WAIT_S
    try:
        client.connect(broker.host, broker.port, keepalive=30, clean_start=clean, properties=asked)
    except OSError as error:
        raise DeliveryError(
            f"there is no MQTT broker to be reached at {broker}: {error}; start it there, or give "
            "the options 'host' and 'port'"
        ) from error


def integer_option(options: Mapping[str, str], name: str, default: int) -> int:
    """An option that is a positive number."""
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text)):
        raise FencepostError(f"the option {name!r} is {text!r}; give a whole number from 1 on")
    return int(text)


def flag_option(options: Mapping[str, str], name: str) -> bool:
    """An option that is true or false, and false if left out."""
    text = options.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise FencepostError(f"the option {name!r} is {text!r}; give true or false")
    return text == "true"
