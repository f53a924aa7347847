"""`render`: operations, channels and schemas of the server, as Markdown, from its descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fencepost.server import CHANNELS, OPERATIONS
from fencepost.server.http.asyncapi import asyncapi_document
from fencepost.server.http.operations import openapi_document

_PROBLEM = "application/problem+json"


def render() -> str:
    """Return the sections of operations, problems, channels and schemas."""
    http, channels = openapi_document(OPERATIONS), asyncapi_document("127.0.0.1:8080")
    schemas = channels["components"]["schemas"] | http["components"]["schemas"]
    return "\n".join(
        [
            *_operations(http["paths"]),
            *_problems(http["paths"]),
            *_channels(channels["components"]),
            *_schemas(schemas),
        ]
    )


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    yield "## Operations\n"
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield f"### `{method.upper()} {path}`\n"
            yield f"{operation['summary']}\n"
            scopes = [scope for need in operation.get("security", []) for scope in need["key"]]
            yield f"Scope of the key: `{scopes[0]}`.\n" if scopes else "Needs no key.\n"
            yield from _parameters(operation["parameters"])
            body = operation.get("requestBody", {}).get("content", {})
            yield from _bodies("Body", body)
            for status, response in operation["responses"].items():
                if int(status) < 400:
                    yield f"**{status}**: {response['description']}\n"
                    yield from _bodies("Body of the response", response.get("content", {}))


def _parameters(parameters: list[dict[str, Any]]) -> Iterator[str]:
    if not parameters:
        return
    yield "| parameter | in | type | meaning |\n|---|---|---|---|"
    for parameter in parameters:
        schema = parameter["schema"]
        meaning = parameter.get("description", "")
        yield f"| `{parameter['name']}` | {parameter['in']} | {_type(schema)} | {_cell(meaning)} |"
    yield ""


def _bodies(name: str, content: Mapping[str, Any]) -> Iterator[str]:
    for type, body in content.items():
        schema = body["schema"]
        meaning = _cell(schema.get("description", ""))
        yield f"- {name}, `{type}`: {_type(schema)}{'. ' + meaning if meaning else ''}"
    if content:
        yield ""


def _problems(paths: Mapping[str, Any]) -> Iterator[str]:
    yield "## Problems\n"
    yield f"An error is answered with `{_PROBLEM}`, which holds a [Problem](#problem):\n"
    yield "| status | meaning |\n|---|---|"
    found = {
        int(status): response["description"]
        for methods in paths.values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if _PROBLEM in response.get("content", {})
    }
    for status in sorted(found):
        yield f"| {status} {HTTPStatus(status).phrase} | {_cell(found[status])} |"
    yield ""


def _channels(components: Mapping[str, Any]) -> Iterator[str]:
    yield "## Channels\n"
    for channel in CHANNELS:
        yield f"### Channel `{channel.address or channel.name}`\n"
        scope = f" Scope of the key: `{channel.scope}`." if channel.scope else ""
        yield f"{channel.description}{scope}\n"
        for verb, messages in (("sends", channel.sends), ("receives", channel.receives)):
            for name, (type, payload) in messages.items():
                yield f"- The server {verb} *{name}*, `{type}`: {_payload(payload, components)}"
        yield ""


def _payload(payload: Any, components: Mapping[str, Any]) -> str:
    listed = getattr(payload, "__args__", None)
    name = (listed[0] if listed else payload).__name__
    target = _link(name) if name in components["schemas"] else name
    return f"list of {target}" if listed else target


def _schemas(schemas: Mapping[str, Any]) -> Iterator[str]:
    yield "## Schemas\n"
    for name in sorted(schemas):
        schema = schemas[name]
        yield f"### {name}\n"
        yield f"{schema.get('description', '')}\n"
        if properties := schema.get("properties"):
            required = schema.get("required", [])
            yield "| member | type | meaning |\n|---|---|---|"
            for member, of in properties.items():
                optional = "" if member in required else "optional. "
                yield f"| `{member}` | {_type(of)} | {optional}{_cell(of.get('description', ''))} |"
            yield ""
        elif "anyOf" in schema or "oneOf" in schema:
            yield f"{_type(schema)}\n"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in a few words, with links to the named ones."""
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema:
            types = dict.fromkeys(_type(one) for one in schema[alternatives])
            return " or ".join(types)
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "any JSON")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"{kind}{_bounds(schema)}"


def _bounds(schema: Mapping[str, Any]) -> str:
    words = [
        f"{word} {schema[key]}"
        for key, word in (
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("maxLength", "at most"),
            ("default", "by default"),
        )
        if schema.get(key) is not None and schema[key] != 2**63 - 1
    ]
    if "maxLength" in schema:
        words = [f"{word} characters" if word.startswith("at most") else word for word in words]
    format = f" ({schema['format']})" if "format" in schema else ""
    return f"{format}{', ' if words else ''}{', '.join(words)}"


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
