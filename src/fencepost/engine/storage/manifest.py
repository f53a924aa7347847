"""The manifest of an index: what its JSON says, decoded strictly. `docs/format.md` specifies it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import DecodeError, Meta, Struct, ValidationError, json

from fencepost.cql2 import ast
from fencepost.cql2.parser import parse
from fencepost.cql2.writer import render_json
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.errors import IndexingError
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters.checks import Column, ColumnKind
from fencepost.geometry.space import Space

FORMAT = 11
MANIFEST = "manifest.json"

Count = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(pattern=r"^[\w.-]+$")]  # of a file or folder right there
DType: TypeAlias = str | list[tuple[str, str]]  # as NumPy names it, or the fields of a record

_KINDS = Literal[
    "NUMBER", "TIME", "NATIVE_TIME", "SPAN_START", "SPAN_END", "STRING", "BOOLEAN", "TRUTH",
    "MISSING", "GEOMETRY", "LIST",
]  # fmt: skip


class _Strict(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """JSON that may hold no other fields."""


class ColumnEntry(_Strict, frozen=True, kw_only=True):
    """A column of events: a property, or another value, by a condition about it."""

    kind: _KINDS
    property: str | None = None
    condition: dict[str, Any] | bool | None = None


class ArrayEntry(_Strict, frozen=True, kw_only=True):
    """Where an array lies in the file `arrays`, and what it is of."""

    dtype: DType
    shape: list[Count]
    start: Count  # byte


class SegmentEntry(_Strict, frozen=True, kw_only=True):
    """A segment: `deleted_file`, and what follows it, is of indexes that Spark builds."""

    folder: Name
    subscriptions: Count  # deleted ones included
    arrays: dict[str, ArrayEntry]
    arrays_bytes: Count  # the size of the file
    last_columns: dict[str, Annotated[int, Meta(ge=-1)]]  # by storage, the last that is asked for
    names: list[str]  # the columns of names.arrow
    deleted_file: Name | None = None  # in place of deleted_version.npy
    deleted: Count = 0
    memory_bytes: Count | None = None
    is_partition: bool = True  # one of those into which all was divided; no update wrote it

    @property
    def live(self) -> int:
        """How many subscriptions are not deleted."""
        return self.subscriptions - self.deleted


class Manifest(_Strict, frozen=True, kw_only=True):
    """An index: `version` and `router` are of indexes that Spark builds."""

    format: int
    space: Space
    stop_words: list[str]
    columns: list[list[ColumnEntry]]
    segments: list[SegmentEntry]
    version: Annotated[int, Meta(ge=1)] | None = None
    router: Name | None = None

    def event_columns(self) -> ColumnRegistry:
        """The columns of events that the subscriptions ask for."""
        return columns_of(
            (one for rows in self.columns for one in rows), self.stop_words, self.space
        )


class _Format(Struct):
    """What a manifest of any format says."""

    format: Any = None


def manifest_name(version: int | None = None) -> str:
    """The file of the newest manifest, or of that of a version."""
    return MANIFEST if version is None else f"manifest-{version}.json"


def build_manifest(
    entries: Sequence[SegmentEntry],
    columns: ColumnRegistry,
    version: int | None = None,
    router: str | None = None,
) -> Manifest:
    """The manifest of an index of these segments."""
    return Manifest(
        format=FORMAT,
        space=columns.space,
        stop_words=sorted(columns.tokenizer.stop_words),
        columns=column_entries(columns),
        segments=list(entries),
        version=version,
        router=router,
    )


def decode_manifest(name: str, text: str | bytes, file: str = MANIFEST) -> Manifest:
    """A manifest from its text; `name` is that of the folder, for errors.

    Raises
    ------
    IndexingError
        Which file of which folder, which field, and what to do.
    """
    try:
        seen = json.decode(text, type=_Format).format
        if seen != FORMAT or isinstance(seen, bool):
            raise IndexingError(
                f"the index in {name} has format {seen!r:.40} ({file}); this version reads "
                f"{FORMAT}: build it again"
            )
        return json.decode(text, type=Manifest)
    except (DecodeError, ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise damaged_index_error(name, f"{file}: {error}") from error


def encode_json(value: Struct | Sequence[Struct]) -> str:
    """A manifest, or a part of one, as JSON."""
    return json.encode(value).decode()


def decode_segment_entry(text: str) -> SegmentEntry:
    """The entry of a segment from its JSON."""
    return json.decode(text, type=SegmentEntry)


def missing_index_error(name: str) -> IndexingError:
    """What is said of a folder without an index."""
    return IndexingError(
        f"there is no index in {name}; write one with Matcher.save or `fencepost index`"
    )


def damaged_index_error(name: str, why: object) -> IndexingError:
    """What is said of an index that cannot be read."""
    return IndexingError(f"the index in {name} is damaged ({why}); build it again")


# ------------------------------------------------------------------------------- columns of events


def columns_of(
    entries: Iterable[ColumnEntry], stop_words: Iterable[str], space: Space
) -> ColumnRegistry:
    """Columns of events, numbered in the order of their entries."""
    columns = ColumnRegistry(Tokenizer.without(stop_words), space)
    for entry in entries:
        columns.register(_column_of(entry))
    return columns


def column_entries(columns: ColumnRegistry) -> list[list[ColumnEntry]]:
    """The entries of columns, by storage."""
    return [[_column_entry(column) for column in rows] for rows in columns.by_storage]


def columns_as_json(columns: ColumnRegistry) -> str:
    """The entries of columns in one list, as JSON."""
    return encode_json([own for rows in column_entries(columns) for own in rows])


def columns_from_json(text: str) -> list[ColumnEntry]:
    """Entries from the JSON of a list of them."""
    return json.decode(text, type=list[ColumnEntry])


def _column_entry(column: Column) -> ColumnEntry:
    """A value that is no property travels in a condition about it."""
    source: Any = column.source
    kind: Any = column.kind.name
    if isinstance(source, ast.Property):
        return ColumnEntry(kind=kind, property=source.name)
    if column.kind is ColumnKind.STRING:
        source = ast.Comparison(ast.ComparisonOp.EQ, source, ast.String(""))
    elif column.kind is ColumnKind.NUMBER:
        source = ast.Comparison(ast.ComparisonOp.EQ, source, ast.Number(0))
    elif column.kind is not ColumnKind.TRUTH:
        source = ast.TemporalCondition(ast.TemporalFunction.T_AFTER, source, ast.Time(0))
    condition: Any = render_json(source)
    return ColumnEntry(kind=kind, condition=condition)


def _column_of(entry: ColumnEntry) -> Column:
    kind = ColumnKind[entry.kind]
    if entry.property is not None:
        return Column(kind, ast.Property(entry.property))
    if entry.condition is None:
        raise ValueError(f"a column of the kind {entry.kind} has neither property nor condition")
    condition: Any = parse(entry.condition)
    return Column(kind, condition if kind is ColumnKind.TRUTH else condition.left)
