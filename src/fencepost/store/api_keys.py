"""Tenants, and the keys that open them.

A key is `fp_ID_SECRET`. Only a hash of the secret is kept; it is long and random, so that a fast
hash is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.errors import ModelError, StoreError

SCOPES = ("publish", "subscribe", "admin")
DEFAULT_TENANT = "default"
_KEY = re.compile(r"fp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})\Z")
_TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")


@dataclass(frozen=True, slots=True)
class Key:
    """What is known of a key.

    Attributes
    ----------
    id : str
        The part that is no secret.
    tenant : int
    tenant_name, name : str
        To whom it belongs, and what it is for.
    scopes : frozenset of {"publish", "subscribe", "admin"}
    created, expires : int
        In nanoseconds since 1970; None where it does not expire.
    """

    id: str
    tenant: int
    tenant_name: str
    name: str
    scopes: frozenset[str]
    created: int
    expires: int | None


def tenant_number(connection: sqlite3.Connection, name: str, *, create: bool = False) -> int:
    """The number of a tenant.

    Raises
    ------
    StoreError
        Where there is none and `create` is false.
    """
    row = connection.execute("SELECT number FROM tenant WHERE name = ?", (name,)).fetchone()
    if row is None and create:
        if not _TENANT.match(name):
            raise ModelError(
                f"a tenant is named with up to 63 letters a-z, digits, - and _; saw {name!r:.80}"
            )
        row = connection.execute(
            "INSERT INTO tenant (name) VALUES (?) RETURNING number", (name,)
        ).fetchone()
    if row is None:
        raise StoreError(f"there is no tenant {name!r:.80}; make a key for it first")
    return int(row[0])


def tenant_names(connection: sqlite3.Connection) -> dict[int, str]:
    """The names of all tenants, by number."""
    return dict(connection.execute("SELECT number, name FROM tenant").fetchall())


def add_key(
    connection: sqlite3.Connection,
    tenant: str,
    scopes: Iterable[str],
    name: str,
    now: int,
    expires: int | None = None,
) -> str:
    """Make a key, and its tenant if there is none; the key, which is not shown again."""
    chosen = frozenset(scopes)
    unknown = sorted(chosen - frozenset(SCOPES))
    if unknown or not chosen:
        seen = ", ".join(unknown) or "none"
        raise ModelError(f"scopes are {', '.join(SCOPES)}, one or more; saw {seen:.80}")
    number = tenant_number(connection, tenant, create=True)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    connection.execute(
        "INSERT INTO api_key (id, tenant, secret, name, scopes, created, expires) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (id, number, _hashed(secret), name, " ".join(sorted(chosen)), now, expires),
    )
    return f"fp_{id}_{secret}"


def key_of(connection: sqlite3.Connection, given: str, now: int) -> Key | None:
    """Whose a key is; None where it is no key, is revoked or has expired."""
    parts = _KEY.match(given)
    if parts is None:
        return None
    row = connection.execute(f"{_KEYS} WHERE k.id = ?", (parts[1],)).fetchone()
    if row is None or not hmac.compare_digest(row[0], _hashed(parts[2])):
        return None
    key = _key(row)
    return None if key.expires is not None and key.expires <= now else key


def keys(connection: sqlite3.Connection, tenant: int | None = None) -> list[Key]:
    """The keys of a tenant, or all, oldest first."""
    rows = connection.execute(f"{_KEYS} ORDER BY k.created, k.id").fetchall()
    return [_key(row) for row in rows if tenant is None or row[2] == tenant]


def revoke_key(connection: sqlite3.Connection, id: str, tenant: int | None = None) -> bool:
    """Let a key open nothing any more; whether there was one, of this tenant if one is given."""
    found = connection.execute(
        "DELETE FROM api_key WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)", (id, tenant)
    )
    return found.rowcount > 0


_KEYS = (
    "SELECT k.secret, k.id, k.tenant, t.name, k.name, k.scopes, k.created, k.expires "
    "FROM api_key k JOIN tenant t ON t.number = k.tenant"
)


def _key(row: tuple[bytes, str, int, str, str, str, int, int | None]) -> Key:
    _, id, tenant, tenant_name, name, scopes, created, expires = row
    return Key(id, tenant, tenant_name, name, frozenset(scopes.split()), created, expires)


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
