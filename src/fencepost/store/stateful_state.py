"""Rows of the state of stateful subscriptions: values of each tenant, by owner and name."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Change(NamedTuple):
    """A change of a value.

    Attributes
    ----------
    owner : str
        The set of subscriptions whose state it is.
    name : str or None
        Name of the value; None to remove all values of the owner.
    value : str or bytes or None
        The new value; None to remove it.
    """

    owner: str
    name: str | None
    value: str | bytes | None


def apply_changes(connection: sqlite3.Connection, tenant: int, changes: Sequence[Change]) -> None:
    """Write changes in their order; consecutive texts are written in one statement."""
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
    """Return the owners that have values."""
    rows = connection.execute("SELECT DISTINCT owner FROM state WHERE tenant = ?", (tenant,))
    return [owner for (owner,) in rows]


def values(
    connection: sqlite3.Connection, tenant: int, owner: str
) -> Iterable[tuple[str, str | bytes]]:
    """Return the names and values of an owner."""
    return connection.execute(
        "SELECT name, value FROM state WHERE tenant = ? AND owner = ?", (tenant, owner)
    )
