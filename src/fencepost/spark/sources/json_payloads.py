"""From messages to events: JSON payloads as columns, and what cannot be read as dead letters."""

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
_WHOLE = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64()}
_REAL = {"float": pa.float32(), "double": pa.float64()}


class EventsAndDeadLetters(NamedTuple):
    """What `events_of` makes of messages."""

    events: DataFrame
    dead_letters: DataFrame


def events_of(messages: DataFrame, schema: StructType | str) -> EventsAndDeadLetters:
    """The events in the payloads of messages, and the messages that hold none.

    Parameters
    ----------
    messages : DataFrame
        Batch or streaming, with a column `payload` (binary or string): a JSON object, or a
        GeoJSON Feature, whose id, geometry and properties are the attributes.
    schema : StructType or str
        The attributes to read, and their types. A `timestamp` or `date` is text in the payload
        (RFC 3339; UTC where no zone is given), `binary` is a GeoJSON geometry and becomes WKB.

    Returns
    -------
    EventsAndDeadLetters
        `events` has the columns of the schema, then those of the messages but for `payload` and
        names that the schema has taken. An attribute that a payload lacks is null; a string `id`
        it lacks is made of the message's topic, position and time. `dead_letters` has the
        messages whose payload cannot be read, with a column `reason`.

    Raises
    ------
    ModelError
        If there is no column `payload`, or a type of the schema cannot be read from JSON.

    Notes
    -----
    Two streaming queries read the source twice. Each then needs a reader name of its own, or both
    are written by one query, in `foreachBatch`.
    """
    from pyspark.sql.functions import col
    from pyspark.sql.types import StringType, StructField, StructType

    if "payload" not in messages.columns:
        raise ModelError(
            f"the messages have no column 'payload'; they have: {', '.join(messages.columns)}; "
            "rename the one that holds the JSON"
        )
    wanted = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(wanted, StructType):
        raise ModelError(f"{schema!r} is no schema; give names and types, as in 'id string'")
    columns = [PayloadColumn.of(field.name, field.dataType) for field in wanted]
    # Read columns travel beside those of the message, so both have plain names on the way.
    read = [StructField(f"e{k}", field.dataType) for k, field in enumerate(wanted)]
    sent = [StructField(f"m{k}", field.dataType) for k, field in enumerate(messages.schema)]
    reason = StructField("reason", StringType())
    parsed = messages.toDF(*(field.name for field in sent)).mapInArrow(
        PayloadParser(columns, messages.columns), StructType([*read, *sent, reason])
    )
    if messages.isStreaming:
        parsed = observe_payloads(parsed)
    own = [col(f"e{k}").alias(field.name) for k, field in enumerate(wanted)]
    besides = [
        col(f"m{k}").alias(name)
        for k, name in enumerate(messages.columns)
        if name != "payload" and name not in wanted.names
    ]
    whole = [col(f"m{k}").alias(name) for k, name in enumerate(messages.columns)]
    return EventsAndDeadLetters(
        parsed.where("reason IS NULL").select(*own, *besides),
        parsed.where("reason IS NOT NULL").select(*whole, "reason"),
    )


class PayloadColumn(NamedTuple):
    """A column to read: types of values that Arrow takes as they are, and how to read others."""

    name: str
    type: pa.DataType
    plain: frozenset[type]
    read: Callable[[object], object]

    @classmethod
    def of(cls, name: str, kind: DataType) -> PayloadColumn:
        """The column for a type of Spark."""
        from pyspark.sql.types import ArrayType

        if isinstance(kind, ArrayType):
            item = cls.of(name, kind.elementType)
            if item.type != pa.binary():
                return cls(name, pa.list_(item.type), frozenset(), _ListOf(item))
        text = kind.typeName()
        if text == "string":
            return cls(name, pa.string(), frozenset({str}), _id if name == "id" else _string)
        if text in _WHOLE:
            return cls(name, _WHOLE[text], frozenset({int}), _whole)
        if text in _REAL:
            return cls(name, _REAL[text], frozenset({int, float}), _real)
        if text == "boolean":
            return cls(name, pa.bool_(), frozenset({bool}), _boolean)
        if text == "timestamp":
            return cls(name, pa.timestamp("us", "UTC"), frozenset(), _instant)
        if text == "date":
            return cls(name, pa.date32(), frozenset(), _day)
        if text == "binary":
            return cls(name, pa.binary(), frozenset({bytes}), _not_a_geometry)
        raise ModelError(
            f"the column {name!r} is of type {kind.simpleString()}, which is not read from JSON; "
            "use string, boolean, a number, timestamp, date, binary for a geometry, or an array"
        )


