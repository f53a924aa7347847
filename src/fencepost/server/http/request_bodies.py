"""What a request holds: JSON values, events in four formats, subscriptions one or many.

To a matcher, a geometry that is none is unknown, and the event answers nothing about places. Who
publishes would not hear of it; so it is looked at before.
"""

from __future__ import annotations

import asyncio
import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np
import pyarrow as pa
from starlette.requests import ClientDisconnect, Request

from fencepost.errors import FencepostError, GeometryProblem
from fencepost.events.table import EventTable
from fencepost.formats.event_files import Batch
from fencepost.formats.feature_writer import features, json_text
from fencepost.formats.json_elements import (
    InvalidRowError,
    check_object,
    elements,
    is_nested_too_deep,
    parse_object_line,
    parse_object_text,
)
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import OUTSIDE_WGS84, Space
from fencepost.server.http.problems import RequestError
from fencepost.server.http.schemas import properties
from fencepost.server.settings import Limits

JSON_TYPES = ("application/json", "application/geo+json", "application/cloudevents+json")
LINES_TYPES = ("application/x-ndjson", "application/jsonl", "application/geo+json-seq")
ARROW_TYPES = ("application/vnd.apache.arrow.stream",)
EVENT_TYPES = (*JSON_TYPES[:2], *LINES_TYPES, *ARROW_TYPES)
_MOST_EVENTS = 100_000
_HALF_PAIR = re.compile(r"(?i)\\ud[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..)\\ud[c-f]")
_BYTE = re.compile(r"\(byte (\d+)\)")
_WHERE = re.compile(r" - at (?:`key` in )?`\$\.(.*)`$")
_NAME = re.compile(r"[^.\[]*")


class ParsedObjects(NamedTuple):
    """JSON objects of a request.

    Attributes
    ----------
    objects : list of dict
    texts : list of str
        The same as JSON.
    rows : list of int
        The number of each within the request.
    rejected : list of (int, str)
        Row and reason of what is no object.
    """

    objects: list[dict[str, Any]]
    texts: list[str]
    rows: list[int]
    rejected: list[tuple[int, str]]


