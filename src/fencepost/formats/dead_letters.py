"""`DeadLetter`: a row of a file that cannot be used, with the reason; handlers of dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from fencepost.errors import FencepostError
from fencepost.formats.file_formats import write_error

MAX_SHOWN = 5
_MAX_RAW = 200


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that cannot be used.

    Attributes
    ----------
    file : str
        The file of the row.
    row : int
        The number of the row in the file, from 0, not counting blank lines.
    reason : str
        Why the row cannot be used.
    raw : str
        The text of the row, shortened.
    line : int or None
        The line of the file on which the row ends, from 1; None if the file has no lines.
    """

    file: str
    row: int
    reason: str
    raw: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"row {self.row}" if self.line is None else f"line {self.line}"
        return f"{self.file}, {place}: {self.reason}"


DeadLetterHandler = Callable[[DeadLetter], None]


def raise_dead_letter(letter: DeadLetter) -> None:
    """Raise a dead letter as an error; the handler if there is no other."""
    raise FencepostError(str(letter))


def shorten(raw: str | bytes) -> str:
    """Return the beginning of a row as text that can be encoded as UTF-8."""
    if isinstance(raw, bytes):
        raw = raw[: 4 * _MAX_RAW].decode("utf-8", "replace")
    text = raw if len(raw) <= _MAX_RAW else raw[:_MAX_RAW] + "..."
    return text.encode("utf-8", "replace").decode()


@dataclass(slots=True)
class DeadLetterCollector:
    """A handler that counts dead letters, keeps the first few, and may write all to a file.

    The file holds one JSON object a line, with the attributes of `DeadLetter`. It exists even if
    there is no dead letter. Each dead letter is flushed when it is written.

    Attributes
    ----------
    path : Path, optional
        The file to write.
    strict : bool
        Raise the first dead letter as an error.
    count : int
        The number of dead letters.
    first : list of DeadLetter
        The first dead letters, at most MAX_SHOWN.
    """

    path: Path | None = None
    strict: bool = False
    count: int = 0
    first: list[DeadLetter] = field(default_factory=list)
    _file: IO[str] | None = None

    def __enter__(self) -> DeadLetterCollector:
        if self.path is not None:
            try:
                self._file = self.path.open("w", encoding="utf-8")
            except OSError as error:
                raise write_error(self.path, error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def __call__(self, letter: DeadLetter) -> None:
        if self._file is not None and self.path is not None:
            row = {
                "file": letter.file,
                "row": letter.row,
                "line": letter.line,
                "reason": letter.reason,
                "raw": letter.raw,
            }
            try:
                self._file.write(json.dumps(row) + "\n")
                self._file.flush()
            except OSError as error:
                raise write_error(self.path, error) from error
        if self.strict:
            raise_dead_letter(letter)
        self.count += 1
        if len(self.first) < MAX_SHOWN:
            self.first.append(letter)
