"""An event table reads each value once, and gives equal values for any form of equal events."""

from __future__ import annotations

from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from fencepost import ModelError
from fencepost.events import EventTable
from fencepost.geometry import Shapes, Space

POINTS = [shapely.Point(0, 1), shapely.Point(2, 3), None, shapely.Point(200, 3)]
NUMBERS = [1.5, None, 3.0, 4.0]
FEATURES = [
    {
        "type": "Feature",
        "id": k,
        "geometry": None if point is None else shapely.geometry.mapping(point),
        "properties": {"n": number},
    }
    for k, (point, number) in enumerate(zip(POINTS, NUMBERS, strict=True))
]
WKB = pa.array([None if point is None else point.wkb for point in POINTS], pa.binary())
FORMS: dict[str, Any] = {
    "Arrow": pa.table({"geometry": WKB, "n": NUMBERS, "id": range(4)}),
    "record batch": pa.record_batch({"geometry": WKB, "n": NUMBERS, "id": range(4)}),
    "frame": pd.DataFrame({"geometry": WKB.to_pylist(), "n": NUMBERS, "id": range(4)}),
    "GeoDataFrame": geopandas.GeoDataFrame({"n": NUMBERS, "id": range(4)}, geometry=POINTS),
    "mixed frame": pd.DataFrame(
        {"geometry": POINTS, "n": NUMBERS, "id": range(4), "x": [*"ab", 1, 2]}
    ),
    "features": FEATURES,
    "collection": {"type": "FeatureCollection", "features": FEATURES},
    "mappings": [
        {"geometry": point, "n": number, "id": k}
        for k, (point, number) in enumerate(zip(POINTS, NUMBERS, strict=True))
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same_values(form: str) -> None:
    table = EventTable.read(FORMS[form], Space.WGS84)
    assert len(table) == 4
    assert table.source_rows.tolist() == [0, 1, 2, 3]
    assert table.bad == []
    assert list(table.values("id")) == [0, 1, 2, 3]
    assert [row["id"] for row in table.rows()] == [0, 1, 2, 3]
    assert table.row(3)["n"] == 4.0
    shapes, rows, problems = table.geometries("geometry")
    assert (rows >= 0).tolist() == [True, True, False, False]
    boxes = shapes.arrays.shapes[rows[:2]]
    assert boxes["x0"].tolist() == [0, 2]
    assert problems[3].row >= 0
    assert 0 not in problems


@pytest.mark.parametrize("form", FORMS)
def test_geometries_are_read_once(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    read = Shapes.read

    def counted(values: object) -> Shapes:
        calls.append(values)
        return read(values)

    monkeypatch.setattr(Shapes, "read", counted)
    table = EventTable.read(FORMS[form], Space.WGS84)
    first = table.geometries("geometry")
    for event in table.events(["geometry"], ["geometry"]):
        event.shapes("geometry")
    part = table.slice(1, 2)
    rest = table.without({0: "not wanted"})
    both = EventTable.concatenate([part, rest])
    assert part.geometries("geometry").shapes is first.shapes
    assert rest.geometries("geometry").shapes is first.shapes
    assert (both.geometries("geometry").rows >= 0).tolist() == [True, False, True, False, False]
    assert len(calls) == 1


@pytest.mark.parametrize("form", ["Arrow", "features"])
def test_tables_without_some_rows(form: str) -> None:
    table = EventTable.read(FORMS[form]).without({1: "first", 3: "last"})
    assert table.source_rows.tolist() == [0, 2]
    assert table.bad == [(1, "first"), (3, "last")]
    assert list(table.values("id")) == [0, 2]
    again = table.without({1: "third"})
    assert again.source_rows.tolist() == [0]
    assert again.bad == [(1, "first"), (2, "third"), (3, "last")]
    assert len(again.without({0: "all"})) == 0


def test_rows_that_are_no_events_are_reported() -> None:
    table = EventTable.read([{"n": 1}, 7, {"n": 2}, {3: 4}])
    assert table.source_rows.tolist() == [0, 2]
    assert [row for row, _ in table.bad] == [1, 3]


def test_text_that_is_not_utf8() -> None:
    ends = pa.py_buffer(np.array([0, 1, 2, 3], np.int32))
    bad = pa.StringArray.from_buffers(3, ends, pa.py_buffer(b"a\xffc"))
    table = EventTable.read(pa.table({"t": bad, "n": [1, 2, 3]}))
    assert table.without_invalid_text({"n"}).source_rows.tolist() == [0, 1, 2]
    checked = table.without_invalid_text({"t"})
    assert checked.source_rows.tolist() == [0, 2]
    ((row, reason),) = checked.bad
    assert row == 1
    assert "'t'" in reason


def test_values_that_are_no_table_are_refused() -> None:
    for value in (5, "text", {"n": 1}, {"type": "FeatureCollection"}):
        with pytest.raises(ModelError, match="no table of events"):
            EventTable.read(value)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ModelError, match="the same name"):
        EventTable.read(twice)


def test_a_table_read_for_another_space_is_refused() -> None:
    table = EventTable.read([{"n": 1}], Space.WGS84)
    assert EventTable.read(table, Space.WGS84) is table
    with pytest.raises(ModelError, match="read them again in that space"):
        EventTable.read(table, Space.PLANAR)


def test_coordinates_are_geometries_on_request() -> None:
    column = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2))
    table = EventTable.read(pa.table({"p": column}))
    assert list(table.values("p")) == [[1.0, 2.0], [3.0, 4.0]]
    assert table.values("p", geometric=True)[0] == {"type": "Point", "coordinates": [1.0, 2.0]}
