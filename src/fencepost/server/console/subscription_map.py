"""`SubscriptionMaps`: the shapes of all subscriptions of a tenant, for the map of the console.

A map is built at its first request and then kept up to date. It is sent as *blocks*. A block is
little-endian:

    uint32 n              size of the block after these 8 bytes
    uint32 m              size of the header
    char[m]               header: a JSON object, padded with spaces
    float64[numbers]      coordinates of all shapes
    uint32[shapes + 1]    start of the coordinates of each shape
    uint32[shapes]        subscription of each shape, as a position in `ids`
    uint32[ids]           subscriber of each subscription, as a position in `subscribers`
    uint32[ids]           summary of each subscription, as a position in `summaries`
    uint8[shapes]         kind of each shape
    uint8[ids]            kind of each subscription

n and m are multiples of 8. The first and the last block have a header only. The first says whether
the map is `full` or has changes only. The last has the `version` of the map, which the next request
sends as `since`, and the ids that were `removed`.
"""

from __future__ import annotations

import json
import secrets
import struct
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fencepost.errors import FencepostError
from fencepost.geometry.space import Space
from fencepost.server.broker.subscription_definitions import kind_of
from fencepost.server.console.map_shapes import Shape, shapes_of, summary_of
from fencepost.store import subscription_rows
from fencepost.store.database import Database
from fencepost.store.subscription_rows import StoredSubscription

KINDS = ("expression", "track", "composite")
MAX_SUBSCRIPTIONS = 250_000
_PAGE = 2_000
_MAX_REMOVED = 10_000
_MAX_STALE = 50_000


class MapRow(NamedTuple):
    """A subscription on the map, and the version of the map that it came with."""

    version: int
    kind: int
    subscriber: str
    summary: str
    shapes: tuple[Shape, ...]


class TenantMap:
    """The map of a tenant; for any thread.

    A change is committed before it is noted; `_refresh` takes the notes before it reads the
    database, so a row that was read before the commit is read again by the next `_refresh`. If too
    many changes are noted between two requests, the map is discarded, and the next request builds
    it again.
    """

    def __init__(self, database: Database, tenant: int, space: Space) -> None:
        self._database = database
        self._tenant = tenant
        self._space = space
        self._lock = threading.Lock()  # held briefly, while the attributes below change
        self._build_lock = threading.Lock()  # held while rows are read from the database
        self._stale: dict[str, None] = {}
        self._must_rebuild = False
        self._reset()

    def _reset(self) -> None:
        self._epoch = secrets.token_hex(4)
        self._version = 0
        self._floor = 0  # the oldest version since which all removals are known
        self._rows: dict[str, MapRow] = {}
        self._removed: dict[str, int] = {}
        self._complete = False

    def note(self, id: str) -> None:
        """Note that a change of a subscription was committed."""
        with self._lock:
            self._stale[id] = None
            if len(self._stale) > _MAX_STALE:
                self._stale.clear()
                self._must_rebuild = True

    def current_version(self) -> str:
        """Read changed subscriptions again. Return the version of the map."""
        self._refresh()
        return self._version_text()

    def is_complete(self) -> bool:
        """Return whether all subscriptions were read; equal versions then mean equal maps."""
        return self._complete

    def blocks(self, since: str, now: int) -> Iterator[bytes]:
        """Yield the blocks of the map, or of its changes since a version.

        Parameters
        ----------
        since : str
            The version of an earlier request. The whole map is sent if this version is unknown.
        now : int
            In nanoseconds since 1970; subscriptions that expired earlier are left out.
        """
        self._refresh()
        version = self._version_text()
        known = self._parse_version(since)
        full = known is None or known < self._floor or not self._complete
        total = self._database.read(subscription_rows.count_subscriptions, self._tenant)
        yield _encode_block({"full": full, "total": total})
        if not self._complete:
            yield from self._load(now)
        else:
            rows = [
                (id, row)
                for id, row in [*self._rows.items()]
                if full or (known is not None and row.version > known)
            ]
            for start in range(0, len(rows), _PAGE):
                yield _block(rows[start : start + _PAGE])
        with self._lock:
            removed = [id for id, v in self._removed.items() if known is None or v > known]
            shown = len(self._rows)
        yield _encode_block(
            {
                "end": True,
                "version": version,
                "removed": [] if full else removed,
                "left_out": max(0, total - shown),
            }
        )

    def _load(self, now: int) -> Iterator[bytes]:
        """Read all subscriptions, and yield their blocks."""
        after = ""
        while len(self._rows) < MAX_SUBSCRIPTIONS:
            with self._build_lock:
                page = self._database.read(
                    subscription_rows.subscriptions, self._tenant, after=after, limit=_PAGE
                )
                active = [row for row in page if row.expires is None or row.expires > now]
                rows = [(row.id, self._rows.get(row.id) or self._map_row(row)) for row in active]
                with self._lock:
                    self._rows.update(rows)
            yield _block(rows)
            if len(page) < _PAGE:
                break
            after = page[-1].id
        self._complete = True

    def _refresh(self) -> None:
        """Read stale subscriptions again."""
        with self._build_lock:
            with self._lock:
                stale, self._stale = self._stale, {}
                if self._must_rebuild:
                    self._must_rebuild = False
                    self._reset()
                    return
            if not stale:
                return
            version = self._version + 1
            with self._database.reader() as connection:
                stored = {
                    id: subscription_rows.subscription(connection, self._tenant, id) for id in stale
                }
            for id, subscription in stored.items():
                row = None if subscription is None else self._map_row(subscription, version)
                with self._lock:
                    if row is not None and (
                        id in self._rows or len(self._rows) < MAX_SUBSCRIPTIONS
                    ):
                        self._rows[id] = row
                        self._removed.pop(id, None)
                    elif row is None and self._rows.pop(id, None) is not None:
                        self._removed[id] = version
            with self._lock:
                while len(self._removed) > _MAX_REMOVED:
                    oldest = next(iter(self._removed))
                    self._floor = self._removed.pop(oldest)
            self._version = version

    def _map_row(self, stored: StoredSubscription, version: int | None = None) -> MapRow:
        fields = stored.definition
        try:
            shapes, summary = shapes_of(fields, self._space), summary_of(fields, self._space)
        except FencepostError:  # stored by another release, whose language differs
            shapes, summary = (), ""
        return MapRow(
            self._version if version is None else version,
            KINDS.index(kind_of(fields)),
            sys.intern(stored.subscriber),
            sys.intern(summary),
            shapes,
        )

    def _version_text(self) -> str:
        return f"{self._epoch}-{self._version}"

    def _parse_version(self, text: str) -> int | None:
        epoch, _, number = text.partition("-")
        if epoch != self._epoch or not number.isascii() or not number.isdigit():
            return None
        return int(number) if len(number) < 18 else None


