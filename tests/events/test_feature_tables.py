"""Features in tables have the attributes of single Features; other rows have their columns."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from fencepost.errors import ModelError
from fencepost.events import EventTable, attributes
from fencepost.events.feature_tables import columns_to_read

POINT = {"type": "Point", "coordinates": [1.0, 2.0]}
FEATURES: list[dict[str, Any]] = [
    {"type": "Feature", "id": "a", "geometry": POINT, "properties": {"n": 1, "s": "x"}},
    {"type": "Feature", "id": None, "geometry": None, "properties": {"n": None, "s": "y"}},
    {"type": "Feature", "id": "c", "geometry": POINT, "properties": None},
]
HIDDEN: list[dict[str, Any]] = [
    {
        "type": "Feature",
        "geometry": POINT,
        "properties": {
            "id": 7,
            "geometry": "POINT (3 4)",
            "type": "car",
            "n": 1,
            "properties.n": 2,
        },
    }
]


def rows_of(source: object) -> list[dict[str, object]]:
    return [present(row) for row in EventTable.read(source).rows()]


def present(row: Any) -> dict[str, object]:
    """Return the attributes that are not missing."""
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize("features", [FEATURES, HIDDEN], ids=["plain", "hidden names"])
def test_every_form_of_a_table_has_the_attributes_of_features(
    features: list[dict[str, Any]],
) -> None:
    expected = [present(attributes(feature)) for feature in features]
    table = pa.Table.from_pylist(features)
    assert rows_of(table) == expected
    assert rows_of(pd.DataFrame(features)) == expected
    assert [present(attributes(row)) for _, row in pd.DataFrame(features).iterrows()] == expected
    assert rows_of({"type": "FeatureCollection", "features": features}) == expected


def test_a_type_that_is_null_counts_as_feature() -> None:
    untyped = [{**FEATURES[0], "type": None}, FEATURES[1]]
    expected = [present(attributes(feature)) for feature in FEATURES[:2]]
    assert rows_of(pa.Table.from_pylist(untyped)) == expected
    assert rows_of(pa.Table.from_pylist(untyped[:1])) == expected[:1]
    assert rows_of(pd.DataFrame(untyped)) == expected


def test_properties_may_be_a_map() -> None:
    kinds = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("n", 1), ("m", 2)], None, [("k", 3), ("n", 4)]], kinds)
    table = pa.table({"type": ["Feature"] * 3, "geometry": [None] * 3, "properties": maps})
    names = ("n", "m", "k", "properties.k")
    rows = [tuple(row.get(name) for name in names) for row in EventTable.read(table).rows()]
    assert rows == [(1, 2, None, None), (None, None, None, None), (4, None, 3, 3)]


def test_a_table_of_other_rows_keeps_its_columns() -> None:
    row = {"type": "node", "geometry": "POINT (1 2)", "properties": {"n": 1}}
    table = pa.Table.from_pylist([row, row])
    assert EventTable.read(table).column_names == ["type", "geometry", "properties"]
    feature = {"type": "Feature", "geometry": "POINT (1 2)", "n": 1}
    assert EventTable.read(pa.Table.from_pylist([feature])).column_names == [*feature]


def test_in_a_mixed_table_each_row_decides() -> None:
    other = {"type": "node", "id": "d", "geometry": None, "properties": {"n": 4, "s": "z"}}
    rows = [FEATURES[0], other, FEATURES[1]]
    expected = [present(attributes(row)) for row in rows]
    assert rows_of(pa.Table.from_pylist(rows)) == expected
    assert rows_of(pd.DataFrame(rows)) == expected


def test_features_whose_properties_are_text_are_refused() -> None:
    rows = [
        {"type": "Feature", "geometry": None, "properties": text} for text in ('{"n": 1}', None)
    ]
    table = EventTable.read(pa.Table.from_pylist(rows))
    assert len(table) == 1
    ((row, reason),) = table.bad
    assert row == 0
    assert "the properties of the Feature are no mapping but of type str" in reason


def test_properties_of_one_name_are_refused() -> None:
    pair = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["n", "n"])
    table = pa.table({"type": ["Feature"], "geometry": [None], "properties": pair})
    with pytest.raises(ModelError, match="two properties of the Features have the same name"):
        EventTable.read(table)


def test_the_columns_to_read_are_those_of_features() -> None:
    names = ["id", "received", "type", "geometry", "properties", "bbox"]
    assert columns_to_read(names, {"n"}) == ["id", "type", "geometry", "properties"]
    assert columns_to_read(["id", "n", "properties"], {"n"}) == ["n"]
