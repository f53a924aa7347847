"""Rows of tenants, and of the API keys that give access to them.

A key is `fp_ID_SECRET`. Only a hash of the secret is stored. The secret is long and random, so a
fast hash is enough.
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
    """A stored key, without its secret.

    Attributes
    ----------
    id : str
        The public part of the key.
    tenant : int
        Number of the tenant.
    tenant_name : str
    name : str
        A label for people.
    scopes : frozenset of {"publish", "subscribe", "admin"}
    created : int
        In nanoseconds since 1970.
    expires : int or None
        In nanoseconds since 1970; None if the key does not expire.
    """

    id: str
    tenant: int
    tenant_name: str
    name: str
    scopes: frozenset[str]
    created: int
    expires: int | None


def tenant_number(connection: sqlite3.Connection, name: str, *, create: bool = False) -> int:
    """Return the number of a tenant.

    Raises
    ------
    StoreError
        If the tenant does not exist and `create` is false.
    """
    row = connection.execute("SELECT number FROM tenant WHERE name = ?", (name,)).fetchone()
    if row is None and create:
        if not _TENANT.match(name):
            raise ModelError(
                f"a tenant's name is up to 63 letters a-z, digits, - and _; saw {name!r:.80}"
            )
        row = connection.execute(
            "INSERT INTO tenant (name) VALUES (?) RETURNING number", (name,)
        ).fetchone()
    if row is None:
        raise StoreError(f"there is no tenant {name!r:.80}; make a key for it first")
    return int(row[0])


def tenant_names(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the names of all tenants, by number."""
    return dict(connection.execute("SELECT number, name FROM tenant").fetchall())


def add_key(
    connection: sqlite3.Connection,
    tenant: str,
    scopes: Iterable[str],
    name: str,
    now: int,
    expires: int | None = None,
) -> str:
    """Add a key, and its tenant if it does not exist. Return the key, which is not stored."""
    key_scopes = frozenset(scopes)
    unknown = sorted(key_scopes - frozenset(SCOPES))
    if unknown or not key_scopes:
        invalid = ", ".join(unknown) or "none"
        raise ModelError(f"scopes are {', '.join(SCOPES)}, one or more; saw {invalid:.80}")
    number = tenant_number(connection, tenant, create=True)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    connection.execute(
        "INSERT INTO api_key (id, tenant, secret_hash, name, scopes, created, expires) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (id, number, _hash(secret), name, " ".join(sorted(key_scopes)), now, expires),
    )
    return f"fp_{id}_{secret}"


def find_key(connection: sqlite3.Connection, key_text: str, now: int) -> Key | None:
    """Return the row of a key; None if it is malformed, unknown, revoked or expired."""
    parts = _KEY.match(key_text)
    if parts is None:
        return None
    row = connection.execute(f"{_SELECT_KEYS} WHERE k.id = ?", (parts[1],)).fetchone()
    if row is None or not hmac.compare_digest(row[0], _hash(parts[2])):
        return None
    key = _key_from_row(row)
    return None if key.expires is not None and key.expires <= now else key


def keys(connection: sqlite3.Connection, tenant: int | None = None) -> list[Key]:
    """Return the keys of a tenant, or of all tenants, oldest first."""
    rows = connection.execute(f"{_SELECT_KEYS} ORDER BY k.created, k.id").fetchall()
    return [_key_from_row(row) for row in rows if tenant is None or row[2] == tenant]


def revoke_key(connection: sqlite3.Connection, id: str, tenant: int | None = None) -> bool:
    """Remove a key. Return whether it existed; with `tenant`, only keys of this tenant count."""
    cursor = connection.execute(
        "DELETE FROM api_key WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)", (id, tenant)
    )
    return cursor.rowcount > 0


_SELECT_KEYS = (
    "SELECT k.secret_hash, k.id, k.tenant, t.name, k.name, k.scopes, k.created, k.expires "
    "FROM api_key k JOIN tenant t ON t.number = k.tenant"
)


def _key_from_row(row: tuple[bytes, str, int, str, str, str, int, int | None]) -> Key:
    _, id, tenant, tenant_name, name, scopes, created, expires = row
    return Key(id, tenant, tenant_name, name, frozenset(scopes.split()), created, expires)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
