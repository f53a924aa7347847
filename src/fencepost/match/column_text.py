"""Text in columns of subscriptions that cannot be written as UTF-8: refused, naming the row."""

from __future__ import annotations

import pyarrow as pa

from fencepost.errors import ModelError
from fencepost.model.arrow_text import not_utf8


def refuse_bad_bytes(what: str, column: pa.Array | pa.ChunkedArray) -> None:
    """Raise where a row of an Arrow column holds text that is not UTF-8."""
    for row, reason in not_utf8(column, what):
        raise ModelError(f"row {row} of {reason}")


def refuse_surrogate(what: str, row: int, text: str) -> None:
    """Raise where a string of Python's holds a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"{what} holds a lone surrogate in row {row}: {text!r:.60}; leave that character out"
        ) from error
