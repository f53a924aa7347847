"""`match_best_of_table`: the matches of each event of a table, best first and with their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.engine.batch import RESULT, Pairs, match_pairs
from fencepost.engine.ranking import check_limits, scores_of_pairs
from fencepost.engine.snapshot import Snapshot

if TYPE_CHECKING:
    from fencepost.engine.matcher import DeadLetters, Matcher

SCORED_RESULT = RESULT.append(pa.field("score", pa.float64()))


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """Limits on the matches of an event: at most `top_k`, with scores of at least `min_score`."""

    top_k: int | None = None
    min_score: float | None = None

    def select(self, events: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the positions of the matches to keep; matches are sorted by event, best first."""
        rank = np.arange(len(events)) - np.searchsorted(events, events)
        is_kept = np.ones(len(events), bool)
        if self.top_k is not None:
            is_kept &= rank < self.top_k
        if self.min_score is not None:
            is_kept &= scores >= self.min_score
        return np.flatnonzero(is_kept)


def rank_pairs(
    matcher: Matcher, pairs: Pairs, ids: pa.Array, codes: NDArray[np.uint32], limits: MatchLimits
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the pairs within the limits, by event, then by descending score, then by id.

    Parameters
    ----------
    ids, codes
        The id of pair k is ids[codes[k]].

    Returns
    -------
    rows : int64 array
        Positions of the pairs.
    scores : float64 array
        The score of each.
    """
    scores = scores_of_pairs(matcher, pairs.snapshot, pairs)
    id_rank = pc.rank(ids, tiebreaker="first").to_numpy()
    rows = np.lexsort((id_rank[codes], -scores, pairs.events))
    rows = rows[limits.select(pairs.events[rows], scores[rows])]
    return rows, scores[rows]


def match_best_of_table(
    matcher: Matcher,
    snapshot: Snapshot,
    table: object,
    threads: int,
    dead_letters: DeadLetters | None,
    limits: MatchLimits,
) -> pa.Table:
    """Match a table of events as `Matcher.match_batch` does with limits."""
    check_limits(limits.top_k, limits.min_score)
    pairs = match_pairs(matcher, snapshot, table, threads, dead_letters)
    distinct, codes = pairs.dictionary_encode()
    ids = pairs.names("id", distinct)
    rows, scores = rank_pairs(matcher, pairs, ids, codes, limits)
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes[rows].view(np.int32)), ids, safe=False)
    columns = [pa.array(pairs.events[rows]), encoded, pa.array(scores)]
    return pa.table(columns, schema=SCORED_RESULT)
