"""`TokenBoxes`, rectangles with token sets, and `Topics`, the distributions of their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Tokens: TypeAlias = NDArray[np.uint32]

_REDRAWS = 8
_SYLLABLES = [a + b for a in "bcdfghjklmnpqrstvwxz" for b in "aeiou"]


@dataclass(frozen=True, slots=True)
class TokenBoxes:
    """Rectangles with token sets: subscriptions or messages.

    boxes : (n, 4), x0 y0 x1 y1, closed.
    start, tokens : set i is `tokens[start[i]:start[i + 1]]`, ascending and distinct.
    """

    boxes: Floats
    start: Ints
    tokens: Tokens

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return self.boxes.nbytes + self.start.nbytes + self.tokens.nbytes

    @property
    def mean_tokens(self) -> float:
        """Mean number of tokens in a set."""
        return len(self.tokens) / max(1, len(self))

    def first(self, count: int) -> TokenBoxes:
        """Return the first `count` sets."""
        start = self.start[: count + 1]
        return TokenBoxes(self.boxes[:count], start, self.tokens[: start[-1]])


@dataclass(frozen=True, slots=True)
class Topics:
    """A distribution of tokens over a vocabulary.

    names : the token of each rank. With `zipf` ranks are log-uniform, which is Zipf's law with
        exponent 1; otherwise uniform.
    offsets : for each district, the shift of its local ranks: tokens that are rare elsewhere are
        frequent there.
    local : the share of tokens that are drawn by local ranks.
    """

    names: Tokens
    zipf: bool
    offsets: Ints
    local: float

    @property
    def vocabulary(self) -> int:
        """Number of distinct tokens."""
        return len(self.names)

    def draw(self, rng: np.random.Generator, districts: Ints) -> Tokens:
        """Return a random token for each of these districts."""
        count, size = len(districts), self.vocabulary
        if not self.zipf:
            return rng.integers(0, size, count).astype(np.uint32)
        rank = np.exp(rng.random(count) * np.log(size + 1)).astype(np.int64) - 1
        rank += np.where(rng.random(count) < self.local, self.offsets[districts], 0)
        drawn: Tokens = self.names[rank % size]
        return drawn


def zipf(rng: np.random.Generator, vocabulary: int, districts: int, local: float) -> Topics:
    """Return Zipf's law, with a share of tokens that are typical of a district."""
    names = rng.permutation(vocabulary).astype(np.uint32)
    return Topics(names, True, rng.integers(0, vocabulary, districts), local)


def uniform(vocabulary: int) -> Topics:
    """Return the uniform distribution, the same in all districts."""
    return Topics(np.arange(vocabulary, dtype=np.uint32), False, np.zeros(0, np.int64), 0.0)


def draw_sets(
    rng: np.random.Generator,
    topics: Topics,
    districts: Ints,
    lengths: Ints,
    fixed: tuple[Ints, Tokens] | None = None,
) -> tuple[Ints, Tokens]:
    """Return sets of distinct tokens, one for each length and district: start and tokens.

    fixed : positions among all tokens that are not drawn, and the tokens there.

    Duplicates in a set are drawn again. Duplicates that remain after some attempts, as in sets
    nearly as large as the vocabulary, are dropped.
    """
    size = np.uint64(topics.vocabulary)
    owner = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    tokens = topics.draw(rng, districts[owner.astype(np.int64)])
    if fixed is not None:
        tokens[fixed[0]] = fixed[1]
    keys = np.sort(owner * size + tokens)
    for _ in range(_REDRAWS):
        duplicates = _duplicates(keys)
        if not len(duplicates):
            break
        owners = keys[duplicates] // size
        keys[duplicates] = owners * size + topics.draw(rng, districts[owners.astype(np.int64)])
        keys.sort(kind="stable")  # nearly sorted already
    keys = np.delete(keys, _duplicates(keys))
    start = np.searchsorted(keys, np.arange(len(lengths) + 1, dtype=np.uint64) * size)
    return start, (keys % size).astype(np.uint32)


def _duplicates(keys: NDArray[np.uint64]) -> Ints:
    return np.flatnonzero(keys[1:] == keys[:-1]) + 1


def spell_words(vocabulary: int) -> pa.StringArray:
    """Return a word of letters for each token, all of the same length."""
    syllables, size = 1, len(_SYLLABLES)
    while size**syllables < vocabulary:
        syllables += 1
    numbers = np.arange(vocabulary)
    digits = np.stack([numbers // size**place % size for place in range(syllables)], axis=1)
    letters = np.frombuffer("".join(_SYLLABLES).encode(), np.uint8).reshape(size, 2)
    text = letters[digits].reshape(-1)
    ends = np.arange(vocabulary + 1, dtype=np.int32) * (2 * syllables)
    return pa.StringArray.from_buffers(vocabulary, pa.py_buffer(ends), pa.py_buffer(text))


def word_lists(sets: TokenBoxes, words: pa.StringArray) -> pa.ListArray:
    """Return the token sets as lists of words."""
    return pa.ListArray.from_arrays(
        pa.array(sets.start.astype(np.int32)), words.take(pa.array(sets.tokens))
    )
