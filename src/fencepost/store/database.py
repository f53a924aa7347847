"""The database of a server: one folder, one process, one writer, many readers."""

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
from fencepost.store.schema import migrate

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
