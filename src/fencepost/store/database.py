"""`Database`: SQLite in a server's folder: one process, one writer, many readers.

The tables, created and updated by migrations:

    tenant ---< api_key
       |
       +---< subscriber ---< subscription
       |         |
       |         +---< message >--- event        the outbox, and the log
       |         +---- endpoint                  the webhook or MQTT topic of a subscriber
       +---< state                               state of composites and tracked objects
       +---< publication                         results, by idempotency key
       +---< dead_letter                         unusable input, and undeliverable messages

An event has a *position* in the log, and a message has a position in the outbox. Both count up from
1 over all tenants. A position is never used again, even after its row was removed.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from fencepost.errors import StoreError

_SCHEMA_1 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE tenant (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenant,
    secret_hash BLOB NOT NULL,
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
    rejections INTEGER NOT NULL DEFAULT 0,
    retry_at_ns INTEGER NOT NULL DEFAULT 0,
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
    idempotency_key TEXT NOT NULL,
    at INTEGER NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
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

MIGRATIONS = (_SCHEMA_1,)
"""The scripts from each version of the schema to the next. A released script never changes."""


def migrate(connection: sqlite3.Connection) -> int:
    """Migrate a database in one transaction. Return its previous version, 0 if it was empty.

    Raises
    ------
    StoreError
        If a newer release of Fencepost wrote it.
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


Connection: TypeAlias = sqlite3.Connection
P = ParamSpec("P")
T = TypeVar("T")
DATABASE_FILE = "fencepost.db"
_LOCK_FILE = "lock"
_MAX_IDLE_READERS = 8
# 64 MiB: `checkpoint` normally copies the write-ahead log, so that commits need not.
_AUTOCHECKPOINT_PAGES = 16_384


def require_database(folder: Path) -> Path:
    """Return the path of a folder's database, which exists.

    Raises
    ------
    StoreError
        If there is no such folder, or no database in it.
    """
    if (folder / DATABASE_FILE).is_file():
        return folder / DATABASE_FILE
    problem = f"{folder} holds no database" if folder.exists() else f"there is no folder {folder}"
    raise StoreError(f"{problem}; name the folder that `serve --data` has")


class Database:
    """A SQLite database in a folder, in WAL mode: a commit is on disk when it returns.

    Parameters
    ----------
    folder : Path
        Created if missing.
    exclusive : bool
        Whether to refuse a second process that opens the folder exclusively. A server needs this,
        because it keeps an image of the database in memory.

    Attributes
    ----------
    writer : sqlite3.Connection
        The connection that writes; for one thread at a time.
    """

    def __init__(self, folder: Path, *, exclusive: bool = True) -> None:
        self.folder = folder
        self._readers: deque[sqlite3.Connection] = deque()
        self._closed = False
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be used: {error.strerror}; name another folder"
            ) from error
        try:
            if exclusive:
                self._lock_folder()
            self.writer = self._open_writer()
        except BaseException:
            os.close(self._lock)
            raise

    def _lock_folder(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(
                f"another process has {self.folder} open; stop it, or name another folder"
            ) from None

    def _open_writer(self) -> sqlite3.Connection:
        """Return a connection that may write, after migrating the schema."""
        connection = None
        try:
            connection = self._connect()
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT_PAGES}")
            migrate(connection)
        except (sqlite3.Error, StoreError) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{self.folder / DATABASE_FILE} cannot be used: {error}; restore it from a backup, "
                "or name another folder"
            ) from error
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.folder / DATABASE_FILE, isolation_level=None, check_same_thread=False, timeout=30
        )
        connection.execute("PRAGMA cache_size = -32768")
        return connection

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """Lend a read-only connection, which sees committed rows; for any thread."""
        try:
            connection = self._readers.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        try:
            yield connection
        finally:
            if self._closed or len(self._readers) >= _MAX_IDLE_READERS:
                connection.close()
            else:
                self._readers.append(connection)

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of a query function on a read-only connection; for any thread."""
        with self.reader() as connection:
            return query(connection, *args, **kwargs)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the writer within a transaction; roll the transaction back if the body raises."""
        writer = self.writer
        try:
            writer.execute("BEGIN IMMEDIATE")
            yield writer
            writer.execute("COMMIT")
        except BaseException as error:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise StoreError(
                    f"nothing was changed, because the database failed: {error}"
                ) from error
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Run a part of a transaction; roll back this part if the body raises."""
        writer = self.writer
        writer.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if writer.in_transaction:  # SQLite rolls back itself when the disk is full
                writer.execute("ROLLBACK TO part")
                writer.execute("RELEASE part")
            raise
        writer.execute("RELEASE part")

    def checkpoint(self) -> None:
        """Copy committed pages from the write-ahead log into the database; the writer goes on."""
        connection = self._connect()
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def close(self) -> None:
        """Close all connections, and unlock the folder."""
        self._closed = True
        while self._readers:
            self._readers.pop().close()
        self.writer.close()
        os.close(self._lock)


def ensure_setting(connection: Connection, name: str, default: str) -> str:
    """Return a setting of the database; write the default if there is none."""
    connection.execute("INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)", (name, default))
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return str(row[0])


def check_writable(connection: Connection) -> None:
    """Raise an error if the database cannot be written to."""
    connection.execute("UPDATE meta SET value = value WHERE name = 'space'")
