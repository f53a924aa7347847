"""Random expressions match the same events on a server, embedded, and in the reference."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path
from typing import Any

import httpx
import pytest
import shapely

from fencepost.cql2 import parse
from fencepost.engine import Matcher
from fencepost.reference import evaluate
from tests.parity.test_parity import events, expressions
from tests.server.serving import running

LINES = {"content-type": "application/x-ndjson"}


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row to JSON: finite numbers only, times as text, geometries as GeoJSON."""
    members: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            continue
        if isinstance(value, dt.datetime):
            value = value.isoformat()
        if isinstance(value, bytearray):
            value = json.loads(shapely.to_geojson(shapely.from_wkb(bytes(value))))
        members[name] = value
    return members


@pytest.mark.parametrize("features", [False, True], ids=["objects", "features"])
def test_server_embedded_and_reference_agree(tmp_path: Path, features: bool) -> None:
    texts = expressions(120)
    rows = [as_json(row) for row in events(60)]
    if features:
        rows = [{"type": "Feature", "geometry": None, "properties": row} for row in rows]
    attributes = [row["properties"] if features else row for row in rows]
    matcher = Matcher(space="planar")
    for number, text in enumerate(texts):
        matcher.subscribe(f"s{number}", text)
    conditions = {f"s{number}": parse(text) for number, text in enumerate(texts)}
    expected = [
        sorted(id for id, condition in conditions.items() if evaluate(condition, row) is True)
        for row in attributes
    ]
    assert [matcher.match(row) for row in rows] == expected
    with running(tmp_path, space="planar") as server:
        definitions = [
            {"id": f"s{number}", "expression": text, "subscriber": "me"}
            for number, text in enumerate(texts)
        ]
        body = "\n".join(map(json.dumps, definitions))
        created = server.http.post("/v1/subscriptions", content=body, headers=LINES).json()
        assert (created["created"], created["rejected"]) == (len(texts), [])
        body = "\n".join(map(json.dumps, rows))
        published = server.http.post("/v1/events", content=body, headers=LINES).json()
        assert (published["accepted"], published["rejected"]) == (len(rows), [])
        ids_of_events = _matching_ids(server.http, len(rows))
    assert ids_of_events == expected


def _matching_ids(http: httpx.Client, count: int) -> list[list[str]]:
    messages = http.get("/v1/subscribers/me/messages", params={"since": 0, "limit": 1000}).json()
    ids_of_events: list[list[str]] = [[] for _ in range(count)]
    for message in messages:
        ids_of_events[message["data"]["position"] - 1] = sorted(message["data"]["subscriptions"])
    return ids_of_events
