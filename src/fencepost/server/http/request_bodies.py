"""Reads request bodies: JSON values, JSON lines, and events in four formats.

A matcher treats an invalid geometry as unknown, so the event silently matches no place. The
geometries of published events are therefore checked here, and the publisher gets an error.
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
_MAX_EVENTS = 100_000
_LONE_SURROGATE = re.compile(r"(?i)\\ud[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..)\\ud[c-f]")
_BYTE_OFFSET = re.compile(r"\(byte (\d+)\)")
_MEMBER_PATH = re.compile(r" - at (?:`key` in )?`\$\.(.*)`$")
_FIRST_NAME = re.compile(r"[^.\[]*")


class ParsedObjects(NamedTuple):
    """JSON objects of a request.

    Attributes
    ----------
    objects : list of dict
    texts : list of str
        JSON of each object.
    rows : list of int
        Row of each object in the request.
    rejected : list of (int, str)
        Row and reason of each rejected row.
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
        JSON of each event.
    rows : list of int
        Row of each event in the request.
    rejected : list of (int, str)
        Row and reason of each rejected row.
    """

    table: EventTable
    bodies: list[str]
    rows: list[int]
    rejected: list[tuple[int, str]]


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request; raise a `RequestError` if it is too large or too slow."""
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
            f"the body did not arrive within {limits.body_timeout_s:g} s",
            {"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise RequestError(400, "the connection was closed before the body arrived") from None
    return b"".join(parts)


def _too_large(limits: Limits) -> RequestError:
    return RequestError(
        413,
        f"the body is larger than {limits.body_bytes:,} bytes; send it in parts",
        {"connection": "close"},
    )


def content_type(request: Request) -> str:
    """Return the content type of a request, without parameters."""
    return request.headers.get("content-type", JSON_TYPES[0]).partition(";")[0].strip().lower()


def unsupported_type(type: str, supported: tuple[str, ...]) -> RequestError:
    """Return the error for a body of another content type."""
    return RequestError(
        415, f"a body of type {type!r:.60} cannot be read; send {', '.join(supported)}"
    )


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body."""
    try:
        text = body.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise RequestError(400, f"byte {error.start + 1} of the body is not UTF-8") from None
    if is_nested_too_deep(text):
        raise RequestError(400, "the brackets of the body nest too deep; flatten it")
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise RequestError(400, f"the body is no JSON: {_reason(str(error), text)}") from None


def _reason(reason: str, text: str) -> str:
    """Return why a text is no JSON, with the text at the error."""
    if _LONE_SURROGATE.search(text):
        return f"{reason}; half of a surrogate pair is no character"
    offset = _BYTE_OFFSET.search(reason)
    snippet = (
        "" if offset is None else text.encode()[int(offset[1]) :][:20].decode(errors="replace")
    )
    return f"{reason}: saw {short_repr(snippet)}" if snippet else reason.partition(" - at ")[0]


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise RequestError(400, "the body must be a JSON object, as in {...}")
    return value


def convert(value: dict[str, Any], type: Any, status: int = 422) -> Any:
    """Convert a JSON object to a Struct.

    Parameters
    ----------
    value : dict
    type : type
        A Struct, or a union of Structs.
    status : int
        Status of the `RequestError` for an invalid object; with 400, the values are texts of a
        query or of headers.
    """
    try:
        return msgspec.convert(value, type, strict=status != 400)
    except msgspec.ValidationError as error:
        raise RequestError(status, _validation_message(str(error), value, type)) from None


def _validation_message(reason: str, value: dict[str, Any], type: Any) -> str:
    """Return why an object is invalid, with the member, its value and its description."""
    structs = (struct for struct in get_args(type) or (type,) if _has_tag_of(struct, value))
    struct = next(structs, None)
    members = {} if struct is None else properties(struct)
    path = _MEMBER_PATH.search(reason)
    if path is None:
        return f"{reason}; the members are {', '.join(members)}" if members else reason
    name = _FIRST_NAME.match(path[1])[0]  # type: ignore[index]
    description = members.get(name, {}).get("description")
    message = f"`{path[1]}`: {reason[: path.start()]}; saw {short_repr(value.get(name))}"
    return message if description is None else f"{message}. {description}"


def _has_tag_of(struct: Any, value: dict[str, Any]) -> bool:
    config = struct.__struct_config__
    return config.tag is None or value.get(config.tag_field) == config.tag


def parse_events(body: bytes, type: str, limits: Limits, space: Space) -> ParsedEvents:
    """Return the events of a body.

    Raises
    ------
    RequestError
        If the body cannot be read at all.
    """
    if type in ARROW_TYPES:
        parsed = _parse_arrow(body)
    elif type in LINES_TYPES:
        parsed = parse_json_lines(body)
    elif type in JSON_TYPES:
        parsed = _parse_json_events(body)
    else:
        raise unsupported_type(type, EVENT_TYPES)
    table = event_table(parsed.objects, space, limits.vertices)
    numbers = table.source_rows.tolist()
    return ParsedEvents(
        table,
        [parsed.texts[number] for number in numbers],
        [parsed.rows[number] for number in numbers],
        [*parsed.rejected, *((parsed.rows[number], reason) for number, reason in table.bad)],
    )


def checked_event(value: object) -> dict[str, Any]:
    """Return an event of a JSON value; raise a `RequestError` if it cannot be used."""
    try:
        return check_object(value, "")
    except InvalidRowError as error:
        raise RequestError(422, f"the event cannot be used: {error}") from None


def _parse_json_events(body: bytes) -> ParsedObjects:
    parsed = ParsedObjects([], [], [], [])
    try:
        text = body.decode("utf-8-sig")
        for row, element in enumerate(elements(text, "the body")):
            _append(parsed, row, element.text, element.value)
    except UnicodeDecodeError as error:
        raise RequestError(400, f"byte {error.start + 1} of the body is not UTF-8") from None
    except FencepostError as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError(400, str(error).partition("; if")[0]) from None
    return parsed


def parse_json_lines(body: bytes) -> ParsedObjects:
    """Return the JSON objects of a body with one object per line."""
    parsed = ParsedObjects([], [], [], [])
    row = 0
    for line in body.splitlines():
        try:
            value = parse_object_line(line)
        except InvalidRowError as error:
            parsed.rejected.append((row, str(error)))
        else:
            if value is None:
                continue
            text = line.decode("utf-8").strip("\ufeff\x1e \t\r\n")
            _append(parsed, row, text, value)
        row += 1
    return parsed


def _append(parsed: ParsedObjects, row: int, text: str, value: object) -> None:
    if len(parsed.rows) >= _MAX_EVENTS:
        raise RequestError(
            413, f"a request holds at most {_MAX_EVENTS:,} events; send them in parts"
        )
    try:
        event = check_object(value, text)
        if "NaN" in text or "Infinity" in text:
            event = parse_object_text(json.dumps(event, allow_nan=False))
        text.encode()
        _check_surrogates(event, text)
        if "\n" in text or "\r" in text:  # between values, where a space is equivalent
            text = text.replace("\r", " ").replace("\n", " ")
    except InvalidRowError as error:
        parsed.rejected.append((row, str(error)))
    except ValueError:
        reason = "it has a value that JSON does not allow: NaN, Infinity or a lone surrogate"
        parsed.rejected.append((row, reason))
    else:
        parsed.objects.append(event)
        parsed.texts.append(text)
        parsed.rows.append(row)


def _parse_arrow(body: bytes) -> ParsedObjects:
    try:
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise RequestError(400, f"the body is no Arrow stream: {error!s:.200}") from None
    if table.num_rows > _MAX_EVENTS:
        raise RequestError(
            413, f"a request holds at most {_MAX_EVENTS:,} events; send them in parts"
        )
    row_numbers = np.arange(table.num_rows)
    try:
        rows = features(Batch(table, row_numbers, None, 0), row_numbers, None)
        bodies = [json_text(row) for row in rows]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise RequestError(422, f"the table cannot be read: {error!s:.200}") from None
    return ParsedObjects([json.loads(body) for body in bodies], bodies, row_numbers.tolist(), [])


def _check_surrogates(value: object, text: str) -> None:
    """Raise a ValueError for an escaped lone surrogate, which UTF-8 cannot encode."""
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()


def event_table(events: Sequence[Mapping[str, Any]], space: Space, max_vertices: int) -> EventTable:
    """Return events as a table with parsed geometries; unusable events are in `bad`.

    The member `geometry` is checked in Features and in other objects; null is an unknown geometry.
    """
    table = EventTable.read(events, space)
    reasons: dict[int, str] = {}
    for number, row in enumerate(table.source_rows.tolist()):
        geometry = events[row].get("geometry")
        if not isinstance(geometry, dict):
            if geometry is not None and events[row].get("type") == "Feature":
                reasons[number] = "its geometry is no GeoJSON geometry; give an object or null"
        elif _count_vertices(geometry, max_vertices) > max_vertices:
            reasons[number] = f"it has more than {max_vertices:,} vertices; simplify its geometry"
    table = table.without(reasons)
    problems = table.geometries("geometry").problems
    return table.without(
        {
            number: _geometry_message(problem)
            for number, problem in problems.items()
            if isinstance(events[table.source_rows[number]].get("geometry"), dict)
        }
    )


def _geometry_message(problem: GeometryProblem) -> str:
    if problem.reason.startswith(OUTSIDE_WGS84):
        return f"its geometry has {problem.reason}"
    return f"its geometry cannot be used: {problem}"


def _count_vertices(geometry: object, max_count: int) -> int:
    """Return the number of positions of a geometry; counting stops above `max_count`."""
    pending, count = [geometry], 0
    while pending and count <= max_count:
        member = pending.pop()
        if isinstance(member, dict):
            count += _count_positions(member.get("coordinates"), max_count)
            members = member.get("geometries")
            pending += members if isinstance(members, list) else []
    return count


def _count_positions(coordinates: object, max_count: int) -> int:
    """Return the number of positions in nested lists; counting stops above `max_count`."""
    if not isinstance(coordinates, list):
        return 0
    if not coordinates or not isinstance(coordinates[0], list):
        return 1
    if coordinates[0] and not isinstance(coordinates[0][0], list):
        return len(coordinates)
    count = 0
    for part in coordinates:
        count += _count_positions(part, max_count)
        if count > max_count:
            break
    return count
