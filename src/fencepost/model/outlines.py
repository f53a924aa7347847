"""Geometries of one part as plain lists of finite numbers, and those as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from fencepost.model.raw_shapes import ONE_CHAIN, RawShapes

_ONE_SHAPE = np.array((0, 1))
_DIMENSIONS = tuple(np.array((dimension,), np.int8) for dimension in range(3))


Outline: TypeAlias = tuple[tuple[float, ...], tuple[int, ...], int]
"""A point, a line or a polygon: x and y in turn, chain after chain; how many points each chain has;
the dimension. It is nothing but tuples, which the garbage collector looks at once and not again."""


def raw_shapes(outlines: Sequence[Outline]) -> RawShapes:
    """Many as they are laid out from."""
    sizes = [size for _, chains, _ in outlines for size in chains]
    flat = np.fromiter(chain.from_iterable(xy for xy, _, _ in outlines), np.float64, 2 * sum(sizes))
    x, y = np.add(flat.reshape(-1, 2).T, 0.0, order="C")  # which makes -0.0 a 0.0
    return RawShapes(
        x,
        y,
        np.cumsum([0, *sizes]),
        np.zeros(len(sizes), np.int64),
        np.cumsum([0, *(len(chains) for _, chains, _ in outlines)]),
        np.array([dimension for *_, dimension in outlines], np.int8),
        (),
    )


def plain_arrays(outlines: Sequence[Outline]) -> tuple[Any, ...]:
    """A few as `kernels.layout.lay_out_plain` takes them."""
    if len(outlines) == 1 and len(outlines[0][1]) == 1:
        xy, (size,), dimension = outlines[0]
        points = np.array(xy).reshape(size, 2)
        return points, np.array((0, size)), ONE_CHAIN, _ONE_SHAPE, _DIMENSIONS[dimension]
    sizes = [size for _, chains, _ in outlines for size in chains]
    return (
        np.array([number for xy, _, _ in outlines for number in xy], np.float64).reshape(-1, 2),
        np.cumsum([0, *sizes]),
        np.zeros(len(sizes), np.int64),
        np.cumsum([0, *(len(chains) for _, chains, _ in outlines)]),
        np.array([dimension for *_, dimension in outlines], np.int8),
    )
