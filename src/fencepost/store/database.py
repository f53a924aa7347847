"""The database of a server: one folder, one process, one writer, many readers."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fencepost.errors import StoreError
from fencepost.store.schema import migrate

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
