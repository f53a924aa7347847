"""Rows of subscriptions as a matcher: a row is bad if `Matcher` rejects it."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
import shapely

from fencepost.engine import Matcher
from fencepost.errors import FencepostError
from fencepost.geometry import SpaceName
from fencepost.spark.indexes.subscription_reader import SubscriptionLayout as Layout
from fencepost.spark.indexes.subscription_reader import SubscriptionReader

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("area", pa.binary()),
        ("words", pa.list_(pa.string())),
        ("kind", pa.string()),
        ("subscriber", pa.string()),
    ]
)


def read(
    layout: Layout, columns: Any, space: SpaceName = "wgs84"
) -> tuple[Matcher, list[tuple[int, str]]]:
    """Return a matcher of the rows, and check that `required` reads the same rows."""
    table, reader = pa.table(columns), SubscriptionReader(layout, space, ())
    matcher, bad = reader(table)
    requirements, requested, rejected = reader.required(table)
    assert rejected == bad
    every = [row for rows, _ in requirements for row in rows.tolist()]
    assert sorted(every + [row for row, _ in bad]) == list(range(table.num_rows))
    for rows, required in requirements:
        assert {*required.subscription.tolist()} == {*range(len(rows))}
    assert requested.by_storage == matcher.view().columns.by_storage
    return matcher, bad


def test_columns_with_nulls_and_bad_values() -> None:
    rng = random.Random(1)
    rows = [
        {
            "id": f"s{k}",
            "area": rng.choice([shapely.box(0, 0, k + 1, 9).wkb] * 3 + [b"junk", None]),
            "words": rng.choice([["a"], [], None, ["b", "a"]]),
            "kind": rng.choice(["x", None]),
            "subscriber": rng.choice(["me", None, None, ""]),
        }
        for k in range(80)
    ]
    layout = Layout({"g": ("area", "S_INTERSECTS")}, {}, {"t": "words"}, {"s": "kind"})
    matcher, bad = read(layout, pa.Table.from_pylist(rows, schema=SCHEMA), "planar")
    owners = {}
    for row in rows:
        try:
            Matcher(space="planar").subscribe_columns(
                [row["id"]],
                regions={"g": ([row["area"]], "S_INTERSECTS")},
                keywords={"t": [row["words"]]},
                equals={"s": [row["kind"]]},
                subscribers=[row["id"] if row["subscriber"] is None else row["subscriber"]],
            )
        except FencepostError:
            continue
        owners[row["id"]] = row["subscriber"] or row["id"]
    assert 20 < len(owners) < 70
    assert matcher.ids() == sorted(owners)
    assert sorted(number for number, _ in bad) == [
        number for number, row in enumerate(rows) if row["id"] not in owners
    ]
    found = {
        segment.id_of(row): segment.subscriber_of(row)
        for segment in matcher.view().snapshot()
        for row in range(len(segment))
    }
    assert found == owners


BOX = shapely.box(0, 0, 1, 1).wkb
PLACED = {"id": ["a", "b"], "p": pa.array([BOX, BOX], pa.binary())}


@pytest.mark.parametrize(
    ("layout", "columns", "reason"),
    [
        (Layout({"g": ("p", "S_WITHIN")}), {"p": [BOX, b"junk"]}, "the bytes are no WKB"),
        (Layout({"g": ("p", "S_WITHIN")}), {"p": [BOX, None]}, "there is no geometry"),
        (
            Layout({"g": ("p", "S_WITHIN")}),
            {"p": ["POINT(0 0)", "POINT(500 0)"]},
            "a longitude beyond",
        ),
        (Layout({"g": ("p", "r")}), {"r": ["S_WITHIN", "x"]}, "no relation is called 'x'"),
        (Layout({}, {"g": ("p", "d")}), {"d": [1.0, -1.0]}, "saw -1.0"),
        (Layout({}, {"g": ("p", "d")}), {"d": [1.0, None]}, "saw nan"),
        (Layout({}, {}, {"t": "w"}), {"w": [["x"], [None]]}, "takes lists of strings; saw [None]"),
        (Layout({}, {}, {}, {"s": "v"}), {"v": [1.0, float("inf")]}, "106 bits; saw inf"),
        (
            Layout({}, {}, {"t": "w"}),
            {"w": pa.array([["x"], [b"\xff"]], pa.list_(pa.binary())).cast(
                pa.list_(pa.string()), safe=False
            )},
            "not UTF-8",
        ),
    ],
)  # fmt: skip
def test_reasons_do_not_name_the_row(layout: Layout, columns: dict[str, Any], reason: str) -> None:
    """The row's number in a worker's batch would mean nothing to the user."""
    matcher, bad = read(layout, {**PLACED, **columns})
    ((row, seen),) = bad
    assert row == 1
    assert reason in seen
    assert "row 0" not in seen
    assert matcher.ids() == ["a"]


def test_relations_that_are_lists() -> None:
    matcher, bad = read(Layout({"g": ("p", "r")}), {**PLACED, "r": [["S_WITHIN"], ["S_WITHIN"]]})
    assert [row for row, _ in bad] == [0, 1]
    assert all("no relation is called ['S_WITHIN']; give one of" in reason for _, reason in bad)
    assert matcher.ids() == []


@pytest.mark.parametrize("layout", [Layout(), Layout({}, {}, {}, {"s": "v"})])
def test_integer_ids_and_subscribers(layout: Layout) -> None:
    """As databases have them; a null subscriber becomes the id."""
    columns = {
        "id": pa.array([1, 2, 3]),
        "v": ["x"] * 3,
        "expression": ["s = 'x'"] * 3,
        "subscriber": pa.array([7, None, None]),
    }
    matcher, bad = read(layout, columns)
    assert bad == []
    (segment,) = matcher.view().snapshot()
    assert [segment.id_of(row) for row in range(3)] == ["1", "2", "3"]
    assert [segment.subscriber_of(row) for row in range(3)] == ["7", "2", "3"]
