"""An event as a mapping of attribute names to values.

Only names are looked at here. What a value counts as is decided where a condition meets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.errors import ModelError
from fencepost.geometry.readers.raw_shapes import short_repr

__all__ = ["Row", "attributes"]

_FORMS = (
    "give a dict of attribute names to values, a GeoJSON Feature, or a row of a pandas or "
    "GeoPandas table"
)


class Row(dict[str, object]):
    """A row of a table: its columns are the attributes, whatever its column `type` says."""


def attributes(event: object) -> Mapping[str, object]:
    """The attributes of an event, by name.

    Parameters
    ----------
    event : object
        - A GeoJSON Feature, which is a mapping whose ``type`` is ``"Feature"``, or an object
          whose ``__geo_interface__`` is one: its members ``id`` and ``geometry`` are attributes,
          and so are its properties, by their names. A property called ``id`` or ``geometry`` is
          ``properties.id`` or ``properties.geometry`` only, and ``properties.x`` finds any other
          property ``x`` as well, before a property that is itself called ``properties.x``. A
          member that is absent is null. No other member of a Feature is an attribute.
        - Any other mapping: its items are the attributes.
        - A pandas or GeoPandas row (a Series): the columns are the attributes, whatever the
          column ``type`` says.

    Returns
    -------
    Mapping of str to object
        A mapping that is no Feature is returned as it is, so it must not be written to. Values
        are those of the event, unseen; null and NaN count as missing later.

    Raises
    ------
    ModelError
        If it is none of these, a name is no string, or the properties are no mapping.
    """
    # The first test is the faster one, and most events pass it.
    if type(event) is Row:
        return event
    if type(event) is dict or isinstance(event, Mapping):
        kind = event.get("type")
        if isinstance(kind, str) and kind == "Feature":
            return _feature_attributes(event)
        try:
            "".join(event)  # the fastest way to ask whether all the names are strings
        except TypeError:
            raise _bad_name(event, "attribute name") from None
        return event
    if _is_series(event):
        return _row_attributes(event)
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
    # Later items win: members over properties, and `properties.x` over one that is called so.
    return {
        **properties,
        **{f"properties.{name}": value for name, value in properties.items()},
        "id": feature.get("id"),
        "geometry": feature.get("geometry"),
    }


def _row_attributes(row: Any) -> dict[str, object]:
    if not all(isinstance(name, str) for name in row.index):
        raise _bad_name(row.index, "column name")
    found = dict(zip(row.index, row, strict=True))
    if len(found) < len(row):
        twice = next(name for name in found if list(row.index).count(name) > 1)
        raise ModelError(
            f"two columns of the row have one name; saw {short_repr(twice)} twice; "
            "rename one of them"
        )
    return found


def _bad_name(names: Iterable[object], what: str) -> ModelError:
    name = next(name for name in names if not isinstance(name, str))
    return ModelError(
        f"every {what} of an event must be a string; saw {short_repr(name)}, "
        f"which is of type {type(name).__name__}; give it a name that is a string"
    )


def _is_series(value: object) -> bool:
    """Whether it is a pandas Series, without importing pandas."""
    return any(
        base.__name__ == "Series" and base.__module__.partition(".")[0] == "pandas"
        for base in type(value).__mro__
    )


def _advice(kind: object) -> str:
    if kind == "FeatureCollection":
        return "give its features or rows one at a time"
    return 'give {"geometry": ...} with the other attributes beside it'
