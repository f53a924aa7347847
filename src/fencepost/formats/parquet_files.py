"""`ParquetRows`: the rows of Parquet and GeoParquet files, read in batches.

Geometry columns are WKB as bytes, or GeoArrow in an Arrow type that names its encoding.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.errors import FencepostError
from fencepost.events.arrow_text import split_invalid_utf8
from fencepost.events.feature_tables import columns_to_read
from fencepost.events.table_crs import declared_crs, geo_metadata, parse_declaration
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, shorten
from fencepost.formats.file_formats import STDIN, open_input, read_error
from fencepost.formats.line_batches import MAX_BATCH_ROWS
from fencepost.geometry.crs import LON_LAT, Crs
from fencepost.geometry.readers.arrow_columns import extension_name
from fencepost.geometry.readers.geoarrow_columns import (
    GEOMETRY_EXTENSION_PREFIXES,
    wrap_as_geoarrow,
)

_PROJJSON_KEY = "projjson:"  # before the key of the file's metadata that has the CRS


class ParquetRows:
    """The rows of a Parquet file.

    Attributes
    ----------
    name : str
        The name of the file in messages.
    rows : int
        The number of rows.
    names : list of str
        The names of the columns.
    geometry : str or None
        The primary geometry column of GeoParquet.
    declared_crs : dict of str to Crs
        The CRS of columns that declare one: in the metadata of GeoParquet or GeoArrow, or by
        Parquet's types GEOMETRY and GEOGRAPHY.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STDIN else path
        try:
            if path == STDIN:
                self._file = pq.ParquetFile(pa.BufferReader(open_input(path).read()))
            else:
                open_input(path).close()  # raises the errors of missing and unreadable files
                self._file = pq.ParquetFile(path)
        except pa.ArrowException as error:
            raise self._corrupt_error(error) from error
        except OSError as error:
            raise read_error(path, error) from error
        schema = self._file.schema_arrow
        self.rows: int = self._file.metadata.num_rows
        self.names: list[str] = schema.names
        self._geo = geo_metadata(schema, self.name)
        self.geometry: str | None = self._geo.get("primary_column")
        self._column_metadata: dict[str, Any] = self._geo.get("columns", {}).get(self.geometry, {})

        self.declared_crs = {**self._crs_of_native_columns(), **declared_crs(schema)}

    def _crs_of_native_columns(self) -> dict[str, Crs]:
        """Return the CRS of columns of the types GEOMETRY and GEOGRAPHY."""
        found = {}
        for number in range(len(self._file.schema)):
            column = self._file.schema.column(number)
            kind = json.loads(column.logical_type.to_json())
            if kind.get("Type") in ("Geometry", "Geography"):
                declared = kind.get("crs") or LON_LAT
                if isinstance(declared, str) and declared.startswith(_PROJJSON_KEY):
                    key = declared.removeprefix(_PROJJSON_KEY).encode()
                    declared = (self._file.metadata.metadata or {}).get(key)
                crs = parse_declaration(column.path, declared)
                if crs is not None:
                    found[column.path] = crs
        return found

    @property
    def crs(self) -> dict[str, Any]:
        """The member `crs` of the geometry column's metadata; empty, for WGS 84, if absent."""
        return {key: self._column_metadata[key] for key in ("crs",) if key in self._column_metadata}

    def batches(self, columns: Collection[str] | None = None) -> Iterator[pa.Table]:
        """Yield tables of at most MAX_BATCH_ROWS rows, of some attributes' columns or of all."""
        chosen = self.names if columns is None else columns_to_read(self.names, columns)
        chosen = chosen or self.names[:1]  # a table without columns would have no rows
        done = 0
        try:
            for batch in self._file.iter_batches(MAX_BATCH_ROWS, columns=chosen):
                yield name_geometry_encodings(_replace_views(batch), self._geo)
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise self._corrupt_error(error, done) from error

    def readable_batches(
        self, columns: Collection[str] | None, on_dead_letter: DeadLetterHandler
    ) -> Iterator[tuple[NDArray[np.int64], pa.Table, int]]:
        """Yield row numbers, tables, and the number of rows read; see `readable_batches` below."""
        return readable_batches(self.batches(columns), self.name, on_dead_letter)

    def _corrupt_error(self, error: Exception, done: int = 0) -> FencepostError:
        read = f" after {done:,} rows" if done else ""
        reason = " ".join(str(error).split())
        return FencepostError(
            f"{self.name} cannot be read as Parquet{read} ({reason:.200}); it may be truncated "
            "or have another format: write it again, or name its format with --format"
        )


def readable_batches(
    tables: Iterator[pa.Table], file: str, on_dead_letter: DeadLetterHandler
) -> Iterator[tuple[NDArray[np.int64], pa.Table, int]]:
    """Yield tables without rows of text that is not UTF-8, which become dead letters.

    Each table comes with the numbers of its rows, and the number of rows read so far.
    """
    done = 0
    for table in tables:
        rows, good, bad = split_invalid_utf8(table, table.column_names)
        for row, reason in bad:
            on_dead_letter(DeadLetter(file, done + row, reason, _raw(table.slice(row, 1))))
        rows += done
        done += table.num_rows
        yield rows, good, done


def _replace_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert columns of views to plain types, as Arrow's `take` does not support views."""
    for index, field in enumerate(batch.schema):
        is_text = pa.types.is_string_view(field.type)
        if is_text or pa.types.is_binary_view(field.type):
            plain = field.with_type(pa.large_string() if is_text else pa.large_binary())
            batch = batch.set_column(index, plain, batch.column(index).cast(plain.type))
    return batch


def _raw(row: pa.Table) -> str:
    """Return the only row of a table as text, with replacement characters for invalid bytes."""
    named = zip(row.column_names, row.columns, strict=True)
    return shorten(
        ", ".join(
            f"{name}: {column.combine_chunks().to_string(skip_new_lines=True)[1:-1]}"
            for name, column in named
        )
    )


def name_geometry_encodings(batch: pa.RecordBatch, geo: dict[str, Any]) -> pa.Table:
    """Convert a batch to a table whose geometry columns are WKB bytes or name their encoding."""
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        name = _extension_name(field, geo)
        if isinstance(column, pa.ExtensionArray) and str(name).startswith(
            GEOMETRY_EXTENSION_PREFIXES
        ):
            column = column.storage
        columns.append(wrap_as_geoarrow(column, name))
    return pa.table(columns, names=batch.schema.names)


def _extension_name(field: pa.Field, geo: dict[str, Any]) -> str | None:
    encoding = geo.get("columns", {}).get(field.name, {}).get("encoding")
    if encoding is not None:
        return f"geoarrow.{encoding.lower()}"
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return extension_name(field)
