"""`token_order` against plain counting."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from fencepost.papers.spatiotextual.token_order import ORDERS, Order, put_in_order
from tests.papers.spatiotextual.plainly import Post, flat, some_posts


def ordered(posts: list[Post], order: Order, cells: int = 1, seed: int = 0) -> list[list[int]]:
    boxes, start, tokens = flat(posts)
    put_in_order(order, boxes, start, tokens, 100, cells, seed)
    return [part.tolist() for part in np.split(tokens, start[1:-1])]


def posts_of(seed: str, count: int = 300) -> list[Post]:
    posts = some_posts(random.Random(seed), count, 40, 6, 16)
    return [Post(post.box, post.tokens or frozenset({0})) for post in posts]


@pytest.mark.parametrize("order", ORDERS)
def test_no_token_is_lost(order: Order) -> None:
    posts = posts_of("lost")
    orders = ordered(posts, order, 16)
    assert [sorted(tokens) for tokens in orders] == [sorted(post.tokens) for post in posts]
    assert ordered(posts, order, 16) == orders


def test_idf_has_rare_tokens_first() -> None:
    posts = posts_of("idf")
    df = Counter(token for post in posts for token in post.tokens)
    for tokens in ordered(posts, "idf"):
        assert tokens == sorted(tokens, key=lambda token: (df[token], token))


def test_df_takes_the_most_frequent_remaining_token() -> None:
    posts = posts_of("df")
    representatives = [tokens[0] for tokens in ordered(posts, "df")]
    remaining = set(range(len(posts)))
    while remaining:
        df = Counter(token for k in remaining for token in posts[k].tokens)
        largest = [token for token, count in df.items() if count == max(df.values())]
        # Of equally frequent tokens, any may have been taken.
        taken = next(
            token
            for token in largest
            if all(representatives[k] == token for k in remaining if token in posts[k].tokens)
        )
        remaining = {k for k in remaining if taken not in posts[k].tokens}


def test_df_shares_tokens_and_idf_does_not() -> None:
    posts = posts_of("shared")
    representative_counts = {
        order: len({tokens[0] for tokens in ordered(posts, order)}) for order in ORDERS[1:3]
    }
    assert representative_counts["df"] < representative_counts["idf"]


def test_locality_counts_in_the_cell_of_the_centre() -> None:
    posts = posts_of("locality")
    df = Counter(token for post in posts for token in post.tokens)
    boxes = flat(posts)[0]
    with np.errstate(invalid="ignore"):
        x, y = ((boxes[:, k] + boxes[:, k + 2]) / 2 for k in (0, 1))
    finite = np.isfinite(x) & np.isfinite(y)

    def cell(k: int) -> Any:
        if not finite[k]:
            return None
        shares = [(v[k] - v[np.isfinite(v)].min()) / np.ptp(v[np.isfinite(v)]) for v in (x, y)]
        return tuple(min(int(share * 3), 2) for share in shares)

    cells = [cell(k) for k in range(len(posts))]
    assert len(set(cells)) > 5
    local = Counter(
        (c, token) for c, post in zip(cells, posts, strict=True) for token in post.tokens
    )
    for c, tokens in zip(cells, ordered(posts, "locality", 9), strict=True):
        assert tokens == sorted(tokens, key=lambda token: (local[c, token], df[token], token))


def test_random_depends_on_the_seed_alone() -> None:
    posts = posts_of("random")
    assert ordered(posts, "random", seed=3) == ordered(posts, "random", seed=3)
    assert ordered(posts, "random", seed=3) != ordered(posts, "random", seed=4)
    ranks = Counter(
        sorted(post.tokens).index(tokens[0])
        for post, tokens in zip(posts, ordered(posts, "random"), strict=True)
        if len(post.tokens) == 4
    )
    assert len(ranks) == 4
