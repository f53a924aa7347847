"""Batches of rows that one request can hold, and the merged result of publishing them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from fencepost.client.network_effects import Request
from fencepost.client.results import PublishResult, rejected_rows
from fencepost.errors import ModelError

_MAX_ROWS = 5_000
_MAX_BYTES = 4 << 20


class PublishBatch(NamedTuple):
    """Rows of one request.

    Attributes
    ----------
    first : int
        The number of the first row.
    lines : sequence of bytes
        Each row as one line of JSON.
    idempotency_key : str
        The server publishes a batch of this key once, however often it is sent.
    """

    first: int
    lines: Sequence[bytes]
    idempotency_key: str

    def request(self) -> Request:
        """Return the request that publishes the batch."""
        headers = {
            "content-type": "application/x-ndjson",
            "idempotency-key": self.idempotency_key,
        }
        return Request("POST", "/v1/events", headers=headers, content=b"\n".join(self.lines))

    def split(self) -> tuple[PublishBatch, PublishBatch]:
        """Return the batch as two, for a server that finds it too large."""
        middle = len(self.lines) // 2
        return (
            new_batch(self.first, self.lines[:middle]),
            new_batch(self.first + middle, self.lines[middle:]),
        )


def new_batch(first: int, lines: Sequence[bytes]) -> PublishBatch:
    """Return a batch of rows with a new idempotency key."""
    return PublishBatch(first, lines, uuid.uuid4().hex)


def split_batches(rows: Iterable[object]) -> Iterator[PublishBatch]:
    """Yield rows in batches, in order and lazily.

    Raises
    ------
    ModelError
        If a row is not a JSON object. Earlier rows of its batch are not yielded either.
    """
    lines: list[bytes] = []
    first = size = 0
    for number, row in enumerate(rows):
        line = json_line(row, number)
        if lines and (len(lines) == _MAX_ROWS or size + len(line) > _MAX_BYTES):
            yield new_batch(first, lines)
            first, lines, size = number, [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield new_batch(first, lines)


def json_line(row: object, number: int) -> bytes:
    """Return a row as one line of JSON; bytes are taken for such a line."""
    if isinstance(row, bytes):
        return row
    if not isinstance(row, Mapping):
        raise ModelError(f"row {number} must be a mapping; saw {type(row).__name__}")
    try:
        try:
            return _json_text(row).encode()
        except ValueError:  # it may have NaN, which is a missing value
            return _json_text(_without_nan(row)).encode()
    except (TypeError, ValueError) as error:
        raise ModelError(f"row {number} cannot be written as JSON: {error}") from None


def _json_text(value: Any) -> str:
    return json.dumps(dict(value), allow_nan=False, ensure_ascii=False, default=_json_value)


def _without_nan(value: Any) -> Any:
    """Return a value in which numbers that are NaN are None."""
    if isinstance(value, Mapping):
        return {name: _without_nan(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(member) for member in value]
    return None if isinstance(value, float) and isnan(value) else value


def _json_value(value: Any) -> Any:
    """Convert geometries, times, NumPy numbers and other mappings to values that JSON has."""
    if type(value).__name__ == "NAType":  # of pandas
        return None
    for name in ("__geo_interface__", "isoformat", "tolist"):
        member = getattr(value, name, None)
        if member is not None:
            return member() if callable(member) else member
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")


def merge_result(
    total: PublishResult, response: Mapping[str, Any], batch: PublishBatch
) -> PublishResult:
    """Return the result so far, extended by the server's response to one more batch."""
    first, last = response.get("first"), response.get("last")
    return PublishResult(
        total.accepted + response["accepted"],
        total.messages + response["messages"],
        total.rejected + rejected_rows(response, batch.first),
        first if total.first is None else total.first,
        total.last if last is None else last,
    )
