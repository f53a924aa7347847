"""GeoJSON Features in DataFrames: the columns that hold attributes, and the types of attributes.

Spark reads a file of Features as columns: `type`, `geometry`, `properties` and, at times, `id`.
Workers read their rows as `fencepost.events.feature_tables` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from fencepost.errors import ModelError
from fencepost.events.event_attributes import feature_names
from fencepost.events.feature_tables import columns_to_read, may_have_features

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def columns_of_attributes(rows: DataFrame, attributes: Collection[str]) -> list[str]:
    """Return the columns of a DataFrame that hold some attributes of its rows.

    Raises
    ------
    ModelError
        If a row is a FeatureCollection, or Spark could not read the JSON.
    """
    check_rows(rows)
    return columns_to_read(rows.columns, attributes)


def check_rows(rows: DataFrame) -> None:
    """Raise a ModelError if a row is a FeatureCollection, or if Spark could not read the JSON."""
    if is_collection(rows):
        raise ModelError(
            "a row of the DataFrame is a whole FeatureCollection, in the columns type and "
            "features; read the file with fencepost.spark.read_events, or select "
            "inline(features)"
        )
    if rows.columns == ["_corrupt_record"]:
        raise ModelError(
            "the only column of the DataFrame is _corrupt_record: Spark found no JSON object in "
            "a line of the file; read the file with fencepost.spark.read_events"
        )


def is_collection(rows: DataFrame) -> bool:
    """Return whether a row of a DataFrame is a whole FeatureCollection."""
    from pyspark.sql.types import ArrayType, StructType

    if not {"type", "features"} <= set(rows.columns):
        return False
    features = rows.schema["features"].dataType
    return isinstance(features, ArrayType) and isinstance(features.elementType, StructType)


def has_features(rows: DataFrame) -> bool:
    """Return whether the types of the columns are those of Features."""
    from pyspark.sql.types import MapType, NullType, StringType, StructType

    if not may_have_features(rows.columns):
        return False
    kind, properties = (rows.schema[name].dataType for name in ("type", "properties"))
    return isinstance(kind, StringType | NullType) and isinstance(properties, StructType | MapType)


def attribute_names(rows: DataFrame) -> list[str] | None:
    """Return the names of the attributes of the rows; None if the schema does not tell."""
    if not has_features(rows):
        return rows.columns
    types = _property_types(rows)
    if not isinstance(types, dict):
        return None
    return [*feature_names(types)]


def with_properties(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return a DataFrame of Features with more columns: those properties among some names."""
    from pyspark.sql import functions as F

    if not has_features(rows):
        return rows
    for name in names:
        member = _property(rows, name)
        if name not in rows.columns and member is not None:
            rows = rows.withColumns({name: F.col("properties").getItem(member)})
    return rows


def attribute_frame(rows: DataFrame) -> DataFrame:
    """Return a DataFrame whose columns are the attributes of Features; others are unchanged.

    The id of a Feature that has none is its property `id`, as in files of subscriptions.
    """
    from pyspark.sql import functions as F

    check_rows(rows)
    types = _property_types(rows) if has_features(rows) else None
    if not isinstance(types, dict):
        return rows
    is_feature = F.col("type").isNull() | (F.col("type") == "Feature")
    members = {name: F.when(is_feature, F.col("properties").getField(name)) for name in types}
    if "id" in rows.columns:
        id = F.col("id")
        text = [column.cast("string") for column in (id, members.get("id", id))]
        members["id"] = F.coalesce(*text) if "id" in members else id
    members["geometry"] = F.col("geometry")
    return rows.select(*(column.alias(name) for name, column in members.items()))


def attribute_type(rows: DataFrame, name: str) -> DataType:
    """Return the type of an attribute of the rows of a DataFrame.

    Raises
    ------
    ModelError
        If no row has it, or two columns have its name.
    """
    check_rows(rows)
    count = rows.columns.count(name)
    if count > 1:
        raise ModelError(
            f"the events need one column {name!r:.40}, and have {count}; rename the others"
        )
    names = rows.columns
    if has_features(rows) and name not in ("id", "geometry"):
        types = _property_types(rows)
        if not isinstance(types, dict):
            return types
        member = _property(rows, name)
        if member is not None:
            return types[member]
        names = ["id", "geometry", *types]
    if count:
        return rows.schema[name].dataType
    raise ModelError(
        f"the events have no column {name!r:.40}; they have: {', '.join(names)}; "
        "rename one, or give the name that they have"
    )


def _property(rows: DataFrame, attribute: str) -> str | None:
    """Return the property that an attribute of Features is; None if it is none of them."""
    names = _property_types(rows)
    if isinstance(names, dict):
        return feature_names(names).get(attribute)
    return None if attribute in ("id", "geometry") else attribute.removeprefix("properties.")


def _property_types(rows: DataFrame) -> dict[str, DataType] | DataType:
    """Return the types of properties by name; one type if the properties are a map."""
    from pyspark.sql.types import MapType, StructType

    properties = rows.schema["properties"].dataType
    if isinstance(properties, MapType):
        return properties.valueType
    assert isinstance(properties, StructType)
    return {field.name: field.dataType for field in properties}
