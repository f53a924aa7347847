"""Durable state of a server: subscriptions, events, messages, cursors and keys, in SQLite.

- `api_keys`: tenants, and the API keys that give access to them
- `backup`: `export_backup` and `import_backup`: a server's folder as one file
- `database`: `Database`: SQLite in a folder, with one writer and many readers
- `endpoint_rows`: endpoints of subscribers, dead letters, and stored results of publications
- `event_log`: the log of events, the outbox of messages, and acknowledged positions
- `stateful_state`: the state of stateful subscriptions: values by owner and name
- `subscription_rows`: subscriptions and subscribers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.store import api_keys, endpoint_rows, event_log, subscription_rows
    from fencepost.store.backup import export_backup, import_backup
    from fencepost.store.database import DATABASE_FILE, MIGRATIONS, Database

__all__ = [
    "DATABASE_FILE",
    "MIGRATIONS",
    "Database",
    "api_keys",
    "endpoint_rows",
    "event_log",
    "export_backup",
    "import_backup",
    "subscription_rows",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "backup": ["export_backup", "import_backup"],
            "database": ["DATABASE_FILE", "Database", "MIGRATIONS"],
            "endpoint_rows": None,
            "api_keys": None,
            "event_log": None,
            "subscription_rows": None,
        },
    )
