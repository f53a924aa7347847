"""One small call of every kernel that Python calls, so that its machine code is there later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fencepost.kernels.layout import lay_out
from fencepost.kernels.matrices import relations_of_matrices
from fencepost.kernels.relate import matrix_pairs
from fencepost.kernels.relate_areas import relate_areas
from fencepost.kernels.shapes import ShapeArrays
from fencepost.kernels.trees import scratch

Step = tuple[str, Callable[[], None]]


def steps() -> list[Step]:
    """The kernels by name, each with a call that compiles it or loads it from the cache."""
    return [
        ("geometry layout and validity", _lay_out),
        ("relations of areas", _relate_areas),
        ("relations of points and lines", _matrices),
    ]


def _lay_out() -> None:
    _triangle()


def _triangle() -> ShapeArrays:
    x, y = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    arrays: ShapeArrays = lay_out(
        x,
        y,
        np.array([0, 3]),
        np.array([0]),
        np.array([0, 1]),
        np.array([2], np.int8),
        64,
    )[0]
    return arrays


def _relate_areas() -> None:
    g = _triangle()
    rows = np.zeros(1, np.int64)
    relate_areas(g, g, rows, rows, 0, scratch(1), np.empty(1, np.uint8))


def _matrices() -> None:
    g = _triangle()
    rows = np.zeros(1, np.int64)
    matrices = np.empty(1, np.int64)
    matrix_pairs(g, g, rows, rows, 0, scratch(1), matrices)
    relations_of_matrices(matrices, np.empty(1, np.uint8))
