"""Files of stop words: one a line."""

from __future__ import annotations

from pathlib import Path

from fencepost.errors import FencepostError
from fencepost.files.formats import cannot_read


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
