"""Which format a file has, by the ending of its name unless it is said; and files of stop words."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from fencepost.errors import FencepostError

STDIN = "-"


class Format(StrEnum):
    """How a file of events or subscriptions is written."""

    GEOJSON = "geojson"
    NDJSON = "ndjson"
    PARQUET = "parquet"
    CSV = "csv"


class OutFormat(StrEnum):
    """How matches are written."""

    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"
    GEOPARQUET = "geoparquet"
    GEOJSON = "geojson"


_LINES = (".ndjson", ".jsonl", ".geojsonl", ".geojsons", ".geojsonseq")
_ENDINGS = {
    ".geojson": Format.GEOJSON,
    ".json": Format.GEOJSON,
    **dict.fromkeys(_LINES, Format.NDJSON),
    ".parquet": Format.PARQUET,
    ".geoparquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
}
_OUT_ENDINGS = {
    **dict.fromkeys(_LINES, OutFormat.NDJSON),
    ".csv": OutFormat.CSV,
    ".parquet": OutFormat.PARQUET,
    ".pq": OutFormat.PARQUET,
    ".geoparquet": OutFormat.GEOPARQUET,
    ".geojson": OutFormat.GEOJSON,
    ".json": OutFormat.GEOJSON,
}
_PACKED = (".gz", ".zst", ".bz2", ".xz", ".zip")


def format_of(path: str, asked: Format | None = None) -> Format:
    """The format of a file to read; standard input holds NDJSON unless told otherwise."""
    if asked is not None:
        return asked
    if path == STDIN:
        return Format.NDJSON
    ending = Path(path).suffix.lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if ending in _PACKED:
        advice = f"unpack it first, or pipe it in: zcat {path} | fencepost match - ..."
    else:
        advice = "rename it, or say what it holds with --format"
    known = ", ".join(_ENDINGS)
    raise FencepostError(
        f"the format of {path} is unknown: its name ends in none of {known}; {advice}"
    )


def out_format_of(path: Path) -> OutFormat:
    """The format of a file of matches to write."""
    ending = path.suffix.lower()
    if ending not in _OUT_ENDINGS:
        raise FencepostError(
            f"cannot tell how to write {path}: its name ends in none of {', '.join(_OUT_ENDINGS)}; "
            "give it one of these endings"
        )
    return _OUT_ENDINGS[ending]


def open_input(path: str) -> BinaryIO:
    """A file, or standard input for `-`, to read bytes from.

    Raises
    ------
    FencepostError
        Where there is no such file, or it is a folder or not readable.
    """
    if path == STDIN:
        return sys.stdin.buffer
    try:
        return open(path, "rb")
    except OSError as error:
        raise cannot_read(path, error) from error


def file_size(path: str) -> int | None:
    """The bytes of a file; None of standard input, or where they are not known before the end."""
    return None if path == STDIN else os.stat(path).st_size or None


def cannot_read(path: str, error: OSError) -> FencepostError:
    """What to say of a file that the system does not let us read."""
    if isinstance(error, FileNotFoundError):
        return FencepostError(f"there is no file {path}; check its name and folder ({os.getcwd()})")
    if isinstance(error, IsADirectoryError):
        return FencepostError(f"{path} is a folder, not a file; name one of the files in it")
    if isinstance(error, PermissionError):
        return FencepostError(f"{path} may not be read; change its permissions (chmod +r)")
    return FencepostError(f"{path} cannot be read: {error.strerror or error}")


def cannot_write(path: Path, error: OSError) -> FencepostError:
    """What to say of a file that the system does not let us write."""
    if isinstance(error, FileNotFoundError):
        return FencepostError(
            f"{path} cannot be written: there is no folder {path.parent}; make it first"
        )
    return FencepostError(
        f"{path} cannot be written: {error.strerror or error}; choose another place with room"
    )


def read_stop_words(path: Path | None) -> list[str]:
    """The lines of a file of stop words; none where there is no file.

    Raises
    ------
    FencepostError
        Where the file cannot be read, or is not UTF-8.
    """
    if path is None:
        return []
    try:
        return path.read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise cannot_read(str(path), error) from error
    except UnicodeDecodeError as error:
        raise FencepostError(
            f"{path} is no text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}; "
            "give a text file with one stop word a line, or convert it (iconv -t utf-8)"
        ) from error