class PayloadParser:
    """What runs on the workers: messages in; columns, the messages and reasons out."""

    def __init__(self, columns: Sequence[PayloadColumn], names: Sequence[str]) -> None:
        self._columns = list(columns)
        self._names = list(names)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self._parsed(batch)

    def _parsed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        payloads = batch.column(self._names.index("payload")).to_pylist()
        rows, reasons = _objects(payloads)
        found = [self._column(column, rows, reasons, batch) for column in self._columns]
        bad = pa.array([reason is not None for reason in reasons], pa.bool_())
        arrays = [pc.if_else(bad, pa.scalar(None, array.type), array) for array in found]
        names = [f"e{k}" for k in range(len(arrays))] + [f"m{k}" for k in range(len(self._names))]
        return pa.RecordBatch.from_arrays(
            [*arrays, *batch.columns, pa.array(reasons, pa.string())], [*names, "reason"]
        )

    def _column(
        self,
        column: PayloadColumn,
        rows: list[dict[str, Any]],
        reasons: list[str | None],
        batch: pa.RecordBatch,
    ) -> pa.Array:
        values = [row.get(column.name) for row in rows]
        if column.type == pa.binary():
            values = _well_known(values)
        if column.name == "id" and column.type == pa.string() and None in values:
            own = self._message_ids(batch)
            values = [own[k] if value is None else value for k, value in enumerate(values)]
        if set(map(type, values)) <= column.plain | {type(None)}:
            try:
                return pa.array(values, column.type)
            except (pa.ArrowException, ValueError, OverflowError):
                pass  # some number is too large or some text no Unicode; found below
        return pa.array([_value(column, v, k, reasons) for k, v in enumerate(values)], column.type)

    def _message_ids(self, batch: pa.RecordBatch) -> list[str | None]:
        if not {"topic", "position", "received"} <= set(self._names):
            return [None] * len(batch)
        topics, positions, times = (
            batch.column(self._names.index(name)) for name in ("topic", "position", "received")
        )
        # With the time, because the positions of another spool begin with 0 again.
        parts = zip(
            *(topics.to_pylist(), positions.to_pylist(), times.cast(pa.int64()).to_pylist()),
            strict=True,
        )
        return [f"{topic}@{position}-{time}" for topic, position, time in parts]


def _value(column: PayloadColumn, value: object, row: int, reasons: list[str | None]) -> object:
    """A value as Arrow takes it; where there is none, None, and the reason is noted."""
    if value is None:
        return None
    try:
        read = column.read(value)
        pa.scalar(read, column.type)  # too large a number, text that is no Unicode
    except (pa.ArrowException, ValueError, OverflowError) as error:
        reasons[row] = reasons[row] or f"{column.name}: {error}; saw {short_repr(value)}"
        return None
    return read


def _objects(
    payloads: Iterable[bytes | str | None],
) -> tuple[list[dict[str, Any]], list[str | None]]:
    """The attributes in payloads, and why there are none."""
    rows: list[dict[str, Any]] = []
    reasons: list[str | None] = []
    for payload in payloads:
        row: dict[str, Any] = {}
        reason = None
        try:
            text = payload.decode("utf-8") if isinstance(payload, bytes) else payload
            value = json.loads(text or "", parse_constant=_no_number)
            if not isinstance(value, dict):
                raise ValueError(f"it is no JSON object; saw {short_repr(value)}")
            row = dict(attributes(value))
        except UnicodeDecodeError as error:
            reason = f"byte {error.start + 1} of the payload is not UTF-8"
        except json.JSONDecodeError as error:
            reason = f"the payload is no JSON: {error}"
        except RecursionError:
            reason = "the payload nests too deeply"
        except (ValueError, ModelError) as error:
            reason = str(error)
        rows.append(row)
        reasons.append(reason)
    return rows, reasons


def _well_known(values: Sequence[object]) -> list[object]:
    """GeoJSON geometries as WKB; other values stay, to be refused one by one."""
    at = [k for k, v in enumerate(values) if isinstance(v, dict) and v.get("type") in _GEOMETRIES]
    texts = np.array([json.dumps(values[k]) for k in at], dtype=object)
    made = shapely.to_wkb(shapely.from_geojson(texts, on_invalid="ignore"))
    found = list(values)
    for k, wkb in zip(at, made, strict=True):
        found[k] = found[k] if wkb is None else wkb
    return found


class _ListOf:
    """Reads a list whose items are all of one type."""

    def __init__(self, item: PayloadColumn) -> None:
        self._item = item

    def __call__(self, value: object) -> object:
        if not isinstance(value, list):
            raise ValueError("it is no list")
        return [None if item is None else self._item.read(item) for item in value]


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("it is no string")
    return value


def _id(value: object) -> str:
    """An id may be a number in GeoJSON."""
    return str(value) if type(value) in {int, float} else _string(value)


def _whole(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise ValueError("it is no whole number")
    return value


def _real(value: object) -> float:
    if type(value) not in {int, float}:
        raise ValueError("it is no number")
    return float(value)  # type: ignore[arg-type]


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is neither true nor false")
    return value


def _instant(value: object) -> int:
    read = parse_instant(value) if isinstance(value, str) else None
    if read is None:
        raise ValueError("it is no time such as 2024-05-01T12:30:00Z")
    return read[0] // 1000


def _day(value: object) -> int:
    read = parse_instant(value) if isinstance(value, str) else None
    if read is None or not read[1]:
        raise ValueError("it is no date such as 2024-05-01")
    return read[0] // DAY


def _not_a_geometry(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("it is no GeoJSON geometry")
    return value
