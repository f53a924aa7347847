"""The geometries of a publication are parsed once, for all kinds of subscriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencepost.geometry.readers import geojson
from tests.server.serving import running

NOON = "2024-05-01T12:00:0{}Z"


def feature(number: int, kind: str) -> dict[str, Any]:
    x = number / 10
    ring = [[x, 0.0], [x + 1, 0.0], [x + 1, 1.0], [x, 1.0], [x, 0.0]]
    return {
        "type": "Feature",
        "id": f"e{number}",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {"kind": kind, "vehicle": "v", "time": NOON.format(number)},
    }


def test_each_geometry_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    read = geojson.read_mapping

    def count_call(value: object) -> Any:
        parsed.append(value)
        return read(value)

    near = "S_INTERSECTS(geometry, BBOX(0, 0, 5, 5))"
    subscriptions: dict[str, dict[str, Any]] = {
        "plain": {"expression": near},
        "tracked": {"expression": near, "track": {"key": "vehicle", "on": ["enter"]}},
        "composite": {
            "composite": {
                "members": {"a": "kind = 'smoke'", "b": "kind = 'heat'"},
                "where": ["DIST(a, b) < 500"],
                "within_s": 600,
            }
        },
    }
    with running(tmp_path) as server:
        for id, definition in subscriptions.items():
            answer = server.http.put(
                f"/v1/subscriptions/{id}", json={"subscriber": id, **definition}
            )
            assert answer.is_success, answer.text
        monkeypatch.setattr(geojson, "read_mapping", count_call)
        features = [feature(0, "smoke"), feature(1, "heat"), feature(2, "smoke")]
        published = server.http.post(
            "/v1/events", json={"type": "FeatureCollection", "features": features}
        )
        monkeypatch.undo()
        assert published.json()["accepted"] == 3, published.text
        for id in subscriptions:
            messages = server.http.get(f"/v1/subscribers/{id}/messages").json()
            assert messages, id
            assert "messages" not in messages or messages["messages"], id
    assert len(parsed) == 3
