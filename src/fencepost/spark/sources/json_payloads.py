"""Provides `events_of`, which reads JSON payloads as columns, and the rest as dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from fencepost.errors import ModelError
from fencepost.events.event_attributes import attributes
from fencepost.events.times import DAY, parse_instant
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.spark.matches.observed_metrics import observe_payloads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_GEOMETRIES = {
    "Point",
    "LineString",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
}
_INTEGERS = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64()}
_FLOATS = {"float": pa.float32(), "double": pa.float64()}


class EventsAndDeadLetters(NamedTuple):
    """The two DataFrames that `events_of` makes of messages."""

    events: DataFrame
    dead_letters: DataFrame


def events_of(messages: DataFrame, schema: StructType | str) -> EventsAndDeadLetters:
    """Read the events in the payloads of messages.

    Parameters
    ----------
    messages : DataFrame
        Batch or streaming, with a column `payload` (binary or string). A payload is a JSON object,
        or a GeoJSON Feature, whose id, geometry and properties are the attributes.
    schema : StructType or str
        The attributes to read, and their types. A `timestamp` or `date` is text in the payload
        (RFC 3339, by default in UTC); `binary` is a GeoJSON geometry and becomes WKB.

    Returns
    -------
    EventsAndDeadLetters
        `events` has the columns of the schema, then those of the messages except `payload` and
        names that the schema uses. An attribute that a payload lacks is null, but a missing string
        `id` is composed of the message's topic, position and time. `dead_letters` has the messages
        whose payload cannot be read, with a column `reason`.

    Raises
    ------
    ModelError
        If there is no column `payload`, or a type of the schema cannot be read from JSON.

    Notes
    -----
    If `events` and `dead_letters` are two streaming queries, they read the source twice, and each
    needs its own reader name. A single query can write both in `foreachBatch`.
    """
    from pyspark.sql.functions import col
    from pyspark.sql.types import StringType, StructField, StructType

    if "payload" not in messages.columns:
        raise ModelError(
            f"the messages have no column 'payload'; they have: {', '.join(messages.columns)}; "
            "rename the one that holds the JSON"
        )
    parsed_schema = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed_schema, StructType):
        raise ModelError(f"{schema!r} is not a schema; give names and types, as in 'id string'")
    columns = [PayloadColumn.of(field.name, field.dataType) for field in parsed_schema]
    # Rows carry read columns beside those of the message, so both get names that cannot clash.
    read_fields = [StructField(f"e{k}", field.dataType) for k, field in enumerate(parsed_schema)]
    message_fields = [
        StructField(f"m{k}", field.dataType) for k, field in enumerate(messages.schema)
    ]
    reason = StructField("reason", StringType())
    parsed = messages.toDF(*(field.name for field in message_fields)).mapInArrow(
        PayloadParser(columns, messages.columns),
        StructType([*read_fields, *message_fields, reason]),
    )
    if messages.isStreaming:
        parsed = observe_payloads(parsed)
    event_columns = [col(f"e{k}").alias(field.name) for k, field in enumerate(parsed_schema)]
    other_columns = [
        col(f"m{k}").alias(name)
        for k, name in enumerate(messages.columns)
        if name != "payload" and name not in parsed_schema.names
    ]
    message_columns = [col(f"m{k}").alias(name) for k, name in enumerate(messages.columns)]
    return EventsAndDeadLetters(
        parsed.where("reason IS NULL").select(*event_columns, *other_columns),
        parsed.where("reason IS NOT NULL").select(*message_columns, "reason"),
    )


class PayloadColumn(NamedTuple):
    """A column to read from payloads."""

    name: str
    type: pa.DataType
    direct: frozenset[type]  # types of JSON values that Arrow converts without `read`
    read: Callable[[object], object]  # converts a JSON value, or raises ValueError

    @classmethod
    def of(cls, name: str, kind: DataType) -> PayloadColumn:
        """Return the column for a Spark type."""
        from pyspark.sql.types import ArrayType

        if isinstance(kind, ArrayType):
            item = cls.of(name, kind.elementType)
            if item.type != pa.binary():
                return cls(name, pa.list_(item.type), frozenset(), _ListOf(item))
        text = kind.typeName()
        if text == "string":
            return cls(name, pa.string(), frozenset({str}), _id if name == "id" else _string)
        if text in _INTEGERS:
            return cls(name, _INTEGERS[text], frozenset({int}), _integer)
        if text in _FLOATS:
            return cls(name, _FLOATS[text], frozenset({int, float}), _float)
        if text == "boolean":
            return cls(name, pa.bool_(), frozenset({bool}), _boolean)
        if text == "timestamp":
            return cls(name, pa.timestamp("us", "UTC"), frozenset(), _instant)
        if text == "date":
            return cls(name, pa.date32(), frozenset(), _day)
        if text == "binary":
            return cls(name, pa.binary(), frozenset({bytes}), _reject_geometry)
        raise ModelError(
            f"the column {name!r} is of type {kind.simpleString()}, which is not read from JSON; "
            "use string, boolean, a number, timestamp, date, binary for a geometry, or an array"
        )


class PayloadParser:
    """Parses batches of messages into event columns, message columns and a reason.

    Parameters
    ----------
    columns : sequence of PayloadColumn
        The columns to read.
    names : sequence of str
        The columns of the messages.
    """

    def __init__(self, columns: Sequence[PayloadColumn], names: Sequence[str]) -> None:
        self._columns = list(columns)
        self._names = list(names)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self._parse(batch)

    def _parse(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        payloads = batch.column(self._names.index("payload")).to_pylist()
        rows, reasons = _parse_payloads(payloads)
        columns = [self._read_column(column, rows, reasons, batch) for column in self._columns]
        bad = pa.array([reason is not None for reason in reasons], pa.bool_())
        arrays = [pc.if_else(bad, pa.scalar(None, array.type), array) for array in columns]
        names = [f"e{k}" for k in range(len(arrays))] + [f"m{k}" for k in range(len(self._names))]
        return pa.RecordBatch.from_arrays(
            [*arrays, *batch.columns, pa.array(reasons, pa.string())], [*names, "reason"]
        )

    def _read_column(
        self,
        column: PayloadColumn,
        rows: list[dict[str, Any]],
        reasons: list[str | None],
        batch: pa.RecordBatch,
    ) -> pa.Array:
        values = [row.get(column.name) for row in rows]
        if column.type == pa.binary():
            values = _geojson_as_wkb(values)
        if column.name == "id" and column.type == pa.string() and None in values:
            message_ids = self._message_ids(batch)
            values = [message_ids[k] if value is None else value for k, value in enumerate(values)]
        if set(map(type, values)) <= column.direct | {type(None)}:
            try:
                return pa.array(values, column.type)
            except (pa.ArrowException, ValueError, OverflowError):
                pass  # a number too large or text that is not Unicode: the slow path finds the row
        return pa.array(
            [_read_value(column, v, k, reasons) for k, v in enumerate(values)], column.type
        )

    def _message_ids(self, batch: pa.RecordBatch) -> list[str | None]:
        if not {"topic", "position", "received"} <= set(self._names):
            return [None] * len(batch)
        topics, positions, times = (
            batch.column(self._names.index(name)) for name in ("topic", "position", "received")
        )
        # The time is part of the id, because positions start at 0 again in a new spool.
        parts = zip(
            *(topics.to_pylist(), positions.to_pylist(), times.cast(pa.int64()).to_pylist()),
            strict=True,
        )
        return [f"{topic}@{position}-{time}" for topic, position, time in parts]


def _read_value(
    column: PayloadColumn, value: object, row: int, reasons: list[str | None]
) -> object:
    """Return a value for Arrow; None if it cannot be read, with the reason in `reasons`."""
    if value is None:
        return None
    try:
        converted = column.read(value)
        pa.scalar(
            converted, column.type
        )  # raises for a number too large or text that is not Unicode
    except (pa.ArrowException, ValueError, OverflowError) as error:
        reasons[row] = reasons[row] or f"{column.name}: {error}; saw {short_repr(value)}"
        return None
    return converted


def _parse_payloads(
    payloads: Iterable[bytes | str | None],
) -> tuple[list[dict[str, Any]], list[str | None]]:
    """Return the attributes in each payload, and the reason if it has none."""
    rows: list[dict[str, Any]] = []
    reasons: list[str | None] = []
    for payload in payloads:
        row: dict[str, Any] = {}
        reason = None
        try:
            text = payload.decode("utf-8") if isinstance(payload, bytes) else payload
            value = json.loads(text or "", parse_constant=_reject_constant)
            if not isinstance(value, dict):
                raise ValueError(f"the payload is not a JSON object; saw {short_repr(value)}")
            row = dict(attributes(value))
        except UnicodeDecodeError as error:
            reason = f"byte {error.start + 1} of the payload is not UTF-8"
        except json.JSONDecodeError as error:
            reason = f"the payload is not JSON: {error}"
        except RecursionError:
            reason = "the payload nests too deeply"
        except (ValueError, ModelError) as error:
            reason = str(error)
        rows.append(row)
        reasons.append(reason)
    return rows, reasons


def _geojson_as_wkb(values: Sequence[object]) -> list[object]:
    """Convert GeoJSON geometries to WKB; other values stay, and are rejected one by one later."""
    rows = [k for k, v in enumerate(values) if isinstance(v, dict) and v.get("type") in _GEOMETRIES]
    texts = np.array([json.dumps(values[k]) for k in rows], dtype=object)
    wkbs = shapely.to_wkb(shapely.from_geojson(texts, on_invalid="ignore"))
    converted = list(values)
    for k, wkb in zip(rows, wkbs, strict=True):
        converted[k] = converted[k] if wkb is None else wkb
    return converted


class _ListOf:
    """Reads a list whose items have one type."""

    def __init__(self, item: PayloadColumn) -> None:
        self._item = item

    def __call__(self, value: object) -> object:
        if not isinstance(value, list):
            raise ValueError("it is not a list")
        return [None if item is None else self._item.read(item) for item in value]


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("it is not a string")
    return value


def _id(value: object) -> str:
    """Return an id as text; in GeoJSON it may be a number."""
    return str(value) if type(value) in {int, float} else _string(value)


def _integer(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise ValueError("it is not a whole number")
    return value


def _float(value: object) -> float:
    if type(value) not in {int, float}:
        raise ValueError("it is not a number")
    return float(value)  # type: ignore[arg-type]


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")
    return value


def _instant(value: object) -> int:
    parsed = parse_instant(value) if isinstance(value, str) else None
    if parsed is None:
        raise ValueError("it is not a time such as 2024-05-01T12:30:00Z")
    return parsed[0] // 1000


def _day(value: object) -> int:
    parsed = parse_instant(value) if isinstance(value, str) else None
    if parsed is None or not parsed[1]:
        raise ValueError("it is not a date such as 2024-05-01")
    return parsed[0] // DAY


def _reject_geometry(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("it is not a GeoJSON geometry")
    return value
