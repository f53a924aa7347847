"""Several segments as one table of filters, without the subscriptions that are gone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.index import posts
from fencepost.index.posts import PostRows, ranges
from fencepost.index.table import TableArrays
from fencepost.kernels import checking
from fencepost.kernels.matching import SegmentArrays
from fencepost.kernels.shapes import ShapeArrays
from fencepost.model.geometry import Shapes


def merge(parts: Sequence[tuple[SegmentArrays, NDArray[np.int64]]]) -> TableArrays:
    """The filters of the given subscriptions of each segment, numbered on in order."""
    pieces = [_Piece(arrays, rows) for arrays, rows in parts]
    subscriptions = checks = shapes = sets = items = strings = text = 0
    out_checks, out_ends, out_owner, out_sets, out_items, out_text, out_strings = (
        [], [np.zeros(1, np.int64)], [], [np.zeros(1, np.int64)], [], [], [np.zeros(1, np.int64)],
    )  # fmt: skip
    geometries: list[tuple[ShapeArrays, NDArray[np.int64]]] = []
    posted: list[PostRows] = []
    for piece in pieces:
        rows = piece.checks
        rows["item"][piece.geometric] += shapes
        rows["item"][piece.with_sets] += sets
        rows["item"][piece.textual] += strings
        out_checks.append(rows)
        out_ends.append(piece.filter_ends + checks)
        out_owner.append(piece.filter_subscription + subscriptions)
        out_sets.append(piece.set_ends + items)
        out_items.append(piece.set_items + strings)
        out_text.append(piece.text)
        out_strings.append(piece.string_ends + text)
        posted.append(
            piece.posts._replace(
                owner=piece.posts.owner + subscriptions, tokens=piece.posts.tokens + strings
            )
        )
        geometries.append((piece.arrays.shapes, piece.shape_rows))
        subscriptions += piece.subscriptions
        checks += len(rows)
        shapes += len(piece.shape_rows)
        sets += len(piece.set_ends)
        items += len(piece.set_items)
        strings += len(piece.string_ends)
        text += len(piece.text)
    return TableArrays(
        np.concatenate(out_checks),
        np.concatenate(out_ends),
        np.concatenate(out_owner),
        np.concatenate(out_sets),
        np.concatenate(out_items),
        np.concatenate(out_text),
        np.concatenate(out_strings),
        Shapes.gather(geometries),
        posts.join(posted),
    )


class _Piece:
    """What is kept of one segment, numbered from 0."""

    def __init__(self, arrays: SegmentArrays, rows: NDArray[np.int64]) -> None:
        self.arrays = arrays
        self.subscriptions = len(rows)
        number = np.full(len(arrays.gone), -1, np.int64)
        number[rows] = np.arange(len(rows))
        owner = number[arrays.filter_subscription]
        kept = np.flatnonzero(owner >= 0)
        # Filters of one subscription stay together and in order; so do a filter's checks.
        kept = kept[np.argsort(owner[kept], kind="stable")]
        self.filter_subscription = owner[kept]
        ends = arrays.filter_check.astype(np.int64)
        sizes = ends[kept + 1] - ends[kept]
        self.filter_ends = np.cumsum(sizes)
        self.checks = arrays.checks[ranges(ends[kept], sizes)].copy()
        self.checks["flags"] &= 0xFF & ~checking.FOUND
        refers_to = checking.ITEM_OF[self.checks["kind"]]
        self.geometric = refers_to == checking.SHAPE_ITEM
        self.textual = refers_to == checking.STRING_ITEM
        owned = np.where(refers_to == checking.TWO_SETS_ITEM, 2, refers_to == checking.SET_ITEM)
        self.with_sets = owned > 0
        self.shape_rows = self.checks["item"][self.geometric].astype(np.int64)
        self.checks["item"][self.geometric] = np.arange(len(self.shape_rows))
        self._keep_posts(number)
        self._keep_sets(owned[self.with_sets])
        self._keep_strings()

    def _keep_posts(self, number: NDArray[np.int64]) -> None:
        words = len(self.arrays.posts.token_lists) - 2
        self.posts = posts.chosen(posts.rows_of(self.arrays.posts, words), number)

    def _keep_sets(self, owned: NDArray[np.int64]) -> None:
        first = self.checks["item"][self.with_sets].astype(np.int64)
        self.checks["item"][self.with_sets] = np.cumsum(owned) - owned
        chosen = ranges(first, owned)
        start = self.arrays.set_start.astype(np.int64)
        sizes = start[chosen + 1] - start[chosen]
        self.set_ends = np.cumsum(sizes)
        self.set_items = self.arrays.set_items[ranges(start[chosen], sizes)].astype(np.int64)

    def _keep_strings(self) -> None:
        own = self.checks["item"][self.textual].astype(np.int64)
        parts = (self.set_items, own, self.posts.tokens)
        used, number = np.unique(np.concatenate(parts), return_inverse=True)
        self.set_items, own, tokens = np.split(number, np.cumsum([len(p) for p in parts[:-1]]))
        self.checks["item"][self.textual] = own
        self.posts = self.posts._replace(tokens=tokens)
        start = self.arrays.vocabulary.start.astype(np.int64)
        sizes = start[used + 1] - start[used]
        self.string_ends = np.cumsum(sizes)
        self.text = self.arrays.vocabulary.bytes[ranges(start[used], sizes)]
