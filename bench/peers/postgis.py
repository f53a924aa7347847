"""PostgreSQL with PostGIS, on a server of its own in a temporary folder that is dropped afterwards.

Subscriptions are rows of a table that has a partition for each kind, with a GiST index of regions
and ranges of prices together, so that a row is only read where both may hold; the words are
compared in the row. An event is a statement, prepared once for each partition. At 100,000 rows this
was the fastest of what was tried: one index of kind, region and prices (extension btree_gist) in
any order, without prices, of regions alone, and partitions asked through the whole table.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from bench.peers import optional
from bench.peers.contest import BULK, SINGLE, Method, Pairs, over, pairs_of, pairs_of_lists, timed
from bench.peers.mixed_questions import Happenings, Questions
from bench.peers.optional import PeerMissing

JOIN = "PostGIS, join with a table of events"
STATEMENT = "PostGIS, prepared statement"
PACKAGES = "apt-get install postgresql-15 postgresql-15-postgis-3"
_CHUNK = 20_000  # rows of a COPY that are in memory at once
# In memory as far as it goes, one process, no writing that nobody waits for.
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "2GB",
    "work_mem": "256MB",
    "maintenance_work_mem": "1GB",
    "effective_cache_size": "8GB",
    "random_page_cost": "1",
    "max_parallel_workers_per_gather": "0",
    "max_wal_size": "8GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
_TABLES = """
CREATE TABLE subscription (
    id int, kind text, price int4range, words text[], region geometry(Polygon))
PARTITION BY LIST (kind);
CREATE UNLOGGED TABLE event (
    number int PRIMARY KEY, kind text, price int, words text[], place geometry(Point));
"""
_PARTITION = (
    "CREATE UNLOGGED TABLE subscription_{0} PARTITION OF subscription FOR VALUES IN ('{0}')"
)
_INDEX = """
CREATE INDEX region_and_price_{0} ON subscription_{0} USING gist (region, price);
CLUSTER subscription_{0} USING region_and_price_{0};
"""
_ASK = """
SELECT id FROM subscription_{0} WHERE price @> %s::int
AND ST_Intersects(region, ST_Point(%s, %s)) AND words <@ %s::text[]
"""
_ASK_ALL = """
SELECT event.number, subscription.id FROM event JOIN subscription
ON subscription.kind = event.kind AND subscription.price @> event.price
AND ST_Intersects(subscription.region, event.place) AND subscription.words <@ event.words
WHERE event.number < %s
"""


@contextmanager
def server() -> Iterator[Any]:
    """A connection to a new server that has PostGIS; it is gone when the block ends.

    Raises
    ------
    PeerMissing
        If the server, PostGIS or psycopg is not installed.
    """
    psycopg = optional.load("psycopg", "psycopg")
    folder = Path(tempfile.mkdtemp(prefix="fencepost-"))
    try:
        with (
            _running(folder),
            psycopg.connect(
                f"host={folder} dbname=postgres user=fencepost", autocommit=True
            ) as connection,
        ):
            found = connection.execute(
                "SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'"
            )
            if not found.fetchone():
                raise PeerMissing(f"PostgreSQL is there, PostGIS is not; run: {PACKAGES}")
            connection.execute("CREATE EXTENSION postgis")
            yield connection
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(folder: Path) -> Iterator[None]:
    """A server with its data and its socket in a folder."""
    programs = _programs()
    as_user: dict[str, Any] = {"cwd": folder, "capture_output": True, "text": True}
    if os.geteuid() == 0:  # which the server refuses
        owner = _unprivileged()
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_user |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    data = str(folder / "data")
    options = {**_SETTINGS, "unix_socket_directories": str(folder)}
    given = " ".join(f"-c {name}='{value}'" for name, value in options.items())
    control = [str(programs / "pg_ctl"), "-D", data, "-w"]
    create = [str(programs / "initdb"), "-D", data, "-U", "fencepost", "-A", "trust"]
    try:
        for command in (
            [*create, "-E", "UTF8", "--locale=C", "--no-sync"],
            [*control, "-l", str(folder / "log"), "-o", given, "start"],
        ):
            subprocess.run(command, check=True, **as_user)
    except subprocess.CalledProcessError as error:
        raise PeerMissing(
            f"PostgreSQL in {programs} does not start: {error.stderr.strip() or error}"
        ) from error
    try:
        yield
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, **as_user)


def _programs() -> Path:
    """The folder with the programs of the newest server."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        key=lambda path: float(path.parent.name),
        reverse=True,
    )
    for folder in folders:
        if (folder / "pg_ctl").exists():
            return folder
    raise PeerMissing(f"there is no PostgreSQL server on this machine; run: {PACKAGES}")


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PeerMissing("PostgreSQL does not run as root, and there is no user postgres or nobody")


