"""`Format`: formats of files, by the ending of the name; open files; read stop words.

`name_advice` is the advice for a name of a column, a layer or a property that a file lacks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from fencepost.errors import FencepostError
from fencepost.events.nearest_names import nearest_name

STDIN = "-"


class Format(StrEnum):
    """The format of a file of events or subscriptions."""

    GEOJSON = "geojson"
    NDJSON = "ndjson"
    PARQUET = "parquet"
    CSV = "csv"
    GEOPACKAGE = "gpkg"


class OutputFormat(StrEnum):
    """The format of a file of matches."""

    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"
    GEOPARQUET = "geoparquet"
    GEOJSON = "geojson"


_NDJSON_ENDINGS = (".ndjson", ".jsonl", ".geojsonl", ".geojsons", ".geojsonseq")
_ENDINGS = {
    ".geojson": Format.GEOJSON,
    ".json": Format.GEOJSON,
    **dict.fromkeys(_NDJSON_ENDINGS, Format.NDJSON),
    ".parquet": Format.PARQUET,
    ".geoparquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".gpkg": Format.GEOPACKAGE,
}
_OUTPUT_ENDINGS = {
    **dict.fromkeys(_NDJSON_ENDINGS, OutputFormat.NDJSON),
    ".csv": OutputFormat.CSV,
    ".parquet": OutputFormat.PARQUET,
    ".pq": OutputFormat.PARQUET,
    ".geoparquet": OutputFormat.GEOPARQUET,
    ".geojson": OutputFormat.GEOJSON,
    ".json": OutputFormat.GEOJSON,
}
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".zip")


def format_of(path: str, override: Format | None = None) -> Format:
    """Return `override`, or else the format of a file by its ending; NDJSON for `-`."""
    if override is not None:
        return override
    if path == STDIN:
        return Format.NDJSON
    ending = Path(path).suffix.lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if ending in _COMPRESSED:
        advice = f"decompress it first, or pipe it in: zcat {path} | fencepost match - ..."
    else:
        advice = "rename it, or name its format with --format"
    known = ", ".join(_ENDINGS)
    raise FencepostError(
        f"the format of {path} is unknown: its name ends in none of {known}; {advice}"
    )


def output_format_of(path: Path) -> OutputFormat:
    """Return the format of a file of matches by its ending."""
    ending = path.suffix.lower()
    if ending not in _OUTPUT_ENDINGS:
        raise FencepostError(
            f"the format of {path} is unknown: its name ends in none of "
            f"{', '.join(_OUTPUT_ENDINGS)}; give it one of these endings"
        )
    return _OUTPUT_ENDINGS[ending]


def open_input(path: str) -> BinaryIO:
    """Open a file, or standard input for `-`, to read bytes.

    Raises
    ------
    FencepostError
        If there is no such file, or it is a folder or not readable.
    """
    if path == STDIN:
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except OSError as error:
        raise read_error(path, error) from error


def file_size(path: str) -> int | None:
    """Return the size of a file in bytes; None for standard input, and if it is unknown."""
    return None if path == STDIN else os.stat(path).st_size or None


def read_error(path: str, error: OSError) -> FencepostError:
    """Return the error for a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return FencepostError(f"there is no file {path}; check its name and folder ({os.getcwd()})")
    if isinstance(error, IsADirectoryError):
        return FencepostError(f"{path} is a folder, not a file; name one of the files in it")
    if isinstance(error, PermissionError):
        return FencepostError(f"{path} may not be read; change its permissions (chmod +r)")
    return FencepostError(f"{path} cannot be read: {error.strerror or error}")


def write_error(path: Path, error: OSError) -> FencepostError:
    """Return the error for a file that cannot be written."""
    if isinstance(error, FileNotFoundError):
        return FencepostError(
            f"{path} cannot be written: there is no folder {path.parent}; make it first"
        )
    return FencepostError(
        f"{path} cannot be written: {error.strerror or error}; choose a folder with free space"
    )


def name_advice(name: str, known: Sequence[str]) -> str:
    """Return which name may be meant by one that a file lacks, and the names that it has."""
    listed = f"has: {', '.join(known):.200}" if known else "has none"
    near = nearest_name(name, known)
    return f"it {listed}" if near is None else f"did you mean {near}? It {listed}"


def read_stop_words(path: Path | None) -> list[str]:
    """Return the lines of a file of stop words; an empty list for None.

    Raises
    ------
    FencepostError
        If the file cannot be read, or is not UTF-8.
    """
    if path is None:
        return []
    try:
        return path.read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise read_error(str(path), error) from error
    except UnicodeDecodeError as error:
        raise FencepostError(
            f"{path} is no text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}; "
            "give a text file with one stop word a line, or convert it (iconv -t utf-8)"
        ) from error
