"""Claims of the paper about orders of times or sizes, and verdicts on whether they reproduce."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bench.report import Table

Setting = tuple[str, int]  # a kind of message, and its number of tokens


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that one method needs less than another, for some kinds of messages."""

    less: str
    more: str
    kinds: tuple[str, ...] = ()  # all kinds if empty

    def __str__(self) -> str:
        where = f" ({', '.join(self.kinds)})" if self.kinds else ""
        return f"{self.less} < {self.more}{where}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The number of settings in which a claim holds, and the median ratio of the two methods."""

    claim: str
    holds: int
    settings: int
    ratio: float

    @property
    def word(self) -> str:
        """Whether the claim reproduces: yes, mostly or no."""
        if self.holds == self.settings:
            return "yes"
        return "mostly" if self.holds >= 0.75 * self.settings else "no"

    def plain(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        return {**asdict(self), "reproduces": self.word}


def judge(
    claims: Iterable[Claim], measured: Mapping[Setting, Mapping[str, float]]
) -> list[Verdict]:
    """Return the verdict on each claim, given measured values."""
    verdicts = []
    for claim in claims:
        ratios = np.array(
            [
                values[claim.more] / values[claim.less]
                for (kind, _), values in measured.items()
                if not claim.kinds or kind in claim.kinds
            ]
        )
        verdicts.append(
            Verdict(str(claim), int((ratios > 1).sum()), len(ratios), float(np.median(ratios)))
        )
    return verdicts


def chain(*names: str) -> tuple[Claim, ...]:
    """Return the claims that each method needs less than the next."""
    return tuple(Claim(less, more) for less, more in pairwise(names))


def table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """Return a table of verdicts."""
    rows = [
        [
            verdict.claim,
            f"{verdict.holds} of {verdict.settings}",
            f"{verdict.ratio:.2f}",
            verdict.word,
        ]
        for verdict in verdicts
    ]
    return Table(title, ["the paper says", "holds in", "ratio, median of them", "reproduces"], rows)


def sentence(what: str, verdicts: Sequence[Verdict]) -> str:
    """Return a sentence that says whether an order reproduces."""
    words = [verdict.word for verdict in verdicts]
    if all(word == "yes" for word in words):
        return f"{what}: reproduces in every setting."
    reproduced = [verdict.claim for verdict in verdicts if verdict.word != "no"]
    failed = [verdict.claim for verdict in verdicts if verdict.word == "no"]
    parts = [f"{', '.join(reproduced)}: yes or mostly"] if reproduced else []
    parts += [f"{', '.join(failed)}: no"] if failed else []
    return (
        f"{what}: reproduces in part ({'; '.join(parts)})."
        if reproduced
        else f"{what}: does not reproduce."
    )
