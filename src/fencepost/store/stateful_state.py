"""What stateful subscriptions remember: values by owner and name, of each tenant."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Change(NamedTuple):
    """A value that is another now.

    Attributes
    ----------
    owner : str
        Whose it is.
    name : str or None
        None for all that the owner has, which goes.
    value : str or bytes or None
        None where it goes.
    """

    owner: str
    name: str | None
    value: str | bytes | None


def apply_changes(connection: sqlite3.Connection, tenant: int, changes: Sequence[Change]) -> None:
    """Write changes in their order, texts that follow each other in one step."""
    texts: list[tuple[str, str, str]] = []
    for owner, name, value in changes:
        if name is not None and isinstance(value, str):
            texts.append((owner, name, value))
            continue
        _put_texts(connection, tenant, texts)
        texts = []
        if name is None:
            connection.execute("DELETE FROM state WHERE tenant = ? AND owner = ?", (tenant, owner))
        elif value is None:
            connection.execute(
                "DELETE FROM state WHERE tenant = ? AND owner = ? AND name = ?",
                (tenant, owner, name),
            )
        else:
            connection.execute(
                "INSERT OR REPLACE INTO state (tenant, owner, name, value) VALUES (?, ?, ?, ?)",
                (tenant, owner, name, value),
            )
    _put_texts(connection, tenant, texts)


def _put_texts(
    connection: sqlite3.Connection, tenant: int, texts: Sequence[tuple[str, str, str]]
) -> None:
    if texts:
        connection.execute(
            "INSERT OR REPLACE INTO state (tenant, owner, name, value) "
            "SELECT ?1, value ->> 0, value ->> 1, value ->> 2 FROM json_each(?2)",
            (tenant, json.dumps(texts)),
        )


def owners(connection: sqlite3.Connection, tenant: int) -> list[str]:
    """Who has values."""
    rows = connection.execute("SELECT DISTINCT owner FROM state WHERE tenant = ?", (tenant,))
    return [owner for (owner,) in rows]


def values(
    connection: sqlite3.Connection, tenant: int, owner: str
) -> Iterable[tuple[str, str | bytes]]:
    """The names and values of an owner."""
    return connection.execute(
        "SELECT name, value FROM state WHERE tenant = ? AND owner = ?", (tenant, owner)
    )
