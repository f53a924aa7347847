"""Backups: exported while the server runs, imported elsewhere, rejected if damaged."""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fencepost as fp
from fencepost.cli import entry_point
from fencepost.store import (
    DATABASE_FILE,
    MIGRATIONS,
    api_keys,
    endpoint_rows,
    export_backup,
    import_backup,
)
from tests.server.serving import Running, running
from tests.waiting import WAIT_S


def fill(server: Running) -> str:
    """Add at least one row of each kind. Return a key."""
    with fp.Client(server.url) as client:
        client.subscribe("taxis", "kind = 'taxi'", subscriber="me", payload=[1])
        client.publish({"kind": "taxi", "n": n} for n in range(10))
        client.acknowledge("me", 4)
    broker = server.service.broker
    number = broker.tenant_subscriptions(1).subscribers["me"]

    def add_endpoint_and_dead_letter(transaction: Any) -> None:
        hook = {"url": "https://example.org", "secret": "s", "headers": {}, "batch": 1}
        endpoint_rows.put_endpoint(transaction.connection, number, "webhook", hook)
        endpoint_rows.add_dead_letter(transaction.connection, 1, 1, "mqtt", "no JSON", "{")

    broker.change(add_endpoint_and_dead_letter).result(WAIT_S)
    return server.key("publish", "subscribe", "admin", tenant="acme")


def test_export_and_import(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        key = fill(server)
        manifest = export_backup(tmp_path / "data", tmp_path / "a.backup", 10**18)
    assert manifest.schema == len(MIGRATIONS)
    assert manifest.made == "2001-09-09T01:46:40Z"
    assert manifest.counts == {
        "tenants": 2,
        "keys": 1,
        "subscribers": 1,
        "subscriptions": 1,
        "events": 10,
        "messages": 10,
        "endpoints": 1,
        "dead_letters": 1,
    }
    assert import_backup(tmp_path / "a.backup", tmp_path / "b" / "new") == manifest
    assert (tmp_path / "b" / "new" / DATABASE_FILE).stat().st_mode & 0o077 == 0
    with running(tmp_path / "b" / "new") as server, fp.Client(server.url) as client:
        unread = server.http.get("/v1/subscribers/me/messages").json()
        assert [message["position"] for message in unread] == [5, 6, 7, 8, 9, 10]
        subscriber = server.http.get("/v1/subscribers/me").json()
        assert subscriber["acknowledged"] == 4
        assert subscriber["endpoint"]["url"] == "https://example.org"
        assert len(server.http.get("/v1/dead-letters").json()["dead_letters"]) == 1
        assert client.publish({"kind": "taxi"}).first == 11
        with server.service.database.reader() as connection:
            row = api_keys.find_key(connection, key, 0)
        assert row is not None
        assert row.tenant_name == "acme"


def test_a_backup_of_a_busy_server_is_a_snapshot(tmp_path: Path) -> None:
    """Every event has its messages, and the counters fit, whenever the backup was made."""
    with running(tmp_path / "data") as server, fp.Client(server.url) as client:
        client.subscribe_many({"id": f"s{n}", "expression": "n >= 0"} for n in range(3))
        busy = threading.Event()
        stop = threading.Event()

        def publish() -> None:
            with fp.Client(server.url) as publisher:
                while not stop.is_set():
                    publisher.publish({"n": n} for n in range(20))
                    busy.set()

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            assert busy.wait(WAIT_S)
            manifests = [
                export_backup(tmp_path / "data", tmp_path / f"{n}.backup", 0) for n in range(3)
            ]
        finally:
            stop.set()
            thread.join()
    for n, manifest in enumerate(manifests):
        assert manifest.counts["events"] % 20 == 0
        assert manifest.counts["messages"] == 3 * manifest.counts["events"]
        import_backup(tmp_path / f"{n}.backup", tmp_path / str(n))
        with sqlite3.connect(tmp_path / str(n) / DATABASE_FILE) as connection:
            query = "SELECT name, value FROM meta WHERE name LIKE 'last%' ORDER BY name"
            last = dict(connection.execute(query).fetchall())
        connection.close()
        assert last == {
            "last_event": manifest.counts["events"],
            "last_message": manifest.counts["messages"],
        }


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Return a backup of an empty server."""
    with running(tmp_path / "data"):
        pass
    export_backup(tmp_path / "data", tmp_path / "a.backup", 0)
    return tmp_path / "a.backup"


def with_manifest(backup: Path, **manifest: Any) -> Path:
    """Return a copy of a backup whose manifest has other members."""
    line, _, rest = backup.read_bytes().partition(b"\n")
    copy = backup.with_name(f"{'-'.join(manifest)}.backup")
    copy.write_bytes(json.dumps({**json.loads(line), **manifest}).encode() + b"\n" + rest)
    return copy


def test_files_that_are_no_backups_are_rejected(backup: Path, tmp_path: Path) -> None:
    whole = backup.read_bytes()
    line = whole.partition(b"\n")[0]
    no_database = gzip.compress(b"no database" * 100)
    cases = [
        (with_manifest(backup, schema=len(MIGRATIONS) + 1), "newer release"),
        (with_manifest(backup, fencepost_backup=2), "newer release"),
        (with_manifest(backup, sha256="0" * 64), "damaged"),
        (with_manifest(backup, bytes=10), "damaged"),
        (with_manifest(backup, more=1), "no backup"),
        (with_manifest(backup, schema="1", version=1), "no backup"),
    ]
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x40
    for name, content, message in (
        ("empty", b"", "no backup"),
        ("text", b"hello\n", "no backup"),
        ("list", b"[1]\n", "no backup"),
        ("cut", whole[: len(whole) // 2], "damaged"),
        ("flipped", bytes(flipped), "damaged"),
        ("header", line + b"\n", "damaged"),
        ("other", line + b"\n" + no_database, "damaged"),
    ):
        path = tmp_path / f"{name}.backup"
        path.write_bytes(content)
        cases.append((path, message))
    for path, message in cases:
        with pytest.raises(fp.StoreError, match=message):
            import_backup(path, tmp_path / "to")
        assert not (tmp_path / "to").exists()


def test_a_folder_that_is_not_empty_is_left_unchanged(backup: Path, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    folder.mkdir()
    (folder / "mine.txt").write_text("precious")
    with pytest.raises(fp.StoreError, match="not empty"):
        import_backup(backup, folder)
    assert [file.name for file in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    import_backup(backup, folder)
    with pytest.raises(fp.StoreError, match="not empty"):
        import_backup(backup, folder)


def test_commands(tmp_path: Path) -> None:
    runner = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"})

    def run(*args: str) -> Any:
        return runner.invoke(entry_point.app, args)

    data, file = str(tmp_path / "data"), str(tmp_path / "a.backup")
    missing = run("export", file, "--data", data)
    assert missing.exit_code == 1
    assert "there is no folder" in missing.stderr
    with running(tmp_path / "data") as server:
        fill(server)
        done = run("export", file, "--data", data)
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("1 subscriptions, 10 events, 10 messages, 1 keys; ")
        again = run("export", file, "--data", data)
        assert again.exit_code == 1
        assert "--replace" in again.stderr
        replaced = run("export", file, "--data", data, "--replace", "--json")
        assert json.loads(replaced.stdout)["counts"]["events"] == 10
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.backup", "data"]
    imported = run("import", file, "--data", str(tmp_path / "b"), "--json")
    assert json.loads(imported.stdout) == json.loads(replaced.stdout)
    assert run("import", file, "--data", str(tmp_path / "b")).exit_code == 1
    assert run("import", str(tmp_path / "none"), "--data", data).exit_code == 2
