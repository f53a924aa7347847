"""Addresses of webhooks, read strictly: what could be read in two ways is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from fencepost.deliver.addresses import Address, literal
from fencepost.errors import ModelError

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


def url_of(given: object, *, any_port: bool = False) -> Url:
    """A URL that a webhook may have.

    Parameters
    ----------
    any_port : bool
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
    if not any_port and port < 1024 and port not in _PORTS.values():
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
