"""Events: their attributes, times and words, and tables of them, each value read once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.events.event_attributes import attributes
    from fencepost.events.event_values import EventValues
    from fencepost.events.table import EventTable
    from fencepost.events.times import format_instant
    from fencepost.events.tokenizer import Tokeniser, keywords, tokenise
    from fencepost.events.value_types import pair_of

__all__ = [
    "EventTable",
    "EventValues",
    "Tokeniser",
    "attributes",
    "format_instant",
    "keywords",
    "pair_of",
    "tokenise",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "event_attributes": ["attributes"],
            "event_values": ["EventValues"],
            "table": ["EventTable"],
            "times": ["format_instant"],
            "tokenizer": ["Tokeniser", "keywords", "tokenise"],
            "value_types": ["pair_of"],
        },
    )
