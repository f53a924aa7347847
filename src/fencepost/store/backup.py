"""`export_backup` and `import_backup`: a server's folder as one file, made while the server runs.

    {"fencepost_backup": 1, "schema": 1, "sha256": ..., ...}    the manifest, one line of JSON
    <gzip>                                                       the database, vacuumed

The backup is a snapshot: it has all of a commit or nothing of it.
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
from fencepost.store.database import DATABASE_FILE, MIGRATIONS, Database, require_database

_FORMAT = 1
_CHUNK = 1 << 20
_MAX_MANIFEST_BYTES = 1 << 16
_COUNTED_TABLES = {
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
    """The first line of a backup.

    Attributes
    ----------
    schema : int
        Version of the schema.
    version : str
        Version of Fencepost.
    made : str
        Time of the backup.
    bytes : int
        Size of the database.
    sha256 : str
        Digest of the database.
    counts : dict
        Number of rows of each kind.
    """

    schema: int
    version: str
    made: str
    bytes: int
    sha256: str
    counts: dict[str, int]


def export_backup(folder: Path, out: Path, now: int, *, replace: bool = False) -> Manifest:
    """Write a backup of a folder; a server may use the folder meanwhile.

    Parameters
    ----------
    now : int
        The present in nanoseconds since 1970.
    replace : bool
        Whether `out` may exist and is replaced.

    Raises
    ------
    StoreError
        If there is no folder, or no database in it, or if `out` exists and `replace` is false.
    """
    database = require_database(folder)
    if out.exists() and not replace:
        raise StoreError(f"{out} already exists; give --replace, or name another file")
    copy = out.parent / f".{out.name}.{os.getpid()}.db"
    try:
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        with closing(sqlite3.connect(copy)) as connection:
            schema, counts = _schema(connection), _counts(connection)
        size, sha256 = _digest(copy)
        manifest = Manifest(schema, version("fencepost"), format_instant(now), size, sha256, counts)
        with atomic_write(out, durable=True, mode=0o600) as file:
            file.write(
                json.dumps({"fencepost_backup": _FORMAT, **asdict(manifest)}).encode() + b"\n"
            )
            with copy.open("rb") as source, gzip.GzipFile("", "wb", 6, file, mtime=0) as target:
                shutil.copyfileobj(source, target, _CHUNK)
    except sqlite3.Error as error:
        raise StoreError(f"{database} cannot be copied: {error}") from error
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror}; name another file") from error
    finally:
        copy.unlink(missing_ok=True)
    return manifest


def import_backup(file: Path, folder: Path) -> Manifest:
    """Restore a backup into an empty or new folder, and migrate its schema.

    Raises
    ------
    StoreError
        If the file is no backup, is damaged, or was made by a newer release; if the folder is not
        empty.
    """
    try:
        with file.open("rb") as source:
            manifest = _read_manifest(source, file)
            with _new_folder(folder):
                part = folder / f"{DATABASE_FILE}.part"
                with open(
                    os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
                ) as target:
                    _unpack(source, target, manifest, file)
                _check(part, manifest, file)
                part.rename(folder / DATABASE_FILE)
                Database(folder).close()
    except OSError as error:
        name = error.filename or file
        raise StoreError(f"{name} cannot be used: {error.strerror or error}") from error
    return manifest


def _read_manifest(source: IO[bytes], file: Path) -> Manifest:
    line = source.readline(_MAX_MANIFEST_BYTES)
    try:
        members: dict[str, Any] = json.loads(line)
        format = members.pop("fencepost_backup")
        if format != _FORMAT:
            raise StoreError(
                f"{file} is a backup of format {format!r:.20}, and this release of Fencepost "
                f"reads format {_FORMAT}; use a newer release"
            )
        if not all(isinstance(members[name], int) for name in ("schema", "bytes")):
            raise TypeError
        manifest = Manifest(**members)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{file} is no backup; `fencepost export` writes them") from None
    if manifest.schema > len(MIGRATIONS):
        raise StoreError(
            f"{file} has version {manifest.schema} of the schema, and this release of Fencepost "
            f"knows up to {len(MIGRATIONS)}; use a newer release"
        )
    return manifest


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """Create a folder or check that it is empty; restore that state if the body raises."""
    is_new = not folder.exists()
    if not is_new and any(folder.iterdir()):
        raise StoreError(f"{folder} is not empty; name a folder that is, or a new one")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        yield
    except BaseException:
        for file in folder.iterdir():
            file.unlink()
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _unpack(source: IO[bytes], target: IO[bytes], manifest: Manifest, file: Path) -> None:
    digest, size = hashlib.sha256(), 0
    try:
        with gzip.GzipFile(fileobj=source) as decompressed:
            while chunk := decompressed.read(_CHUNK):
                size += len(chunk)
                if size > manifest.bytes:
                    break
                digest.update(chunk)
                target.write(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        size = -1
    if size != manifest.bytes or digest.hexdigest() != manifest.sha256:
        raise StoreError(f"{file} is damaged or cut off; take another backup")
    target.flush()
    os.fsync(target.fileno())


def _check(database: Path, manifest: Manifest, file: Path) -> None:
    try:
        with closing(sqlite3.connect(database)) as connection:
            is_valid = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
            is_valid = is_valid and _schema(connection) == manifest.schema
    except sqlite3.Error:
        is_valid = False
    if not is_valid:
        raise StoreError(f"{file} holds no usable database; take another backup")


def _schema(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    return {
        name: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        for name, table in _COUNTED_TABLES.items()
    }


def _digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stat().st_size, digest
