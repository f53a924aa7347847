"""Dead letters: rows that cannot be used, set aside with the reason while the rest goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from fencepost.errors import FencepostError
from fencepost.formats.file_formats import cannot_write

SHOWN = 5
_LONG = 200


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that cannot be used.

    Attributes
    ----------
    file : str
        Where it was.
    row : int
        Its number in the file, from 0; every row counts, blank lines do not.
    reason : str
        What is wrong with it.
    raw : str
        The row as it was, shortened.
    line : int or None
        The line of the file that it ends on, from 1, where the file has lines.
    """

    file: str
    row: int
    reason: str
    raw: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"row {self.row}" if self.line is None else f"line {self.line}"
        return f"{self.file}, {place}: {self.reason}"


Letters = Callable[[DeadLetter], None]


def refuse(letter: DeadLetter) -> None:
    """Take no dead letter: raise instead."""
    raise FencepostError(str(letter))


def shortened(raw: str | bytes) -> str:
    """The beginning of a row, as text that can be written."""
    if isinstance(raw, bytes):
        raw = raw[: 4 * _LONG].decode("utf-8", "replace")
    text = raw if len(raw) <= _LONG else raw[:_LONG] + "..."
    return text.encode("utf-8", "replace").decode()


@dataclass(slots=True)
class LetterBox:
    """Takes dead letters: counts them, keeps the first few, writes all to a file if there is one.

    The file holds one JSON object a line, with the attributes of `DeadLetter`. It is there even
    if no letter comes, and each letter is in it as soon as it came.
    """

    path: Path | None = None
    strict: bool = False
    count: int = 0
    first: list[DeadLetter] = field(default_factory=list)
    _file: IO[str] | None = None

    def __enter__(self) -> LetterBox:
        if self.path is not None:
            try:
                self._file = self.path.open("w", encoding="utf-8")
            except OSError as error:
                raise cannot_write(self.path, error) from error
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
                raise cannot_write(self.path, error) from error
        if self.strict:
            refuse(letter)
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(letter)
