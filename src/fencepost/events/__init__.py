"""Events: their attributes, values, times and words, and tables of events.

- `arrow_text`: text in Arrow columns: rows that are not UTF-8, and conversion to Python
- `event_attributes`: `attributes`, an event as a mapping of attribute names to values
- `event_values`: `EventValues`, the attributes of one event, with each geometry read once
- `feature_tables`: GeoJSON Features in tables, and their attributes as columns
- `nearest_names`: which of several names may be meant, and which are those of coordinates
- `table_crs`: `declared_crs`, the CRS that columns of geometries declare
- `table`: `EventTable`, the events of a table or of a publication, with each value read once
- `times`: instants as integers of nanoseconds since 1970, read from text and values
- `tokenizer`: `Tokenizer`, the words of a text that keywords are compared with
- `value_types`: values of events converted to numbers, strings, instants, spans and lists
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.events.event_attributes import attributes
    from fencepost.events.event_values import EventValues
    from fencepost.events.table import EventTable
    from fencepost.events.times import format_instant
    from fencepost.events.tokenizer import Tokenizer, keywords, tokenize
    from fencepost.events.value_types import to_double_double

__all__ = [
    "EventTable",
    "EventValues",
    "Tokenizer",
    "attributes",
    "format_instant",
    "keywords",
    "to_double_double",
    "tokenize",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "event_attributes": ["attributes"],
            "event_values": ["EventValues"],
            "table": ["EventTable"],
            "times": ["format_instant"],
            "tokenizer": ["Tokenizer", "keywords", "tokenize"],
            "value_types": ["to_double_double"],
        },
    )
