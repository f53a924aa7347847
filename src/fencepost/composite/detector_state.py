"""Writes the state of a detector as an Arrow file, and reads it back.

A row is a live item; the metadata hold everything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fencepost.atomic_replace import replace_file
from fencepost.composite.live_members import LiveMembers
from fencepost.errors import StoreError
from fencepost.kernels.detect.member_grid import LIVE

_META = b"fencepost.detector"
_VERSION = 3
_SCHEMA = pa.schema(
    [
        ("earliest", pa.int64()),
        ("latest", pa.int64()),
        ("key", pa.string()),  # JSON: an id, or ids by member
        ("events", pa.list_(pa.int64())),
        ("x", pa.list_(pa.float64())),
        ("y", pa.list_(pa.float64())),
        ("pools", pa.list_(pa.int32())),
        ("expiries", pa.list_(pa.int64())),
    ]
)


class LiveItem(NamedTuple):
    """A row of the state: an item, the pools that it is in, and its expiry in each."""

    earliest: int
    latest: int
    key: Any
    events: list[int]
    x: list[float]
    y: list[float]
    pools: list[int]
    expiries: list[int]


def to_bytes(live: LiveMembers, facts: dict[str, Any]) -> bytes:
    """Return the live members, and facts as JSON, in the bytes of an Arrow file."""
    heap = live.arrays.heap[: int(live.arrays.counts[LIVE])]
    rows = live.arrays.rows[heap["row"]]
    order = np.argsort(rows["item"], kind="stable")
    items, starts = np.unique(rows["item"][order], return_index=True)
    offsets = np.append(starts, len(order)).astype(np.int32)
    pools = live.arrays.nodes["pool"][rows["node"]][order]
    hulls = live.hulls_of_rows(items.astype(np.int64)[:, None])
    records = live.arrays.items[items]
    corner_offsets = pa.array(hulls.start.astype(np.int32))
    columns = [
        pa.array(records["earliest"]),
        pa.array(records["latest"]),
        pa.array([json.dumps(live.keys[item]) for item in items], pa.string()),
        pa.array([sorted(live.events[item]) for item in items], _SCHEMA.field("events").type),
        pa.ListArray.from_arrays(corner_offsets, pa.array(hulls.x)),
        pa.ListArray.from_arrays(corner_offsets, pa.array(hulls.y)),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(pools)),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(heap["at"][order])),
    ]
    schema = _SCHEMA.with_metadata({_META: json.dumps({"version": _VERSION, **facts}).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))
    return bytes(sink.getvalue())


def from_bytes(state: bytes) -> tuple[dict[str, Any], list[LiveItem]]:
    """Return the facts and the items that `to_bytes` wrote.

    Raises
    ------
    StoreError
        If the bytes are not such a state, or have another version.
    """
    try:
        table = pa.ipc.open_file(pa.py_buffer(state)).read_all()
        facts = json.loads(table.schema.metadata[_META])
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"this is not the state of a detector: {error}") from error
    if facts.get("version") != _VERSION or not table.schema.equals(_SCHEMA):
        raise StoreError(
            f"the state of the detector has version {facts.get('version')!r:.20}, and this release "
            f"reads version {_VERSION}; make a new detector"
        )
    columns = [column.to_pylist() for column in table.columns]
    columns[2] = [json.loads(key) for key in columns[2]]
    return facts, [LiveItem(*row) for row in zip(*columns, strict=True)]


def restore(live: LiveMembers, items: Iterable[LiveItem], pools: Mapping[str, int]) -> None:
    """Add items to live members.

    pools : the new number of each pool by its saved number. Rows of pools without a number are
    dropped.
    """
    for item in items:
        saved = zip(map(str, item.pools), item.expiries, strict=True)
        rows = [(pools[old], expiry) for old, expiry in saved if old in pools]
        if rows:
            x, y = np.array(item.x), np.array(item.y)
            number = live.add_item(x, y, item.earliest, item.latest, item.key, tuple(item.events))
            for pool, expiry in rows:
                live.add_to_pool(number, pool, expiry)


def write(path: Path, state: bytes) -> None:
    """Write a state to a file, in one atomic step."""
    try:
        replace_file(path, state, durable=True, mode=0o600)
    except OSError as error:
        raise StoreError(
            f"the state of the detector cannot be written to {path}: {error}"
        ) from error


def read(path: Path) -> bytes:
    """Return the bytes of a file; raise StoreError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"the state of the detector cannot be read: {error}") from error
