"""A backup of a server's folder: one file, made while the server runs.

    {"fencepost_backup": 1, "schema": 1, "sha256": ..., ...}    the manifest, one line of JSON
    <gzip>                                                       the database, compact

The database is as it was at one moment, between two commits.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from fencepost.atomic_replace import atomic_write
from fencepost.errors import StoreError
from fencepost.events.times import format_instant
from fencepost.store.database import FILE, MIGRATIONS, Database

_FORMAT = 1
_CHUNK = 1 << 20
_LONGEST_MANIFEST = 1 << 16
_COUNTED = {
    "tenants": "tenant",
    "keys": "api_key",
    "subscribers": "subscriber",
    "subscriptions": "subscription",
    "events": "event",
    "messages": "message",
    "endpoints": "endpoint",
    "dead_letters": "dead_letter",
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself.

    Attributes
    ----------
    schema : int
        The version of the tables.
    version, made : str
        Of Fencepost, and when.
    bytes, sha256 : int, str
        Of the database.
    counts : dict
        How many rows there are of what.
    """

    schema: int
    version: str
    made: str
    bytes: int
    sha256: str
    counts: dict[str, int]


def export_to(folder: Path, out: Path, now: int, *, replace: bool = False) -> Manifest:
    """Write a backup of a folder; whoever serves it goes on.

    Parameters
    ----------
    now : int
        The present in nanoseconds since 1970.
    replace : bool
        Whether it may take the place of a file.

    Raises
    ------
    StoreError
        Where there is no database, or a file already.
    """
    if not (folder / FILE).is_file():
        raise StoreError(f"{folder} holds no database; name the folder that `serve --data` has")
    if out.exists() and not replace:
        raise StoreError(f"{out} is there already; give --replace, or name another file")
    beside = out.parent / f".{out.name}.{os.getpid()}"
    copy = beside.with_suffix(".db")
    try:
        with closing(sqlite3.connect(folder / FILE, timeout=30)) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        with closing(sqlite3.connect(copy)) as connection:
            schema, counts = _schema(connection), _counts(connection)
        size, sha256 = _digest(copy)
        made = Manifest(schema, version("fencepost"), format_instant(now), size, sha256, counts)
        with atomic_write(out, durable=True, mode=0o600) as file:
            file.write(json.dumps({"fencepost_backup": _FORMAT, **asdict(made)}).encode() + b"\n")
            with copy.open("rb") as source, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                shutil.copyfileobj(source, packed, _CHUNK)
    except sqlite3.Error as error:
        raise StoreError(f"{folder / FILE} cannot be copied: {error}") from error
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror}; name another") from error
    finally:
        copy.unlink(missing_ok=True)
    return made


def import_from(file: Path, folder: Path) -> Manifest:
    """Put a backup into a folder that is empty or not there, and bring it up to date.

    Raises
    ------
    StoreError
        Where the file is no backup, is damaged, or was made by a newer release; where the folder
        holds anything.
    """
    try:
        with file.open("rb") as source:
            manifest = _manifest(source, file)
            with _new_folder(folder):
                part = folder / f"{FILE}.part"
                with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as to:
                    _unpack(source, to, manifest, file)
                _check(part, manifest, file)
                part.rename(folder / FILE)
                Database(folder).close()
    except OSError as error:
        name = error.filename or file
        raise StoreError(f"{name} cannot be used: {error.strerror or error}") from error
    return manifest


def _manifest(source: IO[bytes], file: Path) -> Manifest:
    line = source.readline(_LONGEST_MANIFEST)
    try:
        given: dict[str, Any] = json.loads(line)
        format = given.pop("fencepost_backup")
        if format != _FORMAT:
            raise StoreError(
                f"{file} is a backup of format {format!r:.20}, and this release of Fencepost "
                f"knows {_FORMAT}; use a newer release"
            )
        if not all(isinstance(given[name], int) for name in ("schema", "bytes")):
            raise TypeError
        found = Manifest(**given)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{file} is no backup; `fencepost export` writes them") from None
    if found.schema > len(MIGRATIONS):
        raise StoreError(
            f"{file} has version {found.schema} of the schema, and this release of Fencepost knows "
            f"up to {len(MIGRATIONS)}; use a newer release"
        )
    return found


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """A folder that holds nothing; as it was before where something goes wrong."""
    fresh = not folder.exists()
    if not fresh and any(folder.iterdir()):
        raise StoreError(f"{folder} is not empty; name a folder that is, or a new one")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        yield
    except BaseException:
        for one in folder.iterdir():
            one.unlink()
        if fresh:
            with suppress(OSError):
                folder.rmdir()
        raise


def _unpack(source: IO[bytes], to: IO[bytes], manifest: Manifest, file: Path) -> None:
    digest, size = hashlib.sha256(), 0
    try:
        with gzip.GzipFile(fileobj=source) as packed:
            while chunk := packed.read(_CHUNK):
                size += len(chunk)
                if size > manifest.bytes:
                    break
                digest.update(chunk)
                to.write(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        size = -1
    if size != manifest.bytes or digest.hexdigest() != manifest.sha256:
        raise StoreError(f"{file} is damaged or cut off; take another backup")
    to.flush()
    os.fsync(to.fileno())


def _check(database: Path, manifest: Manifest, file: Path) -> None:
    try:
        with closing(sqlite3.connect(database)) as connection:
            good = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
            good = good and _schema(connection) == manifest.schema
    except sqlite3.Error:
        good = False
    if not good:
        raise StoreError(f"{file} holds no usable database; take another backup")


def _schema(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    return {
        name: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        for name, table in _COUNTED.items()
    }


def _digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stat().st_size, digest