class ParsedEvents(NamedTuple):
    """Events of a request.

    Attributes
    ----------
    table : EventTable
    bodies : list of str
        The same as JSON.
    rows : list of int
        The number of each within the request.
    rejected : list of (int, str)
        Row and reason of what cannot be used.
    """

    table: EventTable
    bodies: list[str]
    rows: list[int]
    rejected: list[tuple[int, str]]


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body of a request, which must not be too large, nor come too slowly."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limits.body_bytes:
        raise _too_large(limits)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            async for part in request.stream():
                size += len(part)
                if size > limits.body_bytes:
                    raise _too_large(limits)
                parts.append(part)
    except TimeoutError:
        raise RequestError(
            408,
            f"the body did not come within {limits.body_timeout_s:g} s",
            {"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise RequestError(400, "the connection was closed before the body had come") from None
    return b"".join(parts)


def _too_large(limits: Limits) -> RequestError:
    return RequestError(
        413,
        f"the body is larger than {limits.body_bytes:,} bytes; send it in parts",
        {"connection": "close"},
    )


def content_type(request: Request) -> str:
    """What a request says it holds, without parameters."""
    return request.headers.get("content-type", JSON_TYPES[0]).partition(";")[0].strip().lower()


def unsupported_type(given: str, known: tuple[str, ...]) -> RequestError:
    """For a body of another type."""
    return RequestError(
        415, f"a body of type {given!r:.60} cannot be read; send {', '.join(known)}"
    )


def parse_json(body: bytes) -> Any:
    """The JSON value that a body is."""
    try:
        text = body.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise RequestError(400, f"byte {error.start + 1} of the body is not UTF-8") from None
    if is_nested_too_deep(text):
        raise RequestError(400, "the brackets of the body nest too deep; write it flat")
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise RequestError(400, f"the body is no JSON: {_reason(str(error), text)}") from None


def _reason(reason: str, text: str) -> str:
    """Why a text is no JSON, and what stands there."""
    if _HALF_PAIR.search(text):
        return f"{reason}; half of a surrogate pair is no character"
    at = _BYTE.search(reason)
    seen = "" if at is None else text.encode()[int(at[1]) :][:20].decode(errors="replace")
    return f"{reason}: saw {short_repr(seen)}" if seen else reason.partition(" - at ")[0]


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise RequestError(400, "the body must be a JSON object, as in {...}")
    return value


def convert(value: dict[str, Any], type: Any, status: int = 422) -> Any:
    """A JSON object as what a type describes.

    Parameters
    ----------
    type : type
        A Struct, or several.
    status : int
        Of the Refusal where it is none; with 400, all values are texts of an address or a header.
    """
    try:
        return msgspec.convert(value, type, strict=status != 400)
    except msgspec.ValidationError as error:
        raise RequestError(status, _wrong(str(error), value, type)) from None


def _wrong(reason: str, value: dict[str, Any], type: Any) -> str:
    """What of an object is not as a type describes it, where, what stands there, what should."""
    one = next((one for one in get_args(type) or (type,) if _is_tagged(one, value)), None)
    members = {} if one is None else properties(one)
    at = _WHERE.search(reason)
    if at is None:
        return f"{reason}; the members are {', '.join(members)}" if members else reason
    name = _NAME.match(at[1])[0]  # type: ignore[index]
    wanted = members.get(name, {}).get("description")
    found = f"`{at[1]}`: {reason[: at.start()]}; saw {short_repr(value.get(name))}"
    return found if wanted is None else f"{found}. {wanted}"


def _is_tagged(type: Any, value: dict[str, Any]) -> bool:
    config = type.__struct_config__
    return config.tag is None or value.get(config.tag_field) == config.tag


def parse_events(body: bytes, type: str, limits: Limits, space: Space) -> ParsedEvents:
    """The events in a body.

    Raises
    ------
    Refusal
        Where the body as a whole cannot be read.
    """
    if type in ARROW_TYPES:
        found = _from_arrow(body)
    elif type in LINES_TYPES:
        found = parse_json_lines(body)
    elif type in JSON_TYPES:
        found = _from_json(body)
    else:
        raise unsupported_type(type, EVENT_TYPES)
    table = event_table(found.objects, space, limits.vertices)
    numbers = table.source_rows.tolist()
    return ParsedEvents(
        table,
        [found.texts[number] for number in numbers],
        [found.rows[number] for number in numbers],
        [*found.rejected, *((found.rows[number], reason) for number, reason in table.bad)],
    )


def checked_event(value: object) -> dict[str, Any]:
    """One event that is part of a JSON value."""
    try:
        return check_object(value, "")
    except InvalidRowError as error:
        raise RequestError(422, f"the event cannot be used: {error}") from None


def _from_json(body: bytes) -> ParsedObjects:
    found = ParsedObjects([], [], [], [])
    try:
        text = body.decode("utf-8-sig")
        for row, element in enumerate(elements(text, "the body")):
            _take(found, row, element.text, element.value)
    except UnicodeDecodeError as error:
        raise RequestError(400, f"byte {error.start + 1} of the body is not UTF-8") from None
    except FencepostError as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(400, str(error).partition("; if")[0]) from None
    return found


def parse_json_lines(body: bytes) -> ParsedObjects:
    """The JSON objects in a body, one a line."""
    found = ParsedObjects([], [], [], [])
    row = 0
    for line in body.splitlines():
        try:
            value = parse_object_line(line)
        except InvalidRowError as error:
            found.rejected.append((row, str(error)))
        else:
            if value is None:
                continue
            text = line.decode("utf-8").strip("\ufeff\x1e \t\r\n")
            _take(found, row, text, value)
        row += 1
    return found


def _take(found: ParsedObjects, row: int, text: str, value: object) -> None:
    if len(found.rows) >= _MOST_EVENTS:
        raise RequestError(
            413, f"a request holds at most {_MOST_EVENTS:,} events; send them in parts"
        )
    try:
        event = check_object(value, text)
        if "NaN" in text or "Infinity" in text:
            event = parse_object_text(json.dumps(event, allow_nan=False))
        text.encode()
        _check_surrogates(event, text)
        if "\n" in text or "\r" in text:  # between values, where a space says the same
            text = text.replace("\r", " ").replace("\n", " ")
    except InvalidRowError as error:
        found.rejected.append((row, str(error)))
    except ValueError:
        found.rejected.append((row, "it holds what JSON cannot say: NaN, Infinity or a surrogate"))
    else:
        found.objects.append(event)
        found.texts.append(text)
        found.rows.append(row)


def _from_arrow(body: bytes) -> ParsedObjects:
    try:
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise RequestError(400, f"the body is no Arrow stream: {error!s:.200}") from None
    if table.num_rows > _MOST_EVENTS:
        raise RequestError(
            413, f"a request holds at most {_MOST_EVENTS:,} events; send them in parts"
        )
    every = np.arange(table.num_rows)
    try:
        rows = features(Batch(table, every, None, 0), every, None)
        bodies = [json_text(row) for row in rows]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise RequestError(422, f"the table cannot be read: {error!s:.200}") from None
    return ParsedObjects([json.loads(one) for one in bodies], bodies, every.tolist(), [])


def _check_surrogates(value: object, text: str) -> None:
    """A ValueError where half a character is escaped: such strings cannot be kept nor sent."""
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()


def event_table(
    events: Sequence[Mapping[str, Any]], space: Space, most_vertices: int
) -> EventTable:
    """Events as a table, with their geometries read; what cannot be used is `bad`.

    Of Features and other objects alike the member `geometry` is looked at; null is one that is not
    known.
    """
    table = EventTable.read(events, space)
    wrong: dict[int, str] = {}
    for number, row in enumerate(table.source_rows.tolist()):
        geometry = events[row].get("geometry")
        if not isinstance(geometry, dict):
            if geometry is not None and events[row].get("type") == "Feature":
                wrong[number] = "its geometry is no GeoJSON geometry; give an object or null"
        elif _positions(geometry.get("coordinates"), most_vertices) > most_vertices:
            wrong[number] = f"it has more than {most_vertices:,} vertices; simplify its geometry"
    table = table.without(wrong)
    problems = table.geometries("geometry").problems
    return table.without(
        {
            number: _unusable(problem)
            for number, problem in problems.items()
            if isinstance(events[table.source_rows[number]].get("geometry"), dict)
        }
    )


def _unusable(problem: GeometryProblem) -> str:
    if problem.reason == OUTSIDE_WGS84:
        return f"its geometry has {OUTSIDE_WGS84}"
    return f"its geometry cannot be used: {problem}"


def _positions(given: object, most: int) -> int:
    """How many positions nested lists hold; counting stops beyond the most."""
    if not isinstance(given, list):
        return 0
    if not given or not isinstance(given[0], list):
        return 1
    if given[0] and not isinstance(given[0][0], list):
        return len(given)
    count = 0
    for one in given:
        count += _positions(one, most)
        if count > most:
            break
    return count
