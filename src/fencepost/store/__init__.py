"""Durable state of a server: subscriptions, events, messages, cursors and keys, in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.store import api_keys, endpoint_rows, event_log, subscription_rows
    from fencepost.store.backup import export_to, import_from
    from fencepost.store.database import FILE, MIGRATIONS, Database

__all__ = [
    "FILE",
    "MIGRATIONS",
    "Database",
    "api_keys",
    "endpoint_rows",
    "event_log",
    "export_to",
    "import_from",
    "subscription_rows",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "backup": ["export_to", "import_from"],
            "database": ["Database", "FILE", "MIGRATIONS"],
            "endpoint_rows": None,
            "api_keys": None,
            "event_log": None,
            "subscription_rows": None,
        },
    )
