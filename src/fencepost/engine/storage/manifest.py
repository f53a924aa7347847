"""`Manifest`: the manifest of an index, encoded as JSON and strictly decoded.

`docs/format.md` specifies the JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from zlib import crc32

from msgspec import DecodeError, Meta, Struct, ValidationError, json

from fencepost.cql2 import ast
from fencepost.cql2.parser import parse
from fencepost.cql2.writer import render_json
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.errors import IndexingError
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters.checks import Column, ColumnKind
from fencepost.geometry.crs import parse_crs
from fencepost.geometry.space import Space

FORMAT = 12
MANIFEST = "manifest.json"

Count = Annotated[int, Meta(ge=0)]
Checksum = Annotated[int, Meta(ge=0, lt=2**32)]  # CRC-32
Name = Annotated[str, Meta(pattern=r"^\w[\w.-]*\Z")]  # of a file or folder, without a path
DType: TypeAlias = str | list[tuple[str, str]]  # NumPy's name of the type, or fields of a record

_CHECKSUM_FIELD = b',"crc32":'
_KINDS = Literal[
    "NUMBER", "TIME", "NATIVE_TIME", "SPAN_START", "SPAN_END", "STRING", "BOOLEAN", "TRUTH",
    "MISSING", "GEOMETRY", "LIST",
]  # fmt: skip


class _Strict(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A JSON object that may have no other fields."""


class ColumnEntry(_Strict, frozen=True, kw_only=True):
    """A column of events: a property, or another value, given by a condition that compares it."""

    kind: _KINDS
    property: str | None = None
    condition: dict[str, Any] | bool | None = None


class ArrayEntry(_Strict, frozen=True, kw_only=True):
    """The type, shape and position of an array in the file `arrays`."""

    dtype: DType
    shape: list[Count]
    start: Count  # in bytes


class SegmentEntry(_Strict, frozen=True, kw_only=True):
    """A segment. Only indexes built by Spark have `deleted_file` and the fields after it."""

    folder: Name
    subscriptions: Count  # including deleted subscriptions
    arrays: dict[str, ArrayEntry]
    arrays_bytes: Count  # the size of the file
    checksums: dict[Name, Checksum]  # of each file in the folder
    last_columns: dict[str, Annotated[int, Meta(ge=-1)]]  # the last column used, by storage
    names: list[str]  # the columns of names.arrow
    deleted_file: Name | None = None  # replaces deleted_version.npy
    deleted: Count = 0
    memory_bytes: Count | None = None
    is_partition: bool = True  # one of the parts of the whole index; False: written by updates

    @property
    def live(self) -> int:
        """Number of subscriptions that are not deleted."""
        return self.subscriptions - self.deleted


class Manifest(_Strict, frozen=True, kw_only=True):
    """An index. Only indexes built by Spark have `version` and `router`."""

    format: int
    space: Space
    stop_words: list[str]
    columns: list[list[ColumnEntry]]
    segments: list[SegmentEntry]
    version: Annotated[int, Meta(ge=1)] | None = None
    router: Name | None = None
    crs: str | None = None  # of a planar space, once geometries have declared it
    crc32: Checksum | None = None  # of the bytes before this field; `encode_manifest` writes it

    def event_columns(self) -> ColumnRegistry:
        """Return the columns of events that the subscriptions compare."""
        columns = columns_of(
            (entry for entries in self.columns for entry in entries), self.stop_words, self.space
        )
        columns.crs = parse_crs(self.crs)
        return columns


class _Format(Struct):
    """The field that manifests of all formats have."""

    format: Any = None


def manifest_name(version: int | None = None) -> str:
    """Return the file name of the newest manifest, or of the manifest of a version."""
    return MANIFEST if version is None else f"manifest-{version}.json"


def build_manifest(
    entries: Sequence[SegmentEntry],
    columns: ColumnRegistry,
    version: int | None = None,
    router: str | None = None,
) -> Manifest:
    """Return the manifest of an index with these segments."""
    return Manifest(
        format=FORMAT,
        space=columns.space,
        stop_words=sorted(columns.tokenizer.stop_words),
        columns=column_entries(columns),
        segments=list(entries),
        version=version,
        router=router,
        crs=None if columns.crs is None else columns.crs.definition,
    )


def decode_manifest(name: str, text: str | bytes, file: str = MANIFEST) -> Manifest:
    """Decode a manifest.

    Parameters
    ----------
    name, file : str
        The names of the folder and of the manifest, for errors.

    Raises
    ------
    IndexingError
        If the format is another one, a field is wrong, or the checksum is; it names the file and
        the field.
    """
    try:
        file_format = json.decode(text, type=_Format).format
        if file_format != FORMAT or isinstance(file_format, bool):
            raise IndexingError(
                f"the index in {name} has format {file_format!r:.40} ({file}); this version reads "
                f"{FORMAT}: build it again"
            )
        manifest = json.decode(text, type=Manifest)
    except (DecodeError, ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise damaged_index_error(name, f"{file}: {error}") from error
    content = text.encode() if isinstance(text, str) else text
    if manifest.crc32 != crc32(content.rpartition(_CHECKSUM_FIELD)[0]):
        raise damaged_index_error(name, f"{file} differs from its checksum")
    return manifest


def read_manifest(path: Path) -> bytes:
    """Return the manifest of the index in a local folder, as it was written."""
    try:
        return (path / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise missing_index_error(str(path)) from None
    except (OSError, ValueError) as error:
        raise IndexingError(f"the index in {path} cannot be read: {error}") from error


def encode_manifest(manifest: Manifest) -> bytes:
    """Return a manifest as JSON whose last field is the checksum of the bytes before it."""
    content = json.encode(manifest).removesuffix(b"}")
    return b"%b%b%d}" % (content, _CHECKSUM_FIELD, crc32(content))


def encode_json(value: Struct | Sequence[Struct]) -> str:
    """Return a part of a manifest as JSON."""
    return json.encode(value).decode()


def decode_segment_entry(text: str) -> SegmentEntry:
    """Decode the entry of a segment."""
    return json.decode(text, type=SegmentEntry)


def missing_index_error(name: str) -> IndexingError:
    """Return the error for a folder without an index."""
    return IndexingError(
        f"there is no index in {name}; write one with Matcher.save or `fencepost index`"
    )


def damaged_index_error(name: str, why: object) -> IndexingError:
    """Return the error for an index that cannot be read."""
    return IndexingError(f"the index in {name} is damaged ({why}); build it again")


# ------------------------------------------------------------------------------- columns of events


def columns_of(
    entries: Iterable[ColumnEntry], stop_words: Iterable[str], space: Space
) -> ColumnRegistry:
    """Return a registry of columns, numbered in the order of their entries."""
    columns = ColumnRegistry(Tokenizer.without(stop_words), space)
    for entry in entries:
        columns.register(_column_of(entry))
    return columns


def column_entries(columns: ColumnRegistry) -> list[list[ColumnEntry]]:
    """Return the entries of columns, by storage."""
    return [[_column_entry(column) for column in rows] for rows in columns.by_storage]


def columns_as_json(columns: ColumnRegistry) -> str:
    """Return the entries of all columns in one list, as JSON."""
    return encode_json([entry for entries in column_entries(columns) for entry in entries])


def columns_from_json(text: str) -> list[ColumnEntry]:
    """Decode a list of entries of columns."""
    return json.decode(text, type=list[ColumnEntry])


def _column_entry(column: Column) -> ColumnEntry:
    """Return the entry of a column. A value that is no property is stored in a condition."""
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
