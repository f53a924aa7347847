"""GeoJSON Features in tables: which columns have them, and their attributes as columns.

A row of a table with the columns `type`, `geometry` and `properties` is a Feature if its `type` is
"Feature", or is null and the properties are a struct or a map. Its attributes are those of a single
Feature, which `attributes` defines. Other rows of such a table have their columns as attributes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.errors import ModelError
from fencepost.events.event_attributes import FEATURE_COLUMNS, feature_names

_MEMBERS = (*FEATURE_COLUMNS, "id")


def may_have_features(names: Collection[str]) -> bool:
    """Return whether rows of a table with these columns may be Features."""
    return all(name in names for name in FEATURE_COLUMNS)


def columns_to_read(names: Sequence[str], attributes: Collection[str]) -> list[str]:
    """Return those columns of a table that hold some attributes of its rows."""
    members = _MEMBERS if may_have_features(names) else ()
    return [name for name in names if name in attributes or name in members]


def attribute_columns(table: pa.Table) -> pa.Table | None:
    """Return a table whose columns are the attributes of the rows of a table.

    Returns None for a table of Features and other rows, to be read row by row.

    Raises
    ------
    ModelError
        If two properties have the same name.
    """
    if not may_have_features(table.column_names):
        return table
    properties = table.column("properties")
    is_feature = _are_features(table.column("type"), properties)
    if not is_feature.any():
        return table
    if not is_feature.all():
        return None
    fields = _members_of(properties)
    if fields is None:
        return None
    by_name = dict(fields)
    if len(by_name) < len(fields):
        raise ModelError("two properties of the Features have the same name; rename one of them")
    columns, schema = [], []
    for name, member in feature_names(by_name).items():
        if member is None:
            field, column = _member(table, name)
        else:
            field, column = by_name[member]
        columns.append(column)
        schema.append(field.with_name(name))
    return pa.table(columns, schema=pa.schema(schema))


def _are_features(kinds: pa.ChunkedArray, properties: pa.ChunkedArray) -> np.ndarray:
    """Return which rows are Features."""
    is_named = np.zeros(len(kinds), bool)
    kind = kinds.type.value_type if pa.types.is_dictionary(kinds.type) else kinds.type
    if not (_is_text(kind) or pa.types.is_null(kind)):
        return is_named
    if _is_text(kind):
        equal = pc.equal(kinds.cast(pa.large_string()), pa.scalar("Feature", pa.large_string()))
        is_named = pc.fill_null(equal, False).to_numpy()
    if pa.types.is_struct(properties.type) or pa.types.is_map(properties.type):
        is_named = is_named | kinds.is_null().to_numpy()
    return is_named


def _members_of(properties: pa.ChunkedArray) -> list[tuple[str, tuple[pa.Field, pa.Array]]] | None:
    """Return the members of properties as columns; None if they are neither struct nor map."""
    kind = properties.type
    if pa.types.is_struct(kind):
        fields = [kind.field(k) for k in range(kind.num_fields)]
        flat = properties.flatten() if fields else []
        return [(f.name, (f, column)) for f, column in zip(fields, flat, strict=True)]
    if pa.types.is_map(kind) and _is_text(kind.key_type):
        keys = [key for chunk in properties.chunks for key in pc.unique(chunk.keys).to_pylist()]
        field = pa.field("", kind.item_type)
        return [
            (key, (field, pc.map_lookup(properties, pa.scalar(key, kind.key_type), "last")))
            for key in dict.fromkeys(keys)
        ]
    return [] if properties.null_count == len(properties) else None


def _member(table: pa.Table, name: str) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return a member of Features that is no property; null if the table lacks it."""
    if name in table.column_names:
        return table.schema.field(name), table.column(name)
    return pa.field(name, pa.null()), pa.chunked_array([pa.nulls(table.num_rows)])


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
