"""One meaning everywhere: a server says what the embedded matcher and the reference say."""

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
    """A row as JSON can say it: no number that is none, times as texts, places as GeoJSON."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            continue
        if isinstance(value, dt.datetime):
            value = value.isoformat()
        if isinstance(value, bytearray):
            value = json.loads(shapely.to_geojson(shapely.from_wkb(bytes(value))))
        found[name] = value
    return found


@pytest.mark.parametrize("features", [False, True], ids=["objects", "features"])
def test_server_embedded_and_reference_agree(tmp_path: Path, features: bool) -> None:
    asked = expressions(120)
    rows = [as_json(row) for row in events(60)]
    if features:
        rows = [{"type": "Feature", "geometry": None, "properties": row} for row in rows]
    attributes = [row["properties"] if features else row for row in rows]
    matcher = Matcher()
    for number, text in enumerate(asked):
        matcher.subscribe(f"s{number}", text)
    conditions = {f"s{number}": parse(text) for number, text in enumerate(asked)}
    wanted = [
        sorted(id for id, condition in conditions.items() if evaluate(condition, row) is True)
        for row in attributes
    ]
    assert [matcher.match(row) for row in rows] == wanted
    with running(tmp_path, space="planar") as server:
        definitions = [
            {"id": f"s{number}", "expression": text, "subscriber": "me"}
            for number, text in enumerate(asked)
        ]
        body = "\n".join(map(json.dumps, definitions))
        made = server.http.post("/v1/subscriptions", content=body, headers=LINES).json()
        assert (made["created"], made["rejected"]) == (len(asked), [])
        body = "\n".join(map(json.dumps, rows))
        done = server.http.post("/v1/events", content=body, headers=LINES).json()
        assert (done["accepted"], done["rejected"]) == (len(rows), [])
        found = _answers(server.http, len(rows))
    assert found == wanted


def _answers(http: httpx.Client, count: int) -> list[list[str]]:
    messages = http.get("/v1/subscribers/me/messages", params={"since": 0, "limit": 1000}).json()
    found: list[list[str]] = [[] for _ in range(count)]
    for message in messages:
        found[message["data"]["position"] - 1] = sorted(message["data"]["subscriptions"])
    return found
