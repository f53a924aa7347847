"""Which URLs and which addresses of the network a webhook may go to.

URLs are read strictly: what could be read in two ways is refused. A server that posts where its
users say could be made to reach what only it can reach: itself, its neighbours, the metadata of the
cloud that it runs in. So an address must be one that everybody on the internet can reach; where it
holds an IPv4 address (mapped, 6to4, NAT64), that one, too.
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

_PORTS = {"http": 80, "https": 443}
_LONGEST = 2_000
_PLAIN = re.compile(r"[!-\[\]-~]+\Z")  # ASCII that is seen, and no backslash
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class Url:
    """Where to post.

    Attributes
    ----------
    scheme : {"http", "https"}
    host : str
        A name in small letters without a dot at its end, or an address without brackets.
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
        """The address that the host is, where it is no name."""
        return literal(self.host)

    @property
    def authority(self) -> str:
        """Host and port as a request names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_webhook_url(given: object, *, allow_any_port: bool = False) -> Url:
    """A URL that a webhook may have.

    Parameters
    ----------
    allow_any_port : bool
        Whether ports below 1024 other than 80 and 443 are allowed: other protocols live there.

    Raises
    ------
    ModelError
        Where it is none.
    """
    if not isinstance(given, str) or not 0 < len(given) <= _LONGEST:
        raise ModelError(f"`url` is a text of at most {_LONGEST:,} characters")
    if not _PLAIN.match(given):
        raise ModelError("`url` holds spaces, backslashes or letters beyond ASCII; encode them")
    try:
        parts = urlsplit(given)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ModelError(f"`url` cannot be read: {error}") from None
    if parts.scheme not in _PORTS:
        raise ModelError(f"`url` begins with https:// or http://; saw {given!r:.40}")
    if "@" in parts.netloc:
        raise ModelError("`url` names a user; put what is secret into `headers`")
    if parts.fragment or "#" in given:
        raise ModelError("`url` has a fragment, which is never sent; leave it out")
    if port is None:
        if parts.netloc.endswith(":"):
            raise ModelError("`url` has a colon without a port; leave it out")
        port = _PORTS[parts.scheme]
    if not allow_any_port and port < 1024 and port not in _PORTS.values():
        raise ModelError(f"webhooks go to port 80, 443 or one from 1024 on; saw {port}")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(parts.scheme, _host(host or "", parts.netloc), port, target)


def _host(given: str, netloc: str) -> str:
    if netloc.startswith("["):
        address = literal(given)
        if not isinstance(address, IPv6Address) or address.scope_id is not None:
            raise ModelError(f"`url` has no IPv6 address in its brackets; saw {netloc!r:.60}")
        return str(address)
    host = given.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.match, labels)):
        raise ModelError(f"`url` has no name of a host; saw {given!r:.60}")
    if _NUMBER.match(labels[-1]) and literal(host) is None:
        # 127.1, 0x7f000001 and 2130706433 are 127.0.0.1 to some, and names to others.
        raise ModelError(f"write the address as four decimal numbers; saw {given!r:.60}")
    return host


Address: TypeAlias = IPv4Address | IPv6Address
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name; a name that has none is an OSError."""

# IANA's registries of special addresses, but for those that are reachable by everybody.
_SPECIAL_4 = (
    IPv4Network("0.0.0.0/8"),
    IPv4Network("10.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),
    IPv4Network("127.0.0.0/8"),
    IPv4Network("168.63.129.16/32"),  # Azure's host, as seen from a machine in it
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
    IPv6Network("2001::/23"),  # Teredo among them
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
)
_SIX_TO_FOUR = IPv6Network("2002::/16")
_NAT64 = IPv6Network("64:ff9b::/96")
_LOOKUPS = 64


def is_public(address: Address) -> bool:
    """Whether everybody on the internet can reach an address."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    if address.scope_id is not None:
        return False
    held = _held(address)
    if held is not None:
        return is_public(held)
    return address in _GLOBAL_6 and not any(address in network for network in _SPECIAL_6)


def _held(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to an IPv6 address end at."""
    if address in _SIX_TO_FOUR:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped


def literal(host: str) -> Address | None:
    """The address that a host is, where it is no name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class AddressPolicy:
    """Finds the addresses of a host, and refuses those that are not public.

    Parameters
    ----------
    allow_private : bool
        Whether nothing is refused.
    resolve : callable, optional
        Instead of the resolver of the system.
    """

    def __init__(self, *, allow_private: bool = False, resolver: Resolver | None = None) -> None:
        self.allow_private = allow_private
        self._threads = ThreadPoolExecutor(_LOOKUPS, "fencepost-names")
        self._resolver = resolver or self._look_up

    async def resolve(self, host: str, port: int) -> list[Address]:
        """The addresses of a host, all of them public; one that is not speaks for a trick.

        Raises
        ------
        DeliveryError
            Where one is not public, or there is none.
        """
        found = literal(host)
        if found is not None:
            self.check(host, found)
            return [found]
        try:
            given = await self._resolver(host, port)
            addresses = [ipaddress.ip_address(one) for one in given]
        except (OSError, ValueError) as error:
            raise DeliveryError(f"the name {host:.80} cannot be resolved: {error}") from error
        if not addresses:
            raise DeliveryError(f"the name {host:.80} has no address")
        for one in addresses:
            self.check(host, one)
        return addresses

    def check(self, host: str, address: Address) -> None:
        """Refuse an address that is not public; which one it is stays untold."""
        if not self.allow_private and not is_public(address):
            raise DeliveryError(
                f"{host:.80} is at an address that is private or special, and webhooks go to "
                "public ones; give another, or allow private ones (--allow-private-webhooks of a "
                "server, allow_private=True on Spark)"
            )

    async def _look_up(self, host: str, port: int) -> list[str]:
        # Threads of their own: names that take long must not hold up the rest of the server.
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(where[0]) for *_, where in found))

    def close(self) -> None:
        """Ask for no more names."""
        self._threads.shutdown(wait=False, cancel_futures=True)
