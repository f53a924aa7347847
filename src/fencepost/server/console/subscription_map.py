"""Where the subscriptions of a tenant are, made when a map first asks, and kept up to date.

A map gets *blocks*, one after another. Each is 32-bit little-endian numbers n and m, then a JSON
object of m bytes, then arrays, n bytes in all after the first eight; n and m are multiples of 8:

    float64[numbers]      coordinates of all shapes
    uint32[shapes + 1]    where those of each begin
    uint32[shapes]        the subscription of each, counted within the block
    uint32[ids]           of each subscription its subscriber
    uint32[ids]           and its summary, as positions in lists of the JSON object
    uint8[shapes]         the kind of each shape
    uint8[ids]            the kind of each subscription

The first block has no arrays and says whether the map begins anew; the last says the `version` that
the next request may ask for what came `since`, and what was `removed`.
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
MOST_SHOWN = 250_000
_PAGE = 2_000
_MOST_REMOVED = 10_000
_MOST_STALE = 50_000


class MapRow(NamedTuple):
    """A subscription on the map; `version` is that of the map when it was made."""

    version: int
    kind: int
    subscriber: str
    summary: str
    shapes: tuple[Shape, ...]


class TenantMap:
    """The rows of a tenant; for any thread.

    Rows are made from the database, by one thread at a time: so what was committed after they were
    read is noted after, too. `note` says which may have changed since. Where nobody looks at it
    any more and too many change, it is forgotten, and made anew when somebody does.
    """

    def __init__(self, database: Database, tenant: int, space: Space) -> None:
        self._database = database
        self._tenant = tenant
        self._space = space
        self._lock = threading.Lock()  # of what follows; held for a moment only
        self._making = threading.Lock()  # while rows are read and made
        self._stale: dict[str, None] = {}
        self._too_stale = False
        self._begin()

    def _begin(self) -> None:
        self._epoch = secrets.token_hex(4)
        self._version = 0
        self._floor = 0  # what was removed before this version is forgotten
        self._rows: dict[str, MapRow] = {}
        self._removed: dict[str, int] = {}
        self._complete = False

    def note(self, id: str) -> None:
        """Let a subscription be read again: a change of it was committed."""
        with self._lock:
            self._stale[id] = None
            if len(self._stale) > _MOST_STALE:
                self._stale.clear()
                self._too_stale = True

    def current(self) -> str:
        """The version of the map, after what is stale was read again."""
        self._refresh()
        return self._named()

    def is_complete(self) -> bool:
        """Whether all was read once, so that the version says everything."""
        return self._complete

    def blocks(self, since: str, now: int) -> Iterator[bytes]:
        """The map in blocks, or what changed since a version.

        Parameters
        ----------
        since : str
            A version that a map got, or anything else for all.
        now : int
            In nanoseconds since 1970: what expired before is left out.
        """
        self._refresh()
        version = self._named()
        known = self._number(since)
        full = known is None or known < self._floor or not self._complete
        total = self._database.read(subscription_rows.count_subscriptions, self._tenant)
        yield _framed({"full": full, "total": total})
        if not self._complete:
            yield from self._first_time(now)
        else:
            rows = [
                (id, row)
                for id, row in [*self._rows.items()]
                if full or (known is not None and row.version > known)
            ]
            for start in range(0, len(rows), _PAGE):
                yield _block(rows[start : start + _PAGE])
        with self._lock:
            removed = [id for id, at in self._removed.items() if known is None or at > known]
            shown = len(self._rows)
        yield _framed(
            {
                "end": True,
                "version": version,
                "removed": [] if full else removed,
                "left_out": max(0, total - shown),
            }
        )

    def _first_time(self, now: int) -> Iterator[bytes]:
        after = ""
        while len(self._rows) < MOST_SHOWN:
            with self._making:
                page = self._database.read(
                    subscription_rows.subscriptions, self._tenant, after=after, limit=_PAGE
                )
                living = [one for one in page if one.expires is None or one.expires > now]
                rows = [(one.id, self._rows.get(one.id) or self._row(one)) for one in living]
                with self._lock:
                    self._rows.update(rows)
            yield _block(rows)
            if len(page) < _PAGE:
                break
            after = page[-1].id
        self._complete = True

    def _refresh(self) -> None:
        """Read again what is stale."""
        with self._making:
            with self._lock:
                stale, self._stale = self._stale, {}
                if self._too_stale:
                    self._too_stale = False
                    self._begin()
                    return
            if not stale:
                return
            version = self._version + 1
            with self._database.reader() as connection:
                found = {
                    id: subscription_rows.subscription(connection, self._tenant, id) for id in stale
                }
            for id, one in found.items():
                row = None if one is None else self._row(one, version)
                with self._lock:
                    if row is not None and (id in self._rows or len(self._rows) < MOST_SHOWN):
                        self._rows[id] = row
                        self._removed.pop(id, None)
                    elif row is None and self._rows.pop(id, None) is not None:
                        self._removed[id] = version
            with self._lock:
                while len(self._removed) > _MOST_REMOVED:
                    first = next(iter(self._removed))
                    self._floor = self._removed.pop(first)
            self._version = version

    def _row(self, one: StoredSubscription, version: int | None = None) -> MapRow:
        fields = one.definition
        try:
            shapes, summary = shapes_of(fields, self._space), summary_of(fields, self._space)
        except FencepostError:  # written by another version of the language
            shapes, summary = (), ""
        return MapRow(
            self._version if version is None else version,
            KINDS.index(kind_of(fields)),
            sys.intern(one.subscriber),
            sys.intern(summary),
            shapes,
        )

    def _named(self) -> str:
        return f"{self._epoch}-{self._version}"

    def _number(self, given: str) -> int | None:
        epoch, _, number = given.partition("-")
        fits = epoch == self._epoch and number.isascii() and number.isdigit() and len(number) < 18
        return int(number) if fits else None


class SubscriptionMaps:
    """The maps of all tenants that somebody looked at."""

    def __init__(self, database: Database, space: Space) -> None:
        self._database = database
        self._space = space
        self._tenants: dict[int, TenantMap] = {}

    def of(self, tenant: int) -> TenantMap:
        """The map of a tenant."""
        found = self._tenants.get(tenant)
        if found is None:
            fresh = TenantMap(self._database, tenant, self._space)
            found = self._tenants.setdefault(tenant, fresh)
        return found

    def note_changes(self, changed: Iterable[tuple[int, str]]) -> None:
        """Let subscriptions, by tenant and id, be read again."""
        if not self._tenants:
            return
        for tenant, id in changed:
            if tenant in self._tenants:
                self._tenants[tenant].note(id)


def _block(rows: list[tuple[str, MapRow]]) -> bytes:
    subscribers: dict[str, int] = {}
    summaries: dict[str, int] = {}
    whose = [subscribers.setdefault(row.subscriber, len(subscribers)) for _, row in rows]
    what = [summaries.setdefault(row.summary, len(summaries)) for _, row in rows]
    shapes = [shape for _, row in rows for shape in row.shapes]
    owners = np.repeat(np.arange(len(rows)), [len(row.shapes) for _, row in rows])
    starts = np.zeros(len(shapes) + 1, "<u4")
    np.cumsum([len(one.coordinates) // 8 for one in shapes], out=starts[1:])
    arrays = (
        b"".join(one.coordinates for one in shapes),
        starts.tobytes(),
        owners.astype("<u4").tobytes(),
        np.array(whose, "<u4").tobytes(),
        np.array(what, "<u4").tobytes(),
        bytes(one.kind for one in shapes),
        bytes(row.kind for _, row in rows),
    )
    return _framed(
        {
            "ids": [id for id, _ in rows],
            "subscribers": [*subscribers],
            "summaries": [*summaries],
            "shapes": len(shapes),
            "numbers": int(starts[-1]),
        },
        b"".join(arrays),
    )


def _framed(told: dict[str, Any], arrays: bytes = b"") -> bytes:
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    arrays += b"\0" * (-len(arrays) % 8)
    return struct.pack("<II", len(text) + len(arrays), len(text)) + text + arrays
