"""Which addresses of the network a webhook may go to.

A server that posts where its users say could be made to reach what only it can reach: itself, its
neighbours, the metadata of the cloud that it runs in. So an address must be one that everybody on
the internet can reach; where it holds an IPv4 address (mapped, 6to4, NAT64), that one, too.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

from fencepost.errors import DeliveryError

Address: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
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


class Gate:
    """Finds the addresses of a host, and refuses those that are not public.

    Parameters
    ----------
    allow_private : bool
        Whether nothing is refused.
    resolve : callable, optional
        Instead of the resolver of the system.
    """

    def __init__(self, *, allow_private: bool = False, resolve: Resolve | None = None) -> None:
        self.allow_private = allow_private
        self._threads = ThreadPoolExecutor(_LOOKUPS, "fencepost-names")
        self._resolve = resolve or self._ask_system

    async def addresses(self, host: str, port: int) -> list[Address]:
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
            given = await self._resolve(host, port)
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

    async def _ask_system(self, host: str, port: int) -> list[str]:
        # Threads of their own: names that take long must not hold up the rest of the server.
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(where[0]) for *_, where in found))

    def close(self) -> None:
        """Ask for no more names."""
        self._threads.shutdown(wait=False, cancel_futures=True)
