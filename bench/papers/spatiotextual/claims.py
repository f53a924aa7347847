"""Whether what the paper says of its figures came out: orders of times or of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bench.report import Table

Setting = tuple[str, int]  # a kind of message, and its tokens


@dataclass(frozen=True, slots=True)
class Claim:
    """The first of two methods needs less than the second, for these kinds of messages."""

    less: str
    more: str
    kinds: tuple[str, ...] = ()  # all, if empty

    def __str__(self) -> str:
        where = f" ({', '.join(self.kinds)})" if self.kinds else ""
        return f"{self.less} < {self.more}{where}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """In how many settings a claim holds, and how far apart the two are in the median."""

    claim: str
    holds: int
    settings: int
    ratio: float

    @property
    def word(self) -> str:
        """Whether it reproduces."""
        if self.holds == self.settings:
            return "yes"
        return "mostly" if self.holds >= 0.75 * self.settings else "no"

    def plain(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**asdict(self), "reproduces": self.word}


def judge(
    claims: Iterable[Claim], measured: Mapping[Setting, Mapping[str, float]]
) -> list[Verdict]:
    """What the measured values say of each claim."""
    found = []
    for claim in claims:
        ratios = np.array(
            [
                own[claim.more] / own[claim.less]
                for (kind, _), own in measured.items()
                if not claim.kinds or kind in claim.kinds
            ]
        )
        found.append(
            Verdict(str(claim), int((ratios > 1).sum()), len(ratios), float(np.median(ratios)))
        )
    return found


def chain(*names: str) -> tuple[Claim, ...]:
    """Each of these needs less than the next."""
    return tuple(Claim(less, more) for less, more in pairwise(names))


def table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """The verdicts, for a report."""
    rows = [
        [one.claim, f"{one.holds} of {one.settings}", f"{one.ratio:.2f}", one.word]
        for one in verdicts
    ]
    return Table(title, ["the paper says", "holds in", "ratio, median of them", "reproduces"], rows)


def sentence(what: str, verdicts: Sequence[Verdict]) -> str:
    """One line that says whether an order reproduces."""
    words = [one.word for one in verdicts]
    if all(word == "yes" for word in words):
        return f"{what}: reproduces in every setting."
    good = [one.claim for one in verdicts if one.word != "no"]
    bad = [one.claim for one in verdicts if one.word == "no"]
    parts = [f"{', '.join(good)}: yes or mostly"] if good else []
    parts += [f"{', '.join(bad)}: no"] if bad else []
    return (
        f"{what}: reproduces in part ({'; '.join(parts)})."
        if good
        else f"{what}: does not reproduce."
    )