def methods(connection: Any, asked: Questions, given: Happenings) -> list[Method]:
    """Rows loaded and indexed; asked by a statement an event, and by a join."""
    _, build_s = timed(lambda: _load(connection, asked, given))
    cursor = connection.cursor(binary=True)
    statement = {kind: _ASK.format(kind) for kind in _kinds(asked)}

    def one(event: tuple[str, tuple[Any, ...]]) -> list[int]:
        kind, values = event
        cursor.execute(statement[kind], values, prepare=True)
        return [row[0] for row in cursor.fetchall()]

    def join(count: int) -> Callable[[], list[tuple[int, int]]]:
        def run() -> list[tuple[int, int]]:
            cursor.execute(_ASK_ALL, (count,))
            found: list[tuple[int, int]] = cursor.fetchall()
            return found

        return run

    values = zip(given.prices, *given.points.T.tolist(), given.words, strict=True)
    events = list(zip(given.kinds, values, strict=True))
    return [
        Method(JOIN, BULK, build_s, join, _pairs),
        Method(STATEMENT, SINGLE, build_s, over(one, events), pairs_of_lists),
    ]


def versions(connection: Any) -> dict[str, str]:
    """Of the server and of PostGIS."""
    found = connection.execute("SELECT current_setting('server_version'), postgis_lib_version()")
    postgresql, postgis = found.fetchone()
    return {"PostgreSQL": postgresql, "PostGIS": postgis}


def _kinds(asked: Questions) -> list[str]:
    return [f"k{kind}" for kind in np.unique(asked.kinds)]


def _load(connection: Any, asked: Questions, given: Happenings) -> None:
    connection.execute(_TABLES)
    for kind in _kinds(asked):
        connection.execute(_PARTITION.format(kind))
    cursor = connection.cursor()
    with cursor.copy("COPY subscription FROM STDIN") as copy:
        for begin in range(0, len(asked), _CHUNK):
            end = min(begin + _CHUNK, len(asked))
            rows = zip(
                range(begin, end),
                asked.kinds[begin:end].tolist(),
                asked.low[begin:end].tolist(),
                asked.high[begin:end].tolist(),
                asked.word_lists(begin, end),
                shapely.to_wkb(asked.regions[begin:end], hex=True),
                strict=True,
            )
            copy.write(
                "".join(
                    f"{row}\tk{kind}\t[{low},{high}]\t{{{','.join(words)}}}\t{region}\n"
                    for row, kind, low, high, words, region in rows
                )
            )
    places = shapely.to_wkb(shapely.points(given.points), hex=True)
    with cursor.copy("COPY event FROM STDIN") as copy:
        for row in zip(
            range(len(places)), given.kinds, given.prices, given.words, places, strict=True
        ):
            copy.write_row(row)
    for kind in _kinds(asked):
        connection.execute(_INDEX.format(kind))
    connection.execute("VACUUM ANALYZE")


def _pairs(found: list[tuple[int, int]]) -> Pairs:
    table = np.array(found, np.int64).reshape(-1, 2)
    return pairs_of(table[:, 0], table[:, 1])
