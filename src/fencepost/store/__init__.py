"""Durable state of a server: subscriptions, events, messages, cursors and keys, in SQLite.

- `api_keys`: Tenants, and the keys that open them
- `backup`: A backup of a server's folder: one file, made while the server runs
- `database`: The database of a server: one folder, one process, one writer, many readers
- `endpoint_rows`: Where messages of a subscriber are posted, what could not be, and answers to
  keep
- `event_log`: Events and messages: what came, who gets it, and how far each subscriber has read
- `stateful_state`: What stateful subscriptions remember: values by owner and name, of each tenant
- `subscription_rows`: Subscriptions and subscribers as rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

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
    __getattr__ = lazy_getattr(
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
