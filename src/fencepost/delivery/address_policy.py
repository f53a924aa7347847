"""`AddressPolicy`: the URLs and network addresses that webhooks may be posted to.

It guards against server-side request forgery: a server that posts to URLs of its users could be
made to reach addresses that only it can reach, such as itself, its neighbours, or the metadata
service of its cloud. Addresses must therefore be public; an IPv4 address embedded in an IPv6
address (mapped, 6to4, NAT64) must be public too. URLs are parsed strictly: a text that two parsers
could read differently is rejected.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias
from urllib.parse import urlsplit

from fencepost.errors import DeliveryError, ModelError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL_LENGTH = 2_000
_VISIBLE_ASCII = re.compile(r"[!-\[\]-~]+\Z")  # without the backslash
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed webhook URL.

    Attributes
    ----------
    scheme : {"http", "https"}
    host : str
        A lower-case name without a trailing dot, or an address without brackets.
    port : int
    target : str
        The path and the query.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def address(self) -> Address | None:
        """The host as an address; None for a name."""
        return literal_address(self.host)

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header gives them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_webhook_url(url: object, *, allow_any_port: bool = False) -> Url:
    """Parse the URL of a webhook.

    Parameters
    ----------
    allow_any_port : bool
        Whether to allow ports below 1024 other than 80 and 443, where other protocols are served.

    Raises
    ------
    ModelError
        If the text is not a URL, is ambiguous, or is not allowed.
    """
    if not isinstance(url, str) or not 0 < len(url) <= _MAX_URL_LENGTH:
        raise ModelError(f"`url` is a text of at most {_MAX_URL_LENGTH:,} characters")
    if not _VISIBLE_ASCII.match(url):
        raise ModelError("`url` contains spaces, backslashes or non-ASCII letters; encode them")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ModelError(f"`url` cannot be read: {error}") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise ModelError(f"`url` begins with https:// or http://; saw {url!r:.40}")
    if "@" in parts.netloc:
        raise ModelError("`url` contains a user name; put credentials into `headers`")
    if parts.fragment or "#" in url:
        raise ModelError("`url` has a fragment, which is never sent; leave it out")
    if port is None:
        if parts.netloc.endswith(":"):
            raise ModelError("`url` has a colon without a port; remove the colon")
        port = _DEFAULT_PORTS[parts.scheme]
    if not allow_any_port and port < 1024 and port not in _DEFAULT_PORTS.values():
        raise ModelError(f"webhooks go to port 80, 443 or one from 1024 on; saw {port}")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(parts.scheme, _parse_host(host or "", parts.netloc), port, target)


def _parse_host(text: str, netloc: str) -> str:
    if netloc.startswith("["):
        address = literal_address(text)
        if not isinstance(address, IPv6Address) or address.scope_id is not None:
            raise ModelError(f"`url` must have an IPv6 address in its brackets; saw {netloc!r:.60}")
        return str(address)
    host = text.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.match, labels)):
        raise ModelError(f"`url` has no valid host name; saw {text!r:.60}")
    if _NUMBER.match(labels[-1]) and literal_address(host) is None:
        # Some parsers read 127.1, 0x7f000001 and 2130706433 as 127.0.0.1, others as names.
        raise ModelError(f"write the address as four decimal numbers; saw {text!r:.60}")
    return host


Address: TypeAlias = IPv4Address | IPv6Address
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host name, or raises OSError if it has none."""

# IANA's registries of special-purpose addresses, without the globally reachable ones.
_SPECIAL_4 = (
    IPv4Network("0.0.0.0/8"),
    IPv4Network("10.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),
    IPv4Network("127.0.0.0/8"),
    IPv4Network("168.63.129.16/32"),  # the host of a virtual machine in Azure
    IPv4Network("169.254.0.0/16"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.0.2.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv4Network("192.168.0.0/16"),
    IPv4Network("198.18.0.0/15"),
    IPv4Network("198.51.100.0/24"),
    IPv4Network("203.0.113.0/24"),
    IPv4Network("224.0.0.0/3"),  # multicast, reserved, broadcast
)
_GLOBAL_6 = IPv6Network("2000::/3")
_SPECIAL_6 = (
    IPv6Network("2001::/23"),  # includes Teredo
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
)
_SIX_TO_FOUR = IPv6Network("2002::/16")
_NAT64 = IPv6Network("64:ff9b::/96")
_MAX_LOOKUPS = 64


def is_public(address: Address) -> bool:
    """Return whether an address is reachable from the whole internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    if address.scope_id is not None:
        return False
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        return is_public(embedded)
    return address in _GLOBAL_6 and not any(address in network for network in _SPECIAL_6)


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address to which packets to an IPv6 address are forwarded, or None."""
    if address in _SIX_TO_FOUR:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped


def literal_address(host: str) -> Address | None:
    """Return the address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class AddressPolicy:
    """Resolves host names, and rejects addresses that are not public.

    Parameters
    ----------
    allow_private : bool
        Whether to accept every address.
    resolver : callable, optional
        Replaces the system's resolver.
    """

    def __init__(self, *, allow_private: bool = False, resolver: Resolver | None = None) -> None:
        self.allow_private = allow_private
        self._threads = ThreadPoolExecutor(_MAX_LOOKUPS, "fencepost-names")
        self._resolver = resolver or self._look_up

    async def resolve(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a host.

        Raises
        ------
        DeliveryError
            If the host has no address, or any one that is not public: a mixture suggests an attack.
        """
        literal = literal_address(host)
        if literal is not None:
            self.check(host, literal)
            return [literal]
        try:
            texts = await self._resolver(host, port)
            addresses = [ipaddress.ip_address(text) for text in texts]
        except (OSError, ValueError) as error:
            raise DeliveryError(f"the name {host:.80} cannot be resolved: {error}") from error
        if not addresses:
            raise DeliveryError(f"the name {host:.80} has no address")
        for address in addresses:
            self.check(host, address)
        return addresses

    def check(self, host: str, address: Address) -> None:
        """Raise DeliveryError for an address that is not public, without revealing the address."""
        if not self.allow_private and not is_public(address):
            raise DeliveryError(
                f"{host:.80} is at an address that is private or special, and webhooks go to "
                "public ones; give another, or allow private ones (--allow-private-webhooks of a "
                "server, allow_private=True on Spark)"
            )

    async def _look_up(self, host: str, port: int) -> list[str]:
        # In a thread pool of its own, so that slow lookups do not delay the rest of the server.
        loop = asyncio.get_running_loop()
        infos = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in infos))

    def close(self) -> None:
        """Stop resolving names."""
        self._threads.shutdown(wait=False, cancel_futures=True)
