"""The database of a server: one folder, one process, one writer, many readers.

Its tables, which an older database gets by migrations:

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

import fcntl
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

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


Connection: TypeAlias = sqlite3.Connection
P = ParamSpec("P")
T = TypeVar("T")
FILE = "fencepost.db"
_LOCK = "lock"
_IDLE_READERS = 8
_WAL_PAGES = (
    16_384  # 64 MiB: the log is copied into the database by `checkpoint`, seldom by a commit
)


class Database:
    """SQLite in a folder, in its write-ahead mode: a commit is on the disk when it returns.

    Parameters
    ----------
    folder : Path
        Made if missing.
    exclusive : bool
        Whether no second process may have it open so, as it keeps in memory what is there.

    Attributes
    ----------
    writer : sqlite3.Connection
        For one thread at a time.
    """

    def __init__(self, folder: Path, *, exclusive: bool = True) -> None:
        self.folder = folder
        self._readers: deque[sqlite3.Connection] = deque()
        self._closed = False
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be used: {error.strerror}; name another folder"
            ) from error
        try:
            if exclusive:
                self._claim()
            self.writer = self._opened()
        except BaseException:
            os.close(self._lock)
            raise

    def _claim(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(
                f"another process has {self.folder} open; stop it, or name another folder"
            ) from None

    def _opened(self) -> sqlite3.Connection:
        """A connection for the writer, to a database that is up to date."""
        connection = None
        try:
            connection = self._connect()
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
            migrate(connection)
        except (sqlite3.Error, StoreError) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{self.folder / FILE} cannot be used: {error}; restore it from a backup, or name "
                "another folder"
            ) from error
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.folder / FILE, isolation_level=None, check_same_thread=False, timeout=30
        )
        connection.execute("PRAGMA cache_size = -32768")
        return connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees what is committed, for any thread."""
        try:
            connection = self._readers.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        try:
            yield connection
        finally:
            if self._closed or len(self._readers) >= _IDLE_READERS:
                connection.close()
            else:
                self._readers.append(connection)

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        """What a function of a connection finds in what is committed, for any thread."""
        with self.reading() as connection:
            return query(connection, *given, **named)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The writer within a transaction: committed at the end, or nothing of it at all."""
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
                    f"nothing was changed, as the database refused: {error}"
                ) from error
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of a transaction: where it raises, nothing of this part is written."""
        writer = self.writer
        writer.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if writer.in_transaction:  # SQLite itself ends a transaction where the disk is full
                writer.execute("ROLLBACK TO part")
                writer.execute("RELEASE part")
            raise
        writer.execute("RELEASE part")

    def checkpoint(self) -> None:
        """Copy what was committed from the log into the database, beside the writer."""
        connection = self._connect()
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def close(self) -> None:
        """Give the folder back."""
        self._closed = True
        while self._readers:
            self._readers.pop().close()
        self.writer.close()
        os.close(self._lock)


def setting(connection: Connection, name: str, default: str) -> str:
    """What was written about a database under a name; the default is written where nothing was."""
    connection.execute("INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)", (name, default))
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return str(row[0])


def probe(connection: Connection) -> None:
    """Write something that changes nothing; an error where nothing can be written."""
    connection.execute("UPDATE meta SET value = value WHERE name = 'space'")
