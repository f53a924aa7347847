"""The tables, and how an older database becomes a newer one.

    tenant ---< api_key
       |
       +---< subscriber ---< subscription        what is asked
       |         |
       |         +---< message >--- event        what is answered: the outbox, and the log
       |         +---- endpoint                  where messages are posted, if anywhere
       +---< state                               of composites and tracked objects
       +---< publication                         answers to publishers who may ask again
       +---< dead_letter                         what could not be read or handed over

An event has a *position* in the log, a message one of its own in the outbox; both count up from 1
over all tenants and are never given twice, also where rows were removed since.
"""

from __future__ import annotations

import sqlite3

from fencepost.errors import StoreError

_FIRST = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE tenant (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenant,
    secret BLOB NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER
) WITHOUT ROWID;
CREATE TABLE subscriber (
    number INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenant,
    name TEXT NOT NULL,
    acknowledged INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
);
CREATE TABLE subscription (
    tenant INTEGER NOT NULL REFERENCES tenant,
    id TEXT NOT NULL,
    subscriber INTEGER NOT NULL REFERENCES subscriber,
    definition TEXT NOT NULL,
    expires INTEGER,
    created INTEGER NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX subscription_by_subscriber ON subscription (subscriber, id);
CREATE INDEX subscription_by_expiry ON subscription (expires) WHERE expires IS NOT NULL;
CREATE TABLE event (
    position INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    received INTEGER NOT NULL,
    last_message INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE message (
    subscriber INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event INTEGER,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (subscriber, position)
) WITHOUT ROWID;
CREATE TABLE endpoint (
    subscriber INTEGER PRIMARY KEY REFERENCES subscriber,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    retry_at INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    disabled INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE state (
    tenant INTEGER NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (tenant, owner, name)
) WITHOUT ROWID;
CREATE TABLE publication (
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
CREATE TABLE dead_letter (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    subscriber INTEGER,
    message INTEGER,
    at INTEGER NOT NULL,
    source TEXT NOT NULL,
    reason TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX dead_letter_by_tenant ON dead_letter (tenant, number);
CREATE INDEX dead_letter_by_time ON dead_letter (at);
"""

MIGRATIONS = (_FIRST,)
"""What leads from each version of the schema to the next; what was released never changes."""


def migrate(connection: sqlite3.Connection) -> int:
    """Bring a database up to date in one transaction; the version that it had, 0 of an empty one.

    Raises
    ------
    StoreError
        Where a newer release of Fencepost wrote it.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the database has version {version} of the schema, and this release of Fencepost "
            f"knows up to {len(MIGRATIONS)}; use a newer release, or another folder"
        )
    if version < len(MIGRATIONS):
        steps = "".join(MIGRATIONS[version:])
        connection.executescript(
            f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {len(MIGRATIONS)}; COMMIT;"
        )
    return int(version)
