"""`methods`: PostgreSQL with PostGIS, on a private server in a temporary folder.

Subscriptions are rows of a table that has a partition for each kind, with a GiST index of regions
and price ranges, so that a row is read only if both may match; the words are compared in the row.
An event is a statement, prepared once for each partition. At 100,000 rows, this was faster than
all other designs that we tried: one index of kind, region and prices (extension btree_gist) in any
order, an index without prices or of regions alone, and partitions queried through the whole table.
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
from bench.peers.contest import (
    BULK,
    SINGLE,
    Method,
    Pairs,
    one_at_a_time,
    pairs_of,
    pairs_of_lists,
    timed,
)
from bench.peers.mixed_workload import Events, Subscriptions
from bench.peers.optional import PeerMissing

JOIN = "PostGIS, join with a table of events"
STATEMENT = "PostGIS, prepared statement"
PACKAGES = "apt-get install postgresql-15 postgresql-15-postgis-3"
_CHUNK_ROWS = 20_000  # of a COPY, in memory at once
# As much as possible in memory, one process, no durability.
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
_MATCH_ONE = """
SELECT id FROM subscription_{0} WHERE price @> %s::int
AND ST_Intersects(region, ST_Point(%s, %s)) AND words <@ %s::text[]
"""
_MATCH_ALL = """
SELECT event.number, subscription.id FROM event JOIN subscription
ON subscription.kind = event.kind AND subscription.price @> event.price
AND ST_Intersects(subscription.region, event.place) AND subscription.words <@ event.words
WHERE event.number < %s
"""


@contextmanager
def server() -> Iterator[Any]:
    """Yield a connection to a new server with PostGIS, which is removed when the block ends.

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
            extension = connection.execute(
                "SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'"
            )
            if not extension.fetchone():
                raise PeerMissing(f"PostgreSQL is installed, PostGIS is not; run: {PACKAGES}")
            connection.execute("CREATE EXTENSION postgis")
            yield connection
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(folder: Path) -> Iterator[None]:
    """Run a server with its data and its socket in a folder."""
    programs = _programs()
    as_user: dict[str, Any] = {"cwd": folder, "capture_output": True, "text": True}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        owner = _unprivileged()
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_user |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    data = str(folder / "data")
    options = {**_SETTINGS, "unix_socket_directories": str(folder)}
    arguments = " ".join(f"-c {name}='{value}'" for name, value in options.items())
    control = [str(programs / "pg_ctl"), "-D", data, "-w"]
    create = [str(programs / "initdb"), "-D", data, "-U", "fencepost", "-A", "trust"]
    try:
        for command in (
            [*create, "-E", "UTF8", "--locale=C", "--no-sync"],
            [*control, "-l", str(folder / "log"), "-o", arguments, "start"],
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
    """Return the folder with the programs of the newest server."""
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


def methods(connection: Any, subscriptions: Subscriptions, events: Events) -> list[Method]:
    """Load and index the subscriptions; return the methods: a statement an event, and a join."""
    _, build_s = timed(lambda: _load(connection, subscriptions, events))
    cursor = connection.cursor(binary=True)
    statement = {kind: _MATCH_ONE.format(kind) for kind in _kinds(subscriptions)}

    def match_one(event: tuple[str, tuple[Any, ...]]) -> list[int]:
        kind, values = event
        cursor.execute(statement[kind], values, prepare=True)
        return [row[0] for row in cursor.fetchall()]

    def prepare_join(count: int) -> Callable[[], list[tuple[int, int]]]:
        def run() -> list[tuple[int, int]]:
            cursor.execute(_MATCH_ALL, (count,))
            pairs: list[tuple[int, int]] = cursor.fetchall()
            return pairs

        return run

    values = zip(events.prices, *events.points.T.tolist(), events.words, strict=True)
    arguments = list(zip(events.kinds, values, strict=True))
    return [
        Method(JOIN, BULK, build_s, prepare_join, _pairs),
        Method(STATEMENT, SINGLE, build_s, one_at_a_time(match_one, arguments), pairs_of_lists),
    ]


def versions(connection: Any) -> dict[str, str]:
    """Return the versions of the server and of PostGIS."""
    row = connection.execute("SELECT current_setting('server_version'), postgis_lib_version()")
    postgresql, postgis = row.fetchone()
    return {"PostgreSQL": postgresql, "PostGIS": postgis}


def _kinds(subscriptions: Subscriptions) -> list[str]:
    return [f"k{kind}" for kind in np.unique(subscriptions.kinds)]


def _load(connection: Any, subscriptions: Subscriptions, events: Events) -> None:
    connection.execute(_TABLES)
    for kind in _kinds(subscriptions):
        connection.execute(_PARTITION.format(kind))
    cursor = connection.cursor()
    with cursor.copy("COPY subscription FROM STDIN") as copy:
        for begin in range(0, len(subscriptions), _CHUNK_ROWS):
            end = min(begin + _CHUNK_ROWS, len(subscriptions))
            rows = zip(
                range(begin, end),
                subscriptions.kinds[begin:end].tolist(),
                subscriptions.low[begin:end].tolist(),
                subscriptions.high[begin:end].tolist(),
                subscriptions.word_lists(begin, end),
                shapely.to_wkb(subscriptions.regions[begin:end], hex=True),
                strict=True,
            )
            copy.write(
                "".join(
                    f"{row}\tk{kind}\t[{low},{high}]\t{{{','.join(words)}}}\t{region}\n"
                    for row, kind, low, high, words, region in rows
                )
            )
    points = shapely.to_wkb(shapely.points(events.points), hex=True)
    with cursor.copy("COPY event FROM STDIN") as copy:
        for row in zip(
            range(len(points)), events.kinds, events.prices, events.words, points, strict=True
        ):
            copy.write_row(row)
    for kind in _kinds(subscriptions):
        connection.execute(_INDEX.format(kind))
    connection.execute("VACUUM ANALYZE")


def _pairs(pairs: list[tuple[int, int]]) -> Pairs:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return pairs_of(table[:, 0], table[:, 1])
