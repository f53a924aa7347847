"""Events as mappings of attribute names to values.

This module checks names only. The type of a value is checked where a condition uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.errors import ModelError
from fencepost.events.value_types import is_missing
from fencepost.geometry.readers.raw_shapes import short_repr

__all__ = [
    "FEATURE_COLUMNS",
    "Row",
    "attributes",
    "feature_names",
    "is_feature_row",
    "row_attributes",
]

FEATURE_COLUMNS = ("type", "geometry", "properties")
"""The columns of a table whose rows may be GeoJSON Features."""

_FORMS = (
    "give a dict of attribute names to values, a GeoJSON Feature, or a row of a pandas or "
    "GeoPandas table"
)


class Row(dict[str, object]):
    """The attributes of an event, which have been read already, even if `type` is "Feature"."""


def attributes(event: object) -> Mapping[str, object]:
    """Return the attributes of an event, by name.

    Parameters
    ----------
    event : object
        - A GeoJSON Feature, which is a mapping whose ``type`` is ``"Feature"``, or an object
          whose ``__geo_interface__`` is such a mapping. Its members ``id`` and ``geometry`` are
          attributes (null if absent), and so are its properties, but no other member. Property
          ``x`` has the names ``x`` and ``properties.x``. A property called ``id`` or ``geometry``
          has the second name only. If a property is itself called ``properties.x``, property
          ``x`` hides it.
        - Any other mapping: its items are the attributes.
        - A pandas or GeoPandas row (a Series): the columns are the attributes. But a row with the
          columns ``type``, ``geometry`` and ``properties`` may be a Feature: see `is_feature_row`.

    Returns
    -------
    Mapping of str to object
        A mapping that is no Feature is returned itself, so it must not be changed. Values are
        not converted: null and NaN count as missing later.

    Raises
    ------
    ModelError
        If the event is none of these, a name is no string, or the properties are no mapping.
    """
    if type(event) is Row:
        return event
    if type(event) is dict or isinstance(event, Mapping):  # the first test is faster
        kind = event.get("type")
        if isinstance(kind, str) and kind == "Feature":
            return _feature_attributes(event)
        try:
            "".join(event)  # the fastest check that all names are strings
        except TypeError:
            raise _bad_name(event, "attribute name") from None
        return event
    if _is_series(event):
        return row_attributes(_columns_of_series(event))
    interface = getattr(event, "__geo_interface__", None)
    if isinstance(interface, Mapping):
        kind = interface.get("type")
        if isinstance(kind, str) and kind == "Feature":
            return _feature_attributes(interface)
        raise ModelError(
            f"a value of type {type(event).__name__} is no event: its __geo_interface__ gives "
            f"{short_repr(kind)}, not a Feature; saw {short_repr(event)}; {_advice(kind)}"
        )
    raise ModelError(
        f"a value of type {type(event).__name__} is no event; saw {short_repr(event)}; {_FORMS}"
    )


def row_attributes(row: Mapping[str, object]) -> Row:
    """Return the attributes of a row of a table, by name: of a Feature, or else its columns."""
    if not is_feature_row(row):
        return Row(row)
    return Row(_feature_attributes({k: None if is_missing(v) else v for k, v in row.items()}))


def is_feature_row(row: Mapping[str, object]) -> bool:
    """Return whether a row of a table is a GeoJSON Feature.

    It has the columns `type`, `geometry` and `properties`, and its `type` is "Feature", or is
    missing and the properties are a mapping.
    """
    if not all(name in row for name in FEATURE_COLUMNS):
        return False
    kind = row["type"]
    if isinstance(kind, str):
        return kind == "Feature"
    return is_missing(kind) and isinstance(row["properties"], Mapping)


def feature_names(properties: Iterable[str]) -> dict[str, str | None]:
    """Return the names of a Feature's attributes, each with its property; None for members.

    Later names win: members over properties, and the name `properties.x` of property `x` over a
    property that is itself called `properties.x`.
    """
    names: dict[str, str | None] = {name: name for name in properties}
    return {**names, **{f"properties.{name}": name for name in names}, "id": None, "geometry": None}


def _feature_attributes(feature: Mapping[Any, object]) -> dict[str, object]:
    properties = feature.get("properties")
    if properties is None:
        properties = {}
    elif not isinstance(properties, Mapping):
        raise ModelError(
            "the properties of the Feature are no mapping but of type "
            f"{type(properties).__name__}; saw {short_repr(properties)}; "
            "give a mapping of names to values, or null"
        )
    if not all(isinstance(name, str) for name in properties):
        raise _bad_name(properties, "property name")
    # The order of `feature_names`, of which this is the fast form for one event.
    return {
        **properties,
        **{f"properties.{name}": value for name, value in properties.items()},
        "id": feature.get("id"),
        "geometry": feature.get("geometry"),
    }


def _columns_of_series(row: Any) -> dict[str, object]:
    if not all(isinstance(name, str) for name in row.index):
        raise _bad_name(row.index, "column name")
    attributes_by_name = dict(zip(row.index, row, strict=True))
    if len(attributes_by_name) < len(row):
        repeated = next(name for name in attributes_by_name if list(row.index).count(name) > 1)
        raise ModelError(
            f"two columns of the row have the same name; saw {short_repr(repeated)} twice; "
            "rename one of them"
        )
    return attributes_by_name


def _bad_name(names: Iterable[object], kind_of_name: str) -> ModelError:
    name = next(name for name in names if not isinstance(name, str))
    return ModelError(
        f"every {kind_of_name} of an event must be a string; saw {short_repr(name)}, "
        f"which is of type {type(name).__name__}; give it a name that is a string"
    )


def _is_series(value: object) -> bool:
    """Return whether a value is a pandas Series, without importing pandas."""
    return any(
        base.__name__ == "Series" and base.__module__.partition(".")[0] == "pandas"
        for base in type(value).__mro__
    )


def _advice(kind: object) -> str:
    if kind == "FeatureCollection":
        return "give its features or rows one at a time"
    return 'give {"geometry": ...} with the other attributes beside it'
