"""What is kept of an object as JSON: what comes out is what went in, of the same types."""

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


def test_a_position_of_a_table_comes_back() -> None:
    for point in (None, (0.1, -7.5)):
        given = Position("v", 1_714_564_800_000_000_001, point, EVENT)
        found = position_from_json(position_to_json(given), "v")
        assert found == given
        assert isinstance(found.event, Row)
        assert [*map(type, found.event.values())] == [*map(type, EVENT.values())]


def test_what_is_kept_of_an_object_comes_back() -> None:
    stay = Stay("ann", True, 5, None, False)
    state = ObjectState(7, 9, EVENT, (1.0, 2.0), ("a",), {"a": stay}, {"b": ("bob", 3)})
    given = Checkpoint(state, [Position(7, 11, None, EVENT)], 12)
    assert from_json(to_json(given), 7, 12, from_tables=True) == given
    nothing = Checkpoint(None, [], None)
    assert from_json(to_json(nothing), 7, None) == nothing


def test_what_a_server_keeps_is_not_taken_for_values_of_tables() -> None:
    event = Row({"a": {"fencepost:bytes": "no hex"}, "b": {"fencepost:date": "2024-05-01"}})
    given = Checkpoint(None, [Position("v", 1, None, event)], 1)
    assert from_json(to_json(given), "v", 1) == given


def test_a_value_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(ModelError, match="type timedelta cannot be stored as JSON"):
        position_to_json(Position("v", 1, None, Row({"took": dt.timedelta(1)})))
