"""Columns of strings by row and by value; large ones without an object for each string."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.kernels import names

_FEW = 2**17  # strings of which Python objects are worth their memory


class Strings(Sequence[str]):
    """A column of strings without nulls."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.array: pa.Array = column.combine_chunks()
        if isinstance(self.array, pa.ChunkedArray):  # of no chunks, or of more than fit in one
            self.array = pa.concat_arrays([c.cast(pa.large_string()) for c in self.array.chunks])
        self._listed: list[str] | None = None
        self._rows: dict[str, int] | None = None
        self._slots: np.ndarray[tuple[int], np.dtype[np.uint32]] | None = None
        _, offsets, data = self.array.buffers()
        wide = pa.types.is_large_string(self.array.type)
        ends = np.frombuffer(offsets or bytes(8), np.int64 if wide else np.int32)
        self._ends = ends[self.array.offset : self.array.offset + len(self.array) + 1]
        self._text = memoryview(data) if data is not None else memoryview(b"")
        self._end = self._ends.data  # whose items are had sooner

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        """One string, or some."""
        return self._list()[row] if isinstance(row, slice) else self.get(row)

    @property
    def get(self) -> Callable[[int], str]:
        """From a row to its string, as fast as can be."""
        if len(self) <= _FEW:
            return self._list().__getitem__
        text, end = self._text, self._end

        def string(row: int) -> str:
            return str(text[end[row] : end[row + 1]], "utf-8")

        return string

    def __iter__(self) -> Iterator[str]:
        return iter(self._list() if len(self) <= _FEW else self.array.to_pylist())

    def _list(self) -> list[str]:
        if self._listed is None:
            self._listed = self.array.to_pylist()
        return self._listed

    def buffers(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """The bytes of all strings, and where each begins and the last one ends."""
        return np.frombuffer(self._text, np.uint8), self._ends

    def row_of(self, value: str) -> int:
        """The row of a string, or -1; the strings differ."""
        if len(self) <= _FEW:
            if self._rows is None:
                self._rows = {one: row for row, one in enumerate(self._list())}
            return self._rows.get(value, -1)
        text, ends = self.buffers()
        if self._slots is None:
            slots = np.full(1 << (2 * len(self)).bit_length(), names.EMPTY, np.uint32)
            names.fill(slots, text, ends)
            self._slots = slots
        wanted = np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8)
        return int(names.row_of(self._slots, text, ends, wanted))
