"""Asking for the memory that checks will read, before they are evaluated.

What a check needs is found in steps, each by reading what the step before asked for: the filter,
its checks, the geometry of the last, its first chain, and the coordinates.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.match.check_evaluation import FOUND, ITEM_OF, SHAPE_ITEM
from fencepost.kernels.runtime.compilation import inlined, no_refcount
from fencepost.kernels.runtime.prefetch import prefetch

_AT_ONCE = 64  # filters whose checks are asked for before they are read
_STEPS = 5  # in which all is asked for that a check may need
_STRIDE = 2  # filters between two steps
_LINE, _LINES = 8, 2  # numbers in a line of the cache; lines of coordinates that are asked for
_CHECKS = 3  # that are asked for of a filter: few have more that are left to be evaluated


@no_refcount
def fetch_checks(segment, filters):
    """Ask for what will be read of some filters, each array of all of them before the next."""
    filters = filters[:_AT_ONCE]
    for step in range(_STEPS):
        for k in range(filters.shape[0]):
            _fetch_step(segment, filters[k], step)


@inlined
def fetch_later(segment, filters, k, stop):
    """Ask for what will be read of some of the filters after filter k, one step for each."""
    for step in range(_STEPS):
        later = k + _STRIDE * (_STEPS - step)
        if later < stop:
            _fetch_step(segment, filters[later], step)


@no_refcount
def fetch_first(segment, filters, stop):
    """The same for the first ones, which nobody has asked for yet."""
    for step in range(_STEPS):
        for k in range(min(stop, _STRIDE * (_STEPS - step))):
            _fetch_step(segment, filters[k], step)


@inlined
def _fetch_step(segment, f, step):
    """Ask for what is found by reading what was asked for in the step before."""
    filter_check = segment.arrays.filter_check
    if step == 0:
        prefetch(filter_check, np.int64(f))
        prefetch(segment.arrays.filter_subscription, np.int64(f))
        return
    checks = segment.arrays.checks
    first, stop = np.int64(filter_check[f]), np.int64(filter_check[f + 1])
    if step == 1:
        for k in range(first, min(stop, first + _CHECKS)):
            prefetch(checks, k)
        return
    # Of the geometries only that of the last check to be evaluated, which is the dearest.
    last = first - 1
    while last + 1 < stop and not checks[last + 1]["flags"] & FOUND:
        last += 1
    if last < first or ITEM_OF[checks[last]["kind"]] != SHAPE_ITEM:
        return
    shapes = segment.arrays.shapes
    item = np.int64(checks[last]["item"])
    if step == 2:
        prefetch(shapes.shapes, item)
        return
    chain = np.int64(shapes.shapes[item]["chain"])
    if step == 3:
        prefetch(shapes.chains, chain)
        return
    start = np.int64(shapes.chains[chain]["start"])
    for line in range(_LINES):
        prefetch(shapes.x, start + _LINE * line)
        prefetch(shapes.y, start + _LINE * line)