class SubscriptionMaps:
    """The maps of all tenants, each built at its first request."""

    def __init__(self, database: Database, space: Space) -> None:
        self._database = database
        self._space = space
        self._tenants: dict[int, TenantMap] = {}

    def map_of(self, tenant: int) -> TenantMap:
        """Return the map of a tenant."""
        tenant_map = self._tenants.get(tenant)
        if tenant_map is None:
            new_map = TenantMap(self._database, tenant, self._space)
            tenant_map = self._tenants.setdefault(tenant, new_map)
        return tenant_map

    def note_changes(self, changed: Iterable[tuple[int, str]]) -> None:
        """Note changed subscriptions, given as pairs of tenant and id."""
        if not self._tenants:
            return
        for tenant, id in changed:
            if tenant in self._tenants:
                self._tenants[tenant].note(id)


def _block(rows: list[tuple[str, MapRow]]) -> bytes:
    subscribers: dict[str, int] = {}
    summaries: dict[str, int] = {}
    subscriber_of = [subscribers.setdefault(row.subscriber, len(subscribers)) for _, row in rows]
    summary_of_row = [summaries.setdefault(row.summary, len(summaries)) for _, row in rows]
    shapes = [shape for _, row in rows for shape in row.shapes]
    owners = np.repeat(np.arange(len(rows)), [len(row.shapes) for _, row in rows])
    starts = np.zeros(len(shapes) + 1, "<u4")
    np.cumsum([len(shape.coordinates) // 8 for shape in shapes], out=starts[1:])
    arrays = (
        b"".join(shape.coordinates for shape in shapes),
        starts.tobytes(),
        owners.astype("<u4").tobytes(),
        np.array(subscriber_of, "<u4").tobytes(),
        np.array(summary_of_row, "<u4").tobytes(),
        bytes(shape.kind for shape in shapes),
        bytes(row.kind for _, row in rows),
    )
    return _encode_block(
        {
            "ids": [id for id, _ in rows],
            "subscribers": [*subscribers],
            "summaries": [*summaries],
            "shapes": len(shapes),
            "numbers": int(starts[-1]),
        },
        b"".join(arrays),
    )


def _encode_block(header: dict[str, Any], arrays: bytes = b"") -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    arrays += b"\0" * (-len(arrays) % 8)
    return struct.pack("<II", len(text) + len(arrays), len(text)) + text + arrays
