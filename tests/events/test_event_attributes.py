"""Values that are events, and the names of their attributes."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict
from types import MappingProxyType, SimpleNamespace
from typing import Any

import geopandas
import pandas as pd
import pytest
import shapely

from fencepost.errors import ModelError
from fencepost.events import attributes
from tests.names import stable_name

POINT = {"type": "Point", "coordinates": [1, 2]}


def feature(**members: object) -> dict[str, object]:
    return {"type": "Feature", **members}


# --- Mappings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"a": 1},
        {"type": "Point", "coordinates": [1, 2]},
        {"type": "feature", "properties": {"a": 1}},
        {"type": None},
        {"type": ["Feature"]},
        {"geometry": POINT, "id": 7, "properties": {"a": 1}},
        {"properties.a": 1},
        OrderedDict(a=1),
        UserDict(a=1),
        MappingProxyType({"a": 1}),
    ],
    ids=stable_name,
)
def test_a_mapping_that_is_no_feature_is_returned_itself(event: object) -> None:
    assert attributes(event) is event


def test_a_type_whose_equality_gives_an_array_is_no_feature() -> None:
    event = {"type": pd.Series(["Feature", "x"])}
    assert attributes(event) is event


def test_reading_the_type_adds_nothing_to_a_defaultdict() -> None:
    event: dict[str, object] = defaultdict(list)
    assert attributes(event) == {}


def test_a_name_may_be_of_a_subclass_of_str() -> None:
    class Name(str):
        __slots__ = ()

    event = {Name("a"): 1}
    assert attributes(event)["a"] == 1


def test_values_are_not_touched() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(name)

    event = {"a": Hostile()}
    assert attributes(event) is event
    assert attributes(feature(id=Hostile(), geometry=Hostile(), properties={"a": Hostile()}))


# --- Features ---------------------------------------------------------------------------------


def test_members_and_properties_of_a_feature_are_attributes() -> None:
    by_name = attributes(feature(id=7, geometry=POINT, properties={"name": "x", "wind": 3}))
    assert by_name["id"] == 7
    assert by_name["geometry"] is POINT
    assert by_name["name"] == by_name["properties.name"] == "x"
    assert by_name["wind"] == by_name["properties.wind"] == 3


def test_properties_called_id_and_geometry_need_the_prefix() -> None:
    by_name = attributes(feature(id=7, geometry=POINT, properties={"id": 8, "geometry": "mine"}))
    assert by_name["id"] == 7
    assert by_name["geometry"] is POINT
    assert by_name["properties.id"] == 8
    assert by_name["properties.geometry"] == "mine"


def test_a_property_does_not_stand_in_for_a_member_that_is_absent() -> None:
    by_name = attributes(feature(properties={"id": 8, "geometry": "mine"}))
    assert by_name.get("id") is None
    assert by_name.get("geometry") is None


def test_properties_called_like_members_that_are_no_attributes_keep_their_names() -> None:
    properties = {"type": "storm", "properties": 1, "bbox": 2}
    by_name = attributes(feature(bbox=[0, 0, 1, 1], properties=properties))
    assert {name: by_name[name] for name in properties} == properties


def test_other_members_are_no_attributes() -> None:
    by_name = attributes(feature(bbox=[0, 0, 1, 1], when="now", properties={}))
    assert set(by_name) == {"id", "geometry"}


def test_a_prefixed_name_hides_a_property_of_that_name() -> None:
    by_name = attributes(feature(properties={"x": 1, "properties.x": 2, "properties.y": 3}))
    assert by_name["properties.x"] == 1
    assert by_name["properties.properties.x"] == 2
    assert by_name["properties.y"] == by_name["properties.properties.y"] == 3


@pytest.mark.parametrize("members", [{}, {"properties": None}, {"properties": {}}], ids=stable_name)
def test_a_feature_may_lack_properties(members: dict[str, object]) -> None:
    assert attributes(feature(**members)) == {"id": None, "geometry": None}


def test_a_feature_is_not_changed() -> None:
    properties = {"id": 1, "a": 2}
    event = feature(id=3, properties=properties)
    attributes(event)
    assert event == feature(id=3, properties={"id": 1, "a": 2})
    assert properties == {"id": 1, "a": 2}


def test_a_feature_may_be_any_mapping() -> None:
    event = UserDict(feature(properties=MappingProxyType({"a": 1})))
    assert attributes(event)["a"] == 1


def test_an_object_may_be_a_feature_by_its_geo_interface() -> None:
    event = SimpleNamespace(__geo_interface__=feature(id=7, properties={"a": 1}))
    assert attributes(event)["id"] == 7
    assert attributes(event)["a"] == 1


# --- Rows -------------------------------------------------------------------------------------


def test_a_pandas_row_is_an_event() -> None:
    table = pd.DataFrame({"a": [1, 2], "name": ["x", None], "type": ["Feature", "Feature"]})
    assert attributes(table.iloc[0]) == {"a": 1, "name": "x", "type": "Feature"}
    assert attributes(table.loc[1])["name"] is None


def test_a_geopandas_row_is_an_event() -> None:
    point = shapely.Point(1, 2)
    table = geopandas.GeoDataFrame({"a": [1]}, geometry=[point])
    assert attributes(table.iloc[0]) == {"a": 1, "geometry": point}


def test_a_row_of_geometries_only_is_an_event() -> None:
    places = geopandas.GeoDataFrame({"geometry": [shapely.Point(1, 2)]}, geometry="geometry")
    places["goal"] = geopandas.GeoSeries([shapely.Point(3, 4)])
    by_name = attributes(places.iloc[0])
    assert by_name == {"geometry": shapely.Point(1, 2), "goal": shapely.Point(3, 4)}


# --- Values that are no events ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "saw", "advice"),
    [
        (None, "NoneType", "dict"),
        ("POINT (1 2)", "str", "dict"),
        (b"", "bytes", "dict"),
        ([("a", 1)], "list", "dict"),
        (("a", 1), "tuple", "dict"),
        (7, "int", "dict"),
        (object(), "object", "dict"),
        ({1: 2}, "1, which is of type int", "string"),
        ({"a": 1, None: 2}, "None, which is of type NoneType", "string"),
        ({"a": 1, b"b": 2}, "b'b'", "string"),
        (feature(properties=[1]), "list", "mapping"),
        (feature(properties="a=1"), "'a=1'", "null"),
        (feature(properties={1: 2}), "1, which is of type int", "string"),
        (shapely.Point(1, 2), "'Point'", '{"geometry": ...}'),
        (SimpleNamespace(__geo_interface__=feature(properties=3)), "int", "mapping"),
        (SimpleNamespace(__geo_interface__="Feature"), "SimpleNamespace", "dict"),
        (pd.Series([1, 2]), "0, which is of type int", "string"),
        (pd.Series([1, 2], index=["a", "a"]), "'a' twice", "rename"),
        (pd.DataFrame({"a": [1]}), "DataFrame", "row"),
        (
            geopandas.GeoDataFrame({"a": [1]}, geometry=[shapely.Point(1, 2)]),
            "'FeatureCollection'",
            "one at a time",
        ),
    ],
)
def test_values_that_are_no_events_are_refused_with_advice(
    event: Any, saw: str, advice: str
) -> None:
    with pytest.raises(ModelError) as caught:
        attributes(event)
    assert saw in str(caught.value)
    assert advice in str(caught.value)
