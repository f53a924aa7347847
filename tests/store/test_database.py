"""`Database`: locking, migration, and damaged files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from fencepost.errors import StoreError
from fencepost.store import DATABASE_FILE, MIGRATIONS, Database


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = Database(tmp_path)
    with pytest.raises(StoreError, match="another process"):
        Database(tmp_path)
    shared = Database(tmp_path, exclusive=False)
    shared.close()
    first.close()
    Database(tmp_path).close()


def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    Database(tmp_path).close()
    with sqlite3.connect(tmp_path / DATABASE_FILE) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = (tmp_path / DATABASE_FILE).read_bytes()
    with pytest.raises(StoreError, match="newer release"):
        Database(tmp_path)
    assert (tmp_path / DATABASE_FILE).read_bytes() == before
    with pytest.raises(StoreError, match="newer release"):
        Database(tmp_path)  # the lock was released


def test_an_older_database_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Database(tmp_path).close()
    migration = "ALTER TABLE tenant ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';"
    monkeypatch.setattr("fencepost.store.database.MIGRATIONS", (*MIGRATIONS, migration))
    with sqlite3.connect(tmp_path / DATABASE_FILE) as connection:
        connection.execute("INSERT INTO tenant (name) VALUES ('acme')")
    for _ in range(2):
        database = Database(tmp_path)
        assert database.writer.execute("SELECT name, colour FROM tenant").fetchall() == [
            ("acme", "red")
        ]
        version = database.writer.execute("PRAGMA user_version").fetchone()[0]
        assert version == len(MIGRATIONS) + 1
        database.close()


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Database(tmp_path).close()
    broken = "CREATE TABLE more (x); SELECT nothing FROM nowhere;"
    with monkeypatch.context() as patch:
        patch.setattr("fencepost.store.database.MIGRATIONS", (*MIGRATIONS, broken))
        with pytest.raises(StoreError, match="cannot be used"):
            Database(tmp_path)
    database = Database(tmp_path)
    names = database.writer.execute("SELECT name FROM sqlite_master WHERE name = 'more'")
    assert names.fetchall() == []
    database.close()


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreError, match="backup"):
        Database(tmp_path)


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="another folder"):
        Database(tmp_path / "file" / "data")
