"""Checkpoints as JSON: a round trip keeps all values and their types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
import shapely

from fencepost.errors import ModelError
from fencepost.events.event_attributes import Row
from fencepost.tracking.checkpoint_json import (
    from_json,
    position_from_json,
    position_to_json,
    to_json,
)
from fencepost.tracking.fence_visits import ObjectState, Stay
from fencepost.tracking.positions import Position
from fencepost.tracking.tracker import Checkpoint

EAST = dt.timezone(dt.timedelta(hours=2))
EVENT = Row(
    {
        "at": dt.datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=dt.UTC),
        "local": dt.datetime(2024, 5, 1, 12),  # noqa: DTZ001
        "east": dt.datetime(2024, 5, 1, 12, tzinfo=EAST),
        "day": dt.date(2024, 5, 1),
        "geometry": b"\x01\x00\xff",
        "shape": shapely.box(0.1, 2, 3, 4),
        "price": Decimal("12.3400"),
        "big": 2**62 + 1,
        "small": 0.1,
        "endless": float("-inf"),
        "none": None,
        "yes": True,
        "text": 'a "b" \ud800 \u2028',
        "list": [1, dt.date(2024, 5, 2), [b"x"], {"inner": Decimal(1)}],
    }
)


def test_round_trip_of_a_position_of_a_table() -> None:
    for point in (None, (0.1, -7.5)):
        position = Position("v", 1_714_564_800_000_000_001, point, EVENT)
        restored = position_from_json(position_to_json(position), "v")
        assert restored == position
        assert isinstance(restored.event, Row)
        assert [*map(type, restored.event.values())] == [*map(type, EVENT.values())]


def test_round_trip_of_a_checkpoint() -> None:
    stay = Stay("ann", True, 5, None, False)
    state = ObjectState(7, 9, EVENT, (1.0, 2.0), ("a",), {"a": stay}, {"b": ("bob", 3)})
    checkpoint = Checkpoint(state, [Position(7, 11, None, EVENT)], 12)
    assert from_json(to_json(checkpoint), 7, 12, from_tables=True) == checkpoint
    empty = Checkpoint(None, [], None)
    assert from_json(to_json(empty), 7, None) == empty


def test_json_of_a_server_has_no_typed_values() -> None:
    event = Row({"a": {"fencepost:bytes": "no hex"}, "b": {"fencepost:date": "2024-05-01"}})
    checkpoint = Checkpoint(None, [Position("v", 1, None, event)], 1)
    assert from_json(to_json(checkpoint), "v", 1) == checkpoint


def test_a_value_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ModelError, match="type timedelta cannot be stored as JSON"):
        position_to_json(Position("v", 1, None, Row({"took": dt.timedelta(1)})))
