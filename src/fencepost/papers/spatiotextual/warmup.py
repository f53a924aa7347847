"""One small call of every kernel of this room, so that its machine code is there later."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.warmup import Step
from fencepost.papers.spatiotextual.ordering import Order
from fencepost.papers.spatiotextual.parts import Kind
from fencepost.papers.spatiotextual.trees import build


def steps() -> list[Step]:
    """What compiles each kernel or loads it from the cache, by name."""
    return [
        ("the Rt-trees", lambda: _match("rt")),
        ("the Rt++-tree", lambda: _match("rt++")),
        ("keywords first", lambda: _match("keyword-first")),
        ("the orders of tokens", _orders),
    ]


def _match(kind: Kind, order: Order = "locality") -> None:
    start, tokens = np.arange(2), np.zeros(1, np.uint32)
    boxes = np.zeros((1, 4))
    index = build(kind, boxes, start, tokens, order=order)
    index.match_many(boxes, start, tokens)
    if kind == "rt":
        index.candidate_nodes(boxes, tokens)


def _orders() -> None:
    _match("rt+", "random")
    _match("rt+", "df")
