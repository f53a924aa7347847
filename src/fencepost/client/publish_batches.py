"""Events in parts that a request can hold, and what becomes of them together."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fencepost.client.network_effects import Request
from fencepost.client.results import PublishResult, rejected_of
from fencepost.errors import ModelError

_MOST_EVENTS = 5_000
_MOST_BYTES = 4 << 20


class PublishBatch(NamedTuple):
    """Events of one request: the row of the first, and each as JSON.

    A part has a name of its own: the server takes it once, however often it is sent.
    """

    first: int
    lines: Sequence[bytes]
    name: str

    def request(self) -> Request:
        """What publishes it."""
        headers = {"content-type": "application/x-ndjson", "idempotency-key": self.name}
        return Request("POST", "/v1/events", headers=headers, content=b"\n".join(self.lines))

    def halves(self) -> tuple[PublishBatch, PublishBatch]:
        """The same in two parts, where it was too large for the server."""
        middle = len(self.lines) // 2
        return (
            new_batch(self.first, self.lines[:middle]),
            new_batch(self.first + middle, self.lines[middle:]),
        )


def new_batch(first: int, lines: Sequence[bytes]) -> PublishBatch:
    """Events that begin at a row."""
    return PublishBatch(first, lines, uuid.uuid4().hex)


def split_batches(rows: Iterable[object]) -> Iterator[PublishBatch]:
    """Rows in parts, in order, each made when it is asked for.

    Raises
    ------
    ModelError
        Where one is no JSON object; what came before it in its part is not given either.
    """
    lines: list[bytes] = []
    first = size = 0
    for number, row in enumerate(rows):
        line = json_line(row, number)
        if lines and (len(lines) == _MOST_EVENTS or size + len(line) > _MOST_BYTES):
            yield new_batch(first, lines)
            first, lines, size = number, [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield new_batch(first, lines)


def json_line(row: object, number: int) -> bytes:
    """A row as a line of JSON; bytes are one already."""
    if isinstance(row, bytes):
        return row
    if not isinstance(row, Mapping):
        raise ModelError(f"row {number} is no mapping, as in {{...}}; saw {type(row).__name__}")
    try:
        text = json.dumps(dict(row), allow_nan=False, ensure_ascii=False, default=_plain)
        return text.encode()
    except (TypeError, ValueError) as error:
        raise ModelError(f"row {number} cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """What JSON has no word for: geometries, times, NumPy's numbers, mappings of other kinds."""
    for name in ("__geo_interface__", "isoformat", "tolist"):
        found = getattr(value, name, None)
        if found is not None:
            return found() if callable(found) else found
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} has no place in JSON")


def merge_result(
    before: PublishResult, answer: Mapping[str, Any], part: PublishBatch
) -> PublishResult:
    """What became of events so far, and of a further part."""
    first, last = answer.get("first"), answer.get("last")
    return PublishResult(
        before.accepted + answer["accepted"],
        before.messages + answer["messages"],
        before.rejected + rejected_of(answer, part.first),
        first if before.first is None else before.first,
        before.last if last is None else last,
    )
