"""Rows of a table of subscriptions as a matcher: those are refused that the matcher refuses."""

from __future__ import annotations

import random

import pyarrow as pa
import shapely

from fencepost.errors import FencepostError
from fencepost.match.matcher import Matcher
from fencepost.spark.reading import Form, Reader

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("area", pa.binary()),
        ("words", pa.list_(pa.string())),
        ("kind", pa.string()),
        ("subscriber", pa.string()),
    ]
)


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
    form = Form({"g": ("area", "S_INTERSECTS")}, {}, {"t": "words"}, {"s": "kind"})
    matcher, bad = Reader(form, "planar", ())(pa.Table.from_pylist(rows, schema=SCHEMA))
    owners = {}
    for row in rows:
        try:
            Matcher().subscribe_columns(
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
        shelf.ids[row]: shelf.subscribers[row]
        for shelf in matcher.snapshot()
        for row in range(len(shelf))
    }
    assert found == owners
