"""Prefetching of the memory that checks read, before the checks are evaluated.

Each step reads what the step before prefetched: the filter, its checks, the geometry of the last
check, the first chain of the geometry, and its coordinates.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.match.check_evaluation import DECIDED, ITEM_OF, SHAPE_ITEM
from fencepost.kernels.runtime.compilation import inlined, no_refcount
from fencepost.kernels.runtime.prefetch import prefetch

_MAX_FILTERS = 64  # that `prefetch_checks` prefetches in one call
_STEPS = 5
_STRIDE = 2  # filters between two steps of `prefetch_ahead`
# Doubles in a cache line, and how many lines of coordinates are prefetched.
_LINE_NUMBERS, _COORDINATE_LINES = 8, 2
_MAX_CHECKS = 3  # prefetched of a filter: few filters have more that are evaluated


@no_refcount
def prefetch_checks(segment, filters):
    """Prefetch what the evaluation of some filters reads, step by step for all of them."""
    filters = filters[:_MAX_FILTERS]
    for step in range(_STEPS):
        for k in range(filters.shape[0]):
            _prefetch_step(segment, filters[k], step)


@inlined
def prefetch_ahead(segment, filters, k, stop):
    """Prefetch for filters after filter k, a different step for each.

    Called for filter after filter, it prefetches all steps of each before its evaluation.
    """
    for step in range(_STEPS):
        later = k + _STRIDE * (_STEPS - step)
        if later < stop:
            _prefetch_step(segment, filters[later], step)


@no_refcount
def prefetch_first(segment, filters, stop):
    """Prefetch for the first filters the steps that `prefetch_ahead` leaves out."""
    for step in range(_STEPS):
        for k in range(min(stop, _STRIDE * (_STEPS - step))):
            _prefetch_step(segment, filters[k], step)


@inlined
def _prefetch_step(segment, f, step):
    """Prefetch what one step needs of filter f; it reads what the step before prefetched."""
    filter_check = segment.arrays.filter_check
    if step == 0:
        prefetch(filter_check, np.int64(f))
        prefetch(segment.arrays.filter_subscription, np.int64(f))
        return
    checks = segment.arrays.checks
    first, stop = np.int64(filter_check[f]), np.int64(filter_check[f + 1])
    if step == 1:
        for k in range(first, min(stop, first + _MAX_CHECKS)):
            prefetch(checks, k)
        return
    # Only the geometry of the last check to be evaluated, which is the most expensive one.
    last = first - 1
    while last + 1 < stop and not checks[last + 1]["flags"] & DECIDED:
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
    for line in range(_COORDINATE_LINES):
        prefetch(shapes.x, start + _LINE_NUMBERS * line)
        prefetch(shapes.y, start + _LINE_NUMBERS * line)
