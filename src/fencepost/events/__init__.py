"""Events: their attributes, times and words, and tables of them, each value read once.

- `arrow_text`: Text in Arrow columns: which rows are not UTF-8
- `event_attributes`: An event as a mapping of attribute names to values
- `event_values`: `EventValues`: the attributes of one event, each geometry of which is read once
- `table`: `EventTable`: the events of a table or of one publication, each value of which is read
  once
- `times`: Times as whole nanoseconds since 1970-01-01T00:00:00Z: Python integers, exact for any
  year
- `tokenizer`: The tokenizer: the words of a text, by which keywords find it
- `value_types`: What an event's values count as: numbers, strings, times, spans, lists
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
